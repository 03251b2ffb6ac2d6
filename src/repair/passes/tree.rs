//! The open elements of an item whose markup is being repaired, and the edits so far.
//!
//! A payload that was closed too early is opened again here: where a field of a known format follows
//! the end tags of the payload, with nothing but white space between, those end tags are removed.

use memchr::memrchr;

use crate::repair::catalog::RepairId;
use crate::repair::lex::known_namespaces::Family;
use crate::repair::lex::lexeme::Lexemes;
use crate::repair::lex::names::{split_name, trailing_blanks};
use crate::repair::lex::namespaces::{Context, OAI};
use crate::repair::limits::Limits;
use crate::repair::passes::prefixes::PrefixNamespaces;
use crate::repair::text::characters::{Node, repair_node};
use crate::repair::text::edits::Edits;
use crate::repair::validate::schema::{Content, Element};
use crate::repair::validate::start_tag::Tags;

/// What an open element is to the repair of its content.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ContentKind {
    /// Holds elements of the envelope.
    Envelope(&'static Element),
    /// Holds one payload.
    PayloadParent,
    /// Holds plain text.
    Field,
    /// Anything in a payload that may hold text and elements.
    Mixed,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeElement {
    pub(crate) name: (usize, usize),
    pub(crate) context: Context,
    pub(crate) kind: ContentKind,
}

/// The payload's outermost element, where missing prefixes are declared.
#[derive(Debug)]
pub(crate) struct PayloadRoot {
    /// Behind its last attribute.
    pub(crate) place: usize,
    pub(crate) added: Vec<Vec<u8>>,
}

pub(crate) struct Tree<'t> {
    pub(crate) text: &'t [u8],
    pub(crate) element: &'static Element,
    pub(crate) outer: Context,
    pub(crate) tags: &'t mut Tags,
    pub(crate) limits: &'t Limits,
    pub(crate) lexemes: Lexemes<'t>,
    pub(crate) open: Vec<TreeElement>,
    pub(crate) family: Family,
    /// Whether no reading of the tags is plausible: those of an unknown format had to be balanced, or text has no
    /// element.
    pub(crate) is_ambiguous: bool,
    /// Sections with borders of items inside.
    pub(crate) sections: &'t [(usize, usize)],
    /// How many elements are open around such a section. Where the innermost one is not closed by its own
    /// end tag, the end mark of the section may belong to a later item.
    pub(crate) section_depths: Vec<usize>,
    pub(crate) payload_root: Option<PayloadRoot>,
    /// Whether a payload has begun.
    pub(crate) has_payload: bool,
    /// Whether an element of the envelope has a status.
    pub(crate) is_deleted: bool,
    pub(crate) closed: Option<ClosedPayload>,
    pub(crate) namespaces: PrefixNamespaces,
    /// End of the last tag: an end tag is inserted no further forward than here.
    pub(crate) content_from: usize,
    /// Start of the text that is directly in a container, after the last field.
    pub(crate) bare_text: Option<usize>,
    /// End of the content that is kept as it is.
    pub(crate) kept_until: usize,
    /// No content before this position is searched again for tags that match.
    pub(crate) searched_to: usize,
    pub(crate) edits: Edits,
}

/// The payload that was closed last.
#[derive(Debug)]
pub(crate) struct ClosedPayload {
    root: TreeElement,
    payload_root: Option<PayloadRoot>,
    /// The element of the envelope around it, once that is closed too.
    holder: Option<TreeElement>,
    /// Where their end tags are.
    tags: Vec<(usize, usize)>,
    /// How many changes were made before the first end tag.
    edits_before: usize,
    /// How many changes there are after the last one.
    edits_after: usize,
}

impl<'t> Tree<'t> {
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
        memchr::memmem::find(inner, b"--").is_none() && !inner.ends_with(b"-")
    }

    /// Whether an element of this name stands beside the open field and not in it.
    pub(crate) fn is_sibling(&self, field: TreeElement, name: &[u8]) -> bool {
        let (prefix, local) = split_name(name);
        prefix == split_name(self.slice(field.name)).0
            && (self.family.is_field(local)
                || self.family.parent(local).is_some()
                || self.family == Family::Mods && self.family.is_container(local))
            && self.payload_root.is_some()
    }

    /// Whether a record of another list is open, wrapped in the payload.
    pub(crate) fn in_wrapped_item(&self) -> bool {
        self.open.iter().skip(1).any(|open| {
            let (prefix, local) = split_name(self.slice(open.name));
            local == self.element.name && self.tags.contexts.lookup(open.context, prefix) == Some(OAI)
        })
    }

    /// Whether the item has a child of this name (header, metadata, about).
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

    /// Whether the element around the open field has a child of this name.
    pub(crate) fn parent_has_child(&self, local: &[u8]) -> bool {
        let parent = self.open.iter().rev().nth(1);
        match parent.map(|open| open.kind) {
            Some(ContentKind::Envelope(Element { content: Content::Children(children), .. })) => {
                children.iter().any(|child| child.name == local)
            }
            _ => false,
        }
    }

    /// The end tag `at..end` becomes that of the element open at `depth`.
    pub(crate) fn rename_end(&mut self, depth: usize, at: usize, end: usize) {
        let name = self.open.get(depth).map_or(&b""[..], |open| self.slice(open.name));
        // A tag that lost its `>` ends before the blanks that follow it.
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

    /// Ends all elements from depth `keep` on, before the blanks that precede `at`.
    pub(crate) fn close_above(&mut self, keep: usize, at: usize) {
        let content = self.slice((self.content_from, at));
        let place = at - trailing_blanks(content);
        if self.open.len() > keep && in_key_field(self) {
            // What is left of its end tag, or of the next tag, would become a part of it.
            let value = self.slice((self.content_from, place));
            self.is_ambiguous |= value.iter().any(|byte| matches!(byte, b'<' | b'>'));
        }
        while self.open.len() > keep {
            let name = self.open.last().map_or(&b""[..], |open| self.slice(open.name));
            self.is_ambiguous |= self.family == Family::Other && self.in_payload();
            self.is_ambiguous |= self.section_depths.last() == Some(&self.open.len());
            let tag = [b"</", name, b">"].concat();
            self.edit(RepairId::MissingEndTag, place, place, &tag);
            self.pop(self.content_from);
        }
    }

    /// A tag that is text: as it was typed.
    pub(crate) fn escape(&mut self, at: usize, end: usize) {
        let text = self.slice((at, end));
        let mut escaped = Vec::with_capacity(text.len() + 6);
        for &byte in repair_node(text, Node::Text, &[]).apply(text).as_ref() {
            match byte {
                b'<' => escaped.extend_from_slice(b"&lt;"),
                b'>' => escaped.extend_from_slice(b"&gt;"),
                _ => escaped.push(byte),
            }
        }
        self.edit(RepairId::MarkupInField, at, end, &escaped);
    }

    /// Notes that `open` was closed, by the tag that ends at `end` if there is one.
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

    /// An element of this name begins: where it is a field of the payload that was closed just before, that
    /// payload is open again.
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

/// Whether the open element is a field of the envelope by which harvesters store an item. Markup in it is no text.
pub(crate) fn in_key_field(tree: &Tree<'_>) -> bool {
    let is_key = |open: &TreeElement| {
        let local = split_name(tree.slice(open.name)).1;
        matches!(local, b"identifier" | b"datestamp" | b"setSpec" | b"metadataPrefix")
    };
    tree.payload_root.is_none() && tree.in_field() && tree.open.last().is_some_and(is_key)
}
