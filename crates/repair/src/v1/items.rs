//! Conversion of items of OAI-PMH 1.0 and 1.1 to 2.0.
//!
//! The stages and [`repair_item`](crate::repair_item::repair_item) call this module after the
//! validator has read an item. The validator then accepts the structure of 1.x.
//!
//! Only the tags that differ between the versions change. Pages repeat the same start tags of payloads, so
//! [`UpgradedTags`] caches the results.

use crate::catalog::RepairId;
use crate::lex::lexeme::start_tag_end;
use crate::lex::names::{is_blank, name_span, split_name, trailing_blanks, trim};
use crate::lex::namespaces::{Context, Contexts, XSI};
use crate::lex::outline::{Child, element_with_text, item_prefix, outline};
use crate::limits::Limits;
use crate::passes::formats::{OAI_DC, OAI_DC_SCHEMA};
use crate::passes::lenient_tag::{LenientAttribute, read_lenient_tag};
use crate::text::edits::Edits;
use crate::validate::facts::{ItemFacts, Payload, V1Positions};
use crate::validate::schema::Element;
use crate::validate::start_tag::{declared_prefix, read_attributes};

const XSI_2000: &[u8] = b"http://www.w3.org/2000/10/XMLSchema-instance";
const DC: &[u8] = b"http://purl.org/dc/elements/1.1/";
/// Locations of the schemas of 1.x.
const SCHEMAS: [&[u8]; 3] = [
    b"http://www.openarchives.org/OAI/",
    b"http://www.openarchives.org/OAI/1.0/",
    b"http://www.openarchives.org/OAI/1.1/",
];
/// Identifiers of 1.0 and their replacements in 1.1 and 2.0.
const FORMATS: [(&[u8], &[u8]); 7] = [
    (b"http://www.openarchives.org/OAI/oai_marc", b"http://www.openarchives.org/OAI/1.1/oai_marc"),
    (b"http://www.openarchives.org/OAI/eprints", b"http://www.openarchives.org/OAI/1.1/eprints"),
    (
        b"http://www.openarchives.org/OAI/oai-identifier",
        b"http://www.openarchives.org/OAI/1.1/oai-identifier",
    ),
    (b"http://www.openarchives.org/OAI/oai_marc.xsd", b"http://www.openarchives.org/OAI/1.1/oai_marc.xsd"),
    (b"http://www.openarchives.org/OAI/eprints.xsd", b"http://www.openarchives.org/OAI/1.1/eprints.xsd"),
    (
        b"http://www.openarchives.org/OAI/oai-identifier.xsd",
        b"http://www.openarchives.org/OAI/1.1/oai-identifier.xsd",
    ),
    (b"http://www.openarchives.org/OAI/rfc1807.xsd", b"http://www.openarchives.org/OAI/1.1/rfc1807.xsd"),
];
/// Namespaces of formats by schema. ListMetadataFormats of 1.x can omit the namespace.
const NAMESPACES: [(&[u8], &[u8]); 3] = [
    (OAI_DC_SCHEMA, OAI_DC),
    (b"http://www.openarchives.org/OAI/1.1/oai_marc.xsd", b"http://www.openarchives.org/OAI/1.1/oai_marc"),
    (
        b"http://www.openarchives.org/OAI/1.1/rfc1807.xsd",
        b"http://info.internet.isi.edu:80/in-notes/rfc/files/rfc1807.txt",
    ),
];
/// The datestamp of Identify in a response that has none.
const EARLIEST: &[u8] = b"1970-01-01";
/// The number of cached start tags of payloads. A page has one, rarely two.
const CACHED_TAGS_MAX: usize = 8;
/// Longer tags are not cached.
const CACHED_TAG_BYTES_MAX: usize = 4 << 10;

/// Returns the 2.0 name of a `uri` of 1.x, except for `oai_dc`.
fn v2_uri(uri: &[u8]) -> Option<&'static [u8]> {
    if uri == XSI_2000 {
        return Some(XSI);
    }
    FORMATS.iter().find(|(old, _)| *old == uri).map(|(_, new)| *new)
}

/// Returns whether this is the 1.x schema of `oai_dc`.
fn is_dc_schema(uri: &[u8]) -> bool {
    SCHEMAS.iter().any(|folder| uri.strip_prefix(*folder) == Some(b"dc.xsd"))
}

/// Returns whether `uri` is the XML Schema instance namespace of 2000.
pub(crate) fn is_old_xsi(uri: &[u8]) -> bool {
    uri == XSI_2000
}

/// The change to the outermost start tag of a payload.
#[derive(Clone, Debug)]
struct UpgradedTag {
    id: RepairId,
    /// Length of the replaced bytes, which begin after the `<`.
    len: usize,
    replacement: Vec<u8>,
    /// The old name, if the name changes.
    old_name: Option<Vec<u8>>,
}

/// A valid item of 1.x, and the places that change in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct V1Item<'t> {
    pub(crate) bytes: &'t [u8],
    pub(crate) places: &'t V1Positions,
}

/// A cache of the changes to start tags of payloads.
#[derive(Debug, Default)]
pub(crate) struct UpgradedTags(Vec<(Vec<u8>, Option<UpgradedTag>)>);

impl UpgradedTags {
    /// Caches the payloads of an item whose context is the context of the list.
    pub(crate) fn insert(&mut self, item: V1Item<'_>, list: Context, contexts: &Contexts, limits: &Limits) {
        for payload in item.places.payloads.iter().filter(|payload| payload.outer == list) {
            let Some(tag) = start_tag(item.bytes, payload, limits) else { continue };
            if tag.len() > CACHED_TAG_BYTES_MAX {
                continue;
            }
            if self.0.len() < CACHED_TAGS_MAX && self.0.iter().all(|(cached, _)| cached != tag) {
                self.0.push((tag.to_vec(), upgrade_tag(tag, list, contexts, limits)));
            }
        }
    }

    /// Returns the edits to a valid item; `None` if one of its payloads is not in the cache.
    pub(crate) fn edits_for(&self, item: V1Item<'_>, list: Context, limits: &Limits) -> Option<Edits> {
        let mut edits = Edits::default();
        move_status(item, limits, &mut edits);
        for payload in &item.places.payloads {
            let text = item.bytes.get(payload.start as usize..)?;
            let (_, cached) = self.0.iter().find(|(tag, _)| text.starts_with(tag))?;
            if payload.outer != list {
                return None;
            }
            if let Some(root) = cached {
                root.push(item.bytes, payload, &mut edits);
            }
        }
        Some(edits)
    }
}

fn start_tag<'t>(item: &'t [u8], payload: &Payload, limits: &Limits) -> Option<&'t [u8]> {
    let text = item.get(payload.start as usize..)?;
    let name = 1 + name_span(text.get(1..)?);
    let (len, _) = read_attributes(text, name, limits, &mut Vec::new()).ok()?;
    text.get(..len)
}

/// Returns the edits that convert one valid item of 1.x.
pub(crate) fn upgrade_item(
    item: V1Item<'_>,
    element: &'static Element,
    contexts: &Contexts,
    limits: &Limits,
) -> Edits {
    let mut edits = Edits::default();
    // If an item cannot be completed, the validator rejects it.
    let _ = match element.name {
        b"Identify" => upgrade_identify(item.bytes, &mut edits),
        b"metadataFormat" => upgrade_format(item.bytes, &mut edits),
        _ => move_status(item, limits, &mut edits),
    };
    for payload in &item.places.payloads {
        if let Some(tag) = start_tag(item.bytes, payload, limits)
            && let Some(root) = upgrade_tag(tag, payload.outer, contexts, limits)
        {
            root.push(item.bytes, payload, &mut edits);
        }
    }
    edits.sort();
    edits
}

/// Moves the facts of an item to their positions after the edits.
pub(crate) fn facts_after(facts: ItemFacts, edits: &Edits) -> ItemFacts {
    facts.map_spans(|span| edits.moved(span))
}

/// Moves the status from the record to its header.
fn move_status(item: V1Item<'_>, limits: &Limits, edits: &mut Edits) -> Option<()> {
    let V1Item { bytes: item, places } = item;
    if !places.status_on_record {
        return None;
    }
    let id = RepairId::V1Status;
    let tag = item.get(..start_tag_end(item)?)?;
    let before = tag.strip_suffix(b"status=\"deleted\">").unwrap_or_default();
    let gap = trailing_blanks(before);
    if gap > 0 {
        edits.push(id, before.len() - gap, tag.len() - 1, b"");
    } else {
        let tag = read_lenient_tag(item, 0, tag.len(), limits)?;
        let is_status = |name: (usize, usize)| item.get(name.0..name.1) == Some(b"status");
        for attribute in tag.attributes.iter().filter(|attribute| is_status(attribute.name)) {
            edits.push(id, attribute.gap, attribute.end, b"");
        }
    }
    if !places.status_on_header && places.header > 0 {
        let name = places.header as usize + 1;
        let at = name + name_span(item.get(name..)?);
        edits.push(id, at, at, b" status=\"deleted\"");
    }
    Some(())
}

impl UpgradedTag {
    /// Adds the edits to the tags of one payload.
    fn push(&self, item: &[u8], payload: &Payload, edits: &mut Edits) {
        let start = payload.start as usize + 1;
        edits.push_unordered(self.id, start, start + self.len, self.replacement.clone());
        if let Some(name) = &self.old_name
            && let Some(at) = find_payload_end_tag(item, payload, name)
        {
            edits.push_unordered(self.id, at + 2, at + 2 + name.len(), b"oai_dc:dc".to_vec());
        }
    }
}

/// Returns the position of the end tag of a payload's outermost element; `None` if it has none.
fn find_payload_end_tag(item: &[u8], payload: &Payload, name: &[u8]) -> Option<usize> {
    let (start, end) = (payload.start as usize, payload.end as usize);
    let text = trim(item.get(start..end)?);
    let close = text.len().checked_sub(name.len() + 3)?;
    let tag = text.get(close..)?;
    if tag.starts_with(b"</") && tag.get(2..2 + name.len()) == Some(name) && tag.ends_with(b">") {
        return Some(start + close);
    }
    let child = *outline(item, start, end)?.children.first()?;
    (child.content.1 < child.end).then_some(child.content.1)
}

/// Returns the change to a payload's start tag in the context `outer`; `None` if it stays.
fn upgrade_tag(tag: &[u8], outer: Context, contexts: &Contexts, limits: &Limits) -> Option<UpgradedTag> {
    let name = tag.get(1..1 + name_span(tag.get(1..)?))?;
    let attributes = read_lenient_tag(tag, 0, tag.len(), limits)?.attributes;
    let declares =
        |attribute: &LenientAttribute| tag.get(attribute.name.0..attribute.name.1).and_then(declared_prefix);
    let declared = |prefix: &[u8]| {
        let declaration = attributes.iter().find(|attribute| declares(attribute) == Some(prefix));
        declaration.map(|attribute| attribute.value.as_slice())
    };
    let bound = |prefix: &[u8]| declared(prefix).or_else(|| contexts.lookup(outer, prefix));
    let (prefix, local) = split_name(name);
    let is_dc =
        local == b"dc" && bound(prefix) == Some(DC) && bound(b"oai_dc").is_none_or(|uri| uri == OAI_DC);
    let mut edits = Edits::default();
    let id = if is_dc { RepairId::V1Dc } else { RepairId::V1Format };
    if is_dc {
        let mut start = b"oai_dc:dc".to_vec();
        if declared(b"oai_dc").is_none() {
            start.extend_from_slice(&[b" xmlns:oai_dc=\"", OAI_DC, b"\""].concat());
        }
        edits.push_unordered(id, 1, 1 + name.len(), start);
    }
    for attribute in &attributes {
        if declares(attribute).is_some() {
            if let Some(new) = v2_uri(&attribute.value) {
                attribute.set(id, new, &mut edits);
            }
        } else if is_schema_location(tag.get(attribute.name.0..attribute.name.1)?, bound) {
            upgrade_locations(&attribute.value, attribute.span.0 + 1, is_dc, id, &mut edits);
        }
    }
    edits.sort();
    let end = edits.iter().last()?.end;
    let replacement = edits.apply_at(tag.get(1..end)?, 1);
    Some(UpgradedTag { id, len: end - 1, replacement, old_name: is_dc.then(|| name.to_vec()) })
}

fn is_schema_location<'t>(attribute: &[u8], bound: impl Fn(&[u8]) -> Option<&'t [u8]>) -> bool {
    let (prefix, local) = split_name(attribute);
    local == b"schemaLocation" && bound(prefix).is_some_and(|uri| uri == XSI || uri == XSI_2000)
}

/// Converts the pairs of a schemaLocation that name formats of 1.x.
fn upgrade_locations(value: &[u8], at: usize, is_dc: bool, id: RepairId, edits: &mut Edits) {
    let words = word_spans(value);
    for pair in words.chunks(2) {
        let [namespace, schema] = *pair else { continue };
        let (Some(uri), Some(place)) = (value.get(namespace.0..namespace.1), value.get(schema.0..schema.1))
        else {
            continue;
        };
        let new = if is_dc && uri == DC && is_dc_schema(place) {
            (Some(OAI_DC), Some(OAI_DC_SCHEMA))
        } else {
            (v2_uri(uri), v2_uri(place))
        };
        for (range, new) in [(namespace, new.0), (schema, new.1)] {
            if let Some(new) = new {
                edits.push_unordered(id, at + range.0, at + range.1, new.to_vec());
            }
        }
    }
}

/// Returns the ranges of the words of a text, separated by white space.
fn word_spans(text: &[u8]) -> Vec<(usize, usize)> {
    let mut words = Vec::new();
    let mut at = 0;
    for word in text.split(|&byte| is_blank(byte)) {
        if !word.is_empty() {
            words.push((at, at + word.len()));
        }
        at += word.len() + 1;
    }
    words
}

/// Converts Identify and adds the elements that 2.0 requires.
fn upgrade_identify(item: &[u8], edits: &mut Edits) -> Option<()> {
    let id = RepairId::V1Identify;
    let element = *outline(item, 0, item.len())?.children.first()?;
    let inner = outline(item, element.content.0, element.content.1)?;
    let has = |local: &[u8]| inner.children.iter().any(|child| child.local == local);
    let content = |child: &Child<'_>| item.get(child.content.0..child.content.1);
    for child in &inner.children {
        let text = content(child)?;
        let from = child.content.0 + crate::lex::names::blanks(text);
        let text = trim(text);
        match child.local {
            b"protocolVersion" if text != b"2.0" => {
                edits.push_unordered(id, child.content.0, child.content.1, b"2.0".to_vec());
            }
            b"adminEmail" if text.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"mailto:")) => {
                edits.push_unordered(id, from, from + 7, Vec::new());
            }
            _ => {}
        }
    }
    // The missing elements go before compression and description.
    let defaults: [(&[u8], &[u8]); 3] =
        [(b"earliestDatestamp", EARLIEST), (b"deletedRecord", b"transient"), (b"granularity", b"YYYY-MM-DD")];
    let order: [&[u8]; 7] = [
        b"repositoryName",
        b"baseURL",
        b"protocolVersion",
        b"adminEmail",
        b"earliestDatestamp",
        b"deletedRecord",
        b"granularity",
    ];
    let prefix = item_prefix(item);
    for (local, value) in defaults.into_iter().filter(|(local, _)| !has(local)) {
        let rank = order.iter().position(|name| *name == local)?;
        let before = order.get(..rank)?;
        let after = inner.children.iter().rfind(|child| before.contains(&child.local))?;
        edits.push_unordered(id, after.end, after.end, element_with_text(prefix, local, value));
    }
    Some(())
}

/// Converts the schema and the namespace of a known format.
fn upgrade_format(item: &[u8], edits: &mut Edits) -> Option<()> {
    let id = RepairId::V1Format;
    let element = *outline(item, 0, item.len())?.children.first()?;
    let inner = outline(item, element.content.0, element.content.1)?;
    let child = |local: &[u8]| inner.children.iter().find(|child| child.local == local).copied();
    let content = |child: Child<'_>| item.get(child.content.0..child.content.1).map(trim);
    let prefix = content(child(b"metadataPrefix")?)?;
    let schema = child(b"schema")?;
    let named = content(schema)?;
    let meant = match v2_uri(named) {
        _ if prefix == b"oai_dc" || is_dc_schema(named) => OAI_DC_SCHEMA,
        Some(new) => new,
        None => named,
    };
    if meant != named {
        edits.push_unordered(id, schema.content.0, schema.content.1, meant.to_vec());
    }
    let known_namespace = NAMESPACES.iter().find(|(other, _)| *other == meant).map(|(_, uri)| *uri);
    match child(b"metadataNamespace") {
        Some(namespace) => {
            let named = content(namespace)?;
            let of_schema = if meant == OAI_DC_SCHEMA { known_namespace } else { None };
            let meant = of_schema.or_else(|| v2_uri(named)).unwrap_or(named);
            if meant != named {
                edits.push_unordered(id, namespace.content.0, namespace.content.1, meant.to_vec());
            }
        }
        None => {
            let added = element_with_text(item_prefix(item), b"metadataNamespace", known_namespace?);
            edits.push_unordered(id, schema.end, schema.end, added);
        }
    }
    Some(())
}
