//! The receiver of the engine's results: bytes, the journal, and the result of each item.
//!
//! Each call of the engine takes a [`Sink`] as an argument. The engine does not store it, so a sink may
//! borrow from the caller.
//!
//! Facts can grow, so they are `#[non_exhaustive]`. The entries of the report ([`Repair`], [`Quarantined`],
//! [`SwallowedItems`], [`UnresolvedField`]) can be built anywhere, so that a sink can be tested alone.

use crate::catalog::{QuarantineReason, RepairId};
use crate::span::Span;
use oaimend_oai::{ErrorCode, named_enum};

/// Receives the results of the engine, which pushes them.
///
/// The order of the calls is significant. Reports about bytes come before or with those bytes, in the order
/// of the text. A quarantined record is reported before any byte after it is written. While the head is
/// held, it is reported even before the bytes that precede it.
///
/// ```
/// use oaimend_repair::{Quarantined, RecordFacts, Repair, RepairConfig, Repairer, Sink, TokenFacts};
///
/// /// Prints the result of each item.
/// struct Printer;
///
/// impl Sink for Printer {
///     fn write(&mut self, _bytes: &[u8]) {}
///
///     fn repaired(&mut self, repair: &Repair<'_>) {
///         println!("{} at byte {}", repair.id.name(), repair.offset);
///     }
///
///     fn record_committed(&mut self, facts: &RecordFacts<'_>, bytes: &[u8]) {
///         let header = facts.spans.header.slice(bytes);
///         println!("{} bytes of header, deleted: {}", header.len(), facts.deleted);
///     }
///
///     fn record_quarantined(&mut self, quarantined: &Quarantined<'_>) {
///         println!("{} in {} bytes", quarantined.why.name(), quarantined.raw.len());
///     }
///
///     fn resumption_token(&mut self, token: &TokenFacts<'_>) {
///         println!("{} of {:?} items before", token.cursor.unwrap_or(0), token.complete_list_size);
///     }
/// }
///
/// let mut repairer = Repairer::new(&RepairConfig::default());
/// repairer.push(b"<OAI-PMH/>", &mut Printer);
/// repairer.finish(&mut Printer);
/// ```
pub trait Sink {
    /// Bytes of the response, in order. Their division into calls has no meaning.
    fn write(&mut self, bytes: &[u8]);

    /// The envelope of the response. Called once, before the first byte is written.
    fn envelope(&mut self, _envelope: &EnvelopeFacts<'_>) {}

    /// An error element of the response, before its bytes. A response may have several.
    fn error(&mut self, _code: ErrorCode) {}

    /// The response is an Identify. Called before its bytes.
    fn identified(&mut self, _identify: &IdentifyFacts<'_>) {}

    /// One change, for the journal: `original` at `offset` became `replacement`.
    fn repaired(&mut self, _repair: &Repair<'_>) {}

    /// An item is emitted with this or a following `write` of the same call. `bytes` is the emitted item.
    fn record_committed(&mut self, _facts: &RecordFacts<'_>, _bytes: &[u8]) {}

    /// An item is quarantined. Its own repairs are not reported.
    fn record_quarantined(&mut self, _quarantined: &Quarantined<'_>) {}

    /// A section of an item contains items of the list and is treated as content. Called before any byte of
    /// that item is written, and before the item is quarantined.
    fn items_swallowed(&mut self, _swallowed: &SwallowedItems<'_>) {}

    /// A field stays unchanged although it violates the schema.
    fn unresolved(&mut self, _left: &UnresolvedField) {}

    /// The resumptionToken of the list. Called when it is written, at the end of the list.
    fn resumption_token(&mut self, _token: &TokenFacts<'_>) {}
}

/// Collects the bytes of the response.
impl Sink for Vec<u8> {
    fn write(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// One entry of the journal.
///
/// Replaying all entries on the text gives the output. Undoing them on the output gives the text (see
/// [`journal`](crate::output::journal)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair<'a> {
    /// The repair.
    pub id: RepairId,
    /// The offset of `original` in the text.
    pub offset: u64,
    /// The identifier of the emitted item that contains the change; `None` outside items.
    pub record: Option<&'a [u8]>,
    /// The bytes before the change; empty for an insertion.
    pub original: &'a [u8],
    /// The bytes after the change; empty for a deletion.
    pub replacement: &'a [u8],
}

impl<'a> Repair<'a> {
    /// A change outside items.
    pub(crate) fn outside_items(
        id: RepairId,
        offset: u64,
        original: &'a [u8],
        replacement: &'a [u8],
    ) -> Self {
        Self { id, offset, record: None, original, replacement }
    }
}

/// The envelope of a response as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvelopeFacts<'a> {
    /// The text of `responseDate`.
    pub response_date: &'a [u8],
    /// The start tag of the document element, with its angle brackets.
    pub root_tag: &'a [u8],
    /// The list; `None` if the response is an error or an Identify.
    pub list: Option<ListEnvelope<'a>>,
}

/// The part of an envelope that only a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListEnvelope<'a> {
    /// The start tag of the verb element, with its angle brackets.
    pub verb_tag: &'a [u8],
    /// The offset of the verb tag in the output.
    pub verb_tag_at: usize,
    /// The namespaces in scope around the items: the prefix and the URI as written in the XML. The default
    /// namespace has an empty prefix. The innermost declaration comes first.
    pub namespaces: &'a [(&'a [u8], &'a [u8])],
}

/// The facts of an Identify response, as written in the XML. A missing field is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdentifyFacts<'a> {
    /// `earliestDatestamp`.
    pub earliest_datestamp: &'a [u8],
    /// `deletedRecord`.
    pub deleted_record: &'a [u8],
    /// `granularity`.
    pub granularity: &'a [u8],
}

/// The places of the header and its fields in an emitted item. A missing field has an empty place, and so
/// have all fields of an item that is too long to be held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemSpans<'a> {
    /// `header` with its tags.
    pub header: Span,
    /// The text of the identifier, see [`RecordFacts::identifier`].
    pub identifier: Span,
    /// The text of `datestamp`.
    pub datestamp: Span,
    /// The text of each `setSpec`, in order.
    pub set_specs: &'a [Span],
}

/// The facts about an emitted item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordFacts<'a> {
    /// `identifier` of a record or header, `setSpec` of a set, `metadataPrefix` of a format, with references
    /// as in the XML.
    pub identifier: &'a [u8],
    /// `datestamp` of a record or header; empty for other items.
    pub datestamp: &'a [u8],
    /// Whether the header says `status="deleted"`.
    pub deleted: bool,
    /// The offset of the item in the text.
    pub offset: u64,
    /// The number of its journal entries.
    pub repairs: usize,
    /// Whether one of its setSpecs contains a `~`, which may replace an illegal byte.
    pub tilde_in_set: bool,
    /// The places of its fields in the emitted item.
    pub spans: ItemSpans<'a>,
}

/// An item that is not repairable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quarantined<'a> {
    /// Its identifier, if it is readable.
    pub identifier: Option<&'a [u8]>,
    /// The offset of the item in the text.
    pub offset: u64,
    /// The bytes of the item in the input. The journal entry deletes them.
    pub raw: &'a [u8],
    /// The reason for the quarantine.
    pub why: QuarantineReason,
}

/// A CDATA section, comment or instruction that has an end mark and contains items of the list.
///
/// The section is content, because a depositor can write such a section. Possibly it lost its own end mark,
/// and the end mark belongs to a later item. Only the source can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwallowedItems<'a> {
    /// The identifier of the item that contains the section.
    pub identifier: Option<&'a [u8]>,
    /// The offset of the section in the text.
    pub offset: u64,
    /// The items that begin in the section.
    pub items: Vec<SwallowedItem<'a>>,
}

/// An item that begins in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwallowedItem<'a> {
    /// Its identifier, if it is readable.
    pub identifier: Option<&'a [u8]>,
    /// Its bytes, up to the next item or to the end of the item that contains it.
    pub raw: &'a [u8],
}

/// A field that violates the schema and stays unchanged, because its value is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnresolvedField {
    /// The offset of the element that contains the field.
    pub offset: u64,
    /// Name of the element.
    pub element: &'static str,
    /// The problem with the field.
    pub issue: FieldIssue,
}

named_enum! {
    /// The problem with a field that stays unchanged.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum FieldIssue {
        /// The element is missing.
        Missing = "missing",
        /// The value is illegal.
        Illegal = "illegal",
        /// The element occurs more than once.
        Repeated = "repeated",
    }
}

/// The resumptionToken of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenFacts<'a> {
    /// Its value, with references as in the XML. Empty on the last page.
    pub token: &'a [u8],
    /// `cursor`: the number of items on earlier pages of the list.
    pub cursor: Option<u64>,
    /// `completeListSize`: the number of items in the list, according to the source.
    pub complete_list_size: Option<u64>,
    /// `totalElements`: the number of all records of the repository in the format. The schema does not have this
    /// attribute, so the token in the output is without it.
    pub total_elements: Option<u64>,
    /// `expirationDate`, an `xs:dateTime`. Empty if the token has none.
    pub expiration_date: &'a [u8],
}
