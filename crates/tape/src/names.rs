//! The names that tapes use, and how an element is written.

use oaimend_oai::escape;

/// The namespace of XMLtapes.
pub const NAMESPACE: &str = "http://library.lanl.gov/2005-08/aDORe/XMLtape/";
/// The namespace of the elements that oaimend adds in `tapeAdmin`, `recordAdmin`, and as the content of deleted records.
pub const ADMIN_NAMESPACE: &str = "urn:x-oaimend:tape:1";
/// The schema of these elements.
pub const ADMIN_SCHEMA: &str = include_str!("tape-admin.xsd");

/// Writes an element with attributes and a text.
pub(crate) fn element(name: &str, attributes: &[(&str, &str)], text: &str, xml: &mut String) {
    xml.push('<');
    xml.push_str(name);
    for (attribute, value) in attributes {
        xml.push_str(&format!(" {attribute}=\""));
        escape(value, xml);
        xml.push('"');
    }
    xml.push('>');
    escape(text, xml);
    xml.push_str(&format!("</{name}>"));
}
