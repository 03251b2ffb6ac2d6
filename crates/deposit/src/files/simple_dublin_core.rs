//! A description in the fifteen elements of Dublin Core, for files that have none in XML.

use crate::deposit::Payload;
use crate::dublin_core::{DUBLIN_CORE_NAMESPACE, DUBLIN_CORE_SCHEMA};
use oaimend_oai::{escape, is_xml_char};
use oaimend_record::DublinCore;

/// A description: texts by their elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SimpleDublinCore {
    fields: Vec<(&'static str, String)>,
}

impl SimpleDublinCore {
    /// Adds a text, if it is not blank. Characters that XML does not have are left out.
    pub(super) fn add(&mut self, element: &'static str, text: &str) {
        let text: String = text.chars().filter(|&c| is_xml_char(c)).collect();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !text.is_empty() && !self.fields.iter().any(|(other, known)| *other == element && *known == text) {
            self.fields.push((element, text));
        }
    }

    /// The metadata of a record.
    pub(super) fn payload(&self) -> Payload {
        let mut xml = format!(
            "<metadata><oai_dc:dc xmlns:oai_dc=\"{DUBLIN_CORE_NAMESPACE}\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
             xsi:schemaLocation=\"{DUBLIN_CORE_NAMESPACE} {DUBLIN_CORE_SCHEMA}\">"
        );
        for wanted in DublinCore::ELEMENTS {
            for (element, text) in self.fields.iter().filter(|(element, _)| *element == wanted) {
                xml.push_str(&format!("<dc:{element}>"));
                escape(text, &mut xml);
                xml.push_str(&format!("</dc:{element}>"));
            }
        }
        xml.push_str("</oai_dc:dc></metadata>");
        let (namespace, schema) = (DUBLIN_CORE_NAMESPACE.to_owned(), Some(DUBLIN_CORE_SCHEMA.to_owned()));
        Payload { xml, namespace, schema }
    }
}
