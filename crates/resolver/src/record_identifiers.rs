//! The identifiers that a record names in its metadata. Pure.

use crate::content_identifier::ContentIdentifier;
use oaimend_oai::named_enum;
use oaimend_record::{DublinCore, RecordDocument, Text};
use oaimend_repository::RecordView;
use oaimend_store::{IdentifiedRecord, IdentifierKey, RecordStatus, StoredRecord};

named_enum! {
    /// The field of Dublin Core that names an identifier, the most important one first. Crosswalks read it from any format.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum NamedIn {
        /// The record is about what the identifier names, or its OAI identifier contains it.
        Identifier = "identifier",
        /// A related work.
        Relation = "relation",
        /// A work that contains the described one, or from which it is derived.
        Source = "source",
    }
}

/// Maximum number of identifiers of a record that are found. Further ones are left out.
const IDENTIFIERS_MAX: usize = 100;

/// What OpenAIRE writes before an identifier in `relation` that identifies the work itself.
const ALTERNATIVE: &str = "info:eu-repo/semantics/altIdentifier/";

/// The key of an OAI identifier.
pub(crate) fn oai_key(identifier: &str) -> IdentifierKey {
    IdentifierKey::new("oai", identifier)
}

/// The keys of a record for the table of identifiers.
pub(crate) fn keys_of(record: &StoredRecord) -> IdentifiedRecord {
    let named = identifiers_of(record).iter().map(|(identifier, _)| identifier.key()).collect();
    IdentifiedRecord { identifier: oai_key(&record.identifier), sequence: record.sequence, named }
}

/// The identifiers that a record names, each with its most important field, without repetition. A deleted record names
/// none, and so does one that cannot be read.
pub(crate) fn identifiers_of(record: &StoredRecord) -> Vec<(ContentIdentifier, NamedIn)> {
    let mut found = Vec::new();
    if record.status == RecordStatus::Deleted {
        return found;
    }
    let mut add = |identifiers: Vec<ContentIdentifier>, field| {
        for identifier in identifiers {
            if found.len() < IDENTIFIERS_MAX && found.iter().all(|(known, _)| *known != identifier) {
                found.push((identifier, field));
            }
        }
    };
    add(ContentIdentifier::read(&record.identifier), NamedIn::Identifier);
    let xml = std::str::from_utf8(&record.bytes).unwrap_or_default();
    let document = RecordView::read(xml).and_then(|view| RecordDocument::read_content(&view).ok());
    let Some(core) = document.map(|document| DublinCore::of(&document)) else { return found };
    let is_alternative = |text: &&Text| text.value.starts_with(ALTERNATIVE);
    let alternatives = core.relations.iter().filter(is_alternative);
    for text in core.identifiers.iter().chain(alternatives) {
        add(ContentIdentifier::read_all(&text.value), NamedIn::Identifier);
    }
    for (texts, field) in [(&core.relations, NamedIn::Relation), (&core.sources, NamedIn::Source)] {
        for text in texts {
            add(ContentIdentifier::read_all(&text.value), field);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_oai::UnixSecs;

    fn record(status: RecordStatus, fields: &str) -> StoredRecord {
        let xml = format!(
            "<record><header><identifier>oai:arXiv.org:0704.0001</identifier></header><metadata>\
             <oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\">{fields}</oai_dc:dc></metadata></record>"
        );
        StoredRecord {
            identifier: "oai:arXiv.org:0704.0001".to_owned(),
            datestamp_secs: UnixSecs(0),
            stamp_secs: UnixSecs(0),
            sequence: 3,
            set_specs: Vec::new(),
            status,
            bytes: xml.into(),
        }
    }

    fn names(record: &StoredRecord) -> Vec<(String, NamedIn)> {
        let name = |(identifier, field): (ContentIdentifier, NamedIn)| {
            (format!("{} {}", identifier.kind.name(), identifier.value), field)
        };
        identifiers_of(record).into_iter().map(name).collect()
    }

    const FIELDS: &str = "<dc:title>10.1000/title</dc:title><dc:relation>10.1000/a</dc:relation>\
        <dc:relation>info:eu-repo/semantics/altIdentifier/isbn/9783161484100</dc:relation>\
        <dc:identifier>https://doi.org/10.1000/A</dc:identifier><dc:source>See doi:10.1000/s.</dc:source>\
        <dc:relation>10.1000/r</dc:relation><dc:identifier>No identifier</dc:identifier>";

    #[test]
    fn identifiers_have_their_most_important_field() {
        let expected = [
            ("arxiv 0704.0001", NamedIn::Identifier),
            ("doi 10.1000/a", NamedIn::Identifier),
            ("isbn 9783161484100", NamedIn::Identifier),
            ("doi 10.1000/r", NamedIn::Relation),
            ("doi 10.1000/s", NamedIn::Source),
        ];
        let record = record(RecordStatus::Live, FIELDS);
        assert_eq!(names(&record), expected.map(|(name, field)| (name.to_owned(), field)));
        let keys = keys_of(&record);
        assert_eq!((keys.sequence, keys.named.len()), (3, 5));
        assert_eq!(keys.identifier, oai_key("oai:arXiv.org:0704.0001"));
    }

    #[test]
    fn deleted_and_broken_records_name_nothing_in_their_metadata() {
        assert_eq!(names(&record(RecordStatus::Deleted, FIELDS)), []);
        let broken = record(RecordStatus::Live, "<dc:identifier>10.1000/a</dc:relation>");
        assert_eq!(names(&broken).len(), 1, "its own identifier");
    }

    #[test]
    fn the_number_of_identifiers_is_limited() {
        let many: String =
            (0..200).map(|number| format!("<dc:identifier>10.1000/{number}</dc:identifier>")).collect();
        assert_eq!(names(&record(RecordStatus::Live, &many)).len(), IDENTIFIERS_MAX);
    }
}
