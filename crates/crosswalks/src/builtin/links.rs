//! The format `oaimend_links`: what a record cites, what cites it, and which records of other repositories describe the same
//! work.
//!
//! What the record cites is read from the record, so it changes with its datestamp. Everything else is as of the response:
//! which records the mirror has of a cited work, which ones cite it, which ones are the same, and what a full text names.

use crate::conversion::{Conversion, NotConverted};
use crate::source_choice::SourceChoice;
use crate::source_record::SourceRecord;
use crate::table::Crosswalk;
use crate::xml_writer::{Root, XmlWriter};
use async_trait::async_trait;
use oaimend_resolver::{
    Citation, ContentIdentifier, ItemLinks, LinkedItem, LinksRequest, RecordNames, ResolvedSources, Resolver,
};
use std::sync::Arc;

/// The metadataPrefix.
pub const LINKS_PREFIX: &str = "oaimend_links";
/// The path of the schema of the format.
pub const LINKS_SCHEMA_PATH: &str = "/_crosswalks/oaimend_links.xsd";
/// The schema of the format.
pub const LINKS_SCHEMA: &str = include_str!("oaimend_links.xsd");

const NAMESPACE: &str = "urn:x-oaimend:links:1";
/// The version of the format, as in [`BuiltIn`](crate::BuiltIn).
const VERSION: &str = "1";
/// Maximum number of cited works whose records are found, and of records that cite it. The list of the latter continues
/// elsewhere. All identifiers of the record are written, so that they change only with its datestamp.
const LINKS_MAX: usize = 100;

/// The links of the records of a mirrored repository, for its crosswalk to `oaimend_links`.
#[derive(Clone, Debug)]
pub struct LinksSource {
    /// Finds the links.
    pub resolver: Resolver,
    /// The repositories whose records can be links.
    pub sources: Arc<ResolvedSources>,
    /// The repository id.
    pub repository: String,
}

impl LinksSource {
    /// The crosswalk. `public_url` is the URL of this server.
    pub(crate) fn crosswalk(&self, public_url: &str) -> Crosswalk {
        Crosswalk {
            prefix: LINKS_PREFIX.to_owned(),
            schema: format!("{public_url}{LINKS_SCHEMA_PATH}"),
            namespace: NAMESPACE.to_owned(),
            source: SourceChoice::References,
            version: VERSION.to_owned(),
            reads_other_records: true,
            conversion: Arc::new(LinksConversion { source: self.clone(), public_url: public_url.to_owned() }),
        }
    }
}

#[derive(Debug)]
struct LinksConversion {
    source: LinksSource,
    public_url: String,
}

#[async_trait]
impl Conversion for LinksConversion {
    async fn convert(&self, record: &SourceRecord<'_>) -> Result<String, NotConverted> {
        let names = RecordNames::of_document(record.identifier, Some(&record.document()?));
        let request = LinksRequest {
            repository: &self.source.repository,
            identifier: record.identifier,
            names: Some(&names),
            after: None,
            count_max: LINKS_MAX,
            named_max: usize::MAX,
        };
        let links = self.source.resolver.links(&self.source.sources, &request).await;
        // A record that has just been deleted has no links. The deletion is in a later list.
        let links = links.map_err(NotConverted::Now)?.unwrap_or_default();
        Ok(write(&links, &self.public_url))
    }
}

fn write(links: &ItemLinks, public_url: &str) -> String {
    let schema = format!("{public_url}{LINKS_SCHEMA_PATH}");
    let has_more = if links.has_more || links.next.is_some() { "true" } else { "false" };
    let root = Root {
        name: "links",
        namespaces: &[("", NAMESPACE)],
        schemas: &[(NAMESPACE, &schema)],
        attributes: &[("hasMore", has_more)],
    };
    root.write(|xml| {
        links.identifiers.iter().for_each(|identifier| write_identifier(identifier, xml));
        links.cites.iter().for_each(|citation| write_citation("cites", citation, xml));
        links.cited_by.iter().for_each(|citation| write_citation("citedBy", citation, xml));
        if !links.same_as.is_empty() {
            xml.element("sameAs", &[], |xml| {
                for duplicate in &links.same_as {
                    write_record(&duplicate.item, &[("by", duplicate.same_by.name())], xml);
                }
            });
        }
        links.incomplete.iter().for_each(|repository| xml.leaf("incomplete", &[], repository));
    })
}

fn write_identifier(identifier: &ContentIdentifier, xml: &mut XmlWriter) {
    xml.leaf("identifier", &[("kind", identifier.kind.name())], &identifier.value);
}

fn write_citation(name: &'static str, citation: &Citation, xml: &mut XmlWriter) {
    xml.element(name, &[("field", citation.field.name()), ("basis", citation.basis())], |xml| {
        citation.identifier.iter().for_each(|identifier| write_identifier(identifier, xml));
        citation.records.iter().for_each(|item| write_record(item, &[], xml));
    });
}

fn write_record(item: &LinkedItem, attributes: &[(&str, &str)], xml: &mut XmlWriter) {
    let attributes = [&[("repository", item.repository.as_str())], attributes].concat();
    xml.leaf("record", &attributes, &item.identifier);
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_resolver::{Duplicate, NamedIn, SameBy};

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
        let xml = write(&links, "https://e.org");
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
