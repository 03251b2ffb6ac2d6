//! The texts of the pages in place of lists.

pub(crate) const UNKNOWN_TITLE: &str = "No such list";
pub(crate) const UNKNOWN: &str = "The repository has no list of records at this address.";
pub(crate) const ALL_RECORDS: &str = "All records of the repository";
pub(crate) const NOT_HARVESTED: &str =
    "This server is copying the repository, and the copy is not complete yet. Try again later.";
pub(crate) const NOT_LISTED_TITLE: &str = "Not listed yet";
pub(crate) const NOT_LISTED: &str =
    "This server has not received the list of the records yet. Try again later.";
pub(crate) const UNKNOWN_MEMBERS_TITLE: &str = "The records of this set are not known";
pub(crate) const UNKNOWN_MEMBERS: &str =
    "The repository does not say which of its records are in this set. All records are in the other lists.";
pub(crate) const UNREADABLE_TITLE: &str = "List not available now";
pub(crate) const UNREADABLE: &str =
    "The copy of the repository cannot be read now. Try again in a few minutes.";
