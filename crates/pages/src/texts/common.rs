//! The texts that several pages share.

use super::numbers::grouped;

pub(crate) const REPOSITORY: &str = "Repository";
pub(crate) const REPOSITORIES: &str = "Repositories";
pub(crate) const RECORD: &str = "Record";
pub(crate) const RECORDS: &str = "Records";
pub(crate) const SETS: &str = "Sets";
pub(crate) const FORMATS: &str = "Formats";
pub(crate) const IDENTIFY: &str = "Identify";
pub(crate) const IDENTIFIER: &str = "Identifier";
pub(crate) const IDENTIFIERS: &str = "Identifiers";
pub(crate) const METADATA: &str = "Metadata";
pub(crate) const ABOUT_METADATA: &str = "About the metadata";
pub(crate) const FIELD: &str = "Field";
pub(crate) const VALUE: &str = "Value";
pub(crate) const NAME: &str = "Name";
pub(crate) const XML: &str = "XML";
pub(crate) const BASE_URL: &str = "Base URL";
pub(crate) const CONTACT: &str = "Contact";
pub(crate) const EARLIEST_DATESTAMP: &str = "Earliest datestamp";
pub(crate) const DELETED_RECORDS: &str = "Deleted records";
pub(crate) const CREATORS: &str = "Creators";
pub(crate) const OPEN_ACCESS: &str = "Open access";

pub(crate) const PAGES: &str = "Pages";
pub(crate) const FIRST_PAGE: &str = "First page";
pub(crate) const PREVIOUS_PAGE: &str = "Previous page";
pub(crate) const NEXT_PAGE: &str = "Next page";
pub(crate) const PREVIOUS: &str = "Previous";
pub(crate) const NEXT: &str = "Next";

pub(crate) const ALL_REPOSITORIES: &str = "All repositories";
/// Before links to the values of fields.
pub(crate) const BROWSE_BY: &str = "Browse by ";

pub(crate) const NOT_HARVESTED_TITLE: &str = "Not harvested yet";
pub(crate) const PAGES_OFF_TITLE: &str = "No record pages";
pub(crate) const PAGES_OFF: &str = "This server has no pages for the records of this repository.";
pub(crate) const REPOSITORY_REMOVED_TITLE: &str = "Repository removed";
pub(crate) const REPOSITORY_REMOVED: &str = "This server no longer has the records of this repository.";

/// The title of a page about a repository.
pub(crate) fn title(heading: &str, repository: &str) -> String {
    format!("{heading} – {repository}")
}

/// A number of records.
pub fn number_of_records(count: u64) -> String {
    if count == 1 { "1 record".to_owned() } else { format!("{} records", grouped(count)) }
}

/// The mark after a list that is cut.
pub(crate) fn and_more(left_out: u64) -> String {
    format!("… and {} more", grouped(left_out))
}

/// The mark after the table of a long record.
pub(crate) fn more_fields(left_out: usize) -> String {
    format!("… {left_out} more fields are in the XML only")
}

/// The mark after a text that is cut. `size` is the length of the rest.
pub(crate) fn not_shown(size: &str) -> String {
    format!("… {size} not shown")
}
