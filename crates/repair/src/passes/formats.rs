//! The repair of schema and namespace in ListMetadataFormats.
//!
//! [`repair_item`](crate::repair_item::repair_item) uses this module. Only formats with one
//! well-known meaning are repaired.

use crate::catalog::{RepairId, RepairSet};
use crate::lex::names::trim;
use crate::lex::outline::{Child, element_with_text, item_prefix, outline};
use crate::text::edits::Edits;

pub(crate) const OAI_DC_SCHEMA: &[u8] = b"http://www.openarchives.org/OAI/2.0/oai_dc.xsd";

pub(crate) const OAI_DC: &[u8] = b"http://www.openarchives.org/OAI/2.0/oai_dc/";

/// A format that means the same in every repository.
struct KnownFormat {
    prefixes: &'static [&'static [u8]],
    /// The schema of the format; `None` if several schemas are in use.
    schema: Option<&'static [u8]>,
    namespace: &'static [u8],
}

static FORMATS: [KnownFormat; 4] = [
    KnownFormat { prefixes: &[b"oai_dc"], schema: Some(OAI_DC_SCHEMA), namespace: OAI_DC },
    KnownFormat {
        prefixes: &[b"marcxml", b"marc21"],
        schema: Some(b"http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd"),
        namespace: b"http://www.loc.gov/MARC21/slim",
    },
    KnownFormat {
        prefixes: &[b"mets"],
        schema: Some(b"http://www.loc.gov/standards/mets/mets.xsd"),
        namespace: b"http://www.loc.gov/METS/",
    },
    KnownFormat { prefixes: &[b"mods"], schema: None, namespace: b"http://www.loc.gov/mods/v3" },
];

/// Returns the edits to one metadataFormat: they correct swapped values and values of another format, and
/// add missing values that are known.
pub(crate) fn repair_format(item: &[u8], off: RepairSet) -> Edits {
    let mut edits = Edits::default();
    if !off.contains(RepairId::FormatValue) {
        // If the element cannot be read, the validator rejects it.
        let _ = correct_format(item, &mut edits);
        edits.sort();
    }
    edits
}

fn correct_format(item: &[u8], edits: &mut Edits) -> Option<()> {
    let element = *outline(item, 0, item.len())?.children.first()?;
    let inner = outline(item, element.content.0, element.content.1)?;
    let child = |local: &[u8]| inner.children.iter().find(|child| child.local == local).copied();
    let content = |child: Child<'_>| item.get(child.content.0..child.content.1).map(trim).unwrap_or_default();
    let name = child(b"metadataPrefix")?;
    let (schema, namespace) = (child(b"schema"), child(b"metadataNamespace"));
    let named_format = FORMATS.iter().find(|format| format.prefixes.contains(&content(name)));
    let (mut place, mut uri) = (schema.map(content), namespace.map(content));
    if let (Some(at), Some(named)) = (place, uri)
        && is_schema(named)
        && !is_schema(at)
        && !at.is_empty()
    {
        (place, uri) = (Some(named), Some(at));
    }
    let known_format = named_format
        .or_else(|| FORMATS.iter().find(|format| format.schema.is_some() && format.schema == place));
    let is_dc = named_format.is_some_and(|named_format| named_format.namespace == OAI_DC);
    let others = |value: &[u8]| {
        FORMATS.iter().any(|other| {
            !named_format.is_some_and(|named_format| std::ptr::eq(named_format, other))
                && (other.namespace == value || other.schema == Some(value))
        })
    };
    if let Some(known_format) = known_format {
        // The specification itself fixes schema and namespace of oai_dc.
        let is_wrong = |value: &[u8]| value.is_empty() || named_format.is_some() && others(value);
        if uri.is_none_or(|uri| is_wrong(uri) || is_dc && uri != known_format.namespace) {
            uri = Some(known_format.namespace);
        }
        let is_right = |at: &[u8]| if is_dc { at == OAI_DC_SCHEMA } else { !is_wrong(at) };
        if !place.is_some_and(is_right) {
            place = known_format.schema.or(place);
        }
    }
    let mut after = name.end;
    let parts = [(b"schema".as_slice(), schema, place), (b"metadataNamespace", namespace, uri)];
    for (local, found, meant) in parts {
        match (found, meant) {
            (Some(found), Some(meant)) if content(found) != meant => {
                let element = element_with_text(item_prefix(item), local, meant);
                if found.end > found.content.1 {
                    edits.push_unordered(
                        RepairId::FormatValue,
                        found.content.0,
                        found.content.1,
                        meant.to_vec(),
                    );
                } else {
                    edits.push_unordered(RepairId::FormatValue, found.start, found.end, element);
                }
            }
            (None, Some(meant)) => {
                edits.push_unordered(
                    RepairId::FormatValue,
                    after,
                    after,
                    element_with_text(item_prefix(item), local, meant),
                );
            }
            _ => {}
        }
        after = found.map_or(after, |found| found.end);
    }
    Some(())
}

fn is_schema(value: &[u8]) -> bool {
    value.to_ascii_lowercase().ends_with(b".xsd")
}
