//! The texts of the list of sets.

pub(crate) const NONE: &str = "No set has records here.";
pub(crate) const INTRODUCTION: &str = "The sets with records. A set contains the records of its subsets.";
pub(crate) const FURTHER: &str = "Further sets";
pub(crate) const FEED: &str = "Feed of the newest records of this set";
