//! The texts of the page of a record.

use maud::{Markup, html};

pub(crate) const ABSTRACT: &str = "Abstract";
pub(crate) const SUBJECTS: &str = "Subjects";
pub(crate) const ORCID: &str = "ORCID";

pub(crate) const LINKS: &str = "Links";
pub(crate) const OPEN_AT_SOURCE: &str = "Open at the source";
pub(crate) const FULL_TEXT: &str = "Full text";
pub(crate) const RELATED: &str = "Related";
pub(crate) const DOI: &str = "DOI";
pub(crate) const HANDLE: &str = "Handle";
pub(crate) const URN: &str = "URN";
pub(crate) const URL: &str = "URL";
pub(crate) const CITE: &str = "Cite";

pub(crate) const DETAILS: &str = "Details";
pub(crate) const PUBLISHED_IN: &str = "Published in";
pub(crate) const ISSN: &str = "ISSN";
pub(crate) const ISBN: &str = "ISBN";
pub(crate) const PUBLISHER: &str = "Publisher";
pub(crate) const CONTRIBUTORS: &str = "Contributors";
pub(crate) const TYPE: &str = "Type";
pub(crate) const FORMAT: &str = "Format";
pub(crate) const LANGUAGE: &str = "Language";
pub(crate) const SOURCE: &str = "Source";
pub(crate) const COVERAGE: &str = "Coverage";
pub(crate) const RIGHTS: &str = "Rights";

pub(crate) const PROVENANCE: &str = "Provenance";
pub(crate) const CHANGED_AT_SOURCE: &str = "Changed at the source";
pub(crate) const CHANGED_IN_MIRROR: &str = "Changed in the mirror";

pub(crate) const ALL_FIELDS: &str = "All fields";
pub(crate) const NO_PREFIX: &str = "no prefix";
pub(crate) const DOWNLOAD: &str = "Download: ";
pub(crate) const METADATA_ONLY: &str = "Metadata only";
pub(crate) const JSON_LD: &str = "JSON-LD";
pub(crate) const SHOW_XML: &str = "Show the XML";
pub(crate) const XML_OF_RECORD: &str = "XML of the record";

pub(crate) const REPAIRS: &str = "Repairs by oaimend";
pub(crate) const NO_REPAIRS: &str = "Nothing was repaired. The record is as its source sent it.";
pub(crate) const BEFORE: &str = "before";
pub(crate) const AFTER: &str = "after";
pub(crate) const NOTHING: &str = "nothing";

/// The heading of a record without a title.
pub(crate) fn untitled(identifier: &str) -> Markup {
    html! { "Record " bdi { (identifier) } }
}

/// The mark after a list of values that is cut.
pub(crate) fn and_more_values(left_out: usize) -> String {
    format!("and {left_out} more")
}

pub(crate) fn orcid_of(creator: &str) -> String {
    format!("ORCID of {creator}")
}

/// Where a work was published. `pages` is a range.
pub(crate) fn published_in(
    title: Option<&str>,
    volume: Option<&str>,
    issue: Option<&str>,
    pages: Option<&str>,
) -> String {
    let parts = [("", title), ("volume ", volume), ("issue ", issue), ("pages ", pages)];
    let parts = parts.into_iter().filter_map(|(name, part)| Some(format!("{name}{}", part?)));
    parts.collect::<Vec<_>>().join(", ")
}
