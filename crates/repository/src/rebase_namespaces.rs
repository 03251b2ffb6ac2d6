//! Moves an item from one response into another.
//!
//! The meaning of an item depends on the namespaces that the elements around it declare. If the new place
//! declares others, the item gets declarations of its own. Pure.

use crate::xml::{XmlEvent, XmlReader};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The namespaces that are declared around the items of a response: by prefix, as written in the XML. The
/// empty prefix is the default one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NamespaceScope(BTreeMap<String, String>);

impl NamespaceScope {
    /// The namespaces of these prefixes.
    pub fn new<'n>(namespaces: impl Iterator<Item = (&'n str, &'n str)>) -> Self {
        Self(namespaces.map(|(prefix, uri)| (prefix.to_owned(), uri.to_owned())).collect())
    }

    /// The namespaces around the items of a list of our own.
    pub fn of_own_list() -> &'static Self {
        static OWN_LIST: LazyLock<NamespaceScope> =
            LazyLock::new(|| NamespaceScope::new([("", OAI), ("xsi", XSI)].into_iter()));
        &OWN_LIST
    }

    /// The namespaces that are in scope at the end of a head.
    pub fn parse(head: &str) -> Self {
        let mut reader = XmlReader::new(head);
        let mut open: Vec<Vec<(String, String)>> = Vec::new();
        while let Ok(Some(event)) = reader.read() {
            match event {
                XmlEvent::Start(tag) => open.push(tag.declarations()),
                XmlEvent::End(_) => drop(open.pop()),
                _ => {}
            }
        }
        Self(open.into_iter().flatten().collect())
    }

    /// The namespace of a prefix.
    pub fn uri(&self, prefix: &str) -> Option<&str> {
        self.0.get(prefix).map(String::as_str)
    }

    /// The prefixes with their namespaces.
    pub fn declarations(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.0.iter().map(|(prefix, uri)| (prefix.as_str(), uri.as_str()))
    }

    /// The prefixes with their namespaces, without the default one.
    pub fn prefixes(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.declarations().filter(|(prefix, _)| !prefix.is_empty())
    }

    /// The item with the declarations that keep its meaning in `place`.
    pub fn rebase(&self, item: &str, place: &Self) -> String {
        if self.is_kept_in(place) {
            return item.to_owned();
        }
        let Ok(Some(XmlEvent::Start(tag))) = XmlReader::new(item).read() else { return item.to_owned() };
        let declarations = tag.declarations();
        let name_end = item.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/'));
        let (name, rest) = item.split_at(name_end.unwrap_or(item.len()));
        let mut moved = name.to_owned();
        let is_declared = |prefix: &str| declarations.iter().any(|(declared, _)| declared == prefix);
        for (prefix, uri) in &self.0 {
            if !is_declared(prefix) && place.0.get(prefix) != Some(uri) {
                declare(prefix, uri, &mut moved);
            }
        }
        if !is_declared("") && !self.0.contains_key("") && place.0.contains_key("") {
            declare("", "", &mut moved);
        }
        moved.push_str(rest);
        moved
    }

    /// Whether every item keeps its meaning in `place` without declarations of its own.
    fn is_kept_in(&self, place: &Self) -> bool {
        let has_default = self.0.contains_key("") || !place.0.contains_key("");
        has_default && self.0.iter().all(|(prefix, uri)| place.0.get(prefix) == Some(uri))
    }
}

/// The namespace of OAI-PMH 2.0.
pub const OAI: &str = "http://www.openarchives.org/OAI/2.0/";
/// The namespace of `xsi:schemaLocation` and `xsi:type`.
pub const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// A record with only this header, like a deleted one.
pub fn wrap_header(header: &str) -> String {
    let name = header.trim_start_matches('<').split(|c: char| c.is_ascii_whitespace() || c == '>').next();
    let prefix = name.and_then(|name| name.strip_suffix("header")).unwrap_or_default();
    format!("<{prefix}record>{header}</{prefix}record>")
}

/// Adds a declaration to the end of a start tag that is still open.
pub fn declare(prefix: &str, uri: &str, tag: &mut String) {
    let quote = if uri.contains('"') { '\'' } else { '"' };
    let colon = if prefix.is_empty() { "" } else { ":" };
    tag.push_str(&format!(" xmlns{colon}{prefix}={quote}{uri}{quote}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(from: &str, item: &str, to: &str) -> String {
        NamespaceScope::parse(from).rebase(item, &NamespaceScope::parse(to))
    }

    const PLAIN: &str = "<?xml version=\"1.0\"?><OAI-PMH xmlns=\"o\"><request>x</request><GetRecord>";

    #[test]
    fn an_item_with_equal_declarations_around_it_is_unchanged() {
        let item = "<record><header/></record>";
        assert_eq!(moved(PLAIN, item, "<OAI-PMH xmlns=\"o\" xmlns:a=\"b\"><ListRecords>"), item);
    }

    #[test]
    fn missing_and_different_declarations_are_added_to_the_item() {
        let from = "<OAI-PMH xmlns=\"o\" xmlns:dc=\"d\" xmlns:q='a\"b'><GetRecord xmlns:e=\"e\">";
        let to = "<OAI-PMH xmlns=\"o\" xmlns:dc=\"other\"><ListRecords>";
        assert_eq!(
            moved(from, "<record xmlns:e=\"own\" a=\"1\"><dc:x/></record>", to),
            "<record xmlns:dc=\"d\" xmlns:q='a\"b' xmlns:e=\"own\" a=\"1\"><dc:x/></record>"
        );
        assert_eq!(
            moved(PLAIN, "<record><a/></record>", "<o:OAI-PMH xmlns:o=\"o\"><o:ListRecords>"),
            "<record xmlns=\"o\"><a/></record>"
        );
        assert_eq!(
            moved("<o:OAI-PMH xmlns:o=\"o\"><o:GetRecord>", "<o:record><a/></o:record>", PLAIN),
            "<o:record xmlns:o=\"o\" xmlns=\"\"><a/></o:record>"
        );
    }

    #[test]
    fn closed_elements_do_not_declare_namespaces() {
        assert_eq!(
            NamespaceScope::parse("<a xmlns=\"1\"><b xmlns:x=\"2\">t</b><c>"),
            NamespaceScope::parse("<a xmlns=\"1\">")
        );
    }

    #[test]
    fn a_header_is_wrapped_into_a_record_with_its_prefix() {
        assert_eq!(
            wrap_header("<header status=\"deleted\"/>"),
            "<record><header status=\"deleted\"/></record>"
        );
        assert_eq!(wrap_header("<o:header>x</o:header>"), "<o:record><o:header>x</o:header></o:record>");
    }
}
