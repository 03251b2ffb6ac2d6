//! JSON-LD of schema.org in an element.

use crate::source_record::SourceRecord;
use crate::unconverted::Unconverted;
use crate::xml_writer::Root;
use oaimend_record::json_ld;

/// The namespace of the element.
pub(crate) const NAMESPACE: &str = "urn:x-oaimend:json-ld:1";
/// The path of the schema of the format `schema_org`.
pub const SCHEMA_PATH: &str = "/_crosswalks/schema_org.xsd";
/// The schema of the format `schema_org`.
pub const SCHEMA: &str = include_str!("schema_org.xsd");

/// The text of the element is the JSON-LD of the record page. It names no page of this server, because the same record
/// can be in several repositories of it.
pub(crate) fn convert(record: &SourceRecord<'_>, public_url: &str) -> Result<String, Unconverted> {
    let json = json_ld(&record.work_with_links()?, None).to_string();
    let schema = format!("{public_url}{SCHEMA_PATH}");
    let root = Root {
        name: "jsonLd",
        namespaces: &[("", NAMESPACE)],
        schemas: &[(NAMESPACE, &schema)],
        attributes: &[("type", "application/ld+json")],
    };
    Ok(root.write(|xml| xml.characters(&json)))
}
