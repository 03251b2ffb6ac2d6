//! The links between records: what one cites, what cites it, and which others describe the same work.

use crate::content_identifier::ContentIdentifier;
use crate::record_identifiers::{NamedIn, RecordNames};
use oaimend_store::IdentifierPlace;

/// A request for the links of an item.
#[derive(Clone, Copy, Debug)]
pub struct LinksRequest<'a> {
    /// The repository id.
    pub repository: &'a str,
    /// The OAI identifier.
    pub identifier: &'a str,
    /// What one record of the item names. `None`: what its records in all formats name. The full text of the item belongs
    /// to all of them.
    pub names: Option<&'a RecordNames>,
    /// Where the list of the records that cite it continues. Such a result has no other links.
    pub after: Option<LinkCursor>,
    /// Maximum number of records that cite it, and of works in each direction whose records are found.
    pub count_max: usize,
    /// Maximum number of works in each direction that it names. Those after `count_max` have no records.
    pub named_max: usize,
}

/// The links of an item at the time of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemLinks {
    /// The identifiers of the work itself.
    pub identifiers: Vec<ContentIdentifier>,
    /// The works that it cites or mentions, in the order of the record, and then the records that say that it cites them.
    pub cites: Vec<Citation>,
    /// The records that cite it or mention it, and before them the works that it says are citing it.
    pub cited_by: Vec<Citation>,
    /// Where the list of the records that cite it continues; `None` at its end.
    pub next: Option<LinkCursor>,
    /// Records of other repositories that describe the same work.
    pub same_as: Vec<Duplicate>,
    /// Whether there are more links than these, beside those after `next`.
    pub has_more: bool,
    /// The repositories that may have further records, as in [`Resolved`](crate::Resolved).
    pub incomplete: Vec<String>,
}

/// A citation, as a record states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    /// The field that states it.
    pub field: NamedIn,
    /// The identifier of the other work, if the item names it. `None` if the other record names the item.
    pub identifier: Option<ContentIdentifier>,
    /// The records of the other work; empty if the mirror has none, or if they were not looked for.
    pub records: Vec<LinkedItem>,
}

/// An item of a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkedItem {
    /// The repository id.
    pub repository: String,
    /// The OAI identifier.
    pub identifier: String,
    /// The first title, on one line, at most 300 bytes.
    pub title: Option<String>,
}

/// A record of another repository that describes the same work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The item.
    pub item: LinkedItem,
    /// Why it is the same work.
    pub same_by: SameBy,
}

/// Why two records describe the same work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SameBy {
    /// Both have this identifier.
    Identifier(ContentIdentifier),
    /// Title, year and first creator are the same.
    Description,
}

/// A place in the list of the records that cite an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkCursor(pub(crate) IdentifierPlace);

impl LinkCursor {
    /// Reads the text that [`LinkCursor::text`] writes.
    pub fn read(text: &str) -> Option<Self> {
        let (collection, sequence) = text.split_once('-')?;
        let number = |text: &str, bits: u32| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number: u64 = if is_number { text.parse().ok()? } else { return None };
            (number < 1 << bits).then_some(number)
        };
        // The limits of the table of identifiers.
        let (collection, sequence) = (number(collection, 32)?, number(sequence, 47)?);
        Some(Self(IdentifierPlace { collection, sequence }))
    }

    /// The place as a text of digits and a hyphen.
    pub fn text(self) -> String {
        format!("{}-{}", self.0.collection, self.0.sequence)
    }
}

impl SameBy {
    /// Its name in XML and JSON: the kind of the identifier that both records have, or `description`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Identifier(identifier) => identifier.kind.name(),
            Self::Description => "description",
        }
    }
}

impl Citation {
    /// The name of its certainty in XML and JSON, as in [`NamedIn::basis`].
    pub const fn basis(&self) -> &'static str {
        self.field.basis()
    }
}

impl ItemLinks {
    /// Whether the item has no link.
    pub fn is_empty(&self) -> bool {
        self.cites.is_empty() && self.cited_by.is_empty() && self.same_as.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_written() {
        let cursor = LinkCursor(IdentifierPlace { collection: 7, sequence: 123 });
        assert_eq!(LinkCursor::read(&cursor.text()), Some(cursor));
        for text in
            ["", "7", "7-", "-1", "7--1", "+7-1", "7-1-2", "4294967296-1", "1-99999999999999999999", "é-1"]
        {
            assert_eq!(LinkCursor::read(text), None, "{text}");
        }
    }
}
