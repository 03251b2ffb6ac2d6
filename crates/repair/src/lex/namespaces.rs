//! The namespace bindings in scope, with one number for each set of bindings.
//!
//! [`start_tag`](crate::validate::start_tag) uses them. Two start tags with the same bytes in the
//! same context mean the same. So the fast path can cache start tags instead of reading them again.

use crate::lex::names::bytes_equal;

/// The OAI-PMH 2.0 namespace.
pub(crate) const OAI: &[u8] = b"http://www.openarchives.org/OAI/2.0/";
/// The XML Schema instance namespace.
pub(crate) const XSI: &[u8] = b"http://www.w3.org/2001/XMLSchema-instance";
/// The namespace of the prefix `xml`, which is always bound.
pub(crate) const XML: &[u8] = b"http://www.w3.org/XML/1998/namespace";
/// The namespace of the prefix `xmlns`. No other prefix may be bound to it.
pub(crate) const XMLNS: &[u8] = b"http://www.w3.org/2000/xmlns/";

/// A set of bindings in scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Context(u32);

impl Context {
    /// Its number. A context that was declared later has a higher number.
    #[inline]
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// The bindings of a response, and those of cached tags. They are stored in flat vectors, so that memory is
/// in proportion to the text that declared them.
#[derive(Debug)]
pub(crate) struct Contexts {
    frames: Vec<Frame>,
    bindings: Vec<Binding>,
    bytes: Vec<u8>,
}

/// The first contexts, in which an equal one is searched. A page of most formats has fewer.
pub(crate) const REUSED_CONTEXTS_MAX: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Frame {
    parent: u32,
    first: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug)]
struct Binding {
    prefix: (u32, u32),
    uri: (u32, u32),
}

impl Default for Contexts {
    /// Reserves room for the declarations of most pages.
    fn default() -> Self {
        Self {
            frames: Vec::with_capacity(8),
            bindings: Vec::with_capacity(16),
            bytes: Vec::with_capacity(1024),
        }
    }
}

impl Contexts {
    /// The context of an element that declares `declared` (prefix, URI) inside `parent`. The default
    /// namespace has an empty prefix. An equal context is reused if it is among the first.
    pub(crate) fn declare(&mut self, parent: Context, declared: &[(&[u8], &[u8])]) -> Context {
        let is_same = |frame: &Frame| frame.parent == parent.0 && self.equals(frame, declared);
        if let Some(known) = self.frames.iter().take(REUSED_CONTEXTS_MAX).position(is_same) {
            return Context(known as u32 + 1);
        }
        let first = self.bindings.len() as u32;
        for (prefix, uri) in declared {
            let prefix = self.store(prefix);
            let uri = self.store(uri);
            self.bindings.push(Binding { prefix, uri });
        }
        self.frames.push(Frame { parent: parent.0, first, end: self.bindings.len() as u32 });
        // Context 0 is the empty one, so a number is one more than the index of its frame.
        Context(self.frames.len() as u32)
    }

    /// The namespace that `prefix` is bound to. The empty prefix means the default namespace. `None` if
    /// undeclared; an empty slice means "no namespace".
    pub(crate) fn lookup(&self, context: Context, prefix: &[u8]) -> Option<&[u8]> {
        let mut at = context.0;
        while let Some(frame) = (at as usize).checked_sub(1).and_then(|index| self.frames.get(index)) {
            let bindings = self.bindings.get(frame.first as usize..frame.end as usize).unwrap_or_default();
            for binding in bindings.iter().rev() {
                if bytes_equal(self.slice(binding.prefix), prefix) {
                    return Some(self.slice(binding.uri));
                }
            }
            // A parent has a lower number, so the loop ends.
            at = frame.parent.min(at - 1);
        }
        if prefix == b"xml" { Some(XML) } else { None }
    }

    /// The bindings in scope: prefix and URI, the innermost first. A prefix that is declared again occurs once.
    pub(crate) fn in_scope(&self, context: Context) -> Vec<(&[u8], &[u8])> {
        let mut found: Vec<(&[u8], &[u8])> = Vec::new();
        let mut at = context.0;
        while let Some(frame) = (at as usize).checked_sub(1).and_then(|index| self.frames.get(index)) {
            let bindings = self.bindings.get(frame.first as usize..frame.end as usize).unwrap_or_default();
            for binding in bindings.iter().rev() {
                let prefix = self.slice(binding.prefix);
                if found.iter().all(|(known, _)| *known != prefix) {
                    found.push((prefix, self.slice(binding.uri)));
                }
            }
            at = frame.parent.min(at - 1);
        }
        found
    }

    /// Whether a frame consists of exactly these declarations.
    fn equals(&self, frame: &Frame, declared: &[(&[u8], &[u8])]) -> bool {
        let bindings = self.bindings.get(frame.first as usize..frame.end as usize).unwrap_or_default();
        bindings.len() == declared.len()
            && bindings.iter().zip(declared).all(|(binding, (prefix, uri))| {
                self.slice(binding.prefix) == *prefix && self.slice(binding.uri) == *uri
            })
    }

    /// The bytes of memory that are reserved.
    pub(crate) fn bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Frame>()
            + self.bindings.capacity() * size_of::<Binding>()
            + self.bytes.capacity()
    }

    /// The number of contexts.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Drops all contexts after the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.frames.truncate(len);
        let bindings = self.frames.last().map_or(0, |frame| frame.end as usize);
        self.bindings.truncate(bindings);
        let bytes = self.bindings.last().map_or(0, |binding| (binding.uri.0 + binding.uri.1) as usize);
        self.bytes.truncate(bytes);
    }

    fn store(&mut self, bytes: &[u8]) -> (u32, u32) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        (start, bytes.len() as u32)
    }

    fn slice(&self, (start, len): (u32, u32)) -> &[u8] {
        self.bytes.get(start as usize..(start + len) as usize).unwrap_or_default()
    }
}
