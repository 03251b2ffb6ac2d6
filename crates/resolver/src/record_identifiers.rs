//! The identifiers that a record names in its metadata. Pure.

use crate::content_identifier::ContentIdentifier;
use oaimend_oai::named_enum;
use oaimend_record::{DublinCore, PublicationDate, RecordDocument, References, Text, on_one_line, shorten};
use oaimend_repository::RecordView;
use oaimend_store::{IdentifiedRecord, IdentifierKey, RecordStatus, StoredRecord};
use std::collections::HashSet;

named_enum! {
    /// The field of a record that names an identifier, the most important one first. Crosswalks read it from any format.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum NamedIn {
        /// The record is about what the identifier names, or its OAI identifier contains it.
        Identifier = "identifier",
        /// A work in its list of references.
        References = "references",
        /// A work that cites it.
        ReferencedBy = "isReferencedBy",
        /// A related work.
        Relation = "relation",
        /// A work that contains the described one, or from which it is derived.
        Source = "source",
        /// A work in its abstract.
        Description = "description",
        /// A work in the list of references of its full text, as a guess: a program has read it from a PDF.
        FullText = "fullText",
    }
}

/// What a field says of the record and the named work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The record describes the work.
    Own,
    /// The record cites the work, or mentions it.
    Cited,
    /// The work cites the record.
    Citing,
}

impl NamedIn {
    /// What the field says.
    pub(crate) const fn role(self) -> Role {
        match self {
            Self::Identifier => Role::Own,
            Self::References | Self::Relation | Self::Source | Self::Description | Self::FullText => {
                Role::Cited
            }
            Self::ReferencedBy => Role::Citing,
        }
    }

    /// Whether the field names works that the record cites or that cite it, and does not describe them.
    pub(crate) const fn is_of_cited_work(self) -> bool {
        matches!(self, Self::References | Self::ReferencedBy | Self::Description | Self::FullText)
    }

    /// The name of its certainty in XML and JSON: the field states a citation, or mentions a work for any reason, or a
    /// program guesses a citation.
    pub const fn basis(self) -> &'static str {
        match self {
            Self::References | Self::ReferencedBy => "stated",
            Self::Identifier | Self::Relation | Self::Source | Self::Description => "mentioned",
            Self::FullText => "guess",
        }
    }
}

/// A stored record, and what the full text of its item names.
#[derive(Clone, Debug)]
pub(crate) struct ReadRecord {
    pub(crate) record: StoredRecord,
    /// The works in the list of references of the full text.
    pub(crate) guessed: Vec<ContentIdentifier>,
}

/// What a record names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordNames {
    /// The identifiers, each with its most important field, without repetition.
    pub(crate) identifiers: Vec<(ContentIdentifier, NamedIn)>,
    /// The title, the year and the first creator in one form for all spellings; `None` unless all of them are known.
    pub(crate) work: Option<String>,
    /// The first title, at most [`TITLE_BYTES_MAX`] long.
    pub(crate) title: Option<String>,
    /// Whether the record names more than was read.
    pub(crate) is_cut: bool,
}

/// Maximum number of identifiers of a record that are found. Further ones are left out. A review article has several
/// hundred references.
const IDENTIFIERS_MAX: usize = 1_000;
/// Shortest title that tells works apart, in letters and digits. `Editorial` is the title of many works of one author.
const TITLE_CHARS_MIN: usize = 12;
/// Longest title that is kept for people, in bytes.
const TITLE_BYTES_MAX: usize = 300;
/// Longest title that is compared, in bytes.
const COMPARED_BYTES_MAX: usize = 2_048;

/// What OpenAIRE writes before an identifier in `relation` that identifies the work itself.
const ALTERNATIVE: &str = "info:eu-repo/semantics/altIdentifier/";

/// The key of an OAI identifier.
pub(crate) fn oai_key(identifier: &str) -> IdentifierKey {
    IdentifierKey::new("oai", identifier)
}

/// The key of a work by its title, year and first creator.
pub(crate) fn work_key(work: &str) -> IdentifierKey {
    IdentifierKey::new("work", work)
}

/// The key of an identifier in a role. What a record is and what it cites have different keys.
pub(crate) fn key_in_role(identifier: &ContentIdentifier, role: Role) -> IdentifierKey {
    let kind = identifier.kind.name();
    match role {
        Role::Own => identifier.key(),
        Role::Cited => IdentifierKey::new(&format!("cited/{kind}"), &identifier.value),
        Role::Citing => IdentifierKey::new(&format!("citing/{kind}"), &identifier.value),
    }
}

/// The keys of a record for the table of identifiers.
pub(crate) fn keys_of(read: &ReadRecord) -> IdentifiedRecord {
    let (names, record) = (RecordNames::of(read), &read.record);
    let identifiers = names.identifiers.iter();
    let named = identifiers.map(|(identifier, field)| key_in_role(identifier, field.role()));
    let named = named.chain(names.work.as_deref().map(work_key)).collect();
    IdentifiedRecord { identifier: oai_key(&record.identifier), sequence: record.sequence, named }
}

impl RecordNames {
    /// What a stored record names. A deleted record names nothing, and so does the metadata of one that cannot be read.
    pub(crate) fn of(read: &ReadRecord) -> Self {
        let record = &read.record;
        if record.status == RecordStatus::Deleted {
            return Self::default();
        }
        let xml = std::str::from_utf8(&record.bytes).unwrap_or_default();
        let document = RecordView::read(xml).and_then(|view| RecordDocument::read_for_conversion(&view).ok());
        let mut found = Found::of_document(&record.identifier, document.as_ref());
        found.add(read.guessed.clone(), NamedIn::FullText);
        found.names
    }

    /// What a record with this OAI identifier and these elements names.
    pub fn of_document(oai_identifier: &str, document: Option<&RecordDocument>) -> Self {
        Found::of_document(oai_identifier, document).names
    }

    /// The identifiers in a role.
    pub(crate) fn in_role(&self, role: Role) -> impl Iterator<Item = &(ContentIdentifier, NamedIn)> {
        self.identifiers.iter().filter(move |(_, field)| field.role() == role)
    }

    /// These names with the works that only the full text of the item names.
    pub(crate) fn with_full_text_of(&self, item: &Self) -> Self {
        let mut names = self.clone();
        let known: HashSet<&ContentIdentifier> = self.identifiers.iter().map(|(named, _)| named).collect();
        let is_new = |(named, field): &&(ContentIdentifier, NamedIn)| {
            *field == NamedIn::FullText && !known.contains(named)
        };
        names.identifiers.extend(item.identifiers.iter().filter(is_new).cloned());
        names
    }
}

/// The names that were found so far. The set keeps a long list of references from being compared with itself.
#[derive(Default)]
struct Found {
    names: RecordNames,
    known: HashSet<ContentIdentifier>,
}

impl Found {
    fn of_document(oai_identifier: &str, document: Option<&RecordDocument>) -> Self {
        let mut found = Self::default();
        found.add(ContentIdentifier::read(oai_identifier), NamedIn::Identifier);
        let Some(document) = document else { return found };
        let (core, references) = (DublinCore::of(document), References::of(document));
        let is_alternative = |text: &&Text| text.value.starts_with(ALTERNATIVE);
        let alternatives = core.relations.iter().filter(is_alternative);
        let identifying = core
            .identifiers
            .iter()
            .chain(alternatives)
            .map(|text| &text.value)
            .chain(&references.identifying);
        identifying.for_each(|text| found.add(ContentIdentifier::read_all(text), NamedIn::Identifier));
        // A list of references also is a relation of Dublin Core, and the more precise field counts.
        for (texts, field) in
            [(&references.cited, NamedIn::References), (&references.citing, NamedIn::ReferencedBy)]
        {
            texts.iter().for_each(|text| found.add(ContentIdentifier::read_all(text), field));
        }
        for (texts, field) in [
            (&core.relations, NamedIn::Relation),
            (&core.sources, NamedIn::Source),
            (&core.descriptions, NamedIn::Description),
        ] {
            texts.iter().for_each(|text| found.add(ContentIdentifier::read_all(&text.value), field));
        }
        let title = core.titles.first().map(|title| shorten(&title.value, TITLE_BYTES_MAX).0);
        found.names.is_cut |= !document.is_whole();
        found.names.work = work_of(&core);
        found.names.title = title.map(on_one_line);
        found
    }

    fn add(&mut self, identifiers: Vec<ContentIdentifier>, field: NamedIn) {
        for identifier in identifiers {
            if self.known.contains(&identifier) {
                continue;
            }
            if self.known.len() >= IDENTIFIERS_MAX {
                self.names.is_cut = true;
                return;
            }
            self.known.insert(identifier.clone());
            self.names.identifiers.push((identifier, field));
        }
    }
}

/// The first title, the year and the first creator of a work in one form: letters and digits in lower case, the family name
/// first, and an initial of the other names. `None` if one of them is missing, or the title is too short.
fn work_of(core: &DublinCore) -> Option<String> {
    let title = letters(shorten(&core.titles.first()?.value, COMPARED_BYTES_MAX).0);
    if title.chars().count() < TITLE_CHARS_MIN {
        return None;
    }
    let year = PublicationDate::among(&core.dates)?.year();
    let creator = &core.creators.first()?.value;
    let (family, given) = match creator.split_once(',') {
        Some((family, given)) => (family, given),
        None => {
            creator.trim().rsplit_once(' ').map_or((creator.as_str(), ""), |(given, family)| (family, given))
        }
    };
    let family = letters(family);
    let initial = letters(given).chars().next().map(String::from).unwrap_or_default();
    (!family.is_empty()).then(|| format!("{title}|{year}|{family}|{initial}"))
}

fn letters(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_oai::UnixSecs;

    fn record(status: RecordStatus, fields: &str) -> ReadRecord {
        let xml = format!(
            "<record><header><identifier>oai:arXiv.org:0704.0001</identifier></header><metadata>\
             <oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\">{fields}</oai_dc:dc></metadata></record>"
        );
        let record = StoredRecord {
            identifier: "oai:arXiv.org:0704.0001".to_owned(),
            datestamp_secs: UnixSecs(0),
            stamp_secs: UnixSecs(0),
            sequence: 3,
            set_specs: [].into(),
            status,
            bytes: xml.into(),
            layout: None,
        };
        ReadRecord { record, guessed: Vec::new() }
    }

    fn names(record: &ReadRecord) -> Vec<(String, NamedIn)> {
        let name = |(identifier, field): (ContentIdentifier, NamedIn)| {
            (format!("{} {}", identifier.kind.name(), identifier.value), field)
        };
        RecordNames::of(record).identifiers.into_iter().map(name).collect()
    }

    const FIELDS: &str = "<dc:title>10.1000/title</dc:title><dc:relation>10.1000/a</dc:relation>\
        <dc:relation>info:eu-repo/semantics/altIdentifier/isbn/9783161484100</dc:relation>\
        <dc:identifier>https://doi.org/10.1000/A</dc:identifier><dc:source>See doi:10.1000/s.</dc:source>\
        <dc:description>As doi:10.1000/d and 10.1000/r show.</dc:description>\
        <dc:relation>10.1000/r</dc:relation><dc:identifier>No identifier</dc:identifier>";

    #[test]
    fn identifiers_have_their_most_important_field() {
        let expected = [
            ("arxiv 0704.0001", NamedIn::Identifier),
            ("doi 10.1000/a", NamedIn::Identifier),
            ("isbn 9783161484100", NamedIn::Identifier),
            ("doi 10.1000/r", NamedIn::Relation),
            ("doi 10.1000/s", NamedIn::Source),
            ("doi 10.1000/d", NamedIn::Description),
        ];
        let record = record(RecordStatus::Live, FIELDS);
        assert_eq!(names(&record), expected.map(|(name, field)| (name.to_owned(), field)));
        let keys = keys_of(&record);
        assert_eq!((keys.sequence, keys.named.len()), (3, 6));
        // What it cites has another key than what it is.
        let is_key = |key: IdentifierKey| keys.named.contains(&key);
        assert!(
            is_key(IdentifierKey::new("doi", "10.1000/a")) && !is_key(IdentifierKey::new("doi", "10.1000/r"))
        );
        assert!(is_key(IdentifierKey::new("cited/doi", "10.1000/r")));
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
            (0..1_200).map(|number| format!("<dc:identifier>10.1000/{number}</dc:identifier>")).collect();
        let record = record(RecordStatus::Live, &many);
        assert_eq!(names(&record).len(), IDENTIFIERS_MAX);
        assert!(RecordNames::of(&record).is_cut);
    }

    #[test]
    fn references_have_roles() {
        let xml = "<record><header></header><metadata><q xmlns:t='http://purl.org/dc/terms/'>\
                   <t:references>doi:10.1000/1</t:references><t:isReferencedBy>doi:10.1000/2</t:isReferencedBy>\
                   <t:isPartOf>doi:10.1000/3</t:isPartOf></q></metadata></record>";
        let document = RecordDocument::read(xml).expect("well-formed");
        let names = RecordNames::of_document("oai:x:1", Some(&document));
        let found: Vec<(&str, NamedIn)> =
            names.identifiers.iter().map(|(identifier, field)| (identifier.value.as_str(), *field)).collect();
        let expected = [
            ("10.1000/1", NamedIn::References),
            ("10.1000/2", NamedIn::ReferencedBy),
            ("10.1000/3", NamedIn::Relation),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn works_are_compared_by_title_year_and_first_creator() {
        let work = |title: &str, date: &str, creator: &str| {
            let text = |value: &str| vec![Text { value: value.to_owned(), ..Text::default() }];
            let core = DublinCore {
                titles: text(title),
                dates: text(date),
                creators: text(creator),
                ..DublinCore::default()
            };
            work_of(&core)
        };
        let one = work("On the Origin of Species.", "1859-11-24", "Darwin, Charles");
        assert_eq!(one.as_deref(), Some("ontheoriginofspecies|1859|darwin|c"));
        assert_eq!(work("ON THE ORIGIN: of species", "1859", "C. R. Darwin"), one);
        for other in [
            work("On the Origin of Species II", "1859", "Darwin, Charles"),
            work("On the Origin of Species", "1860", "Darwin, Charles"),
            work("On the Origin of Species", "1859", "Darwin, Erasmus"),
        ] {
            assert!(other.is_some() && other != one, "{other:?}");
        }
        assert_eq!(work("Editorial", "1859", "Darwin, Charles"), None);
        assert_eq!(work("On the Origin of Species", "unknown", "Darwin, Charles"), None);
        assert_eq!(work("On the Origin of Species", "1859", " , "), None);
    }
}
