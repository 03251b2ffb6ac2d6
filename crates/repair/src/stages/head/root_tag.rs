//! The repair of the root's start tag: namespaces, schemaLocation and stray characters.
//!
//! The prolog uses it.

use crate::catalog::RepairId;
use crate::lex::known_namespaces::{correct_namespace, is_well_known, well_known_namespace};
use crate::lex::lexeme::value_len;
use crate::lex::names::{blanks, is_blank, is_qualified_name, name_span, split_name};
use crate::lex::namespaces::{OAI, XSI};
use crate::passes::lenient_tag::{LenientAttribute, LenientTag};
use crate::text::edits::Edits;
use crate::v1::envelope::{LOCATION, replace_root_location, root_namespace};
use crate::validate::schema::is_uri_reference;
use crate::validate::start_tag::declared_prefix;

/// The largest number of stray bytes between the root's attributes that are removed.
const STRAY_BYTES_MAX: usize = 64;

/// The start tag of the document element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RootTag<'t> {
    /// The text that contains it.
    pub(crate) text: &'t [u8],
    /// Its start.
    pub(crate) at: usize,
    pub(crate) tag: &'t LenientTag,
}

impl<'t> RootTag<'t> {
    /// Returns its qualified name.
    pub(crate) fn name(self) -> &'t [u8] {
        self.text.get(self.at + 1..self.tag.name_end).unwrap_or_default()
    }

    /// Returns the prefix of its name.
    pub(crate) fn prefix(self) -> &'t [u8] {
        split_name(self.name()).0
    }

    fn attribute_name(self, attribute: &LenientAttribute) -> &'t [u8] {
        self.text.get(attribute.name.0..attribute.name.1).unwrap_or_default()
    }
}

/// Removes characters of the start tag `at..end` that belong to no attribute. Returns no edits if there are
/// too many.
pub(crate) fn stray_characters(text: &[u8], at: usize, end: usize) -> Edits {
    let tag = text.get(..end).unwrap_or_default();
    let name_len = |at: usize| name_span(tag.get(at..).unwrap_or_default());
    let blanks_at = |at: usize| at + blanks(tag.get(at..).unwrap_or_default());
    let mut strays = Edits::default();
    let mut count = 0;
    let mut at = at + 1 + name_len(at + 1);
    let element_name_end = at;
    loop {
        at = blanks_at(at);
        let rest = tag.get(at..).unwrap_or_default();
        if matches!(rest, [] | [b'>'] | [b'/', b'>']) {
            return strays;
        }
        let name_end = at + name_len(at);
        if is_qualified_name(tag.get(at..name_end).unwrap_or_default()) {
            let equals = blanks_at(name_end);
            let value = blanks_at(equals + 1);
            at = match tag.get(equals) {
                Some(b'=') => value + attribute_value_len(tag.get(value..).unwrap_or_default()),
                _ => name_end,
            };
            continue;
        }
        let len = 1 + rest.iter().skip(1).take_while(|&&byte| byte & 0xC0 == 0x80).count();
        count += len;
        if count > STRAY_BYTES_MAX {
            return Edits::default();
        }
        // The name of the element must not join the text after it.
        let joins = at == element_name_end && rest.get(len).is_some_and(|&next| !is_blank(next));
        strays.push(RepairId::EnvelopeAttribute, at, at + len, if joins { b" " } else { b"" });
        at += len;
    }
}

/// Returns the length of an attribute value, including its quotes.
fn attribute_value_len(text: &[u8]) -> usize {
    let is_end = |&byte: &u8| is_blank(byte) || matches!(byte, b'>' | b'"' | b'\'' | b'<');
    match text.first() {
        Some(b'"' | b'\'') => value_len(text).unwrap_or(text.len()),
        _ => text.iter().position(is_end).unwrap_or(text.len()),
    }
}

/// Adds the edits to the root's start tag. Returns false if its namespace is not OAI-PMH.
pub(crate) fn repair_root_tag(root: RootTag<'_>, is_v1: bool, locates: bool, edits: &mut Edits) -> bool {
    let RootTag { text: rest, tag, .. } = root;
    let prefix = root.prefix();
    for edit in tag.edits.iter() {
        edits.push_unordered(edit.id, edit.start, edit.end, edit.replacement.clone());
    }
    let mut declared: Vec<(&[u8], &[u8])> = Vec::new();
    for attribute in &tag.attributes {
        let name = root.attribute_name(attribute);
        let Some(declares) = declared_prefix(name) else { continue };
        let mut uri = attribute.value.as_slice();
        if declares == prefix && (uri.is_empty() || attribute.is_valueless()) {
            // An empty declaration is equivalent to none.
            attribute.replace(RepairId::MissingNamespace, declaration(prefix), edits);
            declared.push((prefix, OAI));
            continue;
        }
        if !is_well_known(uri) && !is_uri_reference(uri) {
            attribute.remove(RepairId::EnvelopeAttribute, edits);
            continue;
        }
        let meant = if is_v1 { root_namespace(uri) } else { None };
        let meant = meant.map(|meant| (meant, RepairId::V1Root));
        let meant = meant.or_else(|| correct_namespace(uri).map(|(meant, slip)| (meant, slip.repair())));
        if let Some((meant, id)) = meant {
            attribute.set(id, meant, edits);
            uri = meant;
        }
        declared.push((declares, uri));
    }
    match bound_uri(&declared, prefix) {
        Some(uri) if uri == OAI => {}
        Some(_) => return false,
        None => {
            edits.push_unordered(RepairId::MissingNamespace, tag.name_end, tag.name_end, declaration(prefix));
            declared.push((prefix, OAI));
        }
    }
    let mut is_located = false;
    for attribute in &tag.attributes {
        let name = root.attribute_name(attribute);
        let (attribute_prefix, local) = split_name(name);
        if declared_prefix(name).is_some() {
            continue;
        }
        let undeclared = !attribute_prefix.is_empty()
            && attribute_prefix != b"xml"
            && bound_uri(&declared, attribute_prefix).is_none();
        if undeclared && let Some(uri) = well_known_namespace(attribute_prefix) {
            let text = [b" xmlns:", attribute_prefix, b"=\"", uri, b"\""].concat();
            edits.push_unordered(RepairId::UndeclaredPrefix, tag.attributes_end, tag.attributes_end, text);
            declared.push((attribute_prefix, uri));
        }
        let is_xsi = bound_uri(&declared, attribute_prefix) == Some(XSI) && !attribute_prefix.is_empty();
        if !is_xsi || !matches!(local, b"schemaLocation" | b"noNamespaceSchemaLocation") {
            attribute.remove(RepairId::EnvelopeAttribute, edits);
        } else if local == b"schemaLocation" && is_v1 {
            is_located = true;
            replace_root_location(attribute, edits);
        } else if local == b"schemaLocation" {
            is_located = true;
            let value = respell_locations(attribute, rest, edits);
            if locates && let Some(located) = complete_locations(&value) {
                attribute.set(RepairId::SchemaLocation, &located, edits);
            }
        }
    }
    if !is_located && locates {
        let xsi = declared.iter().find(|(prefix, uri)| !prefix.is_empty() && *uri == XSI);
        let free = || {
            let usual = [b"xsi".as_slice(), b"xsi1", b"xsi2"];
            usual.into_iter().find(|prefix| bound_uri(&declared, prefix).is_none()).unwrap_or(b"xsi3")
        };
        let prefix = xsi.map_or_else(free, |&(prefix, _)| prefix);
        let declaration = [b" xmlns:", prefix, b"=\"", XSI, b"\""].concat();
        let attribute = [b" ", prefix, b":schemaLocation=\"", LOCATION, b"\""].concat();
        let added = if xsi.is_some() { attribute } else { [declaration, attribute].concat() };
        edits.push_unordered(RepairId::SchemaLocation, tag.attributes_end, tag.attributes_end, added);
    }
    true
}

/// Returns the namespace of `prefix` in the declarations so far.
fn bound_uri<'t>(declared: &[(&[u8], &'t [u8])], prefix: &[u8]) -> Option<&'t [u8]> {
    declared.iter().find(|(name, _)| *name == prefix).map(|&(_, uri)| uri)
}

/// Returns an attribute that binds a prefix, or the default namespace, to OAI-PMH.
fn declaration(prefix: &[u8]) -> Vec<u8> {
    let attribute: &[u8] = if prefix.is_empty() { b" xmlns" } else { b" xmlns:" };
    [attribute, prefix, b"=\"", OAI, b"\""].concat()
}

/// Returns the prefixes whose namespaces were corrected on the root, except those of the envelope.
pub(crate) fn corrected_namespaces(root: RootTag<'_>) -> Vec<Vec<u8>> {
    let corrected = root.tag.attributes.iter().filter_map(|attribute| {
        let prefix = declared_prefix(root.attribute_name(attribute))?;
        let (meant, _) = correct_namespace(&attribute.value)?;
        (meant != OAI && meant != XSI).then(|| prefix.to_vec())
    });
    corrected.collect()
}

/// Removes the prefix from the root and makes the OAI-PMH namespace the default.
pub(crate) fn strip_root_prefix(root: RootTag<'_>, edits: &mut Edits) {
    let RootTag { at, tag, .. } = root;
    // The colon belongs to the prefix.
    let prefix_len = root.prefix().len() + 1;
    let id = RepairId::EnvelopePrefix;
    edits.push_unordered(id, at + 1, at + 1 + prefix_len, Vec::new());
    let default = tag.attributes.iter().find(|attribute| root.attribute_name(attribute) == b"xmlns");
    match default {
        Some(attribute) if attribute.value == OAI => {}
        Some(attribute) if attribute.is_valueless() => attribute.replace(id, declaration(b""), edits),
        Some(attribute) => attribute.set(id, OAI, edits),
        None => edits.push_unordered(id, tag.name_end, tag.name_end, declaration(b"")),
    }
}

/// Returns a schemaLocation with the pair of the OAI-PMH namespace and schema; `None` if the value already
/// has it.
fn complete_locations(value: &[u8]) -> Option<Vec<u8>> {
    let words: Vec<&[u8]> = value.split(|&byte| is_blank(byte)).filter(|word| !word.is_empty()).collect();
    if words.len() % 2 == 1 {
        // The pairs of an odd number of words are ambiguous.
        return Some(LOCATION.to_vec());
    }
    let mut located = LOCATION.to_vec();
    for pair in words.chunks(2) {
        match pair {
            [OAI, schema] if schema.ends_with(b"OAI-PMH.xsd") => return None,
            [OAI, _] => {}
            _ => located.extend_from_slice(&[b" ", pair.join(b" ".as_slice()).as_slice()].concat()),
        }
    }
    Some(located)
}

/// Corrects misspelt namespaces in a schemaLocation and returns the corrected value.
fn respell_locations(attribute: &LenientAttribute, rest: &[u8], edits: &mut Edits) -> Vec<u8> {
    let value = &attribute.value;
    let mut inside = Edits::default();
    let mut at = 0;
    while at < value.len() {
        let word = value.get(at..).unwrap_or_default();
        let len = word.iter().position(|&byte| is_blank(byte)).unwrap_or(word.len());
        let uri = word.get(..len).unwrap_or_default();
        if let Some((meant, misspelling)) = correct_namespace(uri) {
            inside.push(misspelling.repair(), at, at + len, meant);
        } else if uri.starts_with(b"https://www.openarchives.org/OAI/2.0/") {
            inside.push(RepairId::HttpsNamespace, at, at + 8, b"http://");
        }
        at += len.max(1);
    }
    let start = attribute.span.0 + 1;
    let untouched = attribute.quoted && rest.get(start..attribute.span.1 - 1) == Some(value.as_slice());
    match inside.iter().next().map(|edit| edit.id) {
        None => {}
        Some(_) if untouched => {
            for edit in inside.iter() {
                edits.push_unordered(edit.id, start + edit.start, start + edit.end, edit.replacement.clone());
            }
        }
        Some(id) => attribute.set(id, &inside.apply(value), edits),
    }
    inside.apply(value).into_owned()
}
