//! The bytes of the pages of a static repository around the items.

use super::rewrite::OAI;
use oaimend_repository::rebase_namespaces::{NamespaceScope, XSI, declare};

/// The bytes before and after the records of a list that make it a page for the engine.
pub(super) struct ListFrame {
    pub(super) head: Vec<u8>,
    pub(super) tail: String,
}

impl ListFrame {
    /// A list whose elements of OAI-PMH have this prefix, colon included.
    pub(super) fn of_list(doctype: &[u8], scope: &NamespaceScope, prefix: &str) -> Self {
        let oai_prefix = prefix.strip_suffix(':');
        let mut head = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_vec();
        head.extend_from_slice(doctype);
        let mut root = format!("<{prefix}OAI-PMH");
        declare(oai_prefix.unwrap_or_default(), OAI, &mut root);
        for (other, uri) in scope.prefixes().filter(|(other, _)| Some(*other) != oai_prefix) {
            declare(other, uri, &mut root);
        }
        let root = format!(
            "{root}><{prefix}responseDate>1970-01-01T00:00:00Z</{prefix}responseDate>\
             <{prefix}request>{NOBODY}</{prefix}request><{prefix}ListRecords>"
        );
        head.extend_from_slice(root.as_bytes());
        Self { head, tail: format!("</{prefix}ListRecords></{prefix}OAI-PMH>") }
    }
}

/// The beginning of a page, up to its first item. The session writes the content of `request`.
///
/// The root declares the prefixes, because the engine corrects misspelt namespaces there.
pub(super) fn head(doctype: &[u8], verb: &str, scope: &NamespaceScope, requested_at: &str) -> Vec<u8> {
    let mut root = format!("<OAI-PMH xmlns=\"{OAI}\"");
    declare("xsi", scope.uri("xsi").unwrap_or(XSI), &mut root);
    for (prefix, uri) in scope.prefixes().filter(|(prefix, _)| *prefix != "xsi") {
        declare(prefix, uri, &mut root);
    }
    let mut head = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_vec();
    head.extend_from_slice(doctype);
    let open = format!(
        "{root} xsi:schemaLocation=\"{OAI} http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n\
         <responseDate>{requested_at}</responseDate>\n<request>{NOBODY}</request>\n<{verb}>\n"
    );
    head.extend_from_slice(open.as_bytes());
    head
}

/// A placeholder for the base URL of a page, until the session writes ours.
pub(super) const NOBODY: &str = "http://static-repository.invalid/";
