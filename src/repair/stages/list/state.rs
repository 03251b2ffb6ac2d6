//! The state of the list that is being read.

use crate::repair::boundary::record_boundary::BoundarySearch;
use crate::repair::lex::namespaces::Context;
use crate::repair::passes::rules::OuterContexts;
use crate::repair::validate::envelope_names::EnvelopeNames;
use crate::repair::validate::schema::Verb;
use crate::repair::validate::state::Validator;

/// What an error says of a list without items.
pub(crate) const EMPTY: &str = "The list is empty.";

/// What is known of the list that is being read.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) verb: Verb,
    pub(crate) names: EnvelopeNames,
    pub(crate) context: Context,
    /// The same as it is written.
    pub(crate) written_context: Context,
    pub(crate) validator: Validator,
    /// Whether each item is looked at although it is in order: see [`Engine::needs_slow_path`].
    pub(crate) is_slow: bool,
    /// Whether the verb element's start tag is behind.
    pub(crate) opened: bool,
    /// Where an item too long to be held began, in bytes of the text.
    pub(crate) item_offset: u64,
    /// Whether the item at hand was read in part.
    pub(crate) in_item: bool,
    /// Set once the item at hand is known to be broken.
    pub(crate) boundary: Option<BoundarySearch>,
    /// A token that stood before other items, to be written at the end.
    pub(crate) token: Option<Vec<u8>>,
    /// Whether the list's token went out.
    pub(crate) token_written: bool,
    /// Whether a token was read whole.
    pub(crate) token_seen: bool,
    /// Whether something in it was dropped that may have said why it is empty.
    pub(crate) dropped: bool,
    /// Whether text was dropped since the last item.
    pub(crate) dropped_text: bool,
    /// Whether the source broke off in the last item, or after it.
    pub(crate) source_aborted: bool,
    /// How many records of GetRecord were passed over that nobody asked for.
    pub(crate) skipped_records: usize,
    /// Whether the record that GetRecord was asked for has left.
    pub(crate) requested_emitted: bool,
}

impl List {
    /// Name of the element that its end tag closes.
    pub(crate) fn written_name(&self) -> &'static [u8] {
        if self.verb == Verb::Identify { b"OAI-PMH" } else { self.verb.name() }
    }

    /// What is declared around its items.
    pub(crate) fn contexts(&self) -> OuterContexts {
        OuterContexts { read: self.context, written: self.written_context }
    }

    /// The error that says that there is nothing of this kind. What an empty list says
    /// depends on what it calls itself, whatever was asked.
    pub(crate) fn empty_code(&self) -> Option<&'static str> {
        match Verb::from_name(&self.names.verb).unwrap_or(self.verb) {
            Verb::ListRecords | Verb::ListIdentifiers => Some("noRecordsMatch"),
            Verb::ListSets => Some("noSetHierarchy"),
            Verb::ListMetadataFormats => Some("noMetadataFormats"),
            Verb::GetRecord | Verb::Identify => None,
        }
    }
}
