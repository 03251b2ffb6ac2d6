//! End tags of broken markup: which open element each one closes, or that it is text.
//!
//! A part of the pass over [`markup`](super::markup). An end tag in a plain-text field closes an element
//! around the field only where the next tag confirms it. Otherwise it is text that somebody typed.

use super::catalogue::RepairId;
use super::markup::{Kind, Open, Tree};
use super::name::{blanks, name_span, split_name, trailing_blanks, trim};
use super::removable::is_punctuation;
use super::vocabulary::{Family, is_slip};

impl Tree<'_> {
    pub(super) fn end_tag(&mut self, at: usize, end: usize) {
        let name_end = at + 2 + name_span(self.slice((at + 2, end)));
        let name = self.slice((at + 2, name_end));
        let complete = self.slice((at, end)).ends_with(b">")
            && blanks(self.slice((name_end, end))) + 1 == end - name_end;
        let Some(top) = self.open.last().copied() else { return };
        if self.has_text((name_end, end)) {
            return self.keep_text_of_end_tag(at, end);
        }
        let top_depth = self.open.len() - 1;
        let exact = self.open.iter().rposition(|open| self.slice(open.name) == name);
        let local = split_name(name).1;
        let in_plain_field = self.in_field() && self.payload_root.is_some();
        if let Some(depth) = exact {
            if in_plain_field && depth < top_depth && self.is_in_text(depth, end) {
                return self.escape(at, end);
            }
            self.close_above(depth + 1, at);
            if !complete {
                self.rename_end(depth, at, end);
            }
            self.pop(end);
        } else if is_slip(split_name(self.slice(top.name)).1, local)
            || in_plain_field && self.is_meant_for_field(top, name, (name_end, end))
        {
            self.rename_end(top_depth, at, end);
            self.pop(end);
        } else if let Some(depth) =
            self.open.iter().rposition(|open| split_name(self.slice(open.name)).1.eq_ignore_ascii_case(local))
            && (!in_plain_field || self.is_confirmed(depth, end))
        {
            self.close_above(depth + 1, at);
            self.rename_end(depth, at, end);
            self.pop(end);
        } else if in_plain_field && self.is_before_right_one(top, name, end) {
            self.edit(RepairId::StrayEndTag, at, end, b"");
            self.content_from = end;
        } else if self.in_key() && self.is_before_envelope_tag(end) {
            self.rename_end(top_depth, at, end);
            self.pop(end);
        } else if self.in_field() {
            self.guessed |= self.in_key();
            self.escape(at, end);
        } else if let Some(text_at) = self.bare_text.take() {
            self.restore_start_tag(text_at, name, complete, at);
            self.content_from = end;
        } else {
            self.guessed |= self.family == Family::Other && self.in_payload();
            self.edit(RepairId::StrayEndTag, at, end, b"");
            self.content_from = end;
        }
    }

    /// Whether text follows the name of an end tag that has lost its `>`.
    fn has_text(&self, behind_name: (usize, usize)) -> bool {
        let behind = self.slice(behind_name);
        !behind.ends_with(b">") && !is_punctuation(behind)
    }

    /// An end tag without its `>` runs up to the next tag. In a plain-text field all of it is text; elsewhere no
    /// reading is plausible, because the text would have no element.
    fn keep_text_of_end_tag(&mut self, at: usize, end: usize) {
        self.guessed |= self.in_key() || !self.in_field();
        self.escape(at, end);
    }

    /// Whether the open element is a field of the envelope by which harvesters store an item. Markup in it is no text.
    pub(super) fn in_key(&self) -> bool {
        let is_key = |open: &Open| {
            let local = split_name(self.slice(open.name)).1;
            matches!(local, b"identifier" | b"datestamp" | b"setSpec" | b"metadataPrefix")
        };
        self.payload_root.is_none() && self.in_field() && self.open.last().is_some_and(is_key)
    }

    /// Whether the next tag after `end` is one that can follow the open field of the envelope.
    fn is_before_envelope_tag(&self, end: usize) -> bool {
        let (is_end, next) = self.next_tag(end);
        let local = split_name(next).1;
        let parent = self.open.iter().rev().nth(1).map(|open| split_name(self.slice(open.name)).1);
        if is_end { parent == Some(local) } else { self.parent_holds(local) }
    }

    /// Whether the tag `at..end` is the item's end tag without its slash: every element in the item is closed, and
    /// nothing follows.
    pub(super) fn is_end_without_slash(&self, name: &[u8], end: usize) -> bool {
        let behind = self.slice((end, self.text.len()));
        let [item] = self.open.as_slice() else { return false };
        self.slice(item.name) == name && blanks(behind) == behind.len() && self.content_from > item.name.1 + 1
    }

    /// Corrects the item's end tag where it is the last text of the item and no tag any more: `record>`, `/record>`,
    /// `</ record>`, `</>`.
    pub(super) fn restore_item_end(&mut self) {
        let [item] = self.open.as_slice() else { return };
        let text = self.slice((self.content_from, self.text.len()));
        let at = self.content_from + blanks(text);
        let tag = trim(text);
        // The mark was a character as long as it was not known to begin a tag.
        let bare = tag.strip_prefix(b"&lt;").or_else(|| tag.strip_prefix(b"<"));
        let name = bare.unwrap_or(tag);
        let slash = name.strip_prefix(b"/");
        let name = slash.unwrap_or(name);
        let Some(name) = name.strip_suffix(b">").map(trim) else { return };
        let is_empty_tag = bare.is_some() && slash.is_some() && name.is_empty();
        if is_empty_tag || is_slip(split_name(name).1, split_name(self.slice(item.name)).1) {
            let end_tag = [b"</", self.slice(item.name), b">"].concat();
            // What was changed inside of it before is changed as a whole.
            self.edits.drop_last_within(at, at + tag.len());
            self.edit(RepairId::MismatchedEndTag, at, at + tag.len(), &end_tag);
            self.pop(at + tag.len());
        }
    }

    /// Whether text follows an end tag that has the name of a payload element around the open field.
    fn is_in_text(&self, depth: usize, end: usize) -> bool {
        let in_payload = self.open.get(depth).is_some_and(|open| matches!(open.kind, Kind::Mixed));
        let behind = self.slice((end, self.text.len()));
        in_payload && behind.get(blanks(behind)).is_some_and(|&byte| byte != b'<')
    }

    /// Whether an end tag closes the open field although it has another name: that of another field, or
    /// only the first letters of the right one. The tag that follows must be one that cannot be in the field.
    fn is_meant_for_field(&self, field: Open, name: &[u8], (name_end, end): (usize, usize)) -> bool {
        let field_name = self.slice(field.name);
        let (prefix, local) = split_name(name);
        let is_other_field = prefix == split_name(field_name).0 && self.family.is_field(local);
        let is_cut = blanks(self.slice((name_end, end))) == end - name_end && field_name.starts_with(name);
        let is_prefix = field_name.strip_prefix(name).is_some_and(|rest| rest.starts_with(b":"));
        (is_other_field || is_cut || is_prefix) && self.ends_before_next_tag(field, end)
    }

    /// Whether the tag that follows `end` is one that cannot be in the open field.
    fn ends_before_next_tag(&self, field: Open, end: usize) -> bool {
        let (is_end, next) = self.next_tag(end);
        if is_end {
            let around = self.open.get(..self.open.len() - 1).unwrap_or_default();
            around.iter().any(|open| self.slice(open.name) == next)
        } else {
            self.is_sibling(field, next)
        }
    }

    /// Whether an end tag of another field is directly before that of the open field.
    fn is_before_right_one(&self, field: Open, name: &[u8], end: usize) -> bool {
        let field_name = self.slice(field.name);
        let (prefix, local) = split_name(name);
        prefix == split_name(field_name).0
            && self.family.is_field(local)
            && self.next_tag(end) == (true, field_name)
    }

    /// Text of a field at `at..end` may end with the end tag of the field, of which the first character
    /// is missing.
    pub(super) fn end_without_bracket(&mut self, at: usize, end: usize) {
        let Some(field) = self.open.last().copied().filter(|_| self.payload_root.is_some()) else { return };
        let text = self.slice((at, end - trailing_blanks(self.slice((at, end)))));
        let tag = text.strip_suffix(b">").and_then(|text| text.strip_suffix(self.slice(field.name)));
        if let Some(content) = tag.and_then(|tag| tag.strip_suffix(b"/"))
            && self.ends_before_next_tag(field, end)
        {
            let place = at + content.len();
            self.edit(RepairId::MismatchedEndTag, place, place, b"<");
            self.pop(end);
        }
    }

    /// Whether the tag that follows confirms that the element open at `depth` ends here: it is an end tag
    /// of an element around it, or the start tag of an element that follows it.
    fn is_confirmed(&self, depth: usize, end: usize) -> bool {
        if blanks(self.slice((end, self.text.len()))) == self.text.len() - end {
            return true;
        }
        let (is_end, next) = self.next_tag(end);
        let local = split_name(next).1;
        let around = self.open.get(..depth).unwrap_or_default();
        let local_of = |open: &Open| split_name(self.slice(open.name)).1;
        if is_end {
            return around.iter().any(|open| local_of(open).eq_ignore_ascii_case(local));
        }
        let parent = around.last().map(local_of);
        self.family.parent(local).is_some_and(|wanted| parent == Some(wanted)) || self.is_child_of_item(local)
    }

    /// Whether an end tag is the next thing after `at`, blanks aside, and the name of the tag. The name is
    /// empty where no tag follows.
    fn next_tag(&self, at: usize) -> (bool, &[u8]) {
        let behind = self.slice((at, self.text.len()));
        let Some(tag) = behind.get(blanks(behind)..).and_then(|tag| tag.strip_prefix(b"<")) else {
            return (false, b"");
        };
        let (is_end, tag) = tag.strip_prefix(b"/").map_or((false, tag), |tag| (true, tag));
        (is_end, tag.get(..name_span(tag)).unwrap_or_default())
    }

    /// Notes where text begins that is directly in a container, which holds elements only.
    pub(super) fn note_bare_text(&mut self, at: usize, end: usize) {
        let text = self.slice((at, end));
        let gap = blanks(text);
        if self.bare_text.is_none() && gap < text.len() && self.in_container() {
            self.bare_text = Some(at + gap);
        }
    }

    /// Whether the open element is one of a known format that holds fields and no text.
    fn in_container(&self) -> bool {
        let parent = self.open.len().checked_sub(2).and_then(|depth| self.open.get(depth));
        self.in_payload()
            && match self.family {
                Family::DublinCore => parent.is_some_and(|open| matches!(open.kind, Kind::Holder)),
                family => self
                    .open
                    .last()
                    .is_some_and(|open| family.is_container(split_name(self.slice(open.name)).1)),
            }
    }

    /// The text in a container from `text_at` on ends with the end tag of `name` at `at`: its start tag is
    /// restored where the name says which field it is.
    fn restore_start_tag(&mut self, text_at: usize, name: &[u8], complete: bool, at: usize) {
        let (prefix, local) = split_name(name);
        let top = self.open.last().map_or(&b""[..], |open| split_name(self.slice(open.name)).1);
        // Other fields of MARC have attributes, which nobody knows.
        let is_field = match self.family {
            Family::Marc => local == b"leader" && top == b"record",
            _ => self.family.is_field(local),
        };
        let added = self.payload_root.as_ref().is_some_and(|root| root.added.iter().any(|one| one == prefix));
        let bound = added || self.tags.contexts.lookup(self.context(), prefix).is_some();
        let text = self.slice((text_at, at));
        if !is_field || !bound || !complete {
            self.guessed = true;
        } else if !text.starts_with(name) {
            let tag = [b"<", name, b">"].concat();
            self.edit(RepairId::MissingStartTag, text_at, text_at, &tag);
        } else if text.get(name.len()) == Some(&b'>') {
            self.edit(RepairId::MissingStartTag, text_at, text_at, b"<");
        } else {
            self.guessed = true;
        }
    }
}
