//! The repair of Identify: values in another form and missing elements.
//!
//! [`repair_item`](crate::repair_item::repair_item) runs this pass after the envelope is repaired.
//!
//! No value is invented. A missing value comes from the configuration. The protocol version comes from the
//! response, and the base URL from the request. Any other missing value stays missing and is reported.

use crate::catalog::{RepairId, RepairSet};
use crate::config::IdentifyValues;
use crate::lex::names::{blanks, trim};
use crate::lex::outline::{Child, Outline, element_with_text, item_prefix, outline};
use crate::sink::FieldIssue;
use crate::text::edits::Edits;
use crate::text::escape::{escape, resolve};
use crate::validate::schema::{Content, Element, IDENTIFY, Text};

/// The values known of the repository.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownValues<'k> {
    pub(crate) values: &'k IdentifyValues,
    /// The base URL that harvesters use.
    pub(crate) base_url: Option<&'k str>,
}

impl KnownValues<'_> {
    /// Returns the known value of an element.
    fn value(&self, local: &[u8]) -> Option<&str> {
        let values = self.values;
        match local {
            b"repositoryName" => values.repository_name.as_deref(),
            b"baseURL" => self.base_url,
            // The namespace of the response implies the version.
            b"protocolVersion" => Some("2.0"),
            b"adminEmail" => values.admin_email.as_deref(),
            b"earliestDatestamp" => values.earliest_datestamp.as_deref(),
            b"deletedRecord" => values.deleted_record.as_deref(),
            b"granularity" => values.granularity.as_deref(),
            _ => None,
        }
    }
}

/// Returns the definitions of the children of Identify, the Identify element, and its actual children.
fn identify_parts(text: &[u8]) -> Option<(&'static [Element], Child<'_>, Outline<'_>)> {
    let Content::Children(definitions) = &IDENTIFY.content else { return None };
    let tree = outline(text, 0, text.len())?;
    let element = *tree.children.first()?;
    let inner = outline(text, element.content.0, element.content.1)?;
    Some((definitions, element, inner))
}

/// Returns whether the text contains any child of Identify.
pub(crate) fn has_identify_element(text: &[u8]) -> bool {
    identify_parts(text).is_some_and(|(definitions, _, inner)| {
        inner.children.iter().any(|child| definitions.iter().any(|element| element.name == child.local))
    })
}

/// Returns the edits that correct values and add missing elements. The children must be in order.
pub(crate) fn repair_identify(text: &[u8], known_values: KnownValues<'_>, off: RepairSet) -> Edits {
    let mut pass = IdentifyPass { text, known_values, edits: Edits::default() };
    pass.repair_element();
    let mut edits = Edits::default();
    for edit in pass.edits.iter().filter(|edit| !off.contains(edit.id)) {
        edits.push_unordered(edit.id, edit.start, edit.end, edit.replacement.clone());
    }
    edits.sort();
    edits
}

/// Returns the fields that are still missing or illegal, by element name.
///
/// An email address with a `mailto:` scheme is accepted, because the schema allows it. If no field
/// is at fault, the result is Identify itself.
pub(crate) fn unresolved_fields(text: &[u8]) -> Vec<(&'static str, FieldIssue)> {
    let mut unresolved = Vec::new();
    let Some((definitions, _, inner)) = identify_parts(text) else { return unresolved };
    let mut has_scheme = false;
    for element in definitions {
        let Content::Text(check) = &element.content else { continue };
        let name = std::str::from_utf8(element.name).unwrap_or_default();
        let found: Vec<&Child<'_>> =
            inner.children.iter().filter(|child| child.local == element.name).collect();
        let mut is_legal = |child: &Child<'_>| {
            let raw = text.get(child.content.0..child.content.1).unwrap_or_default();
            let value = resolve(raw);
            has_scheme |= *check == Text::Email && without_scheme(&value).is_some();
            is_text(raw) && check.allows(&value)
        };
        if found.is_empty() && element.occurs.is_required() {
            unresolved.push((name, FieldIssue::Missing));
        } else if !found.iter().all(|child| is_legal(child)) {
            unresolved.push((name, FieldIssue::Illegal));
        } else if found.len() > 1 && !element.occurs.may_repeat() {
            unresolved.push((name, FieldIssue::Repeated));
        }
    }
    if unresolved.is_empty() && !has_scheme {
        unresolved.push(("Identify", FieldIssue::Illegal));
    }
    unresolved
}

struct IdentifyPass<'p> {
    text: &'p [u8],
    known_values: KnownValues<'p>,
    edits: Edits,
}

impl IdentifyPass<'_> {
    fn edit(&mut self, id: RepairId, start: usize, end: usize, replacement: &[u8]) {
        if start < end || !replacement.is_empty() {
            self.edits.push_unordered(id, start, end, replacement.to_vec());
        }
    }

    fn repair_element(&mut self) -> Option<()> {
        let (definitions, element, inner) = identify_parts(self.text)?;
        let mut place = element.content.0;
        for part in definitions {
            let Content::Text(check) = part.content else { continue };
            let found: Vec<Child<'_>> =
                inner.children.iter().filter(|child| child.local == part.name).copied().collect();
            let legal = found.iter().filter(|child| self.repair_field(check, child)).count();
            if legal == 0 && part.occurs.is_required() {
                self.add_known_value(part.name, &found, place);
            } else if legal < found.len() && part.occurs.may_repeat() {
                self.remove_illegal_values(check, &found);
            }
            place = found.last().map_or(place, |child| child.end);
        }
        Some(())
    }

    /// Corrects one value and returns whether it is then legal.
    fn repair_field(&mut self, check: Text, child: &Child<'_>) -> bool {
        let (start, end) = child.content;
        let raw = self.text.get(start..end).unwrap_or_default();
        if !is_text(raw) {
            return false;
        }
        let text = resolve(raw);
        if check.is_valid(&text) {
            return true;
        }
        if check == Text::Email
            && let Some(rest) = without_scheme(trim(raw))
            && check.is_valid(&resolve(rest))
        {
            let from = start + blanks(raw);
            self.edit(RepairId::IdentifyValue, start, from + SCHEME.len(), b"");
            self.edit(RepairId::IdentifyValue, from + SCHEME.len() + rest.len(), end, b"");
            return true;
        }
        let is_known_value =
            check == Text::DeletedRecord && self.known_values.value(b"deletedRecord").is_some();
        match intended_value(check, trim(&text), is_known_value) {
            Some(value) => {
                if end > start || child.end > end {
                    self.edit(RepairId::IdentifyValue, start, end, value);
                }
                child.end > end
            }
            None => false,
        }
    }

    /// Adds the known value of an element that is missing or has no legal value.
    fn add_known_value(&mut self, local: &[u8], found: &[Child<'_>], place: usize) {
        let Some(value) = self.known_values.value(local).map(|value| escape(value.as_bytes())) else {
            return;
        };
        let element = element_with_text(item_prefix(self.text), local, &value);
        let id = RepairId::IdentifyElement;
        match found.split_first() {
            None => self.edit(id, place, place, &element),
            Some((first, others)) => {
                self.edit(id, first.start, first.end, &element);
                for other in others {
                    self.edit(id, other.start, other.end, b"");
                }
            }
        }
    }

    /// Removes illegal values of an element that also has a legal value.
    fn remove_illegal_values(&mut self, check: Text, found: &[Child<'_>]) {
        for child in found {
            let raw = self.text.get(child.content.0..child.content.1).unwrap_or_default();
            let is_legal = is_text(raw)
                && (check.is_valid(&resolve(raw))
                    || check == Text::Email
                        && without_scheme(trim(raw)).is_some_and(|rest| check.is_valid(&resolve(rest))));
            if !is_legal {
                self.edit(RepairId::IdentifyValue, child.start, child.end, b"");
            }
        }
    }
}

const SCHEME: &[u8] = b"mailto:";

/// Returns whether a value contains no elements.
fn is_text(raw: &[u8]) -> bool {
    outline(raw, 0, raw.len()).is_some_and(|inner| inner.children.is_empty())
}

/// Returns an email address without its `mailto:` scheme; `None` if it has none.
fn without_scheme(text: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = text.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(rest)
}

/// Returns the legal value that an illegal value most probably means.
fn intended_value(check: Text, text: &[u8], is_known_value: bool) -> Option<&'static [u8]> {
    const DAY: &[u8] = b"YYYY-MM-DD";
    const SECOND: &[u8] = b"YYYY-MM-DDThh:mm:ssZ";
    const PROMISES: [&[u8]; 3] = [b"no", b"persistent", b"transient"];
    match check {
        Text::Granularity => [DAY, SECOND].into_iter().find(|legal| legal.eq_ignore_ascii_case(text)),
        Text::DeletedRecord => {
            let legal = PROMISES.into_iter().find(|legal| legal.eq_ignore_ascii_case(text));
            // "transient" promises the least of the three values.
            legal.or((!text.is_empty() && !is_known_value).then_some(b"transient".as_slice()))
        }
        Text::Version => Some(b"2.0"),
        _ => None,
    }
}
