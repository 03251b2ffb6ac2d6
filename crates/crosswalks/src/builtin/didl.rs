//! MPEG-21 DIDL (ISO/IEC 21000-2): the record as it is in a Digital Item, or only the identifiers of its content.

use super::wrapper::{content_identifiers, date_time, wrapper_identifier};
use crate::source_record::SourceRecord;
use crate::unconverted::Unconverted;
use crate::xml_writer::{Root, XmlWriter};

pub(crate) const NAMESPACE: &str = "urn:mpeg:mpeg21:2002:02-DIDL-NS";
pub(crate) const SCHEMA: &str =
    "http://standards.iso.org/ittf/PubliclyAvailableStandards/MPEG-21_schema_files/did/didl.xsd";
/// Digital Item Identification (ISO/IEC 21000-3).
const IDENTIFICATION: &str = "urn:mpeg:mpeg21:2002:01-DII-NS";
const IDENTIFICATION_SCHEMA: &str =
    "http://standards.iso.org/ittf/PubliclyAvailableStandards/MPEG-21_schema_files/dii/dii.xsd";
const TERMS: &str = "http://purl.org/dc/terms/";
const XML: (&str, &str) = ("mimeType", "application/xml");

/// The record in a resource, with its identifiers and its datestamp.
pub(crate) fn convert(record: &SourceRecord<'_>) -> Result<String, Unconverted> {
    let (identifiers, payload) = (content_identifiers(record)?, record.payload()?);
    Ok(write(record, "didl", &identifiers, |xml| {
        describe(xml, |xml| xml.leaf("dcterms:modified", &[], &date_time(record.datestamp)));
        xml.element("didl:Component", &[], |xml| {
            xml.element("didl:Resource", &[XML], |xml| xml.xml(&payload));
        });
    }))
}

/// The identifiers alone, as a resolver needs them.
pub(crate) fn convert_identifiers(record: &SourceRecord<'_>) -> Result<String, Unconverted> {
    let identifiers = content_identifiers(record)?;
    Ok(write(record, "DIDL.identifiers", &identifiers, |_| {}))
}

fn write(
    record: &SourceRecord<'_>,
    format: &str,
    identifiers: &[String],
    rest: impl FnOnce(&mut XmlWriter),
) -> String {
    let root = Root {
        name: "didl:DIDL",
        namespaces: &[("didl", NAMESPACE), ("dii", IDENTIFICATION), ("dcterms", TERMS)],
        schemas: &[(NAMESPACE, SCHEMA), (IDENTIFICATION, IDENTIFICATION_SCHEMA)],
        attributes: &[("DIDLDocumentId", &wrapper_identifier(record, format))],
    };
    root.write(|xml| {
        xml.element("didl:Item", &[], |xml| {
            for identifier in identifiers {
                describe(xml, |xml| xml.leaf("dii:Identifier", &[], identifier));
            }
            rest(xml);
        });
    })
}

fn describe(xml: &mut XmlWriter, statement: impl FnOnce(&mut XmlWriter)) {
    xml.element("didl:Descriptor", &[], |xml| xml.element("didl:Statement", &[XML], statement));
}
