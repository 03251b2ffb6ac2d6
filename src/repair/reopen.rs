//! A payload that was closed too early: fields after its end tags belong into it.
//!
//! A part of the pass over [`markup`](super::markup). Where a field of a known format follows the end tags
//! of the payload, with nothing but white space between, those end tags are removed.

use memchr::memrchr;

use super::catalogue::RepairId;
use super::context::OAI;
use super::markup::{Kind, Open, PayloadRoot, Tree};
use super::name::split_name;

/// The payload that was closed last.
#[derive(Debug)]
pub(super) struct Closed {
    root: Open,
    payload_root: Option<PayloadRoot>,
    /// The element of the envelope around it, once that is closed too.
    holder: Option<Open>,
    /// Where their end tags are.
    tags: Vec<(usize, usize)>,
    /// How many changes were made before the first end tag.
    edits_before: usize,
    /// How many changes there are after the last one.
    edits_after: usize,
}

impl Tree<'_> {
    /// Notes that `open` was closed, by the tag that ends at `end` if there is one.
    pub(super) fn note_closed(&mut self, open: Open, end: usize) {
        let is_holder = matches!(open.kind, Kind::Holder);
        let is_root = matches!(self.open.last().map(|open| open.kind), Some(Kind::Holder));
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
            self.closed = Some(Closed {
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
    pub(super) fn reopen(&mut self, name: &[u8]) {
        let Some(closed) = self.closed.take() else { return };
        let (prefix, local) = split_name(name);
        let is_field = self.family.is_field(local) || self.family.parent(local).is_some();
        let namespace = self.tags.contexts.lookup(closed.root.context, prefix);
        let is_after = match self.open.last().map(|open| open.kind) {
            Some(Kind::Holder) => closed.holder.is_none(),
            Some(Kind::Envelope(_)) => closed.holder.is_some() && self.open.len() == 1,
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
