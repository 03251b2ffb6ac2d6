//! The links of an item as the element of the format `oaimend_links`. Pure.

use crate::content_identifier::ContentIdentifier;
use crate::links::{Citation, ItemLinks, LinkedItem, SameBy};
use oaimend_oai::escape;

/// The namespace of the element.
pub const LINKS_NAMESPACE: &str = "urn:x-oaimend:links:1";
/// The path of its schema.
pub const LINKS_SCHEMA_PATH: &str = "/_crosswalks/oaimend_links.xsd";
/// Its schema.
pub const LINKS_SCHEMA: &str = include_str!("links.xsd");

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// The element, which declares its namespaces. `public_url` is the URL of this server, without a slash at its end.
pub fn links_xml(links: &ItemLinks, public_url: &str) -> String {
    let mut xml = Xml::default();
    let location = format!("{LINKS_NAMESPACE} {public_url}{LINKS_SCHEMA_PATH}");
    let has_more = if links.has_more || links.next.is_some() { "true" } else { "false" };
    let attributes = [
        ("xmlns", LINKS_NAMESPACE),
        ("xmlns:xsi", XSI),
        ("xsi:schemaLocation", &location),
        ("hasMore", has_more),
    ];
    xml.element("links", &attributes, |xml| {
        links.identifiers.iter().for_each(|identifier| xml.identifier(identifier));
        links.cites.iter().for_each(|citation| xml.citation("cites", citation));
        links.cited_by.iter().for_each(|citation| xml.citation("citedBy", citation));
        if !links.same_as.is_empty() {
            xml.element("sameAs", &[], |xml| {
                for duplicate in &links.same_as {
                    xml.record(&duplicate.item, &[("by", same_by(&duplicate.same_by))]);
                }
            });
        }
        links.incomplete.iter().for_each(|repository| xml.text("incomplete", &[], repository));
    });
    xml.0
}

/// The name of a reason in XML and JSON: the kind of the identifier that both records have, or `description`.
fn same_by(reason: &SameBy) -> &'static str {
    match reason {
        SameBy::Identifier(identifier) => identifier.kind.name(),
        SameBy::Description => "description",
    }
}

impl SameBy {
    /// The kind of the identifier that both records have, or `description`.
    pub fn name(&self) -> &'static str {
        same_by(self)
    }
}

#[derive(Default)]
struct Xml(String);

impl Xml {
    fn element(&mut self, name: &str, attributes: &[(&str, &str)], content: impl FnOnce(&mut Self)) {
        self.0.push('<');
        self.0.push_str(name);
        for (name, value) in attributes {
            self.0.push_str(&format!(" {name}=\""));
            escape(value, &mut self.0);
            self.0.push('"');
        }
        self.0.push('>');
        content(self);
        self.0.push_str(&format!("</{name}>"));
    }

    fn text(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.element(name, attributes, |xml| escape(text, &mut xml.0));
    }

    fn identifier(&mut self, identifier: &ContentIdentifier) {
        self.text("identifier", &[("kind", identifier.kind.name())], &identifier.value);
    }

    fn citation(&mut self, name: &str, citation: &Citation) {
        let basis = if citation.field.states_reference() { "stated" } else { "mentioned" };
        self.element(name, &[("field", citation.field.name()), ("basis", basis)], |xml| {
            citation.identifier.iter().for_each(|identifier| xml.identifier(identifier));
            citation.records.iter().for_each(|item| xml.record(item, &[]));
        });
    }

    fn record(&mut self, item: &LinkedItem, attributes: &[(&str, &str)]) {
        let attributes = [&[("repository", item.repository.as_str())], attributes].concat();
        self.text("record", &attributes, &item.identifier);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::Duplicate;
    use crate::record_identifiers::NamedIn;

    #[test]
    fn links_are_written_with_their_basis() {
        let doi = |value: &str| ContentIdentifier::read(value).remove(0);
        let item = |identifier: &str| LinkedItem {
            repository: "y".to_owned(),
            identifier: identifier.to_owned(),
            title: None,
        };
        let links = ItemLinks {
            identifiers: vec![doi("10.1000/<1>")],
            cites: vec![Citation {
                field: NamedIn::References,
                identifier: Some(doi("10.1000/2")),
                records: vec![item("oai:y:\"&\u{1}")],
            }],
            cited_by: vec![Citation {
                field: NamedIn::Relation,
                identifier: None,
                records: vec![item("oai:y:3")],
            }],
            same_as: vec![Duplicate { item: item("oai:y:4"), same_by: SameBy::Description }],
            incomplete: vec!["z".to_owned()],
            ..ItemLinks::default()
        };
        let xml = links_xml(&links, "https://e.org");
        for part in [
            "<links xmlns=\"urn:x-oaimend:links:1\"",
            "https://e.org/_crosswalks/oaimend_links.xsd\" hasMore=\"false\">",
            "<identifier kind=\"doi\">10.1000/&lt;1&gt;</identifier>",
            "<cites field=\"references\" basis=\"stated\"><identifier kind=\"doi\">10.1000/2</identifier><record repository=\"y\">",
            "<citedBy field=\"relation\" basis=\"mentioned\"><record repository=\"y\">oai:y:3</record></citedBy>",
            "<sameAs><record repository=\"y\" by=\"description\">oai:y:4</record></sameAs><incomplete>z</incomplete></links>",
        ] {
            assert!(xml.contains(part), "{part}\n{xml}");
        }
        assert!(!xml.contains('\u{1}'), "{xml}");
    }
}
