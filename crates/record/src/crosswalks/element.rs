//! An element of a record with its child elements.

use crate::document::{Field, RecordDocument};
use crate::text::Text;
use std::iter;

/// An element with its child elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'d> {
    field: &'d Field,
    /// The elements inside, in the order of their start tags.
    inner: &'d [Field],
}

impl<'d> Element<'d> {
    /// The element inside `metadata`.
    pub(super) fn payload(document: &'d RecordDocument) -> Option<Self> {
        Self::divide(&document.metadata).map(|(payload, _)| payload)
    }

    /// The first element of a list, and the rest of the list.
    fn divide(fields: &'d [Field]) -> Option<(Self, &'d [Field])> {
        let (field, following) = fields.split_first()?;
        let end = following.iter().position(|other| other.depth <= field.depth).unwrap_or(following.len());
        let (inner, rest) = following.split_at(end);
        Some((Self { field, inner }, rest))
    }

    /// The name without its prefix.
    pub(super) fn name(self) -> &'d str {
        &self.field.name
    }

    pub(super) fn namespace(self) -> &'d str {
        &self.field.namespace
    }

    /// The text on one line, without the texts of child elements; `None` if it is empty.
    pub(super) fn text(self) -> Option<Text> {
        self.prose().map(Text::into_one_line)
    }

    /// The text with its line breaks.
    pub(super) fn prose(self) -> Option<Text> {
        let text = &self.field.text;
        (!text.value.is_empty()).then(|| text.clone())
    }

    /// The text with the texts of all elements inside, on one line.
    pub(super) fn whole_text(self) -> Option<Text> {
        let inner = self.inner.iter().map(|field| &field.text);
        joined(iter::once(&self.field.text).chain(inner).cloned(), " ")
    }

    /// The text; empty if there is none.
    pub(super) fn value(self) -> &'d str {
        &self.field.text.value
    }

    /// The value of an attribute by its name without prefix; `None` if it is missing or empty.
    pub(super) fn attribute(self, name: &str) -> Option<&'d str> {
        let is_named = |written: &str| written.rsplit(':').next() == Some(name);
        let mut attributes = self.field.attributes.iter();
        let value = attributes.find(|attribute| is_named(&attribute.name))?.value.trim();
        (!value.is_empty()).then_some(value)
    }

    /// The values of all attributes.
    pub(super) fn attribute_values(self) -> impl Iterator<Item = &'d str> {
        self.field.attributes.iter().map(|attribute| attribute.value.as_str())
    }

    /// The child elements.
    pub(super) fn children(self) -> impl Iterator<Item = Self> {
        let mut rest = self.inner;
        iter::from_fn(move || {
            let (child, following) = Self::divide(rest)?;
            rest = following;
            Some(child)
        })
    }

    /// The child elements with this name.
    pub(super) fn named(self, name: &str) -> impl Iterator<Item = Self> {
        self.children().filter(move |child| child.name() == name)
    }

    /// The elements at a path of names, such as `titleInfo/title`.
    pub(super) fn at(self, path: &str) -> Vec<Self> {
        let mut found = vec![self];
        for name in path.split('/') {
            found = found.into_iter().flat_map(|element| element.named(name)).collect();
        }
        found
    }

    /// The first element at a path of names.
    pub(super) fn first(self, path: &str) -> Option<Self> {
        self.at(path).into_iter().next()
    }

    /// The texts of the elements at a path of names.
    pub(super) fn texts(self, path: &str) -> Vec<Text> {
        self.at(path).into_iter().filter_map(Self::text).collect()
    }

    /// All elements inside with this name.
    pub(super) fn all(self, name: &str) -> Vec<Self> {
        let places = self.inner.iter().enumerate().filter(|(_, field)| field.name == name);
        places
            .filter_map(|(place, _)| Self::divide(self.inner.get(place..)?))
            .map(|(found, _)| found)
            .collect()
    }
}

/// Texts as one, in the language of the first one, on one line. `None` if all are empty.
pub(super) fn joined(texts: impl IntoIterator<Item = Text>, separator: &str) -> Option<Text> {
    let mut texts = texts.into_iter().map(Text::into_one_line).filter(|text| !text.value.is_empty());
    let mut whole = texts.next()?;
    for text in texts {
        whole.value.push_str(separator);
        whole.value.push_str(&text.value);
        whole.left_out_bytes += text.left_out_bytes;
    }
    Some(whole)
}
