//! The headers of a response.

use super::exchange::CheckResponse;
use super::tree::Element;

/// A header, as the source wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) identifier: String,
    pub(crate) datestamp: String,
    pub(crate) sets: Vec<String>,
    pub(crate) is_deleted: bool,
}

/// The headers of a response, in order.
pub(crate) fn read_headers(response: &CheckResponse) -> Vec<Header> {
    let Some(verb) = response.verb_element() else { return Vec::new() };
    let within = verb.children_named("record").flat_map(|record| record.children_named("header"));
    verb.children_named("header").chain(within).map(read_header).collect()
}

pub(crate) fn read_header(element: &Element) -> Header {
    Header {
        identifier: element.child_text("identifier").unwrap_or_default().to_owned(),
        datestamp: element.child_text("datestamp").unwrap_or_default().to_owned(),
        sets: element.children_named("setSpec").map(|set| set.text.trim().to_owned()).collect(),
        is_deleted: element.attribute("status") == Some("deleted"),
    }
}
