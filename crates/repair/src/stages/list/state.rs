//! The state of the list that is being read. All stages of the list share it.

use crate::boundary::boundary_search::BoundarySearch;
use crate::boundary::open_elements::Evidence;
use crate::lex::namespaces::Context;
use crate::passes::rules::{ItemEnvelope, OuterContexts};
use crate::stages::head::error_text::code_for_request;
use crate::stages::request::RequestFacts;
use crate::validate::envelope_names::EnvelopeNames;
use crate::validate::state::{Defect, Validator};
use oaimend_oai::ErrorCode;
use oaimend_oai::Verb;

/// The text of the error of an empty list.
pub(crate) const EMPTY: &str = "The list is empty.";

/// The state of the current list.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) verb: Verb,
    pub(crate) names: EnvelopeNames,
    pub(crate) context: Context,
    /// The context as written.
    pub(crate) written_context: Context,
    pub(crate) validator: Validator,
    /// The start tag of the verb element as written.
    pub(crate) start_tag: Vec<u8>,
    /// Whether even clean items take the slow path; see `needs_slow_path` in `items.rs`.
    pub(crate) is_slow: bool,
    /// Whether only the first item shows the verb of the list.
    pub(crate) is_concluded: bool,
    /// Whether the verb element's start tag was read.
    pub(crate) opened: bool,
    /// Start of an oversized item, as an offset in the text.
    pub(crate) item_offset: u64,
    /// Whether a part of the current item was read.
    pub(crate) in_item: bool,
    /// The search for the end of the current item, once the item is known to be broken.
    pub(crate) boundary: Option<BoundarySearch>,
    /// The defect at which the validator stopped in the current item, if it can still resume there.
    pub(crate) defect: Option<Defect>,
    /// A token that preceded other items. It is written at the end.
    pub(crate) token: Option<Vec<u8>>,
    /// `totalElements` of this token as received.
    pub(crate) total_elements: Option<u64>,
    /// Whether the list's token was written.
    pub(crate) token_written: bool,
    /// Whether a whole token was read.
    pub(crate) token_seen: bool,
    /// Whether the list has no items, and its empty token was removed.
    pub(crate) is_empty: bool,
    /// Whether dropped text may have contained the reason why the list is empty.
    pub(crate) dropped: bool,
    /// Whether text was dropped since the last item.
    pub(crate) dropped_text: bool,
    /// Whether the source stopped in the last item or after it.
    pub(crate) source_aborted: bool,
    /// The evidence that an earlier item was torn in an element of its payload that can wrap items and never
    /// closes. Later items may be the content of that element.
    pub(crate) tear: Option<Evidence>,
    /// The number of records of GetRecord that were dropped because nobody requested them.
    pub(crate) skipped_records: usize,
    /// Whether the requested record of GetRecord was emitted.
    pub(crate) requested_emitted: bool,
}

impl List {
    /// Returns the name in the list's end tag as written.
    pub(crate) fn written_name(&self) -> &'static [u8] {
        if self.verb == Verb::Identify { b"OAI-PMH" } else { self.verb.as_bytes() }
    }

    /// Returns the envelope around its items.
    pub(crate) fn item_envelope(&self) -> ItemEnvelope<'_> {
        let contexts = OuterContexts { read: self.context, written: self.written_context };
        ItemEnvelope { names: &self.names, contexts }
    }

    /// Returns the code of the error of an empty list.
    ///
    /// It depends on the name of the verb element, and becomes the code that a known request allows.
    pub(crate) fn empty_code(&self, request: &RequestFacts) -> Option<ErrorCode> {
        let code = match Verb::from_name(&self.names.verb).unwrap_or(self.verb) {
            Verb::ListRecords | Verb::ListIdentifiers => Some(ErrorCode::NoRecordsMatch),
            Verb::ListSets => Some(ErrorCode::NoSetHierarchy),
            Verb::ListMetadataFormats => Some(ErrorCode::NoMetadataFormats),
            Verb::GetRecord | Verb::Identify => None,
        };
        code.map(|code| code_for_request(code, request))
    }
}
