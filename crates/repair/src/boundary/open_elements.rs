//! The open elements of a broken item, and the places inside it at which the next item may begin.
//!
//! [`boundary_search`](crate::boundary::boundary_search) notes each tag here. Damage leaves elements
//! open, so an end tag closes the nearest open element of its name, together with the elements inside it.
//! What closes no element is text. If it would have closed an element inside a child of the item, that child
//! was not closed: its end tag belongs to an element in the payload whose start tag is damaged.
//!
//! A place inside an open element is content if an element around it closes later: then the item that
//! contains it was not torn there. Otherwise the item was torn there, and the list continues at that place.

use crate::boundary::record_boundary::is_wrapper;
use crate::validate::envelope_names::EnvelopeNames;

/// Maximum number of open elements, and of open places, in a broken item. Each takes at most 16 bytes. Further
/// ones are ignored: then the search may find the end of this item too early.
const OPEN_MAX: usize = 64 << 10;

/// Maximum number of open elements that are compared with an end tag. No valid item is nested so deeply.
const NEAREST_MAX: usize = 4 << 10;

/// What an open element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementKind {
    /// An item with an identifier: the broken one, or one inside it.
    Item,
    /// The root of a whole response inside the item.
    Root,
    Other,
}

#[derive(Clone, Copy, Debug)]
struct OpenElement {
    name_at: u32,
    name_len: u32,
    kind: ElementKind,
    has_child: bool,
}

/// A place at which the list may continue, because something of the list begins or an item ends there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenPlace {
    pub(crate) at: usize,
    pub(crate) evidence: Evidence,
    /// The index of the element around it.
    parent: u32,
}

/// The evidence that an item is torn at a place, if no element around the place closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Evidence {
    /// The place is directly after the start tag of an element that can wrap items. What follows may be the
    /// content of that element.
    Wrapper,
    /// An item or a token begins in an element that can contain other elements.
    Element,
    /// An item or a token begins in a field, a whole response begins, or an item ends.
    Field,
}

/// An item or a token inside the broken item.
#[derive(Clone, Copy, Debug)]
struct InnerContent {
    at: u32,
    /// The index of the element around it.
    parent: u32,
    is_token: bool,
    /// Whether the element around it can contain other elements.
    is_wrapped: bool,
    /// Whether its own end tag closed it while nothing else was open in it.
    is_complete: bool,
}

/// The result of an end tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// It closes this element.
    Element(usize),
    /// It closes nothing, so it is text.
    Nothing,
}

/// The open elements at one position of an item.
#[derive(Debug, Default)]
pub(crate) struct OpenElements {
    elements: Vec<OpenElement>,
    /// The last child of the item and the elements that were open in it when its end tag closed them.
    closed_with_child: Vec<OpenElement>,
    places: Vec<OpenPlace>,
    /// Items and tokens inside elements that are open.
    inner: Vec<InnerContent>,
    /// Items that are not surely content, although an element around them has closed.
    unproven: Vec<usize>,
}

impl OpenElements {
    /// The number of open elements, with the item itself.
    pub(crate) fn depth(&self) -> usize {
        self.elements.len()
    }

    /// Whether an element with this name is open.
    pub(crate) fn contains(&self, text: &[u8], name: &[u8]) -> bool {
        self.elements.iter().any(|element| name_of(element, text) == name)
    }

    /// The first place at which the list may continue.
    pub(crate) fn first_place(&self) -> Option<OpenPlace> {
        self.places.first().copied()
    }

    /// Notes an item or a token that begins inside the broken item.
    pub(crate) fn note_inner(&mut self, at: usize, is_token: bool, is_wrapped: bool) {
        if self.inner.len() + self.unproven.len() >= OPEN_MAX {
            return;
        }
        let parent = self.elements.len().saturating_sub(1) as u32;
        self.inner.push(InnerContent { at: at as u32, parent, is_token, is_wrapped, is_complete: false });
    }

    /// The items and tokens before `end` that may belong to the list, in the order of the text. A complete
    /// item in an element that can wrap it is content, if that element has closed.
    pub(crate) fn unproven_before(&self, end: usize) -> Vec<usize> {
        let open = self.inner.iter().map(|inner| inner.at as usize);
        let mut unproven: Vec<usize> =
            self.unproven.iter().copied().chain(open).filter(|&at| at < end).collect();
        unproven.sort_unstable();
        unproven
    }

    /// All places at which the list may continue, in the order of the text.
    pub(crate) fn places(&self) -> &[OpenPlace] {
        &self.places
    }

    /// Opens an element with a name at `name_at` of the item.
    pub(crate) fn open(&mut self, name_at: usize, name_len: usize, kind: ElementKind) {
        self.note_child();
        self.closed_with_child.clear();
        if self.elements.len() >= OPEN_MAX {
            return;
        }
        self.elements.push(OpenElement {
            name_at: name_at as u32,
            name_len: name_len as u32,
            kind,
            has_child: false,
        });
    }

    /// Notes an element without content.
    pub(crate) fn note_child(&mut self) {
        if let Some(parent) = self.elements.last_mut() {
            parent.has_child = true;
        }
    }

    /// Whether the innermost element is an item, and whether it has a child.
    pub(crate) fn in_item(&self) -> Option<bool> {
        self.elements.last().filter(|element| element.kind == ElementKind::Item).map(|item| item.has_child)
    }

    /// Whether nothing but the next child of the item may begin here.
    pub(crate) fn is_outside_payload(&self, text: &[u8], names: &EnvelopeNames) -> bool {
        let [_, around @ ..] = self.elements.as_slice() else { return true };
        let Some(child) = around.first() else { return true };
        names.is_child(name_of(child, text)) && !names.has_payload(name_of(child, text))
    }

    /// Whether only a child of the item is open, and its payload is complete.
    pub(crate) fn is_after_payload(&self, text: &[u8], names: &EnvelopeNames) -> bool {
        matches!(self.elements.as_slice(), [_, child] if child.has_child && names.has_payload(name_of(child, text)))
    }

    /// The name of the innermost element.
    pub(crate) fn innermost<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        self.elements.last().map(|element| name_of(element, text)).unwrap_or_default()
    }

    /// Whether the innermost element can wrap items. A child of the item in the namespace of OAI-PMH cannot: it
    /// is a child whose name is damaged.
    pub(crate) fn is_in_wrapper(&self, text: &[u8], names: &EnvelopeNames) -> bool {
        let is_damaged_child = match self.elements.as_slice() {
            [_, child] => {
                let name = name_of(child, text);
                let mut locals = names.item_prefixes().filter_map(|prefix| name.strip_prefix(prefix));
                let has_attributes = text.get(child.name_at as usize + name.len()) != Some(&b'>');
                !has_attributes && locals.any(|local| !local.contains(&b':'))
            }
            _ => false,
        };
        !is_damaged_child && is_wrapper(self.innermost(text), names)
    }

    /// Notes a place at which the list may continue.
    pub(crate) fn note_place(&mut self, at: usize, evidence: Evidence) {
        if self.places.len() >= OPEN_MAX {
            return;
        }
        let parent = self.elements.len().saturating_sub(1) as u32;
        self.places.push(OpenPlace { at, evidence, parent });
    }

    /// Closes a child of the item that cannot contain `name`, which is another child: it lost its end tag.
    pub(crate) fn close_child_before(&mut self, text: &[u8], name: &[u8], names: &EnvelopeNames) {
        let child = self.elements.get(1).map(|child| name_of(child, text));
        if child.is_some_and(|child| names.is_child(child) && !names.has_payload(child))
            && names.is_child(name)
        {
            self.close(1);
        }
    }

    /// The nearest open element with this name. An end tag does not close an element around an item that is
    /// inside the broken one, unless only the end tag of that item is missing.
    pub(crate) fn closing(&self, text: &[u8], name: &[u8], names: &EnvelopeNames) -> Closing {
        for (index, element) in self.elements.iter().enumerate().rev().take(NEAREST_MAX) {
            if name_of(element, text) == name {
                return Closing::Element(index);
            }
            if element.kind == ElementKind::Other {
                continue;
            }
            // Only its end tag is missing, or damage after its children opened another element. The end tag of
            // a child can belong to this item, after a damaged start tag.
            let next = self.elements.get(index + 1).map(|next| name_of(next, text));
            let is_inside_child = next.is_some_and(|next| names.is_child(next));
            if !element.has_child || is_inside_child || names.is_child(name) {
                break;
            }
        }
        Closing::Nothing
    }

    /// Opens the last child of the item again if an element inside it has this name, and returns that element.
    pub(crate) fn reopen(&mut self, text: &[u8], name: &[u8]) -> Closing {
        let inside = self.closed_with_child.iter().rposition(|element| name_of(element, text) == name);
        match inside {
            Some(inside) if self.elements.len() == 1 && inside > 0 => {
                self.elements.append(&mut self.closed_with_child);
                Closing::Element(1 + inside)
            }
            _ => Closing::Nothing,
        }
    }

    /// Closes the element with this index and the elements in it. All places in it are content.
    pub(crate) fn close(&mut self, index: usize) {
        if let Some([OpenElement { kind: ElementKind::Item, name_at, .. }]) = self.elements.get(index..)
            && let Some(inner) = self.inner.iter_mut().rfind(|inner| inner.at + 1 == *name_at)
        {
            inner.is_complete = true;
        }
        while let Some(inner) = self.inner.pop_if(|inner| inner.parent as usize >= index) {
            let is_content = inner.is_token || inner.is_wrapped && inner.is_complete;
            if !is_content {
                self.unproven.push(inner.at as usize);
            }
        }
        self.closed_with_child.clear();
        if index == 1 && self.elements.len() > 2 {
            self.closed_with_child.extend(self.elements.get(1..).unwrap_or_default());
        }
        self.elements.truncate(index);
        while self.places.last().is_some_and(|place| place.parent as usize >= index) {
            self.places.pop();
        }
    }
}

fn name_of<'t>(element: &OpenElement, text: &'t [u8]) -> &'t [u8] {
    let at = element.name_at as usize;
    text.get(at..at + element.name_len as usize).unwrap_or_default()
}
