//! The state that all stages of one response share, and the operations on it.
//!
//! A [`Step`](crate::stages::step::Step) carries it from one stage to the next.

use crate::catalog::{NotOai, QuarantineReason, RepairId, RepairSet};
use crate::config::RepairConfig;
use crate::lex::lexeme::start_tag_end_so_far;
use crate::lex::lookahead::Lookahead;
use crate::lex::namespaces::{Context, XSI};
use crate::lex::window::TextWindow;
use crate::limits::Limits;
use crate::output::head_buffer::HeadBuffer;
use crate::passes::granularity::GranularityCheck;
use crate::passes::lenient_tag::LenientAttribute;
use crate::passes::provenance::OutgoingRecord;
use crate::passes::rules::{ItemEnvelope, Rules};
use crate::repair_item::{RepairedItem, repair_item};
use crate::stages::list::state::List;
use crate::stages::request::RequestState;
use crate::stages::response_parts::{ErrorDoubts, Position, ResponseDate, ResponseEnd, VerbElement};
use crate::stages::root::Root;
use crate::text::edits::Edits;
use crate::v1::items::V1Item;
use crate::validate::envelope_names::EnvelopePrefixes;
use crate::validate::facts::ItemFacts;
use crate::validate::start_tag::{StartTag, StartTagCache, TagDefect, declared_prefix, is_allowed_attribute};
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
    config: RepairConfig,
    stage: Stage,
    granularity_check: GranularityCheck,
    tags: StartTagCache,
    lookahead: Lookahead,
    pub(crate) output: HeadBuffer,
    pub(crate) root: Root,
    pub(crate) request: RequestState,
    pub(crate) date: ResponseDate,
    pub(crate) verb_element: VerbElement,
    pub(crate) doubts: ErrorDoubts,
    pub(crate) end: ResponseEnd,
    pub(crate) position: Position,
}

impl Response {
    pub(crate) fn new(config: &RepairConfig, tags: StartTagCache) -> Self {
        Self {
            config: config.clone(),
            stage: Stage::Prolog,
            granularity_check: GranularityCheck::new(config),
            tags,
            lookahead: Lookahead::default(),
            output: HeadBuffer::new(),
            root: Root::default(),
            request: RequestState::default(),
            date: ResponseDate::default(),
            verb_element: VerbElement::default(),
            doubts: ErrorDoubts::default(),
            end: ResponseEnd::default(),
            position: Position::default(),
        }
    }

    pub(crate) fn config(&self) -> &RepairConfig {
        &self.config
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Returns the stage that reads next.
    pub(crate) fn stage(&self) -> &Stage {
        &self.stage
    }

    pub(crate) fn enter(&mut self, stage: Stage) {
        self.stage = stage;
    }

    /// Leaves the stage, to enter the next one later.
    pub(crate) fn take_stage(&mut self) -> Stage {
        std::mem::replace(&mut self.stage, Stage::Done)
    }

    /// Returns the cached start tags.
    pub(crate) fn tags(&self) -> &StartTagCache {
        &self.tags
    }

    pub(crate) fn tags_mut(&mut self) -> &mut StartTagCache {
        &mut self.tags
    }

    /// Returns the cached start tags at the end of the response.
    pub(crate) fn into_tags(self) -> StartTagCache {
        self.tags
    }

    /// Reads a start tag in this context.
    pub(crate) fn open_tag(&mut self, tag: &[u8], context: Context) -> Result<StartTag, TagDefect> {
        self.tags.open(tag, context, &self.config.limits)
    }

    /// Returns what the validator needs besides an item.
    #[inline]
    pub(crate) fn tags_and_limits(&mut self) -> (&mut StartTagCache, &Limits) {
        (&mut self.tags, &self.config.limits)
    }

    /// Returns what the repair of an item needs besides the item.
    pub(crate) fn tags_and_rules(&mut self) -> (&mut StartTagCache, Rules<'_>) {
        (&mut self.tags, Rules::new(&self.config, self.root.entities()))
    }

    /// Repairs a whole item.
    ///
    /// # Errors
    /// The reason for its quarantine.
    pub(crate) fn repair_item(
        &mut self,
        raw: &[u8],
        envelope: ItemEnvelope<'_>,
    ) -> Result<RepairedItem, QuarantineReason> {
        let (tags, rules) = self.tags_and_rules();
        repair_item(raw, envelope, tags, &rules, None)
    }

    /// Returns the edits that add the provenance to a record in this context.
    pub(crate) fn add_provenance(&mut self, item: &RepairedItem, outer: Context) -> Edits {
        let Some(origin) = &self.config.provenance else { return Edits::default() };
        let RepairedItem { bytes, edits, facts, source_datestamp, .. } = item;
        let record = OutgoingRecord {
            item: bytes,
            edits,
            facts,
            source_datestamp: source_datestamp.as_deref(),
            response_date: self.date.text_of_source(),
            outer,
            corrected_namespaces: self.root.corrected_namespaces(),
        };
        record.provenance_edits(origin, &mut self.tags, &self.config.limits)
    }

    /// Remembers how the payloads of a valid item of OAI-PMH 1.x change.
    pub(crate) fn cache_v1_payloads(&mut self, item: V1Item<'_>, list: Context) {
        if let Some(v1) = self.root.v1_mut() {
            v1.payload_tags.insert(item, list, &self.tags.contexts, &self.config.limits);
        }
    }

    /// Returns whether the datestamp of a valid item has the granularity of the repository.
    #[inline]
    pub(crate) fn has_granularity_of(&self, raw: &[u8], facts: &ItemFacts) -> bool {
        self.granularity_check.is_met_by(raw, facts)
    }

    /// Counts bytes that were read without a lasting result.
    pub(crate) fn count_failed(&mut self, bytes: usize) {
        self.lookahead.count_failed(bytes);
    }

    /// Returns the next start of an item after `from` in the unsettled text. `mark` is the start of its tag.
    pub(crate) fn find_item_start(&mut self, text: &[u8], from: usize, mark: &[u8]) -> Option<usize> {
        self.lookahead.item_start.find(text, self.position.base(), from, mark)
    }

    /// Lends the results of lookahead to a search for a boundary.
    pub(crate) fn take_lookahead(&mut self) -> Lookahead {
        std::mem::take(&mut self.lookahead)
    }

    pub(crate) fn set_lookahead(&mut self, lookahead: Lookahead) {
        self.lookahead = lookahead;
    }

    /// Whether the budget of lookahead for the settled text is spent.
    pub(crate) fn is_lookahead_exhausted(&self) -> bool {
        self.lookahead.is_exhausted(self.position.base())
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
            let declaration = attributes.iter().find(|attribute| {
                let declares = text.get(attribute.name.0..attribute.name.1).and_then(declared_prefix);
                declares == Some(prefix) && !prefix.is_empty()
            });
            let outer = || self.tags.contexts.lookup(self.root.context(), prefix);
            !prefix.is_empty()
                && declaration.map(|declaration| declaration.value.as_slice()).or_else(outer) == Some(XSI)
        })
    }

    /// Requests more text. The next attempt waits until the unsettled text has grown by a quarter.
    pub(crate) fn need_more(&mut self, rest: &[u8]) -> StepResult {
        self.position.wait(rest.len());
        StepResult::NeedMore
    }

    /// Refuses the response: it is not an OAI-PMH response, or nothing of it can be kept.
    pub(crate) fn refuse(&mut self, reason: NotOai) -> StepResult {
        if self.output.is_open() {
            // Output has begun, so it is too late to refuse. The response is truncated instead.
            self.end.truncate();
            self.stage = Stage::Truncated;
        } else {
            self.end.refuse(reason);
            self.stage = Stage::Done;
        }
        StepResult::Settled(0)
    }

    /// Returns the treatment of envelope prefixes in this response.
    pub(crate) fn prefixes(&self) -> EnvelopePrefixes {
        match (self.is_off(RepairId::EnvelopePrefix), self.root.prefix().is_empty()) {
            (true, _) => EnvelopePrefixes::Kept,
            (false, true) => EnvelopePrefixes::Forbidden,
            (false, false) => EnvelopePrefixes::Removed,
        }
    }

    /// Returns the written prefix, with its colon.
    pub(crate) fn written_prefix(&self) -> &[u8] {
        if self.prefixes() == EnvelopePrefixes::Removed { b"" } else { self.root.prefix() }
    }
}

/// Returns whether the proxy writes the request element itself.
pub(crate) fn writes_request_echo(response: &Response) -> bool {
    response.config.request.is_some() && !response.is_off(RepairId::RewriteRequest)
}
