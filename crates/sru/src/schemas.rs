//! The schemas in which records are sent, and the metadata of a stored record.

use oaimend_repository::RecordView;
use oaimend_repository::rebase_namespaces::{NamespaceScope, OAI, XSI};
use oaimend_repository::xml::XmlEvent;
use std::ops::Range;

/// A schema of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordSchema {
    /// Simple Dublin Core, in the form of OAI-PMH.
    DublinCore,
    /// MARC 21 in XML.
    MarcXml,
}

impl RecordSchema {
    /// All schemas.
    pub const ALL: [Self; 2] = [Self::DublinCore, Self::MarcXml];

    /// The schema with this short name, URI or namespace.
    pub(crate) fn find(name: &str) -> Option<Self> {
        let is_named = |schema: &Self| {
            schema.names().contains(&name) || schema.uri() == name || schema.namespace() == name
        };
        Self::ALL.into_iter().find(is_named)
    }

    /// Short names, the usual one first.
    pub(crate) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::DublinCore => &["oai_dc", "dc"],
            Self::MarcXml => &["marcxml", "marc21"],
        }
    }

    /// The name in the list of SRU schemas.
    pub const fn uri(self) -> &'static str {
        match self {
            Self::DublinCore => "info:srw/schema/1/dc-v1.1",
            Self::MarcXml => "info:srw/schema/1/marcxml-v1.1",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::DublinCore => "Dublin Core (oai_dc)",
            Self::MarcXml => "MARC 21 (MARCXML)",
        }
    }

    /// The namespace of the metadata.
    const fn namespace(self) -> &'static str {
        match self {
            Self::DublinCore => "http://www.openarchives.org/OAI/2.0/oai_dc/",
            Self::MarcXml => "http://www.loc.gov/MARC21/slim",
        }
    }

    /// Whether repositories serve this schema under this metadataPrefix. [`RecordSchema::metadata`] decides.
    pub fn may_have_prefix(self, prefix: &str) -> bool {
        match self {
            Self::DublinCore => prefix == "oai_dc",
            Self::MarcXml => prefix.to_ascii_lowercase().contains("marc"),
        }
    }

    /// The metadata of a stored record, as an XML element that declares its namespaces. `None` if the record has no
    /// metadata of this schema, or is not well-formed.
    pub fn metadata(self, record: &str) -> Option<String> {
        let metadata = metadata_place(record, self.namespace())?;
        let around = format!("<list xmlns=\"{OAI}\" xmlns:xsi=\"{XSI}\">{}", &record[..metadata.start]);
        Some(NamespaceScope::parse(&around).rebase(&record[metadata], &NamespaceScope::default()))
    }
}

/// The place of the element inside `metadata`, if it has this namespace.
fn metadata_place(record: &str, namespace: &str) -> Option<Range<usize>> {
    let mut content = RecordView::read(record)?.content_with_namespaces().ok()?;
    let (mut is_metadata, mut start) = (false, None);
    loop {
        let event = content.read().ok()??;
        let span = content.span();
        match (event, content.depth()) {
            (XmlEvent::Start(tag), 1) => is_metadata = tag.local_name() == "metadata",
            (XmlEvent::Start(tag), 2) if is_metadata => {
                if content.namespace(tag).ok()? != namespace {
                    return None;
                }
                start = Some(span.start);
            }
            (XmlEvent::End(_), 2) if is_metadata => return Some(start?..span.end),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_has_several_names() {
        for (name, schema) in [
            ("oai_dc", RecordSchema::DublinCore),
            ("dc", RecordSchema::DublinCore),
            ("info:srw/schema/1/dc-v1.1", RecordSchema::DublinCore),
            ("marcxml", RecordSchema::MarcXml),
            ("http://www.loc.gov/MARC21/slim", RecordSchema::MarcXml),
        ] {
            assert_eq!(RecordSchema::find(name), Some(schema), "{name}");
        }
        assert_eq!(RecordSchema::find("mods"), None);
    }

    #[test]
    fn the_metadata_declares_its_namespaces() {
        let record = "<record xmlns:d=\"http://www.loc.gov/MARC21/slim\"><header><identifier>1</identifier></header>\
                      <metadata xmlns:q=\"urn:q\"> <d:record xsi:a=\"1\"><d:x/></d:record>\n</metadata><about/></record>";
        assert_eq!(
            RecordSchema::MarcXml.metadata(record).as_deref(),
            Some(
                "<d:record xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
                 xmlns:d=\"http://www.loc.gov/MARC21/slim\" xmlns:q=\"urn:q\" \
                 xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:a=\"1\"><d:x/></d:record>"
            )
        );
        assert_eq!(RecordSchema::DublinCore.metadata(record), None, "another namespace");
        let deleted = "<record><header status=\"deleted\"><identifier>1</identifier></header></record>";
        assert_eq!(RecordSchema::MarcXml.metadata(deleted), None);
        let broken = "<record><header></header><metadata><x></metadata></record>";
        assert_eq!(RecordSchema::MarcXml.metadata(broken), None);
    }
}
