//! The texts of the pages of responses.

use maud::{Markup, html};

pub(crate) const REQUEST: &str = "Request";
/// In place of a verb.
pub(crate) const SOME_REQUEST: &str = "request";
pub(crate) const METADATA_FORMATS: &str = "Metadata formats";
pub(crate) const FAILED: &str = "The request failed";
pub(crate) const REQUESTS: &str = "Requests";
pub(crate) const BROKEN_OFF: &str = "The response was broken off.";
pub(crate) const IS_INCOMPLETE: &str = " It is not complete: the end is missing.";
pub(crate) const SHOWN_PART: &str =
    "This page shows the part that arrived. Load it again to repeat the request.";
pub(crate) const EMPTY: &str = "The response is empty.";
pub(crate) const FOR_HARVESTERS: &str = "For harvesters";
/// Before a URL.
pub(crate) const URL_OF_REQUEST: &str = "URL of this request: ";
pub(crate) const SHOW_XML: &str = "Show XML";

pub(crate) const PROTOCOL_VERSION: &str = "Protocol version";
pub(crate) const GRANULARITY: &str = "Granularity of datestamps";
pub(crate) const COMPRESSION: &str = "Compression";
pub(crate) const DESCRIPTIONS: &str = "Descriptions";
pub(crate) const DESCRIPTIONS_CAPTION: &str = "Descriptions of the repository";
pub(crate) const UNREADABLE_FIELDS: &str = "This server cannot read the fields of the record.";
pub(crate) const SHOW_XML_OF_RECORD: &str = "Show the XML of the record";
pub(crate) const DELETED: &str = "deleted";
pub(crate) const IS_DELETED: &str = " The repository no longer has this record.";
pub(crate) const HEADER: &str = "Header";
pub(crate) const DATESTAMP: &str = "Datestamp";
pub(crate) const PAGE: &str = "Page";
pub(crate) const RECORD_PAGE: &str = "The page of the record, from the mirror";

pub(crate) const FORMATS_OF_RECORD: &str = "Formats of the record";
pub(crate) const FORMATS_OF_REPOSITORY: &str = "Formats of the repository";
pub(crate) const FORMAT: &str = "Format";
pub(crate) const FORMAT_CONTENT: &str = "Namespace, schema and records";
pub(crate) const SETS_OF_REPOSITORY: &str = "Sets of the repository";
pub(crate) const SET: &str = "Set";
pub(crate) const SET_CONTENT: &str = "Name and records";
pub(crate) const ON_THIS_PAGE: &str = " on this page";
pub(crate) const END_OF_LIST: &str = "This is the end of the list.";
pub(crate) const LONG_TOKEN: &str = "The next page has no link: its resumptionToken is too long.";

pub(crate) const TOO_LARGE_TITLE: &str = "The response is too large to be shown";
pub(crate) const TOO_LARGE: &str =
    "The response is longer than 8 MiB, the longest that this server shows as a page.";
pub(crate) const UNREADABLE_TITLE: &str = "The response cannot be shown";
pub(crate) const UNREADABLE: &str =
    "This server cannot read the XML of the response in order to show it as a page.";
pub(crate) const OPEN_XML: &str = "Open its XML.";
pub(crate) const BUSY_TITLE: &str = "The server is busy";
pub(crate) const BUSY: &str = "The server renders too many other pages now.";
pub(crate) const TRY_SOON: &str = "Try again in a few seconds, or open the XML.";

pub(crate) const BAD_ARGUMENT_TITLE: &str = "Wrong arguments";
pub(crate) const BAD_ARGUMENT: &str = "An argument of the URL is missing, unknown, repeated or not legal. Compare the URL below with the message above.";
pub(crate) const BAD_TOKEN_TITLE: &str = "The list cannot be continued";
pub(crate) const BAD_VERB_TITLE: &str = "No such request";
pub(crate) const BAD_VERB: &str =
    "The URL names no request, or an unknown one. Choose one of the requests above.";
pub(crate) const NO_FORMAT_TITLE: &str = "Format not available";
pub(crate) const NO_RECORD_TITLE: &str = "No such record";
pub(crate) const NO_MATCH_TITLE: &str = "No matching records";
pub(crate) const NO_FORMATS_TITLE: &str = "No formats";
pub(crate) const NO_FORMATS: &str = "No format of this record is available.";
pub(crate) const NO_SETS_TITLE: &str = "No sets";
pub(crate) const ERROR_TITLE: &str = "Error";
pub(crate) const UNKNOWN_ERROR: &str =
    "OAI-PMH 2.0 does not define this error code. The operator of the repository knows more.";

pub(crate) fn load_again(secs: u64) -> String {
    format!("Load this page again in {secs} seconds.")
}

/// The place of a page in a list whose size is known.
pub(crate) fn items_of(first: u64, last: u64, size: u64) -> String {
    format!("{first}–{last} of {size}")
}

pub(crate) fn number_of_items(count: u64) -> String {
    if count == 1 { "1 item".to_owned() } else { format!("{count} items") }
}

/// The mark after a list that is cut.
pub(crate) fn more_items(left_out: usize) -> String {
    format!("… {left_out} more items of this page are in the XML only")
}

/// The advice for a resumptionToken that is refused.
pub(crate) fn bad_token(first_page_url: &str) -> Markup {
    html! {
        "The resumptionToken is not valid, or it has expired. " a href=(first_page_url) { "Start the list again" } "."
    }
}

/// The advice for a format that is not available.
pub(crate) fn no_format(formats_url: &str) -> Markup {
    html! {
        "The repository or the record does not have this format. Choose one of its " a href=(formats_url) { "formats" } "."
    }
}

/// The advice for an unknown identifier.
pub(crate) fn no_record(identifiers_url: &str) -> Markup {
    html! {
        "No record has this identifier. Compare it with the " a href=(identifiers_url) { "list of identifiers" } "."
    }
}

/// The advice for an empty list.
pub(crate) fn no_match(list_url: &str) -> Markup {
    html! {
        "No record has these dates, this set and this format. The request is correct. You can open the "
        a href=(list_url) { "whole list" } "."
    }
}

/// The advice for a repository without sets.
pub(crate) fn no_sets(list_url: &str) -> Markup {
    html! { "The repository has no sets. You can open the " a href=(list_url) { "list of all records" } "." }
}
