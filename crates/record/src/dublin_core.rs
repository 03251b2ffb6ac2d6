//! The fields of simple Dublin Core in a record.

use crate::document::{Field, RecordDocument};
use crate::text::Text;

/// The fields of simple Dublin Core, without empty ones, in the order of the record.
///
/// They are read from the child elements of the payload that are in a namespace of Dublin Core, so from `oai_dc` and from
/// formats that extend it, such as qualified Dublin Core. Texts without paragraphs are on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DublinCore {
    /// `title`, `alternative`.
    pub titles: Vec<Text>,
    /// `creator`.
    pub creators: Vec<Text>,
    /// `contributor`.
    pub contributors: Vec<Text>,
    /// `date`, `issued`.
    pub dates: Vec<Text>,
    /// `description`, `abstract`. Their line breaks are kept.
    pub descriptions: Vec<Text>,
    /// `subject`.
    pub subjects: Vec<Text>,
    /// `publisher`.
    pub publishers: Vec<Text>,
    /// `type`.
    pub types: Vec<Text>,
    /// `format`.
    pub formats: Vec<Text>,
    /// `language`.
    pub languages: Vec<Text>,
    /// `rights`, `license`.
    pub rights: Vec<Text>,
    /// `identifier`.
    pub identifiers: Vec<Text>,
    /// `source`.
    pub sources: Vec<Text>,
    /// `relation`.
    pub relations: Vec<Text>,
}

const ELEMENTS: &str = "http://purl.org/dc/elements/1.1/";
const TERMS: &str = "http://purl.org/dc/terms/";

impl DublinCore {
    /// The fields of a record; empty if its format does not contain Dublin Core.
    pub fn of(document: &RecordDocument) -> Self {
        let mut core = Self::default();
        for field in &document.metadata {
            if field.depth == 1 && [ELEMENTS, TERMS].contains(&field.namespace.as_str()) {
                core.add(field);
            }
        }
        core
    }

    fn add(&mut self, field: &Field) {
        let list = match field.name.as_str() {
            "title" | "alternative" => &mut self.titles,
            "creator" => &mut self.creators,
            "contributor" => &mut self.contributors,
            "date" | "issued" => &mut self.dates,
            "description" | "abstract" => &mut self.descriptions,
            "subject" => &mut self.subjects,
            "publisher" => &mut self.publishers,
            "type" => &mut self.types,
            "format" => &mut self.formats,
            "language" => &mut self.languages,
            "rights" | "license" => &mut self.rights,
            "identifier" => &mut self.identifiers,
            "source" => &mut self.sources,
            "relation" => &mut self.relations,
            _ => return,
        };
        let is_prose = matches!(field.name.as_str(), "description" | "abstract");
        if !field.text.value.is_empty() {
            list.push(if is_prose { field.text.clone() } else { field.text.on_one_line() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(payload: &str) -> DublinCore {
        let xml = format!("<record><metadata>{payload}</metadata></record>");
        DublinCore::of(&RecordDocument::read(&xml).expect("the record is well-formed"))
    }

    fn values(texts: &[Text]) -> Vec<&str> {
        texts.iter().map(|text| text.value.as_str()).collect()
    }

    #[test]
    fn fields_are_found_by_namespace_and_not_by_prefix() {
        let core = core(
            "<x:dc xmlns:x='http://www.openarchives.org/OAI/2.0/oai_dc/' xmlns:y='http://purl.org/dc/elements/1.1/' \
             xmlns:dc='urn:other'><y:title xml:lang='ger'> A\n  b </y:title><dc:title>no</dc:title><y:title/>\
             <y:creator>C, D</y:creator><y:description>e\n\nf</y:description>\
             <title xmlns='http://purl.org/dc/elements/1.1/'>G</title></x:dc>",
        );
        assert_eq!(values(&core.titles), ["A b", "G"]);
        assert_eq!(core.titles.first().and_then(|title| title.language.as_deref()), Some("de"));
        assert_eq!((values(&core.creators), values(&core.descriptions)), (vec!["C, D"], vec!["e\n\nf"]));
    }

    #[test]
    fn qualified_dublin_core_is_read_too() {
        let core = core(
            "<q xmlns:t='http://purl.org/dc/terms/' xmlns:dc='http://purl.org/dc/elements/1.1/'>\
             <t:issued>2001</t:issued><t:abstract>a</t:abstract><t:extent>9 p.</t:extent><dc:coverage>x</dc:coverage></q>",
        );
        assert_eq!((values(&core.dates), values(&core.descriptions)), (vec!["2001"], vec!["a"]));
    }

    #[test]
    fn other_formats_have_no_fields() {
        let nested = "<a><dc:title xmlns:dc='http://purl.org/dc/elements/1.1/'>x</dc:title></a>";
        let mods = "<mods xmlns='http://www.loc.gov/mods/v3'><titleInfo><title>x</title></titleInfo></mods>";
        assert_eq!(core(&format!("<b>{nested}</b>")), DublinCore::default());
        assert_eq!(core(mods), DublinCore::default());
        assert_eq!(core(""), DublinCore::default());
    }
}
