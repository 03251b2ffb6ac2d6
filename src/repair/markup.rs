//! Tags, sections and prefixes: the second pass of the slow path, over one item.
//!
//! Follows the tags with what is known of OAI-PMH and its formats: which
//! element stands in which, and which fields hold plain text. Runs only on
//! items that are not well-formed once their characters are mended.

use super::catalogue::{QuarantineReason, RepairId};
use super::context::{Context, OAI};
use super::edits::Edits;
use super::lexeme::{Lexeme, Lexemes};
use super::limits::Limits;
use super::loose::{LooseTag, read_loose};
use super::name::{blanks, is_blank, name_span, split_name, trailing_blanks};
use super::prefixes::Namespaces;
use super::removable::{holds_content, is_fatal_message};
use super::reopen::Closed;
use super::schema::{Content, Element};
use super::tag::{Tags, declared_prefix};
use super::text::{Node, mend_node};
use super::vocabulary::{Family, respell};

/// What an open element is to the repair of its content.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Holds elements of the envelope.
    Envelope(&'static Element),
    /// Holds one payload.
    Holder,
    /// Holds plain text.
    Field,
    /// Anything in a payload that may hold text and elements.
    Mixed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) name: (usize, usize),
    pub(super) context: Context,
    pub(super) kind: Kind,
}

/// Mends the markup of one item.
///
/// `sections` are the closed ones with borders of items inside: they are content as they are.
///
/// # Errors
/// Why no reading is plausible.
pub(super) fn mend_markup(
    text: &[u8],
    element: &'static Element,
    outer: Context,
    tags: &mut Tags,
    limits: &Limits,
    sections: &[(usize, usize)],
) -> Result<Edits, QuarantineReason> {
    let mut tree = Tree {
        text,
        element,
        outer,
        tags,
        limits,
        lexemes: if sections.is_empty() { Lexemes::of(text) } else { Lexemes::of_well_formed(text) },
        open: Vec::new(),
        family: Family::Other,
        guessed: false,
        sections,
        sealed: Vec::new(),
        payload_root: None,
        has_payload: false,
        is_deleted: false,
        closed: None,
        namespaces: Namespaces::default(),
        content_from: 0,
        bare_text: None,
        kept_to: 0,
        searched_to: 0,
        edits: Edits::default(),
    };
    let mut at = 0;
    while at < text.len() {
        let (lexeme, end) = tree.lexemes.at(at);
        if at >= tree.kept_to {
            tree.seal(at);
            tree.lexeme(lexeme, at, end)?;
        }
        if tree.edits.len() > limits.repairs_per_record_max {
            return Err(QuarantineReason::TooManyRepairs);
        }
        at = end;
        if tree.open.is_empty() && !matches!(lexeme, Lexeme::Text) {
            break;
        }
    }
    tree.end(at)?;
    if tree.guessed {
        return Err(QuarantineReason::MismatchedTags);
    }
    tree.edits.sort();
    Ok(tree.edits)
}

/// The payload's outermost element, where missing prefixes are declared.
#[derive(Debug)]
pub(super) struct PayloadRoot {
    /// Behind its last attribute.
    place: usize,
    pub(super) added: Vec<Vec<u8>>,
}

pub(super) struct Tree<'t> {
    pub(super) text: &'t [u8],
    element: &'static Element,
    outer: Context,
    pub(super) tags: &'t mut Tags,
    pub(super) limits: &'t Limits,
    pub(super) lexemes: Lexemes<'t>,
    pub(super) open: Vec<Open>,
    pub(super) family: Family,
    /// Whether no reading of the tags is plausible: those of an unknown format had to be balanced, or text has no
    /// element.
    pub(super) guessed: bool,
    /// Sections with borders of items inside.
    sections: &'t [(usize, usize)],
    /// How many elements are open around such a section. Where the innermost one is not closed by its own
    /// end tag, the end mark of the section may belong to a later item.
    sealed: Vec<usize>,
    pub(super) payload_root: Option<PayloadRoot>,
    /// Whether a payload has begun.
    has_payload: bool,
    /// Whether an element of the envelope has a status.
    is_deleted: bool,
    pub(super) closed: Option<Closed>,
    namespaces: Namespaces,
    /// End of the last tag: an end tag is inserted no further forward than here.
    pub(super) content_from: usize,
    /// Start of the text that is directly in a container, after the last field.
    pub(super) bare_text: Option<usize>,
    /// End of the content that is kept as it is.
    pub(super) kept_to: usize,
    /// No content before this position is searched again for tags that match.
    pub(super) searched_to: usize,
    pub(super) edits: Edits,
}

impl<'t> Tree<'t> {
    pub(super) fn slice(&self, (start, end): (usize, usize)) -> &'t [u8] {
        self.text.get(start..end).unwrap_or_default()
    }

    pub(super) fn edit(&mut self, id: RepairId, start: usize, end: usize, replacement: &[u8]) {
        self.edits.push_unordered(id, start, end, replacement.to_vec());
    }

    pub(super) fn context(&self) -> Context {
        self.open.last().map_or(self.outer, |open| open.context)
    }

    pub(super) fn in_payload(&self) -> bool {
        self.open.last().is_some_and(|open| matches!(open.kind, Kind::Mixed)) && self.payload_root.is_some()
    }

    pub(super) fn in_field(&self) -> bool {
        self.open.last().is_some_and(|open| matches!(open.kind, Kind::Field))
    }

    fn lexeme(&mut self, lexeme: Lexeme, at: usize, end: usize) -> Result<(), QuarantineReason> {
        match lexeme {
            Lexeme::Text if blanks(self.slice((at, end))) == end - at => {}
            Lexeme::Text | Lexeme::Cdata => {
                self.closed = None;
                if lexeme == Lexeme::Text && self.in_field() {
                    self.end_without_bracket(at, end);
                } else {
                    self.note_bare_text(at, end);
                }
            }
            Lexeme::StartTag => self.start_tag(at, end)?,
            Lexeme::EndTag => self.end_tag(at, end),
            // `<?` is markup that never ends, `a<b` is text.
            Lexeme::OpenTag if self.in_field() && self.text.get(at + 1) != Some(&b'?') => {
                self.edit(RepairId::BareLessThan, at, end, b"&lt;")
            }
            Lexeme::OpenTag => return Err(QuarantineReason::MalformedTag),
            Lexeme::BareLessThan => self.edit(RepairId::BareLessThan, at, end, b"&lt;"),
            Lexeme::OpenCdata => self.edit(RepairId::UnterminatedCdata, at, end, b""),
            Lexeme::OpenComment => self.edit(RepairId::BrokenComment, at, at + 1, b"&lt;"),
            Lexeme::Comment => self.comment(at, end),
            Lexeme::Declaration => self.edit(RepairId::BrokenComment, at, end, b""),
            Lexeme::Doctype => self.edit(RepairId::Doctype, at, end, b""),
            Lexeme::Instruction => self.instruction(at, end),
        }
        Ok(())
    }

    fn comment(&mut self, at: usize, end: usize) {
        if !self.is_legal_comment(at, end) {
            self.edit(RepairId::BrokenComment, at, end, b"");
        }
    }

    fn instruction(&mut self, at: usize, end: usize) {
        let inner = self.slice((at + 2, end - 2));
        let target = inner.get(..name_span(inner)).unwrap_or_default();
        if target.eq_ignore_ascii_case(b"xml") {
            self.edit(RepairId::InnerDeclaration, at, end, b"");
        } else if target.contains(&b':') || inner.get(target.len()).is_some_and(|&byte| !is_blank(byte)) {
            self.edit(RepairId::BrokenComment, at, end, b"");
        }
    }

    pub(super) fn is_legal_comment(&self, at: usize, end: usize) -> bool {
        let inner = self.slice((at + 4, end - 3));
        memchr::memmem::find(inner, b"--").is_none() && !inner.ends_with(b"-")
    }

    fn start_tag(&mut self, at: usize, end: usize) -> Result<(), QuarantineReason> {
        let name_end = at + 1 + name_span(self.slice((at + 1, end)));
        let name = self.slice((at + 1, name_end));
        if self.is_end_without_slash(name, end) {
            self.rename_end(0, at, end);
            self.pop(end);
            return Ok(());
        }
        self.reopen(name);
        if !self.make_room(name, at) {
            // The pages in an identifier after the SICI standard look like a tag.
            let is_sici = memchr::memmem::find(name, b"::").is_some();
            self.guessed |= self.in_key() && !is_sici;
            self.escape(at, end);
            return Ok(());
        }
        self.guessed |= self.is_envelope_in_payload(split_name(name).1);
        let Some(tag) = read_loose(self.text, at, end, self.limits) else {
            return Err(QuarantineReason::MalformedTag);
        };
        for edit in tag.edits.iter() {
            self.edits.push_edit_unordered(edit.clone());
        }
        let context = self.declare(&tag);
        let kind = self.kind_of(name, context);
        let is_root = matches!(self.open.last().map(|open| open.kind), Some(Kind::Holder));
        if is_root {
            self.family = Family::of_root(split_name(name).1);
            self.has_payload = true;
            self.payload_root = Some(PayloadRoot { place: tag.attributes_end, added: Vec::new() });
        }
        if is_root || self.family.is_container(split_name(name).1) {
            self.bare_text = None;
        }
        if matches!(kind, Kind::Envelope(_)) {
            self.is_deleted |= tag.attributes.iter().any(|attribute| self.slice(attribute.name) == b"status");
        }
        self.declare_missing(&tag, name, context);
        self.content_from = end;
        if !tag.empty {
            if self.open.len() >= self.limits.depth_max {
                return Err(QuarantineReason::TooDeep);
            }
            self.open.push(Open { name: (at + 1, name_end), context, kind });
            if matches!(kind, Kind::Field) && self.payload_root.is_some() {
                self.kept_to = self.end_of_balanced_field(end).unwrap_or(self.kept_to);
            }
        }
        Ok(())
    }

    /// Whether an element of the envelope begins in a payload whose format has no element of that name: two items
    /// have become one.
    fn is_envelope_in_payload(&self, local: &[u8]) -> bool {
        self.payload_root.is_some()
            && matches!(self.family, Family::DublinCore | Family::Marc)
            && local != self.element.name
            && self.element.names(local)
            && !self.family.is_field(local)
    }

    /// Closes what cannot hold the element that begins at `at`. False when the
    /// tag is no element but text of the open field.
    fn make_room(&mut self, name: &[u8], at: usize) -> bool {
        let Some(top) = self.open.last().copied() else { return true };
        let (prefix, local) = split_name(name);
        let oai = self.tags.contexts.lookup(top.context, prefix) == Some(OAI);
        if oai
            && self.open.len() > 1
            && self.is_child_of_item(local)
            && !self.in_wrapped_item()
            && !matches!(top.kind, Kind::Envelope(e) if e.name == self.element.name)
        {
            self.close_above(1, at);
            return true;
        }
        if matches!(top.kind, Kind::Field) {
            let envelope_field = oai && self.parent_holds(local);
            if !envelope_field && !self.is_sibling(top, name) {
                return false;
            }
            self.close_above(self.open.len() - 1, at);
        }
        if let Some(parent) = self.family.parent(local)
            && self.payload_root.is_some()
            && let Some(depth) =
                self.open.iter().rposition(|open| split_name(self.slice(open.name)).1 == parent)
        {
            self.close_above(depth + 1, at);
        }
        true
    }

    /// Whether an element of this name stands beside the open field and not in it.
    pub(super) fn is_sibling(&self, field: Open, name: &[u8]) -> bool {
        let (prefix, local) = split_name(name);
        prefix == split_name(self.slice(field.name)).0
            && (self.family.is_field(local)
                || self.family.parent(local).is_some()
                || self.family == Family::Mods && self.family.is_container(local))
            && self.payload_root.is_some()
    }

    /// Whether a record of another list is open, wrapped in the payload.
    fn in_wrapped_item(&self) -> bool {
        self.open.iter().skip(1).any(|open| {
            let (prefix, local) = split_name(self.slice(open.name));
            local == self.element.name && self.tags.contexts.lookup(open.context, prefix) == Some(OAI)
        })
    }

    /// Whether the item has a child of this name (header, metadata, about).
    pub(super) fn is_child_of_item(&self, local: &[u8]) -> bool {
        let top = self.open.last().map(|open| open.kind);
        match &self.element.content {
            Content::Children(children) => {
                children.iter().any(|child| child.name == local && !matches!(child.content, Content::Text(_)))
                    || children.iter().any(|child| child.name == local)
                        && matches!(top, Some(Kind::Field))
                        && self.open.len() == 2
            }
            Content::Payload | Content::Text(_) => false,
        }
    }

    /// Whether the element around the open field has a child of this name.
    pub(super) fn parent_holds(&self, local: &[u8]) -> bool {
        let parent = self.open.iter().rev().nth(1);
        match parent.map(|open| open.kind) {
            Some(Kind::Envelope(Element { content: Content::Children(children), .. })) => {
                children.iter().any(|child| child.name == local)
            }
            _ => false,
        }
    }

    fn kind_of(&self, name: &[u8], context: Context) -> Kind {
        let (prefix, local) = split_name(name);
        let oai = self.tags.contexts.lookup(context, prefix) == Some(OAI);
        let element = match self.open.last().map(|open| open.kind) {
            None => Some(self.element).filter(|element| element.name == local),
            Some(Kind::Envelope(Element { content: Content::Children(children), .. })) => {
                children.iter().find(|child| child.name == local && oai)
            }
            Some(Kind::Mixed) if self.family.is_field(local) => return Kind::Field,
            _ => None,
        };
        match element {
            Some(element) => match element.content {
                Content::Children(_) => Kind::Envelope(element),
                Content::Payload => Kind::Holder,
                Content::Text(_) => Kind::Field,
            },
            None => Kind::Mixed,
        }
    }

    /// The context inside the tag, its declarations of the OAI-PMH namespace corrected.
    fn declare(&mut self, tag: &LooseTag) -> Context {
        let mut declared: Vec<(&[u8], Vec<u8>)> = Vec::new();
        for attribute in &tag.attributes {
            let Some(prefix) = declared_prefix(self.slice(attribute.name)) else { continue };
            let mut uri = attribute.value.clone();
            if let Some((meant, misspelling)) = respell(&uri) {
                uri = meant.to_vec();
                attribute.set(misspelling.repair(), meant, &mut self.edits);
            }
            declared.push((prefix, uri));
        }
        if declared.is_empty() {
            return self.context();
        }
        let declared: Vec<(&[u8], &[u8])> =
            declared.iter().map(|(prefix, uri)| (*prefix, uri.as_slice())).collect();
        self.tags.contexts.declare(self.context(), &declared)
    }

    /// Declares well-known prefixes that the tag uses without a declaration.
    fn declare_missing(&mut self, tag: &LooseTag, name: &'t [u8], context: Context) {
        let names = tag.attributes.iter().map(|attribute| self.slice(attribute.name));
        let prefixes: Vec<&[u8]> = std::iter::once(name)
            .chain(names.filter(|name| declared_prefix(name).is_none()))
            .map(|name| split_name(name).0)
            .filter(|prefix| !prefix.is_empty())
            .collect();
        let mut added_here: Vec<&[u8]> = Vec::new();
        for prefix in prefixes {
            if self.tags.contexts.lookup(context, prefix).is_some() {
                continue;
            }
            let Some(uri) = self.namespaces.of(prefix, self.text) else { continue };
            let place = match &mut self.payload_root {
                Some(root) if root.added.iter().any(|added| added == prefix) => continue,
                Some(root) => {
                    root.added.push(prefix.to_vec());
                    root.place
                }
                None if added_here.contains(&prefix) => continue,
                None => {
                    added_here.push(prefix);
                    tag.attributes_end
                }
            };
            let declaration = [b" xmlns:", prefix, b"=\"", uri, b"\""].concat();
            self.edit(RepairId::UndeclaredPrefix, place, place, &declaration);
        }
    }

    /// The end tag `at..end` becomes that of the element open at `depth`.
    pub(super) fn rename_end(&mut self, depth: usize, at: usize, end: usize) {
        let name = self.open.get(depth).map_or(&b""[..], |open| self.slice(open.name));
        // A tag that lost its `>` ends before the blanks that follow it.
        let text = self.slice((at, end));
        let end = if text.ends_with(b">") { end } else { end - trailing_blanks(text) };
        let tag = [b"</", name, b">"].concat();
        self.edit(RepairId::MismatchedEndTag, at, end, &tag);
        self.guessed |= self.sealed.last() == Some(&(depth + 1));
    }

    /// Notes whether a section with borders of items begins at `at`.
    fn seal(&mut self, at: usize) {
        if self.sections.binary_search_by_key(&at, |section| section.0).is_ok() {
            self.sealed.push(self.open.len());
        }
    }

    pub(super) fn pop(&mut self, end: usize) {
        let closed = self.open.pop();
        while self.sealed.pop_if(|depth| *depth > self.open.len()).is_some() {}
        let local = closed.map_or(&b""[..], |open| split_name(self.slice(open.name)).1);
        if closed.is_some_and(|open| matches!(open.kind, Kind::Field)) || self.family.is_container(local) {
            self.bare_text = None;
        }
        if let Some(open) = closed {
            self.note_closed(open, end);
        }
        if matches!(self.open.last().map(|open| open.kind), Some(Kind::Holder)) {
            self.payload_root = None;
        }
        self.content_from = end;
    }

    /// Ends all elements from depth `keep` on, before the blanks that precede `at`.
    pub(super) fn close_above(&mut self, keep: usize, at: usize) {
        let content = self.slice((self.content_from, at));
        let place = at - trailing_blanks(content);
        if self.open.len() > keep && self.in_key() {
            // What is left of its end tag, or of the next tag, would become a part of it.
            let value = self.slice((self.content_from, place));
            self.guessed |= value.iter().any(|byte| matches!(byte, b'<' | b'>'));
        }
        while self.open.len() > keep {
            let name = self.open.last().map_or(&b""[..], |open| self.slice(open.name));
            self.guessed |= self.family == Family::Other && self.in_payload();
            self.guessed |= self.sealed.last() == Some(&self.open.len());
            let tag = [b"</", name, b">"].concat();
            self.edit(RepairId::MissingEndTag, place, place, &tag);
            self.pop(self.content_from);
        }
    }

    /// A tag that is text: as it was typed.
    pub(super) fn escape(&mut self, at: usize, end: usize) {
        let text = self.slice((at, end));
        let mut escaped = Vec::with_capacity(text.len() + 6);
        for &byte in mend_node(text, Node::Text, &[]).apply(text).as_ref() {
            match byte {
                b'<' => escaped.extend_from_slice(b"&lt;"),
                b'>' => escaped.extend_from_slice(b"&gt;"),
                _ => escaped.push(byte),
            }
        }
        self.edit(RepairId::MarkupInField, at, end, &escaped);
    }

    /// The item's bytes end, or its end tag was met at `at`.
    fn end(&mut self, at: usize) -> Result<(), QuarantineReason> {
        if !self.open.is_empty() {
            if self.is_cut() {
                return Err(QuarantineReason::Truncated);
            }
            self.restore_item_end();
            self.close_above(0, self.text.len());
            return Ok(());
        }
        let behind = self.slice((at, self.text.len()));
        let junk = behind.len() - trailing_blanks(behind);
        if junk > blanks(behind) {
            if holds_content(behind, self.element) {
                return Err(QuarantineReason::MismatchedTags);
            }
            self.edit(RepairId::UnexpectedContent, at + blanks(behind), at + junk, b"");
        }
        Ok(())
    }

    /// Whether the item, which is not closed, is only the first part of one: its text ends in a field, a
    /// record has neither a payload nor a status, or the script that wrote it has ended.
    fn is_cut(&self) -> bool {
        let text = self.slice((self.content_from, self.text.len()));
        let in_text = self.in_field() || self.open.len() > 1 && blanks(text) < text.len();
        let is_half = self.element.name == b"record" && !self.has_payload && !self.is_deleted;
        in_text || is_half || is_fatal_message(self.text)
    }
}
