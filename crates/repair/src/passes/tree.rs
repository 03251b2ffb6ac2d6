//! The tree of open elements of an item whose markup is repaired, with the edits made so far.
//!
//! The pass over [`markup`](crate::passes::markup) uses this module.
//!
//! The tree also reopens a payload that was closed too early. If only white space and a field of a known
//! format follow the end tags of the payload, these end tags are removed.

use crate::catalog::RepairId;
use crate::lex::known_namespaces::Family;
use crate::lex::lexeme::{Lexeme, Lexemes};
use crate::lex::names::{split_name, trailing_blanks};
use crate::lex::namespaces::{Context, OAI};
use crate::lex::search::memrchr;
use crate::limits::Limits;
use crate::passes::tree_parts::{PayloadRoot, PayloadState, ReadPosition};
use crate::text::characters::repair_node;
use crate::text::edits::{Edit, Edits};
use crate::text::fixed_positions::blanks_of_field;
use crate::text::node_rules::NodeKind;
use crate::validate::schema::{Content, Element};
use crate::validate::start_tag::{StartTag, StartTagCache, TagDefect};

/// The kind of content of an open element.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ContentKind {
    /// Contains elements of the envelope.
    Envelope(&'static Element),
    /// Contains one payload.
    PayloadParent,
    /// Contains plain text.
    Field,
    /// Any other element of a payload. It can contain text and elements.
    Mixed,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeElement {
    pub(crate) name: (usize, usize),
    pub(crate) context: Context,
    pub(crate) kind: ContentKind,
}

/// An item whose markup is repaired, and what is known about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkupItem<'t> {
    pub(crate) text: &'t [u8],
    pub(crate) element: &'static Element,
    /// The context around it.
    pub(crate) outer: Context,
    /// The closed sections that contain boundaries of items. They are content and stay unchanged.
    pub(crate) sections: &'t [(usize, usize)],
    /// The number of bytes at its start that the validator has accepted.
    pub(crate) valid_bytes: usize,
}

/// The open elements of an item, and its edits.
pub(crate) struct Tree<'t> {
    item: MarkupItem<'t>,
    tags: &'t mut StartTagCache,
    limits: &'t Limits,
    lexemes: Lexemes<'t>,
    open: Vec<TreeElement>,
    section_depths: Vec<usize>,
    closed: Option<ClosedPayload>,
    is_ambiguous: bool,
    edits: Edits,
    pub(crate) payload: PayloadState,
    pub(crate) position: ReadPosition,
}

/// The payload that was closed last.
#[derive(Debug)]
pub(crate) struct ClosedPayload {
    root: TreeElement,
    payload_root: Option<PayloadRoot>,
    /// The envelope element around the payload, once it is closed too.
    holder: Option<TreeElement>,
    /// The ranges of their end tags.
    tags: Vec<(usize, usize)>,
    /// The number of edits before the first end tag.
    edits_before: usize,
    /// The number of edits after the last end tag.
    edits_after: usize,
}

impl<'t> Tree<'t> {
    pub(crate) fn new(item: MarkupItem<'t>, tags: &'t mut StartTagCache, limits: &'t Limits) -> Self {
        let is_well_formed = !item.sections.is_empty();
        Self {
            item,
            tags,
            limits,
            lexemes: if is_well_formed {
                Lexemes::new_well_formed(item.text)
            } else {
                Lexemes::new(item.text)
            },
            open: Vec::new(),
            section_depths: Vec::new(),
            closed: None,
            is_ambiguous: false,
            edits: Edits::default(),
            payload: PayloadState::default(),
            position: ReadPosition::default(),
        }
    }

    pub(crate) fn text(&self) -> &'t [u8] {
        self.item.text
    }

    pub(crate) fn element(&self) -> &'static Element {
        self.item.element
    }

    /// Returns the context around the item.
    pub(crate) fn outer(&self) -> Context {
        self.item.outer
    }

    /// Returns the sections that contain boundaries of items.
    pub(crate) fn sections(&self) -> &'t [(usize, usize)] {
        self.item.sections
    }

    pub(crate) fn limits(&self) -> &'t Limits {
        self.limits
    }

    pub(crate) fn lexeme_at(&mut self, at: usize) -> (Lexeme, usize) {
        self.lexemes.at(at)
    }

    /// Returns the open elements, the outermost first.
    pub(crate) fn open(&self) -> &[TreeElement] {
        &self.open
    }

    pub(crate) fn push(&mut self, element: TreeElement) {
        self.open.push(element);
    }

    /// Notes that a section with boundaries of items begins here.
    ///
    /// If the innermost element is not closed by its own end tag, the end mark of the section can belong to
    /// a later item.
    pub(crate) fn note_section(&mut self) {
        self.section_depths.push(self.open.len());
    }

    /// Reads a start tag in this context.
    pub(crate) fn open_tag(&mut self, tag: &[u8], context: Context) -> Result<StartTag, TagDefect> {
        self.tags.open(tag, context, self.limits)
    }

    /// Returns the start tag at the start of the text, if it was read in this context before.
    pub(crate) fn cached_tag(&self, text: &[u8], context: Context) -> Option<&StartTag> {
        self.tags.cached_tag(text, context)
    }

    /// Returns the namespace of a prefix.
    pub(crate) fn lookup(&self, context: Context, prefix: &[u8]) -> Option<&[u8]> {
        self.tags.contexts.lookup(context, prefix)
    }

    /// Returns the context inside the open element after these declarations.
    pub(crate) fn declare(&mut self, declared: &[(&[u8], &[u8])]) -> Context {
        let context = self.context();
        self.tags.contexts.declare(context, declared)
    }

    /// Returns whether the intent of the tags is ambiguous.
    ///
    /// This is so if tags of an unknown format had to be balanced, or if text is in no element.
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.is_ambiguous
    }

    pub(crate) fn note_ambiguity(&mut self, is_ambiguous: bool) {
        self.is_ambiguous |= is_ambiguous;
    }

    /// Returns whether a payload was closed directly before.
    pub(crate) fn has_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Forgets the closed payload, because other content follows it.
    pub(crate) fn forget_closed(&mut self) {
        self.closed = None;
    }

    pub(crate) fn edit_count(&self) -> usize {
        self.edits.len()
    }

    pub(crate) fn push_edit(&mut self, edit: Edit) {
        self.edits.push_edit_unordered(edit);
    }

    pub(crate) fn drop_last_edit_within(&mut self, start: usize, end: usize) {
        self.edits.drop_last_within(start, end);
    }

    pub(crate) fn edits_mut(&mut self) -> &mut Edits {
        &mut self.edits
    }

    /// Returns the edits in the order of the text.
    pub(crate) fn into_edits(mut self) -> Edits {
        self.edits.sort();
        self.edits
    }

    pub(crate) fn slice(&self, (start, end): (usize, usize)) -> &'t [u8] {
        self.item.text.get(start..end).unwrap_or_default()
    }

    pub(crate) fn edit(&mut self, id: RepairId, start: usize, end: usize, replacement: &[u8]) {
        self.edits.push_unordered(id, start, end, replacement.to_vec());
    }

    pub(crate) fn context(&self) -> Context {
        self.open.last().map_or(self.item.outer, |open| open.context)
    }

    pub(crate) fn in_payload(&self) -> bool {
        self.open.last().is_some_and(|open| matches!(open.kind, ContentKind::Mixed)) && self.payload.is_open()
    }

    pub(crate) fn in_field(&self) -> bool {
        self.open.last().is_some_and(|open| matches!(open.kind, ContentKind::Field))
    }

    pub(crate) fn is_legal_comment(&self, at: usize, end: usize) -> bool {
        let inner = self.slice((at + 4, end - 3));
        crate::lex::search::memmem::find(inner, b"--").is_none() && !inner.ends_with(b"-")
    }

    /// Returns whether an element with this name is a sibling of the open field.
    pub(crate) fn is_sibling(&self, field: TreeElement, name: &[u8]) -> bool {
        let (prefix, local) = split_name(name);
        let has_own_prefix = prefix == split_name(self.slice(field.name)).0;
        // The elements of OpenAIRE have several prefixes, and HTML has none.
        let is_of_format = self.payload.family().has_unknown_structure()
            && !prefix.is_empty()
            && (has_own_prefix || self.payload.family() == Family::DataCite);
        let is_known = has_own_prefix
            && (self.payload.family().is_field(local)
                || self.payload.family().parent(local).is_some()
                || self.payload.family().is_group(local));
        (is_of_format || is_known) && !self.payload.family().is_markup(local) && self.payload.is_open()
    }

    /// Returns whether an element with this name is markup inside the open field.
    pub(crate) fn is_markup_in_field(&self, field: TreeElement, name: &[u8]) -> bool {
        let (prefix, local) = split_name(name);
        self.payload.is_open()
            && prefix == split_name(self.slice(field.name)).0
            && self.payload.family().is_markup(local)
    }

    /// Closes the open field, and the fields around it, before the blanks that precede `at`.
    pub(crate) fn close_fields(&mut self, at: usize) {
        let keep = self.open.iter().rposition(|open| !matches!(open.kind, ContentKind::Field));
        self.close_above(keep.map_or(0, |depth| depth + 1), at);
    }

    /// Returns whether the payload contains an open record of another list.
    pub(crate) fn in_wrapped_item(&self) -> bool {
        self.open.iter().skip(1).any(|open| {
            let (prefix, local) = split_name(self.slice(open.name));
            local == self.item.element.name && self.tags.contexts.lookup(open.context, prefix) == Some(OAI)
        })
    }

    /// Returns whether the item has a child with this name: header, metadata, about.
    pub(crate) fn is_child_of_item(&self, local: &[u8]) -> bool {
        let top = self.open.last().map(|open| open.kind);
        match &self.item.element.content {
            Content::Children(children) => {
                children.iter().any(|child| child.name == local && !matches!(child.content, Content::Text(_)))
                    || children.iter().any(|child| child.name == local)
                        && matches!(top, Some(ContentKind::Field))
                        && self.open.len() == 2
            }
            Content::Payload | Content::Text(_) => false,
        }
    }

    /// Returns whether the parent of the open field has a child with this name.
    pub(crate) fn parent_has_child(&self, local: &[u8]) -> bool {
        let parent = self.open.iter().rev().nth(1);
        match parent.map(|open| open.kind) {
            Some(ContentKind::Envelope(Element { content: Content::Children(children), .. })) => {
                children.iter().any(|child| child.name == local)
            }
            _ => false,
        }
    }

    /// Renames the end tag `at..end` so that it closes the element at `depth`.
    pub(crate) fn rename_end(&mut self, depth: usize, at: usize, end: usize) {
        let name = self.open.get(depth).map_or(&b""[..], |open| self.slice(open.name));
        // A tag without `>` ends before the blanks that follow it.
        let text = self.slice((at, end));
        let end = if text.ends_with(b">") { end } else { end - trailing_blanks(text) };
        let tag = [b"</", name, b">"].concat();
        self.edit(RepairId::MismatchedEndTag, at, end, &tag);
        self.is_ambiguous |= self.section_depths.last() == Some(&(depth + 1));
    }

    pub(crate) fn pop(&mut self, end: usize) {
        let closed = self.open.pop();
        while self.section_depths.pop_if(|depth| *depth > self.open.len()).is_some() {}
        let local = closed.map_or(&b""[..], |open| split_name(self.slice(open.name)).1);
        if closed.is_some_and(|open| matches!(open.kind, ContentKind::Field))
            || self.payload.family().is_container(local)
        {
            self.position.take_bare_text();
        }
        if let Some(open) = closed {
            self.note_closed(open, end);
        }
        if matches!(self.open.last().map(|open| open.kind), Some(ContentKind::PayloadParent)) {
            self.payload.take_root();
        }
        self.position.set_content_from(end);
    }

    /// Closes all elements from depth `keep` on, before the blanks that precede `at`.
    pub(crate) fn close_above(&mut self, keep: usize, at: usize) {
        let content = self.slice((self.position.content_from(), at));
        let mut place = at - trailing_blanks(content);
        if self.open.len() > keep
            && self.in_field()
            && let Some(open) = self.open.last()
        {
            let (tag, rest) = ((open.name.0 - 1, self.position.content_from()), self.slice((place, at)));
            place +=
                blanks_of_field(self.item.text, tag, self.slice((self.position.content_from(), place)), rest);
        }
        if self.open.len() > keep && in_key_field(self) {
            // The remains of a damaged tag would become part of the value.
            let value = self.slice((self.position.content_from(), place));
            self.is_ambiguous |= value.iter().any(|byte| matches!(byte, b'<' | b'>'));
        }
        while self.open.len() > keep {
            let name = self.open.last().map_or(&b""[..], |open| self.slice(open.name));
            self.is_ambiguous |= self.payload.family().has_unknown_structure() && self.in_payload();
            self.is_ambiguous |= self.section_depths.last() == Some(&self.open.len());
            let tag = [b"</", name, b">"].concat();
            self.edit(RepairId::MissingEndTag, place, place, &tag);
            self.pop(self.position.content_from());
        }
    }

    /// Escapes a tag that is text.
    pub(crate) fn escape(&mut self, at: usize, end: usize) {
        let text = self.slice((at, end));
        let mut escaped = Vec::with_capacity(text.len() + 6);
        for &byte in repair_node(text, NodeKind::Text, &[]).apply(text).as_ref() {
            match byte {
                b'<' => escaped.extend_from_slice(b"&lt;"),
                b'>' => escaped.extend_from_slice(b"&gt;"),
                _ => escaped.push(byte),
            }
        }
        self.edit(RepairId::MarkupInField, at, end, &escaped);
    }

    /// Records that `open` was closed, and its end tag if one ends at `end`.
    fn note_closed(&mut self, open: TreeElement, end: usize) {
        let is_holder = matches!(open.kind, ContentKind::PayloadParent);
        let is_root = matches!(self.open.last().map(|open| open.kind), Some(ContentKind::PayloadParent));
        if !is_holder && !is_root {
            return;
        }
        let is_tag = end > self.position.content_from();
        let tag = if is_tag { memrchr(b'<', self.slice((0, end))).map(|at| (at, end)) } else { None };
        let name = [b"</", self.slice(open.name), b">"].concat();
        let made = self.edits.iter().next_back().is_some_and(|edit| {
            matches!(edit.id, RepairId::MissingEndTag | RepairId::MismatchedEndTag)
                && edit.replacement == name
        });
        if is_holder {
            if let Some(closed) = &mut self.closed
                && closed.edits_after + usize::from(made) == self.edits.len()
            {
                closed.holder = Some(open);
                closed.tags.extend(tag);
                closed.edits_after = self.edits.len();
            } else {
                self.closed = None;
            }
        } else {
            self.closed = Some(ClosedPayload {
                root: open,
                payload_root: self.payload.take_root(),
                holder: None,
                tags: tag.into_iter().collect(),
                edits_before: self.edits.len() - usize::from(made),
                edits_after: self.edits.len(),
            });
        }
    }

    /// Reopens the payload that was closed directly before, if the new element is one of its fields.
    pub(crate) fn reopen_payload(&mut self, name: &[u8]) {
        let Some(closed) = self.closed.take() else { return };
        let (prefix, local) = split_name(name);
        let is_field = self.payload.family().is_field(local) || self.payload.family().parent(local).is_some();
        let namespace = self.tags.contexts.lookup(closed.root.context, prefix);
        let is_after = match self.open.last().map(|open| open.kind) {
            Some(ContentKind::PayloadParent) => closed.holder.is_none(),
            Some(ContentKind::Envelope(_)) => closed.holder.is_some() && self.open.len() == 1,
            _ => false,
        };
        let is_unchanged = closed.edits_after == self.edits.len();
        if !is_field || !is_after || !is_unchanged || namespace.is_none_or(|namespace| namespace == OAI) {
            return;
        }
        self.edits.truncate(closed.edits_before);
        for &(start, end) in &closed.tags {
            self.edit(RepairId::StrayEndTag, start, end, b"");
        }
        self.open.extend(closed.holder);
        self.open.push(closed.root);
        self.payload.set_root(closed.payload_root);
    }
}

/// Returns whether the open element is an envelope field that harvesters use as a key. Markup in it is not
/// text.
pub(crate) fn in_key_field(tree: &Tree<'_>) -> bool {
    let is_key = |open: &TreeElement| {
        let local = split_name(tree.slice(open.name)).1;
        matches!(local, b"identifier" | b"datestamp" | b"setSpec" | b"metadataPrefix")
    };
    !tree.payload.is_open() && tree.in_field() && tree.open.last().is_some_and(is_key)
}
