//! The state that all stages of one response share, and the operations on it.
//!
//! A [`Step`](crate::stages::step::Step) carries it from one stage to the next.

use crate::catalog::{NotOai, RepairId, RepairSet};
use crate::config::RepairConfig;
use crate::lex::doctype::Entities;
use crate::lex::lexeme::start_tag_end_so_far;
use crate::lex::lookahead::Lookahead;
use crate::lex::namespaces::{Context, XSI};
use crate::lex::window::TextWindow;
use crate::limits::Limits;
use crate::output::head_buffer::HeadBuffer;
use crate::passes::granularity::GranularityCheck;
use crate::passes::identify::KnownValues;
use crate::passes::lenient_tag::LenientAttribute;
use crate::passes::rules::Rules;
use crate::stages::list::state::List;
use crate::stages::request::RequestFacts;
use crate::v1::envelope::V1Response;
use crate::validate::envelope_names::EnvelopePrefixes;
use crate::validate::start_tag::{StartTagCache, declared_prefix, is_allowed_attribute};
use oaimend_oai::Verb;

/// The result of one step of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepResult {
    /// This number of bytes is settled. The stage may have changed.
    Settled(usize),
    /// The stage cannot decide without more text.
    NeedMore,
}

/// The stage that reads next.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Before the document element.
    Prolog,
    /// Between the root's start tag and the verb element or an error.
    Head,
    /// After an error element.
    Errors,
    /// In a list, between items.
    List(Box<List>),
    /// Inside an oversized item.
    Oversized(Box<List>),
    /// After the verb element, inside the root.
    Tail,
    /// After the root.
    Epilog,
    /// The list is truncated. The rest is reported and dropped.
    Truncated,
    /// The rest is ignored.
    Done,
}

/// The result of one step in a list.
pub(crate) enum ListStepResult {
    Stay(StepResult),
    /// The step left the list and set the next stage.
    Leave(StepResult),
}

/// A tag at the top level of the document that ends the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopLevelTag {
    Verb(Verb),
    Error,
    RootEnd,
}

/// The state that all stages of one response share.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) config: RepairConfig,
    pub(crate) stage: Stage,
    pub(crate) output: HeadBuffer,
    pub(crate) granularity_check: GranularityCheck,
    pub(crate) tags: StartTagCache,
    /// The entities that a declaration before the root defines.
    pub(crate) entities: Vec<(Vec<u8>, Vec<u8>)>,
    /// Prefix of the OAI-PMH namespace with its colon; empty if there is none.
    pub(crate) prefix: Vec<u8>,
    /// The declarations of the root as received.
    pub(crate) root_context: Context,
    /// The declarations of the root as written.
    pub(crate) written_context: Context,
    /// Local name of the verb element, if it differs from the verb.
    pub(crate) verb_name: Option<Vec<u8>>,
    /// The facts of the request, from the configuration or the repaired head.
    pub(crate) request_facts: RequestFacts,
    /// The token of the next page in the request element, as XML text.
    pub(crate) next_token: Option<Vec<u8>>,
    /// The start tag of the document element as written.
    pub(crate) root_tag: Vec<u8>,
    /// The text of `responseDate` as written.
    pub(crate) response_date: Vec<u8>,
    /// Whether the source gave no readable `responseDate`.
    pub(crate) is_own_response_date: bool,
    /// The identifier that GetRecord requested, if known.
    pub(crate) requested_identifier: Option<Vec<u8>>,
    /// Whether ListIdentifiers contains whole records.
    pub(crate) headers_only: bool,
    /// The verb of the list, once the list is closed.
    pub(crate) verb: Option<Verb>,
    pub(crate) in_second_document: bool,
    /// The results and the cost of lookahead.
    pub(crate) lookahead: Lookahead,
    /// Whether an error code requires a request element without arguments.
    pub(crate) echo_without_arguments: bool,
    /// Whether an error was read whose code resembles no legal one.
    pub(crate) unknown_error: bool,
    /// Whether items outside a list were dropped. Then the response must not become an error.
    pub(crate) has_items_outside_list: bool,
    /// The list continues at this offset of the text. End tags before it are stray.
    pub(crate) continues_at: u64,
    /// Whether the document already has the comment about an incomplete list.
    pub(crate) is_incomplete_noted: bool,
    pub(crate) not_oai: Option<NotOai>,
    pub(crate) version: Option<&'static str>,
    /// The facts of a response of OAI-PMH 1.x.
    pub(crate) v1: Option<V1Response>,
    pub(crate) truncated: bool,
    /// Prefixes whose namespaces were corrected on the root, if provenance is configured.
    pub(crate) corrected_namespaces: Vec<Vec<u8>>,
    /// Offset of the first unsettled byte of the text.
    pub(crate) base: u64,
    /// Length of unsettled text that the stage needs before its next attempt.
    pub(crate) retry_at: usize,
}

impl Response {
    pub(crate) fn new(config: &RepairConfig, tags: StartTagCache) -> Self {
        Self {
            config: config.clone(),
            stage: Stage::Prolog,
            output: HeadBuffer::new(),
            granularity_check: GranularityCheck::new(config),
            tags,
            entities: Vec::new(),
            prefix: Vec::new(),
            root_context: Context::default(),
            written_context: Context::default(),
            verb_name: None,
            request_facts: RequestFacts::default(),
            next_token: None,
            root_tag: Vec::new(),
            response_date: Vec::new(),
            is_own_response_date: true,
            requested_identifier: None,
            headers_only: false,
            verb: None,
            in_second_document: false,
            lookahead: Lookahead::default(),
            echo_without_arguments: false,
            unknown_error: false,
            has_items_outside_list: false,
            continues_at: 0,
            is_incomplete_noted: false,
            not_oai: None,
            version: None,
            v1: None,
            truncated: false,
            corrected_namespaces: Vec::new(),
            base: 0,
            retry_at: 0,
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Returns the arguments for a repair of one item.
    pub(crate) fn rules<'c>(config: &'c RepairConfig, entities: &'c Entities) -> Rules<'c> {
        let base_url = config.request.as_ref().map(|request| request.base_url.as_str());
        Rules {
            limits: &config.limits,
            off: config.off,
            enabled: config.enabled,
            text_charset: config.text_charset.as_deref(),
            entities,
            known_values: KnownValues { values: &config.identify, base_url },
            repository: &config.repository,
        }
    }

    pub(crate) fn is_off(&self, id: RepairId) -> bool {
        let off: RepairSet = self.config.off;
        off.contains(id)
    }

    /// Returns the end of the start tag at the start of the window; `None` if it never ends. Reads
    /// `tag_bytes_max` bytes.
    ///
    /// # Errors
    /// `NeedMore` if the end cannot be decided yet.
    pub(crate) fn tag_end(&mut self, window: TextWindow<'_>) -> Result<Option<usize>, StepResult> {
        let within = window.up_to(self.limits().tag_bytes_max);
        match start_tag_end_so_far(within) {
            None if !within.is_last => Err(self.need_more(window.text)),
            end => Ok(end),
        }
    }

    /// Returns whether an attribute of a tag outside items is allowed on any element.
    pub(crate) fn is_allowed_attribute(
        &self,
        text: &[u8],
        attributes: &[LenientAttribute],
        name: &[u8],
    ) -> bool {
        is_allowed_attribute(name, |prefix| {
            let own = attributes.iter().find(|attribute| {
                let declares = text.get(attribute.name.0..attribute.name.1).and_then(declared_prefix);
                declares == Some(prefix) && !prefix.is_empty()
            });
            let outer = || self.tags.contexts.lookup(self.root_context, prefix);
            !prefix.is_empty() && own.map(|own| own.value.as_slice()).or_else(outer) == Some(XSI)
        })
    }

    /// Requests more text. The next attempt waits until the unsettled text has grown by a quarter.
    pub(crate) fn need_more(&mut self, rest: &[u8]) -> StepResult {
        self.retry_at = rest.len() + rest.len() / 4 + 1;
        StepResult::NeedMore
    }

    /// Refuses the response: it is not an OAI-PMH response, or nothing of it can be kept.
    pub(crate) fn refuse(&mut self, reason: NotOai) -> StepResult {
        if self.output.is_open() {
            // Output has begun, so it is too late to refuse. The response is truncated instead.
            self.truncated = true;
            self.stage = Stage::Truncated;
        } else {
            self.not_oai = Some(reason);
            self.stage = Stage::Done;
        }
        StepResult::Settled(0)
    }

    /// Returns the treatment of envelope prefixes in this response.
    pub(crate) fn prefixes(&self) -> EnvelopePrefixes {
        match (self.is_off(RepairId::EnvelopePrefix), self.prefix.is_empty()) {
            (true, _) => EnvelopePrefixes::Kept,
            (false, true) => EnvelopePrefixes::Forbidden,
            (false, false) => EnvelopePrefixes::Removed,
        }
    }

    /// Returns the written prefix, with its colon.
    pub(crate) fn written_prefix(&self) -> &[u8] {
        if self.prefixes() == EnvelopePrefixes::Removed { b"" } else { &self.prefix }
    }
}

/// Returns whether the proxy writes the request element itself.
pub(crate) fn writes_request_echo(response: &Response) -> bool {
    response.config.request.is_some() && !response.is_off(RepairId::RewriteRequest)
}
