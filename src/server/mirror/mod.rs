//! The mirror of a running server: the views of its repositories, and harvests at their times.

pub(crate) mod admin;
pub(crate) mod harvest_runs;
pub(crate) mod harvest_schedule;
pub(crate) mod state;
pub(crate) mod views;
