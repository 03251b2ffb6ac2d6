//! The third pass of the slow path: the envelope of one item, in well-formed text.
//!
//! [`repair_item`](crate::repair_item::repair_item) runs this pass. It makes the elements around a
//! payload valid in the schema of OAI-PMH: status, order, datestamps, blanks, foreign elements and
//! attributes.
//!
//! The payload stays unchanged. The only exception is a payload that was escaped as a string.

use crate::boundary::removable::{contains_content, is_punctuation, is_server_message};
use crate::catalog::RepairId;
use crate::lex::names::{blanks, is_blank, name_span, trim};
use crate::lex::outline::{Child, Outline, outline};
use crate::limits::Limits;
use crate::passes::lenient_tag::{LenientAttribute, read_lenient_tag};
use crate::text::edits::{Edit, Edits};
use crate::text::escape::{escape, resolve};
use crate::text::leftovers::{leftover_repair, without_leftovers};
use crate::validate::schema::{Content, Element, Text};
use crate::validate::start_tag::is_allowed_attribute;
use oaimend_oai::datestamp::Oddity;
use oaimend_oai::{datestamp, set_spec};

/// Returns the edits to the envelope of one well-formed item, or no edits if it cannot be repaired.
///
/// In an item of OAI-PMH 1.x the record itself may have the status. `bound` replaces a datestamp that
/// cannot be read.
pub(crate) fn repair_envelope(
    text: &[u8],
    element: &'static Element,
    is_v1: bool,
    bound: Option<&str>,
    limits: &Limits,
) -> Edits {
    let edits = Edits::default();
    let mut pass = HeaderPass { text, item: element, is_v1, bound, limits, has_metadata: false, edits };
    pass.repair_item(element);
    pass.edits.sort();
    pass.edits
}

/// The largest number of children of one element that are reordered. It bounds the work.
const CHILDREN_ORDERED_MAX: usize = 1000;

/// Values of a status that mean *deleted* on a header without metadata. The only legal value is "deleted".
const DELETED_WORDS: [&[u8]; 3] = [b"delete", b"removed", b"withdrawn"];

struct HeaderPass<'t> {
    text: &'t [u8],
    item: &'static Element,
    is_v1: bool,
    bound: Option<&'t str>,
    limits: &'t Limits,
    has_metadata: bool,
    edits: Edits,
}

impl<'t> HeaderPass<'t> {
    fn slice(&self, start: usize, end: usize) -> &'t [u8] {
        self.text.get(start..end).unwrap_or_default()
    }

    fn edit(&mut self, id: RepairId, start: usize, end: usize, replacement: &[u8]) {
        self.edits.push_unordered(id, start, end, replacement.to_vec());
    }

    fn repair_item(&mut self, element: &'static Element) -> Option<()> {
        let tree = outline(self.text, 0, self.text.len())?;
        let item = *tree.children.first()?;
        self.remove_unexpected_text(&tree, &[]);
        let mut inner = outline(self.text, item.content.0, item.content.1)?;
        if let Content::Children(definitions) = &element.content {
            // An element that does not belong in the item is removed as a whole.
            inner.children.retain(|child| definitions.iter().any(|element| element.name == child.local));
        }
        let header = inner.children.iter().find(|child| child.local == b"header").copied();
        self.has_metadata = inner.children.iter().any(|child| child.local == b"metadata");
        let stays = self.is_v1 && element.name == b"record";
        let may_have_status = element.name == b"header" || stays;
        let rule = if may_have_status { StatusRule::Allowed } else { StatusRule::Forbidden };
        let mut status = self.repair_attributes(item, rule);
        if let Some(header) = header {
            let moved = status;
            status = self.repair_attributes(header, StatusRule::Allowed);
            if moved && stays {
                status = true;
            } else if moved && !status {
                let name_end = header.start + 1 + name_span(self.slice(header.start + 1, header.content.0));
                self.edit(RepairId::StatusValue, name_end, name_end, b" status=\"deleted\"");
                status = true;
            }
        }
        for child in &inner.children {
            if matches!(child.local, b"metadata" | b"about") {
                if status && header.is_some() {
                    self.edit(RepairId::DeletedWithMetadata, child.start, child.end, b"");
                } else {
                    self.repair_payload(*child);
                }
            }
        }
        self.repair_element(element, item)
    }

    /// Removes text between the children of an element if it is punctuation or a message of the server.
    ///
    /// Other text stays, so the item stays invalid.
    fn remove_unexpected_text(&mut self, inner: &Outline<'t>, unknown: &[Child<'t>]) {
        let texts = inner.stray.iter().copied();
        let elements = unknown.iter().map(|child| (child.start, child.end));
        let contents: Vec<&[u8]> = texts.chain(elements).map(|(start, end)| self.slice(start, end)).collect();
        let is_message = self.item.name == b"Identify" || is_server_message(&contents.concat());
        for &(start, end) in &inner.stray {
            let text = self.slice(start, end);
            if is_message || is_punctuation(text) {
                self.edit(RepairId::UnexpectedContent, start, end, b"");
            } else if leftover_repair(&resolve(text)) == Some(RepairId::ByteOrderMark) {
                self.edit(RepairId::ByteOrderMark, start, end, b"");
            }
        }
    }

    /// Returns whether an unknown element contains nothing of the envelope.
    fn is_noise(&self, child: &Child<'t>) -> bool {
        self.item.name == b"Identify" || !contains_content(self.slice(child.start, child.end), self.item)
    }

    /// Repairs the children of an envelope element: unknown elements, fields and order.
    fn repair_element(&mut self, element: &'static Element, child: Child<'t>) -> Option<()> {
        let Content::Children(definitions) = &element.content else { return None };
        let inner = outline(self.text, child.content.0, child.content.1)?;
        let rank = |child: &Child<'_>| definitions.iter().position(|element| element.name == child.local);
        let unknown: Vec<Child<'t>> =
            inner.children.iter().filter(|child| rank(child).is_none()).copied().collect();
        self.remove_unexpected_text(&inner, &unknown);
        for child in &unknown {
            if self.is_noise(child) {
                self.edit(RepairId::UnknownElement, child.start, child.end, b"");
            }
        }
        let ranked: Vec<(usize, Child<'t>)> =
            inner.children.iter().filter_map(|child| Some((rank(child)?, *child))).collect();
        for (rank, child) in &ranked {
            let Some(inner) = definitions.get(*rank) else { continue };
            match &inner.content {
                Content::Text(check) => self.repair_field(*check, *child, element.name == b"header"),
                Content::Children(_) => {
                    self.repair_element(inner, *child);
                }
                // Those of a record depend on its status, and `repair_item` has read them.
                Content::Payload if element.name == b"record" => {}
                Content::Payload => self.repair_payload(*child),
            }
        }
        self.reorder_children(&ranked, child.content.1);
        if element.name == b"header" {
            self.add_datestamp(&ranked, child);
        }
        Some(())
    }

    /// Moves each child that follows a child of higher rank. The edits inside a child move with it.
    fn reorder_children(&mut self, ranked: &[(usize, Child<'t>)], end: usize) {
        if ranked.is_sorted_by_key(|(rank, _)| *rank) || ranked.len() > CHILDREN_ORDERED_MAX {
            return;
        }
        let kept = longest_ordered_run(ranked);
        let mut moves: Vec<&(usize, Child<'t>)> = ranked
            .iter()
            .enumerate()
            .filter(|(index, (_, child))| {
                !kept.contains(index) && !self.edits.removes(child.start, child.end)
            })
            .map(|(_, child)| child)
            .collect();
        // Children with the same target position keep the order of their ranks.
        moves.sort_by_key(|(rank, _)| *rank);
        for (rank, child) in moves {
            let inside = self.edits.take_within(child.start, child.end);
            let moved = inside.apply_at(self.slice(child.start, child.end), child.start);
            let place = kept
                .iter()
                .filter_map(|&index| ranked.get(index))
                .find(|(other, _)| other > rank)
                .map_or(end, |(_, other)| other.start);
            self.edit(RepairId::ElementOrder, child.start, child.end, b"");
            self.edit(RepairId::ElementOrder, place, place, &moved);
        }
    }

    /// Adds the lower bound as the datestamp of a header that has none.
    fn add_datestamp(&mut self, ranked: &[(usize, Child<'t>)], header: Child<'t>) -> Option<()> {
        let bound = self.bound?;
        if ranked.iter().any(|(_, child)| child.local == b"datestamp") || ranked.len() > CHILDREN_ORDERED_MAX
        {
            return None;
        }
        let identifier = ranked.iter().map(|(_, child)| child).find(|child| child.local == b"identifier")?;
        let name = self.slice(identifier.start + 1, identifier.end);
        let prefix = name.strip_suffix(name.get(name_span(name) - identifier.local.len()..)?)?;
        let element = [b"<", prefix, b"datestamp>", bound.as_bytes(), b"</", prefix, b"datestamp>"].concat();
        // These children keep their position; the others move.
        let kept = longest_ordered_run(ranked);
        let mut after = kept.iter().filter_map(|&index| ranked.get(index)).map(|(_, child)| child);
        let next = after.find(|child| child.local != b"identifier");
        let place = next.map_or(header.content.1, |child| child.start);
        self.edit(RepairId::DatestampLowerBound, place, place, &element);
        Some(())
    }

    fn repair_field(&mut self, check: Text, child: Child<'t>, in_header: bool) {
        self.repair_attributes(child, StatusRule::Forbidden);
        let (start, end) = child.content;
        let raw = self.slice(start, end);
        let plain = !raw.iter().any(|&byte| matches!(byte, b'<' | b'&'));
        let resolved = if plain { raw.to_vec() } else { resolve(raw) };
        if check.is_valid(&resolved)
            || outline(raw, 0, raw.len()).is_none_or(|inner| !inner.children.is_empty())
        {
            return;
        }
        let trimmed = trim(&resolved);
        match check {
            Text::Datestamp => return self.repair_datestamp(child, &resolved, plain),
            Text::SetSpec if !check.is_valid(trimmed) => {
                return self.repair_set_spec(child, trimmed, plain, in_header);
            }
            _ => {}
        }
        if check.is_valid(trimmed)
            && trimmed.len() < resolved.len()
            && matches!(
                check,
                Text::Identifier
                    | Text::SetSpec
                    | Text::Url
                    | Text::MetadataPrefix
                    | Text::Version
                    | Text::Email
                    | Text::DeletedRecord
                    | Text::Granularity
            )
        {
            if plain {
                let from = start + raw.iter().position(|&byte| !is_blank(byte)).unwrap_or(0);
                let to = from + trimmed.len();
                self.delete(RepairId::HeaderBlank, start, from);
                self.delete(RepairId::HeaderBlank, to, end);
            } else {
                self.edit(RepairId::HeaderBlank, start, end, &escape(trimmed));
            }
        }
    }

    fn repair_datestamp(&mut self, child: Child<'t>, resolved: &[u8], plain: bool) {
        let (start, end) = child.content;
        let read = std::str::from_utf8(resolved).ok().and_then(datestamp::normalise);
        let bound = if child.local == b"datestamp" { self.bound.map(str::as_bytes) } else { None };
        let tag = self.slice(child.start, child.end);
        match (read, bound) {
            (Some((stamp, oddity)), _) => {
                let field = FieldText { raw: self.slice(start, end), at: start, is_plain: plain };
                rewrite_datestamp(field, &stamp, oddity, &mut self.edits);
            }
            (None, Some(bound)) if start == end && tag.ends_with(b"/>") => {
                let name = tag.get(1..).map(|tag| tag.get(..name_span(tag)).unwrap_or_default());
                let closed = [b">", bound, b"</", name.unwrap_or_default(), b">"].concat();
                self.edit(RepairId::DatestampLowerBound, child.end - 2, child.end, &closed);
            }
            (None, Some(bound)) => self.edit(RepairId::DatestampLowerBound, start, end, bound),
            (None, None) => {}
        }
    }

    /// Repairs a setSpec that the schema does not allow. `name` is its trimmed value.
    fn repair_set_spec(&mut self, child: Child<'t>, name: &[u8], plain: bool, in_header: bool) {
        let (start, end) = child.content;
        let escaped = set_spec::escape(name);
        if name.is_empty() && in_header {
            // An attribute that is not a declaration may name the set.
            let is_within = |edit: &Edit| edit.start >= child.start && edit.end <= child.end;
            if !self.edits.iter().next_back().is_some_and(is_within) {
                self.edit(RepairId::EmptySetSpec, child.start, child.end, b"");
            }
        } else if plain && !name.is_empty() {
            let from = start + blanks(self.slice(start, end));
            self.delete(RepairId::HeaderBlank, start, from);
            self.edit(RepairId::SetSpecEscape, from, from + name.len(), &escaped);
            self.delete(RepairId::HeaderBlank, from + name.len(), end);
        } else if !name.is_empty() {
            self.edit(RepairId::SetSpecEscape, start, end, &escaped);
        }
    }

    fn delete(&mut self, id: RepairId, start: usize, end: usize) {
        if start < end {
            self.edit(id, start, end, b"");
        }
    }

    /// Removes attributes that the schema does not define.
    ///
    /// Returns whether the element has the status "deleted".
    fn repair_attributes(&mut self, child: Child<'t>, status: StatusRule) -> bool {
        let Some(tag) = read_lenient_tag(self.text, child.start, child.content.0, self.limits) else {
            return false;
        };
        let mut deleted = false;
        for attribute in &tag.attributes {
            let name = self.slice(attribute.name.0, attribute.name.1);
            if is_allowed_attribute(name, |prefix| prefix == b"xsi") {
                continue;
            }
            if name.eq_ignore_ascii_case(b"status") {
                // A second status would repeat the attribute.
                let rule = if deleted { StatusRule::Forbidden } else { status };
                deleted |= self.repair_status(attribute, rule);
            } else {
                attribute.remove(RepairId::EnvelopeAttribute, &mut self.edits);
            }
        }
        deleted
    }

    fn repair_status(&mut self, attribute: &LenientAttribute, rule: StatusRule) -> bool {
        let value = trim(&attribute.value);
        let is_word = |word: &&[u8]| value.eq_ignore_ascii_case(word);
        let deleted =
            is_word(&b"deleted".as_slice()) || !self.has_metadata && DELETED_WORDS.iter().any(is_word);
        if !deleted || rule == StatusRule::Forbidden {
            attribute.remove(RepairId::StatusValue, &mut self.edits);
        } else if self.slice(attribute.name.0, attribute.name.1) != b"status" {
            attribute.replace(RepairId::StatusValue, b" status=\"deleted\"".to_vec(), &mut self.edits);
        } else if attribute.value != b"deleted" {
            attribute.set(RepairId::StatusValue, b"deleted", &mut self.edits);
        }
        deleted
    }

    /// Repairs an element that must contain one payload, and its attributes. An empty `metadata` stays, so the
    /// item stays invalid.
    fn repair_payload(&mut self, child: Child<'t>) {
        self.repair_attributes(child, StatusRule::Forbidden);
        let (start, end) = child.content;
        let Some(inner) = outline(self.text, start, end) else { return };
        match inner.children.first() {
            Some(root) => self.remove_leftovers(&inner, root.start),
            None if !inner.stray.is_empty() => self.unescape_payload(child),
            None if child.local == b"metadata" => {}
            None => self.remove_child(RepairId::AboutNotElement, child),
        }
    }

    /// Removes a child, and the edits inside it.
    fn remove_child(&mut self, id: RepairId, child: Child<'t>) {
        self.edits.drop_last_within(child.start, child.end);
        self.edit(id, child.start, child.end, b"");
    }

    /// Removes byte order marks, and what is left of a declaration before the root of the payload. Other
    /// text stays, so the item stays invalid.
    fn remove_leftovers(&mut self, inner: &Outline<'t>, root: usize) {
        for &(start, end) in &inner.stray {
            match leftover_repair(&resolve(self.slice(start, end))) {
                Some(id) if start < root || id == RepairId::ByteOrderMark => self.edit(id, start, end, b""),
                _ => {}
            }
        }
    }

    /// Replaces a payload that is one whole element escaped as a string by the element itself. Removes an
    /// optional element with other text.
    fn unescape_payload(&mut self, child: Child<'t>) {
        let (start, end) = child.content;
        let text = resolve(self.slice(start, end));
        let payload = without_leftovers(&text);
        let whole = outline(payload, 0, payload.len())
            .is_some_and(|tree| tree.children.len() == 1 && tree.stray.is_empty());
        let raw = trim(self.slice(start, end));
        let section = raw.strip_prefix(b"<![CDATA[").and_then(|raw| raw.strip_suffix(b"]]>"));
        if whole && section.is_some_and(|section| payload == trim(section)) {
            let from = start + blanks(self.slice(start, end));
            let to = from + raw.len();
            self.edit(RepairId::EscapedPayload, from, from + 9, b"");
            self.edit(RepairId::EscapedPayload, to - 3, to, b"");
        } else if whole {
            self.edit(RepairId::EscapedPayload, start, end, payload);
        } else if child.local != b"metadata" {
            self.remove_child(RepairId::AboutNotElement, child);
        }
    }
}

/// Returns the edits that remove everything from a record except its header.
pub(crate) fn keep_only_header(record: &[u8]) -> Edits {
    let mut edits = Edits::default();
    let tree = outline(record, 0, record.len());
    if let Some(item) = tree.as_ref().and_then(|tree| tree.children.first())
        && let Some(inner) = outline(record, item.content.0, item.content.1)
        && let Some(header) = inner.children.iter().find(|child| child.local == b"header")
    {
        edits.push(RepairId::WrappedHeader, item.start, header.start, b"");
        edits.push(RepairId::WrappedHeader, header.end, item.end, b"");
    }
    edits
}

/// Whether an element may have the attribute `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatusRule {
    Allowed,
    Forbidden,
}

/// The text of a field in an item or in the head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldText<'t> {
    pub(crate) raw: &'t [u8],
    /// Its start.
    pub(crate) at: usize,
    /// Whether it contains neither references nor markup, so that single bytes of it can change.
    pub(crate) is_plain: bool,
}

/// Changes as few bytes of a datestamp as possible.
pub(crate) fn rewrite_datestamp(field: FieldText<'_>, stamp: &str, oddity: Oddity, edits: &mut Edits) {
    let FieldText { raw, at, is_plain: plain } = field;
    let stamp = stamp.as_bytes();
    let id = repair_for(oddity);
    if oddity == Oddity::Blank && plain && raw.is_ascii() {
        let mut from = 0;
        while let Some(gap) = raw.iter().skip(from).position(|&byte| is_blank(byte)).map(|gap| from + gap) {
            let run = blanks(raw.get(gap..).unwrap_or_default());
            edits.push_unordered(id, at + gap, at + gap + run, Vec::new());
            from = gap + run;
        }
        return;
    }
    if !plain {
        edits.push_unordered(id, at, at + raw.len(), stamp.to_vec());
        return;
    }
    let same =
        |pairs: &mut dyn Iterator<Item = (&u8, &u8)>| pairs.take_while(|(one, other)| one == other).count();
    let front = same(&mut raw.iter().zip(stamp));
    let room = raw.len().min(stamp.len()) - front;
    let back = same(&mut raw.iter().rev().zip(stamp.iter().rev())).min(room);
    let middle = stamp.get(front..stamp.len() - back).unwrap_or_default();
    edits.push_unordered(id, at + front, at + raw.len() - back, middle.to_vec());
}

/// Returns the repair for an irregular form of a datestamp.
pub(crate) fn repair_for(oddity: Oddity) -> RepairId {
    match oddity {
        Oddity::Blank => RepairId::HeaderBlank,
        Oddity::Fraction => RepairId::DatestampFraction,
        Oddity::Offset => RepairId::DatestampOffset,
        Oddity::Zone => RepairId::DatestampZone,
        // `Form`, and forms that are not known here.
        _ => RepairId::DatestampForm,
    }
}

/// Returns the indices of a longest sequence of children whose ranks never decrease. These children need
/// not move.
fn longest_ordered_run(ranked: &[(usize, Child<'_>)]) -> Vec<usize> {
    let mut best: Vec<(usize, Option<usize>)> = Vec::with_capacity(ranked.len());
    for (index, (rank, _)) in ranked.iter().enumerate() {
        let previous = (0..index)
            .filter(|&other| ranked.get(other).is_some_and(|(lower, _)| lower <= rank))
            .max_by_key(|&other| (best.get(other).map_or(0, |run| run.0), std::cmp::Reverse(other)));
        let length = previous.and_then(|other| best.get(other)).map_or(0, |run| run.0) + 1;
        best.push((length, previous));
    }
    let mut at = (0..best.len())
        .max_by_key(|&index| (best.get(index).map_or(0, |run| run.0), std::cmp::Reverse(index)));
    let mut kept = Vec::new();
    while let Some(index) = at {
        kept.push(index);
        at = best.get(index).and_then(|run| run.1);
    }
    kept.reverse();
    kept
}
