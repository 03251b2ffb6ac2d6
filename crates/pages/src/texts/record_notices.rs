//! The texts of the pages in place of records: of deleted and unknown ones, and of those that cannot be shown.

use maud::{Markup, html};

pub(crate) const DELETED_TITLE: &str = "Deleted record";
pub(crate) const DELETED: &str = "This record was deleted";
pub(crate) const UNKNOWN_TITLE: &str = "Unknown record";
pub(crate) const UNKNOWN: &str = "No such record";
pub(crate) const WHAT_TO_DO: &str = "What you can do";
pub(crate) const COMPARE: &str =
    "Compare the identifier with the one in your source. Upper and lower case are different.";
pub(crate) const CHECK_THE_END: &str = "If the URL was copied from a text, check that its end is complete.";
pub(crate) const SEARCH: &str = "Search the records of the repository";
pub(crate) const AFTER_SEARCH: &str = ". A new record appears after the next harvest.";
/// Before the identifier.
pub(crate) const RECORD: &str = "Record: ";

pub(crate) const NOT_HARVESTED: &str = "This server is copying the repository. Until the copy is complete, it is not known whether the record exists.";
pub(crate) const TRY_LATER: &str = "Try again later.";
pub(crate) const TRY_SOON: &str = "Try again in a few minutes.";
pub(crate) const NOT_AVAILABLE_TITLE: &str = "Record not available now";
pub(crate) const DAMAGED: &str = "The copy of this record is damaged. The next harvest replaces it.";
pub(crate) const UNREADABLE: &str = "The copy of the repository cannot be read now.";
pub(crate) const SOURCE_FAILED: &str =
    "This server has no copy of the repository, and the repository did not send the record.";
pub(crate) const FOR_PEOPLE_ONLY_TITLE: &str = "No pages for crawlers";
pub(crate) const FOR_PEOPLE_ONLY: &str =
    "This server has no copy of the repository, so it would have to ask the repository for each record.";
pub(crate) const NOT_FOR_CRAWLERS: &str = "Crawlers do not receive these pages.";
pub(crate) const LINKS_NOT_KNOWN_TITLE: &str = "No links of records of this repository";
pub(crate) const LINKS_NOT_KNOWN: &str =
    "Links are known only between records that this server mirrors, and it has no copy of this repository.";
pub(crate) const NOT_IN_VIEW_TITLE: &str = "Not in this view";
pub(crate) const NOT_IN_VIEW: &str = "The view has no record with this identifier in this format.";
pub(crate) const LEFT_VIEW_TITLE: &str = "No longer in this view";
pub(crate) const LEFT_VIEW: &str =
    "The record has left the view, because it was deleted or does not match the view any more.";
pub(crate) const VIEW_UNREADABLE: &str = "The records of the view cannot be read now.";

/// Which record was deleted, and when.
pub(crate) fn deleted_at(identifier: &str, time: &str) -> Markup {
    html! {
        "The repository no longer has the record " bdi.identifier { (identifier) }
        ". It was deleted at " time datetime=(time) { (time) } "."
    }
}

/// The name of the link to the repository.
pub(crate) fn repository(name: &str) -> Markup {
    html! { "The repository " bdi { (name) } }
}

/// Which record is unknown.
pub(crate) fn unknown_in(repository: &str, identifier: &str) -> Markup {
    html! {
        "The repository " bdi { (repository) } " has no record with the identifier "
        bdi.identifier { (identifier) } "."
    }
}
