//! The fields of simple Dublin Core.

use crate::text::Text;

/// The fields of simple Dublin Core of a work, without empty ones, in the order of the record.
///
/// `DublinCore::of` reads them from any format with a crosswalk. Texts without paragraphs are on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DublinCore {
    /// `title`.
    pub titles: Vec<Text>,
    /// `creator`: names only. The ORCIDs are in [`Agent`](crate::Agent).
    pub creators: Vec<Text>,
    /// `subject`.
    pub subjects: Vec<Text>,
    /// `description`. Its line breaks are kept.
    pub descriptions: Vec<Text>,
    /// `publisher`.
    pub publishers: Vec<Text>,
    /// `contributor`: names only.
    pub contributors: Vec<Text>,
    /// `date`.
    pub dates: Vec<Text>,
    /// `type`.
    pub types: Vec<Text>,
    /// `format`.
    pub formats: Vec<Text>,
    /// `identifier`.
    pub identifiers: Vec<Text>,
    /// `source`.
    pub sources: Vec<Text>,
    /// `language`.
    pub languages: Vec<Text>,
    /// `relation`.
    pub relations: Vec<Text>,
    /// `coverage`.
    pub coverages: Vec<Text>,
    /// `rights`.
    pub rights: Vec<Text>,
}

impl DublinCore {
    /// The names of the elements, in the order of the standard.
    pub const ELEMENTS: [&'static str; 15] = [
        "title",
        "creator",
        "subject",
        "description",
        "publisher",
        "contributor",
        "date",
        "type",
        "format",
        "identifier",
        "source",
        "language",
        "relation",
        "coverage",
        "rights",
    ];

    /// The fields by the names of their elements, in the order of the standard.
    pub fn fields(&self) -> [(&'static str, &[Text]); 15] {
        let texts = [
            &self.titles,
            &self.creators,
            &self.subjects,
            &self.descriptions,
            &self.publishers,
            &self.contributors,
            &self.dates,
            &self.types,
            &self.formats,
            &self.identifiers,
            &self.sources,
            &self.languages,
            &self.relations,
            &self.coverages,
            &self.rights,
        ];
        let mut fields = Self::ELEMENTS.map(|name| (name, &[][..]));
        for ((_, field), texts) in fields.iter_mut().zip(texts) {
            *field = texts;
        }
        fields
    }

    /// Whether nothing is known: the format of the record has no crosswalk, or the record has no texts.
    pub fn is_empty(&self) -> bool {
        self.fields().iter().all(|(_, texts)| texts.is_empty())
    }
}
