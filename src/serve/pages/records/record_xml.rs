//! The XML of a record as documents of their own.

use oaimend_mirror::view::record_xml::{Header, read_record};
use oaimend_oai::datestamp::Granularity;
use oaimend_repository::rebase_namespaces::NamespaceScope;
use oaimend_repository::xml::{XmlEvent, XmlReader};
use oaimend_repository::{Failure, RecordView};
use oaimend_store::StoredRecord;

/// The usual length of a header, in bytes.
const HEADER_BYTES: usize = 512;

/// The record with the header of its source. The store has it as an item of a list, which declares some of its namespaces.
pub(super) fn written(record: &RecordView<'_>, header: &Header<'_>) -> String {
    let mut xml = String::with_capacity(record.text().len() + HEADER_BYTES);
    header.write_record(record, &[], &mut xml);
    NamespaceScope::of_own_list().rebase(&xml, &NamespaceScope::default())
}

/// The first line of a document.
pub(super) const XML_DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// The metadata of a record as a document of its own: the bytes at its URL with `?raw=PREFIX`, which the lists of
/// ResourceSync hash. `None` if it has none.
///
/// # Errors
///
/// The stored record cannot be read.
pub(crate) fn raw_metadata(stored: &StoredRecord) -> Result<Option<String>, Failure> {
    let record = read_record(stored)?;
    // The header is not in the metadata.
    let xml = written(&record, &Header::of_source(stored, Granularity::Second));
    Ok(metadata_of(&xml).map(|metadata| format!("{XML_DECLARATION}{metadata}\n")))
}

/// The element inside the metadata of a record that is a document of its own. `None` if there is none.
pub(crate) fn metadata_of(record: &str) -> Option<String> {
    let mut reader = XmlReader::new(record);
    let (mut is_metadata, mut start) = (false, None);
    loop {
        let event = reader.read().ok()??;
        match (event, reader.depth()) {
            (XmlEvent::Start(tag), 1) => is_metadata = tag.local_name() == "metadata",
            (XmlEvent::Start(_), 2) if is_metadata => start = start.or(Some(reader.span().start)),
            (XmlEvent::End(_), 2) if let Some(start) = start => {
                let around = NamespaceScope::parse(record.get(..start)?);
                let element = record.get(start..reader.span().end)?;
                return Some(around.rebase(element, &NamespaceScope::default()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_keep_their_namespaces_without_the_record() {
        let record = |metadata: &str| {
            format!(
                "<record xmlns:d='urn:d'><header><metadata/></header><o:metadata xmlns:o='urn:o'>{metadata}</o:metadata></record>"
            )
        };
        for (metadata, expected) in [
            (" <d:a>é&amp;<b/></d:a> ", Some("<d:a xmlns:d=\"urn:d\" xmlns:o=\"urn:o\">é&amp;<b/></d:a>")),
            ("<a xmlns:d='urn:e'/>", Some("<a xmlns:o=\"urn:o\" xmlns:d='urn:e'/>")),
            ("", None),
        ] {
            assert_eq!(metadata_of(&record(metadata)).as_deref(), expected, "{metadata}");
        }
        assert_eq!(metadata_of("<record><header/><about><a/></about></record>"), None);
    }
}
