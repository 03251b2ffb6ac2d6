//! The parts of a tree of open elements: its payload, and the positions up to which its text was read.

use crate::lex::known_namespaces::Family;
use crate::passes::prefixes::PrefixNamespaces;

/// The outermost element of the payload, which gets missing namespace declarations.
#[derive(Debug)]
pub(crate) struct PayloadRoot {
    /// Position after its last attribute.
    pub(crate) place: usize,
    pub(crate) added: Vec<Vec<u8>>,
}

/// The payload of an item.
pub(crate) struct PayloadState {
    family: Family,
    root: Option<PayloadRoot>,
    has_begun: bool,
    is_deleted: bool,
    namespaces: PrefixNamespaces,
}

impl Default for PayloadState {
    fn default() -> Self {
        Self {
            family: Family::Other,
            root: None,
            has_begun: false,
            is_deleted: false,
            namespaces: PrefixNamespaces::default(),
        }
    }
}

impl PayloadState {
    /// Begins a payload of this family. Missing declarations are added at `place`.
    pub(crate) fn begin(&mut self, family: Family, place: usize) {
        self.family = family;
        self.has_begun = true;
        self.root = Some(PayloadRoot { place, added: Vec::new() });
    }

    /// Returns the family of its format.
    pub(crate) fn family(&self) -> Family {
        self.family
    }

    /// Returns whether its outermost element is open.
    pub(crate) fn is_open(&self) -> bool {
        self.root.is_some()
    }

    pub(crate) fn root(&self) -> Option<&PayloadRoot> {
        self.root.as_ref()
    }

    pub(crate) fn root_mut(&mut self) -> Option<&mut PayloadRoot> {
        self.root.as_mut()
    }

    pub(crate) fn take_root(&mut self) -> Option<PayloadRoot> {
        self.root.take()
    }

    pub(crate) fn set_root(&mut self, root: Option<PayloadRoot>) {
        self.root = root;
    }

    /// Returns whether a payload has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns whether an element of the envelope has a status.
    pub(crate) fn is_deleted(&self) -> bool {
        self.is_deleted
    }

    pub(crate) fn note_status(&mut self, has_status: bool) {
        self.is_deleted |= has_status;
    }

    /// Returns the namespace of a prefix that no element of the item declares.
    pub(crate) fn namespace_of(&mut self, prefix: &[u8], item: &[u8]) -> Option<&'static [u8]> {
        self.namespaces.namespace_of(prefix, item)
    }
}

/// The positions up to which the text of an item was read.
#[derive(Debug, Default)]
pub(crate) struct ReadPosition {
    content_from: usize,
    bare_text: Option<usize>,
    kept_until: usize,
    searched_to: usize,
}

impl ReadPosition {
    /// Returns the end of the last tag. No end tag is inserted before this position.
    pub(crate) fn content_from(&self) -> usize {
        self.content_from
    }

    pub(crate) fn set_content_from(&mut self, at: usize) {
        self.content_from = at;
    }

    /// Returns the start of the text that is directly in a container, after the last field.
    pub(crate) fn bare_text(&self) -> Option<usize> {
        self.bare_text
    }

    pub(crate) fn set_bare_text(&mut self, at: usize) {
        self.bare_text = Some(at);
    }

    pub(crate) fn take_bare_text(&mut self) -> Option<usize> {
        self.bare_text.take()
    }

    /// Returns the end of the content that stays unchanged.
    pub(crate) fn kept_until(&self) -> usize {
        self.kept_until
    }

    pub(crate) fn keep_until(&mut self, at: usize) {
        self.kept_until = at;
    }

    /// Returns the end of the content that is not searched again for balanced tags.
    pub(crate) fn searched_to(&self) -> usize {
        self.searched_to
    }

    pub(crate) fn set_searched_to(&mut self, at: usize) {
        self.searched_to = at;
    }
}
