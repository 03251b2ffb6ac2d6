//! The tree of open elements of an item whose markup is repaired, with the edits made so far.
//!
//! The pass over [`markup`](crate::passes::markup) uses this module.
//!
//! The tree also reopens a payload that was closed too early. If only white space and a field of a known
//! format follow the end tags of the payload, these end tags are removed.

use crate::catalog::RepairId;
use crate::lex::known_namespaces::Family;
use crate::lex::lexeme::Lexemes;
use crate::lex::names::{split_name, trailing_blanks};
use crate::lex::namespaces::{Context, OAI};
use crate::lex::search::memrchr;
use crate::limits::Limits;
use crate::passes::prefixes::PrefixNamespaces;
use crate::text::characters::{NodeKind, repair_node};
use crate::text::edits::Edits;
use crate::text::fixed_positions::blanks_of_field;
use crate::validate::schema::{Content, Element};
use crate::validate::start_tag::StartTagCache;

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

/// The outermost element of the payload, which gets missing namespace declarations.
#[derive(Debug)]
pub(crate) struct PayloadRoot {
    /// Position after its last attribute.
    pub(crate) place: usize,
    pub(crate) added: Vec<Vec<u8>>,
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

pub(crate) struct Tree<'t> {
    pub(crate) text: &'t [u8],
    pub(crate) element: &'static Element,
    pub(crate) outer: Context,
    pub(crate) tags: &'t mut StartTagCache,
    pub(crate) limits: &'t Limits,
    pub(crate) lexemes: Lexemes<'t>,
    pub(crate) open: Vec<TreeElement>,
    pub(crate) family: Family,
    /// Whether the intent of the tags is ambiguous.
    ///
    /// This is so if tags of an unknown format had to be balanced, or if text is in no element.
    pub(crate) is_ambiguous: bool,
    /// Sections that contain boundaries of items.
    pub(crate) sections: &'t [(usize, usize)],
    /// The number of open elements around each of these sections.
    ///
    /// If the innermost element is not closed by its own end tag, the end mark of the section can belong to
    /// a later item.
    pub(crate) section_depths: Vec<usize>,
    pub(crate) payload_root: Option<PayloadRoot>,
    /// Whether a payload has begun.
    pub(crate) has_payload: bool,
    /// Whether an element of the envelope has a status.
    pub(crate) is_deleted: bool,
    pub(crate) closed: Option<ClosedPayload>,
    pub(crate) namespaces: PrefixNamespaces,
    /// End of the last tag. No end tag is inserted before this position.
    pub(crate) content_from: usize,
    /// Start of the text that is directly in a container, after the last field.
    pub(crate) bare_text: Option<usize>,
    /// End of the content that stays unchanged.
    pub(crate) kept_until: usize,
    /// Content before this position is not searched again for balanced tags.
    pub(crate) searched_to: usize,
    pub(crate) edits: Edits,
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
        let MarkupItem { text, element, outer, sections, .. } = item;
        Self {
            text,
            element,
            outer,
            tags,
            limits,
            lexemes: if sections.is_empty() { Lexemes::new(text) } else { Lexemes::new_well_formed(text) },
            open: Vec::new(),
            family: Family::Other,
            is_ambiguous: false,
            sections,
            section_depths: Vec::new(),
            payload_root: None,
            has_payload: false,
            is_deleted: false,
            closed: None,
            namespaces: PrefixNamespaces::default(),
            content_from: 0,
            bare_text: None,
            kept_until: 0,
            searched_to: 0,
            edits: Edits::default(),
        }
    }

    pub(crate) fn slice(&self, (start, end): (usize, usize)) -> &'t [u8] {
        self.text.get(start..end).unwrap_or_default()
    }

    pub(crate) fn edit(&mut self, id: RepairId, start: usize, end: usize, replacement: &[u8]) {
        self.edits.push_unordered(id, start, end, replacement.to_vec());
    }

    pub(crate) fn context(&self) -> Context {
        self.open.last().map_or(self.outer, |open| open.context)
    }

    pub(crate) fn in_payload(&self) -> bool {
        self.open.last().is_some_and(|open| matches!(open.kind, ContentKind::Mixed))
            && self.payload_root.is_some()
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
        let is_of_format = self.family.has_unknown_structure()
            && !prefix.is_empty()
            && (has_own_prefix || self.family == Family::DataCite);
        let is_known = has_own_prefix
            && (self.family.is_field(local)
                || self.family.parent(local).is_some()
                || self.family.is_group(local));
        (is_of_format || is_known) && !self.family.is_markup(local) && self.payload_root.is_some()
    }

    /// Returns whether an element with this name is markup inside the open field.
    pub(crate) fn is_markup_in_field(&self, field: TreeElement, name: &[u8]) -> bool {
        let (prefix, local) = split_name(name);
        self.payload_root.is_some()
            && prefix == split_name(self.slice(field.name)).0
            && self.family.is_markup(local)
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
            local == self.element.name && self.tags.contexts.lookup(open.context, prefix) == Some(OAI)
        })
    }

    /// Returns whether the item has a child with this name: header, metadata, about.
    pub(crate) fn is_child_of_item(&self, local: &[u8]) -> bool {
        let top = self.open.last().map(|open| open.kind);
        match &self.element.content {
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
            || self.family.is_container(local)
        {
            self.bare_text = None;
        }
        if let Some(open) = closed {
            self.note_closed(open, end);
        }
        if matches!(self.open.last().map(|open| open.kind), Some(ContentKind::PayloadParent)) {
            self.payload_root = None;
        }
        self.content_from = end;
    }

    /// Closes all elements from depth `keep` on, before the blanks that precede `at`.
    pub(crate) fn close_above(&mut self, keep: usize, at: usize) {
        let content = self.slice((self.content_from, at));
        let mut place = at - trailing_blanks(content);
        if self.open.len() > keep
            && self.in_field()
            && let Some(open) = self.open.last()
        {
            let (tag, rest) = ((open.name.0 - 1, self.content_from), self.slice((place, at)));
            place += blanks_of_field(self.text, tag, self.slice((self.content_from, place)), rest);
        }
        if self.open.len() > keep && in_key_field(self) {
            // The remains of a damaged tag would become part of the value.
            let value = self.slice((self.content_from, place));
            self.is_ambiguous |= value.iter().any(|byte| matches!(byte, b'<' | b'>'));
        }
        while self.open.len() > keep {
            let name = self.open.last().map_or(&b""[..], |open| self.slice(open.name));
            self.is_ambiguous |= self.family.has_unknown_structure() && self.in_payload();
            self.is_ambiguous |= self.section_depths.last() == Some(&self.open.len());
            let tag = [b"</", name, b">"].concat();
            self.edit(RepairId::MissingEndTag, place, place, &tag);
            self.pop(self.content_from);
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
        let is_tag = end > self.content_from;
        let tag = memrchr(b'<', self.slice((0, end))).filter(|_| is_tag).map(|at| (at, end));
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
                payload_root: self.payload_root.take(),
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
        let is_field = self.family.is_field(local) || self.family.parent(local).is_some();
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
        self.payload_root = closed.payload_root;
    }
}

/// Returns whether the open element is an envelope field that harvesters use as a key. Markup in it is not
/// text.
pub(crate) fn in_key_field(tree: &Tree<'_>) -> bool {
    let is_key = |open: &TreeElement| {
        let local = split_name(tree.slice(open.name)).1;
        matches!(local, b"identifier" | b"datestamp" | b"setSpec" | b"metadataPrefix")
    };
    tree.payload_root.is_none() && tree.in_field() && tree.open.last().is_some_and(is_key)
}
