//! `oai_dc`, from every format with a crosswalk.

use crate::source_record::SourceRecord;
use crate::unconverted::Unconverted;
use crate::xml_writer::Root;
use oaimend_record::DublinCore;

/// The namespace of `oai_dc` (OAI-PMH 2.0, Implementation Guidelines).
pub(crate) const NAMESPACE: &str = "http://www.openarchives.org/OAI/2.0/oai_dc/";
pub(crate) const SCHEMA: &str = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd";
const ELEMENTS: &str = "http://purl.org/dc/elements/1.1/";

const ROOT: Root<'static> = Root {
    name: "oai_dc:dc",
    namespaces: &[("oai_dc", NAMESPACE), ("dc", ELEMENTS)],
    schemas: &[(NAMESPACE, SCHEMA)],
    attributes: &[],
};

/// The names of the elements, in the order of [`DublinCore::fields`].
const NAMES: [&str; 15] = [
    "dc:title",
    "dc:creator",
    "dc:subject",
    "dc:description",
    "dc:publisher",
    "dc:contributor",
    "dc:date",
    "dc:type",
    "dc:format",
    "dc:identifier",
    "dc:source",
    "dc:language",
    "dc:relation",
    "dc:coverage",
    "dc:rights",
];

pub(crate) fn convert(record: &SourceRecord<'_>) -> Result<String, Unconverted> {
    let core = DublinCore::of(&record.document()?);
    if core.is_empty() {
        return Err(Unconverted::NothingRead);
    }
    Ok(ROOT.write(|xml| {
        for (name, (_, texts)) in NAMES.into_iter().zip(core.fields()) {
            texts.iter().for_each(|text| xml.text(name, &[], text));
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_elements_have_the_names_of_their_fields() {
        let names = DublinCore::default().fields().map(|(name, _)| format!("dc:{name}"));
        assert_eq!(names, NAMES);
    }
}
