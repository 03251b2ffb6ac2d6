//! The state of the list that is being read. All stages of the list share it.

use crate::boundary::open_elements::Evidence;
use crate::lex::namespaces::Context;
use crate::passes::rules::{ItemEnvelope, OuterContexts};
use crate::stages::head::error_text::code_for_request;
use crate::stages::list::list_parts::{CurrentItem, DroppedText, ListToken, RequestedRecord};
use crate::stages::request::RequestFacts;
use crate::validate::envelope_names::EnvelopeNames;
use crate::validate::state::Validator;
use oaimend_oai::{ErrorCode, Verb};

/// The text of the error of an empty list.
pub(crate) const EMPTY: &str = "The list is empty.";

/// The state of the current list.
#[derive(Debug)]
pub(crate) struct List {
    verb: Verb,
    contexts: OuterContexts,
    start_tag: Vec<u8>,
    is_open: bool,
    is_slow: bool,
    is_concluded: bool,
    tear: Option<Evidence>,
    pub(crate) names: EnvelopeNames,
    pub(crate) validator: Validator,
    pub(crate) item: CurrentItem,
    pub(crate) token: ListToken,
    pub(crate) dropped: DroppedText,
    pub(crate) requested: RequestedRecord,
}

impl List {
    /// A list at its verb element, in these contexts.
    pub(crate) fn new(verb: Verb, names: EnvelopeNames, contexts: OuterContexts) -> Self {
        Self {
            verb,
            contexts,
            start_tag: Vec::new(),
            // Identify is an item itself, directly in the root.
            is_open: verb == Verb::Identify && names.v2_element.is_none(),
            is_slow: false,
            is_concluded: false,
            tear: None,
            validator: Validator::new(names.clone(), contexts.read),
            names,
            item: CurrentItem::default(),
            token: ListToken::default(),
            dropped: DroppedText::default(),
            requested: RequestedRecord::default(),
        }
    }

    #[inline]
    pub(crate) fn verb(&self) -> Verb {
        self.verb
    }

    /// Returns its context as received.
    pub(crate) fn context(&self) -> Context {
        self.contexts.read
    }

    pub(crate) fn set_context(&mut self, context: Context) {
        self.contexts.read = context;
        self.validator.set_context(context);
    }

    /// Returns its context as written.
    pub(crate) fn written_context(&self) -> Context {
        self.contexts.written
    }

    pub(crate) fn set_written_context(&mut self, context: Context) {
        self.contexts.written = context;
    }

    /// Returns whether the start tag of the verb element was read.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Opens it with the start tag of the verb element as written.
    pub(crate) fn open(&mut self, start_tag: Vec<u8>) {
        self.is_open = true;
        self.start_tag = start_tag;
    }

    /// Returns the start tag of the verb element as written.
    pub(crate) fn start_tag(&self) -> &[u8] {
        &self.start_tag
    }

    /// Returns whether even clean items take the slow path; see `needs_slow_path` in `items.rs`.
    #[inline]
    pub(crate) fn is_slow(&self) -> bool {
        self.is_slow
    }

    pub(crate) fn set_slow(&mut self) {
        self.is_slow = true;
    }

    /// Returns whether only the first item shows the verb of the list.
    pub(crate) fn is_concluded(&self) -> bool {
        self.is_concluded
    }

    pub(crate) fn set_concluded(&mut self, is_concluded: bool) {
        self.is_concluded = is_concluded;
    }

    /// Returns the evidence that an earlier item was torn in an element of its payload that can wrap items and
    /// never closes. Later items may be the content of that element.
    #[inline]
    pub(crate) fn tear(&self) -> Option<Evidence> {
        self.tear
    }

    /// Notes the evidence for a torn item. The weakest counts.
    pub(crate) fn note_tear(&mut self, tear: Option<Evidence>) {
        self.tear = [self.tear, tear].into_iter().flatten().min();
    }

    /// Returns the name in the list's end tag as written.
    pub(crate) fn written_name(&self) -> &'static [u8] {
        if self.verb == Verb::Identify { b"OAI-PMH" } else { self.verb.as_bytes() }
    }

    /// Returns the envelope around its items.
    pub(crate) fn item_envelope(&self) -> ItemEnvelope<'_> {
        ItemEnvelope { names: &self.names, contexts: self.contexts }
    }

    /// Returns the envelope around its items, and the validator that reads them.
    pub(crate) fn item_envelope_and_validator(&mut self) -> (ItemEnvelope<'_>, &mut Validator) {
        (ItemEnvelope { names: &self.names, contexts: self.contexts }, &mut self.validator)
    }

    /// Returns the code of the error of an empty list.
    ///
    /// It depends on the name of the verb element, and becomes the code that a known request allows.
    pub(crate) fn empty_code(&self, request: &RequestFacts) -> Option<ErrorCode> {
        let code = match Verb::from_bytes(&self.names.verb).unwrap_or(self.verb) {
            Verb::ListRecords | Verb::ListIdentifiers => Some(ErrorCode::NoRecordsMatch),
            Verb::ListSets => Some(ErrorCode::NoSetHierarchy),
            Verb::ListMetadataFormats => Some(ErrorCode::NoMetadataFormats),
            Verb::GetRecord | Verb::Identify => None,
        };
        code.map(|code| code_for_request(code, request))
    }
}
