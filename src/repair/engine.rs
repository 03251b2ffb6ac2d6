//! The way of the text through the stages: which one reads next, and how much of the text is settled.
//!
//! Each stage looks at the text that is not settled yet and either settles some
//! of it, or needs more. What it decides never depends on where the pieces of
//! the input were cut. Text is kept only while a stage still needs it, and is
//! otherwise passed on as a slice of the input.

use super::border::BorderSearch;
use super::catalogue::{NotOai, RepairId};
use super::context::{Context, XSI};
use super::edits::Edits;
use super::fit::Fit;
use super::gate::{Gate, Role};
use super::identify::Known;
use super::lexeme::start_tag_end_so_far;
use super::limits::Limits;
use super::lookahead::Lookahead;
use super::loose::LooseAttribute;
use super::mend::{Around, Rules};
use super::repair_set::RepairSet;
use super::scan::Scanner;
use super::schema::Verb;
use super::sink::Sink;
use super::skeleton::Skeleton;
use super::tag::{Tags, declared_prefix, is_free_attribute};
use super::verb_element::Asked;
use super::version_one::VersionOne;
use super::{Outcome, RepairConfig, Summary};

/// What a stage made of the text it was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// So many bytes are settled, and perhaps the stage has changed.
    Settled(usize),
    /// Nothing can be said before more text is there.
    NeedMore,
}

/// Which stage reads next.
#[derive(Debug)]
pub(super) enum Stage {
    /// Before the document element.
    Prolog,
    /// Between the root's start tag and the verb element or an error.
    Head,
    /// Behind an error element.
    Errors,
    /// In a list, between items.
    List(Box<List>),
    /// Inside an item too long to be held.
    Oversized(Box<List>),
    /// Behind the verb element, inside the root.
    Tail,
    /// Behind the root.
    Epilog,
    /// The rest is dropped: what went out is not the whole list.
    Lost,
    /// The rest is not looked at.
    Done,
}

/// What is known of the list that is being read.
#[derive(Debug)]
pub(super) struct List {
    pub(super) verb: Verb,
    pub(super) skeleton: Skeleton,
    pub(super) context: Context,
    /// The same as it is written.
    pub(super) written_context: Context,
    pub(super) scanner: Scanner,
    /// Whether each item is looked at although it is in order: see [`Engine::needs_care`].
    pub(super) careful: bool,
    /// Whether the verb element's start tag is behind.
    pub(super) opened: bool,
    /// Where an item too long to be held began, in bytes of the text.
    pub(super) item_offset: u64,
    /// Whether the item at hand was read in part.
    pub(super) in_item: bool,
    /// Set once the item at hand is known to be broken.
    pub(super) border: Option<BorderSearch>,
    /// A token that stood before other items, to be written at the end.
    pub(super) token: Option<Vec<u8>>,
    /// Whether the list's token went out.
    pub(super) token_written: bool,
    /// Whether a token was read whole.
    pub(super) token_seen: bool,
    /// Whether something in it was dropped that may have said why it is empty.
    pub(super) dropped: bool,
    /// Whether text was dropped since the last item.
    pub(super) dropped_text: bool,
    /// Whether the source broke off in the last item, or after it.
    pub(super) broke_off: bool,
    /// How many records of GetRecord were passed over that nobody asked for.
    pub(super) passed_over: usize,
    /// Whether the record that GetRecord was asked for has left.
    pub(super) asked_left: bool,
}

impl List {
    /// Name of the element that its end tag closes.
    pub(super) fn written_name(&self) -> &'static [u8] {
        if self.verb == Verb::Identify { b"OAI-PMH" } else { self.verb.name() }
    }

    /// What is declared around its items.
    pub(super) fn contexts(&self) -> Around {
        Around { read: self.context, written: self.written_context }
    }
}

/// One response on its way.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) config: RepairConfig,
    pub(super) stage: Stage,
    pub(super) gate: Gate,
    pub(super) fit: Fit,
    pub(super) tags: Tags,
    pub(super) entities: Vec<(Vec<u8>, Vec<u8>)>,
    /// Prefix of the OAI-PMH namespace with its colon, or nothing.
    pub(super) prefix: Vec<u8>,
    /// What the root declares, as it came.
    pub(super) root_context: Context,
    /// What the root declares, as it is written.
    pub(super) written_context: Context,
    /// Local name of the verb element, where it is not the name of its verb.
    pub(super) verb_name: Option<Vec<u8>>,
    /// What the head says was asked, as it is written.
    pub(super) asked: Asked,
    /// Whose record GetRecord was asked for, where that is known.
    pub(super) asked_identifier: Option<Vec<u8>>,
    /// Whether ListIdentifiers holds whole records.
    pub(super) headers_only: bool,
    /// The list that was read, once it is closed.
    pub(super) verb: Option<Verb>,
    pub(super) in_second_document: bool,
    /// What looking ahead has shown, and cost.
    pub(super) lookahead: Lookahead,
    /// An error code for which the request is echoed without arguments.
    pub(super) bad_request: bool,
    /// Whether an error was read whose code is near to no legal one.
    pub(super) unknown_error: bool,
    /// Whether items were dropped that stood in no list: then no error is the answer.
    pub(super) items_outside: bool,
    /// A list goes on at this offset of the text, whatever end tags come before it.
    pub(super) goes_on_at: u64,
    /// Whether the document says that its list is incomplete.
    pub(super) is_noted: bool,
    pub(super) not_oai: Option<NotOai>,
    pub(super) version: Option<&'static str>,
    /// Set in a response of OAI-PMH 1.x.
    pub(super) version_one: Option<VersionOne>,
    pub(super) truncated: bool,
    /// Prefixes whose namespaces were corrected on the root, if provenance is told.
    pub(super) respelt: Vec<Vec<u8>>,
    /// Text that is not settled.
    stash: Vec<u8>,
    /// Offset of the first unsettled byte in the text.
    pub(super) base: u64,
    /// Length of unsettled text below which the stage need not look again.
    pub(super) retry_at: usize,
    held_bytes_peak: usize,
}

/// How much of the input is added to unsettled text at a time.
const JOIN_BYTES: usize = 16 << 10;

impl Engine {
    pub(super) fn new(config: &RepairConfig, tags: Tags) -> Self {
        Self {
            config: config.clone(),
            stage: Stage::Prolog,
            gate: Gate::new(),
            fit: Fit::of(config),
            tags,
            entities: Vec::new(),
            prefix: Vec::new(),
            root_context: Context::default(),
            written_context: Context::default(),
            verb_name: None,
            asked: Asked::default(),
            asked_identifier: None,
            headers_only: false,
            verb: None,
            in_second_document: false,
            lookahead: Lookahead::default(),
            bad_request: false,
            unknown_error: false,
            items_outside: false,
            goes_on_at: 0,
            is_noted: false,
            not_oai: None,
            version: None,
            version_one: None,
            truncated: false,
            respelt: Vec::new(),
            stash: Vec::new(),
            base: 0,
            retry_at: 0,
            held_bytes_peak: 0,
        }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// What mending an item needs, beside the tables.
    pub(super) fn rules<'c>(config: &'c RepairConfig, entities: &'c [(Vec<u8>, Vec<u8>)]) -> Rules<'c> {
        let base_url = config.request.as_ref().map(|request| request.base_url.as_str());
        Rules {
            limits: &config.limits,
            off: config.off,
            enabled: config.enabled,
            text_charset: config.text_charset.as_deref(),
            entities,
            known: Known { values: &config.identify, base_url },
            repository: &config.repository,
        }
    }

    pub(super) fn is_off(&self, id: RepairId) -> bool {
        let off: RepairSet = self.config.off;
        off.contains(id)
    }

    /// Takes the next piece of text.
    pub(super) fn push(&mut self, mut text: &[u8], sink: &mut impl Sink) {
        while !text.is_empty() && !matches!(self.stage, Stage::Done) {
            if self.stash.is_empty() {
                let settled = self.advance(text, false, sink);
                self.stash.extend_from_slice(text.get(settled..).unwrap_or_default());
                break;
            }
            let before = self.stash.len();
            let (step, rest) = text.split_at(text.len().min(before.max(JOIN_BYTES)));
            let mut stash = std::mem::take(&mut self.stash);
            stash.extend_from_slice(step);
            let settled = self.advance(&stash, false, sink);
            match settled.checked_sub(before) {
                // The old text is settled: go on in the input itself.
                Some(into_step) => {
                    stash.clear();
                    text = text.get(into_step..).unwrap_or_default();
                }
                None => {
                    stash.drain(..settled);
                    text = rest;
                }
            }
            self.stash = stash;
        }
        self.held_bytes_peak = self.held_bytes_peak.max(self.stash.len() + self.gate.held_bytes);
    }

    /// The end of the input.
    pub(super) fn finish(mut self, decoded_as: &'static str, sink: &mut impl Sink) -> (Summary, Tags) {
        let stash = std::mem::take(&mut self.stash);
        let settled = self.advance(&stash, true, sink);
        debug_assert!(settled == stash.len(), "the end settles everything");
        self.end(sink);
        let outcome = match self.not_oai {
            Some(reason) => Outcome::NotOai(reason),
            None if self.truncated || self.gate.incomplete => Outcome::Truncated,
            None if self.gate.changed => Outcome::Repaired,
            None => Outcome::Clean,
        };
        let summary = Summary {
            outcome,
            version: self.version,
            records: self.gate.records,
            quarantined: self.gate.quarantined,
            lost: self.gate.lost,
            unread: self.gate.unread,
            swallowed: self.gate.swallowed,
            unresolved: self.gate.unresolved,
            repairs: self.gate.repairs,
            decoded_as,
            held_bytes_peak: self.held_bytes_peak,
        };
        (summary, self.tags)
    }

    /// The verdict, once no more input can change it.
    pub(super) fn verdict(&self) -> Option<Outcome> {
        match (self.not_oai, &self.stage) {
            (Some(reason), _) => Some(Outcome::NotOai(reason)),
            (None, Stage::Lost) => Some(Outcome::Truncated),
            _ => None,
        }
    }

    /// Lets the stages read until they need more; returns how much is settled.
    fn advance(&mut self, text: &[u8], last: bool, sink: &mut impl Sink) -> usize {
        let mut settled = 0;
        loop {
            let rest = text.get(settled..).unwrap_or_default();
            if rest.is_empty() || !last && rest.len() < self.retry_at {
                return settled;
            }
            if self.lookahead.is_spent(self.base) {
                self.give_up_looking();
            }
            let step = match self.stage {
                Stage::Prolog => self.prolog(rest, last, sink),
                Stage::Head => self.head(rest, last, sink),
                Stage::Errors => self.errors(rest, last, sink),
                Stage::List(_) => self.list(rest, last, sink),
                Stage::Oversized(_) => self.oversized(rest, last, sink),
                Stage::Tail => self.tail(rest, last, sink),
                Stage::Epilog => self.epilog(rest, last, sink),
                Stage::Lost => self.lost(rest, last, sink),
                Stage::Done => Step::Settled(rest.len()),
            };
            match step {
                Step::NeedMore => return settled,
                Step::Settled(bytes) => {
                    self.retry_at = 0;
                    self.base += bytes as u64;
                    settled += bytes;
                }
            }
        }
    }

    /// The damage is made so that every byte of it needs all the others: what went out breaks off.
    fn give_up_looking(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            // After the root's end nothing is written any more, nor is much held.
            stage @ (Stage::Lost | Stage::Done | Stage::Epilog) => self.stage = stage,
            Stage::List(list) | Stage::Oversized(list) => {
                self.gate.lost += 1;
                self.leave_broken_list(&list);
            }
            stage => {
                if matches!(stage, Stage::Tail) {
                    // The list is closed already.
                    self.verb = None;
                }
                self.refuse(NotOai::BrokenEnvelope);
            }
        }
    }

    /// Where the start tag that `rest` begins with ends: `Err(NeedMore)` before
    /// that can be said, `None` when it never does. Looks at `tag_bytes_max` bytes.
    pub(super) fn tag_end(&mut self, rest: &[u8], last: bool) -> Result<Option<usize>, Step> {
        let bytes_max = self.limits().tag_bytes_max;
        let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
        let complete = last || rest.len() > bytes_max;
        match start_tag_end_so_far(within, complete) {
            None if !complete => Err(self.need_more(rest)),
            end => Ok(end),
        }
    }

    /// Whether an attribute of a tag at the top level or of a list may stand on any element.
    pub(super) fn is_free(&self, text: &[u8], attributes: &[LooseAttribute], name: &[u8]) -> bool {
        is_free_attribute(name, |prefix| {
            let own = attributes.iter().find(|attribute| {
                let declares = text.get(attribute.name.0..attribute.name.1).and_then(declared_prefix);
                declares == Some(prefix) && !prefix.is_empty()
            });
            let outer = || self.tags.contexts.lookup(self.root_context, prefix);
            !prefix.is_empty() && own.map(|own| own.value.as_slice()).or_else(outer) == Some(XSI)
        })
    }

    /// Look again only when the unsettled text has grown by a quarter.
    pub(super) fn need_more(&mut self, rest: &[u8]) -> Step {
        self.retry_at = rest.len() + rest.len() / 4 + 1;
        Step::NeedMore
    }

    /// Nothing will be written: the input is no OAI-PMH response that can be kept.
    pub(super) fn refuse(&mut self, reason: NotOai) -> Step {
        if self.gate.is_open() {
            // Too late for a refusal: what went out breaks off.
            self.truncated = true;
            self.stage = Stage::Lost;
        } else {
            self.not_oai = Some(reason);
            self.stage = Stage::Done;
        }
        Step::Settled(0)
    }

    /// Passes on the first `len` bytes of `rest` as they are.
    pub(super) fn keep(&mut self, role: Role, rest: &[u8], len: usize, sink: &mut impl Sink) -> Step {
        self.gate.keep(role, self.base, rest.get(..len).unwrap_or_default(), sink);
        Step::Settled(len)
    }

    /// Replaces the first `len` bytes of `rest`.
    pub(super) fn change(
        &mut self,
        id: RepairId,
        rest: &[u8],
        len: usize,
        replacement: &[u8],
        sink: &mut impl Sink,
    ) -> Step {
        let original = rest.get(..len).unwrap_or_default();
        self.gate.change(Role::Plain, id, self.base, original, replacement, sink);
        Step::Settled(len)
    }

    /// Puts aside the first `len` bytes of `rest`, which hold an item or a token that cannot be read.
    pub(super) fn put_aside_unread(&mut self, rest: &[u8], len: usize, sink: &mut impl Sink) -> Step {
        self.gate.put_aside_unread(None, self.base, rest.get(..len).unwrap_or_default(), sink);
        Step::Settled(len)
    }

    /// Passes on the first `len` bytes of `rest` with changes inside.
    pub(super) fn keep_edited(
        &mut self,
        role: Role,
        rest: &[u8],
        len: usize,
        edits: &Edits,
        sink: &mut impl Sink,
    ) -> Step {
        let mut at = 0;
        for edit in edits.iter() {
            self.gate.keep(role, self.base + at as u64, rest.get(at..edit.start).unwrap_or_default(), sink);
            let original = rest.get(edit.start..edit.end).unwrap_or_default();
            let is_request = matches!(edit.id, RepairId::RewriteRequest | RepairId::MissingRequest);
            let role = if is_request && self.is_own_request() { Role::RequestEcho } else { role };
            self.gate.change(role, edit.id, self.base + edit.start as u64, original, &edit.replacement, sink);
            at = edit.end;
        }
        self.gate.keep(role, self.base + at as u64, rest.get(at..len).unwrap_or_default(), sink);
        Step::Settled(len)
    }
}
