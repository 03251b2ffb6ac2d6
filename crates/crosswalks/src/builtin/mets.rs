//! METS 1.12: the record as it is in a descriptive metadata section.

use super::wrapper::{content_identifiers, date_time, wrapper_identifier};
use crate::source_record::SourceRecord;
use crate::unconverted::Unconverted;
use crate::xml_writer::{Root, XmlWriter};
use oaimend_repository::xml::{NamespaceReader, XmlEvent, XmlReader};

pub(crate) const NAMESPACE: &str = "http://www.loc.gov/METS/";
pub(crate) const SCHEMA: &str = "http://www.loc.gov/standards/mets/mets.xsd";

/// The types of metadata that METS names, by the starts of their namespaces.
const TYPES: &[(&str, &str)] = &[
    ("http://www.openarchives.org/OAI/2.0/oai_dc/", "DC"),
    ("http://purl.org/dc/", "DC"),
    ("http://www.loc.gov/MARC21/slim", "MARC"),
    ("http://www.loc.gov/mods/v3", "MODS"),
    ("http://www.lido-schema.org", "LIDO"),
    ("urn:isbn:1-931666-22-9", "EAD"),
    ("http://ead3.archivists.org/schema/", "EAD"),
];

pub(crate) fn convert(record: &SourceRecord<'_>) -> Result<String, Unconverted> {
    let (identifiers, payload) = (content_identifiers(record)?, record.payload()?);
    let kind = metadata_type(&payload);
    let root = Root {
        name: "mets:mets",
        namespaces: &[("mets", NAMESPACE)],
        schemas: &[(NAMESPACE, SCHEMA)],
        attributes: &[("OBJID", record.identifier)],
    };
    Ok(root.write(|xml| {
        write_header(record, &identifiers, xml);
        xml.element("mets:dmdSec", &[("ID", "dmd")], |xml| {
            let wrap: &[_] = match kind {
                Some(kind) => &[("MDTYPE", kind)],
                None => &[("MDTYPE", "OTHER"), ("OTHERMDTYPE", record.prefix)],
            };
            xml.element("mets:mdWrap", wrap, |xml| xml.element("mets:xmlData", &[], |xml| xml.xml(&payload)));
        });
        xml.element("mets:structMap", &[], |xml| xml.element("mets:div", &[("DMDID", "dmd")], |_| {}));
    }))
}

fn write_header(record: &SourceRecord<'_>, identifiers: &[String], xml: &mut XmlWriter) {
    xml.element("mets:metsHdr", &[("CREATEDATE", &date_time(record.datestamp))], |xml| {
        for (number, identifier) in identifiers.iter().enumerate() {
            let kind = if number == 0 { "OAI" } else { "URL" };
            xml.leaf("mets:altRecordID", &[("TYPE", kind)], identifier);
        }
        xml.leaf("mets:metsDocumentID", &[("TYPE", "URN")], &wrapper_identifier(record, "mets"));
    });
}

/// The type of a payload; `None` if METS does not name it.
fn metadata_type(payload: &str) -> Option<&'static str> {
    let mut reader = NamespaceReader::new(XmlReader::new(payload));
    let Ok(Some(XmlEvent::Start(tag))) = reader.read() else { return None };
    let namespace = reader.namespace(tag).ok()?;
    TYPES.iter().find(|(start, _)| namespace.starts_with(start)).map(|(_, kind)| *kind)
}
