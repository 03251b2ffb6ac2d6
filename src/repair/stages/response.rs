//! The state that all stages share, and the operations on it.

use crate::repair::catalog::{NotOai, RepairId, RepairSet};
use crate::repair::config::RepairConfig;
use crate::repair::lex::lexeme::start_tag_end_so_far;
use crate::repair::lex::lookahead::Lookahead;
use crate::repair::lex::namespaces::{Context, XSI};
use crate::repair::limits::Limits;
use crate::repair::output::head_buffer::{HeadBuffer, Role};
use crate::repair::passes::granularity::GranularityCheck;
use crate::repair::passes::identify::KnownValues;
use crate::repair::passes::lenient_tag::LenientAttribute;
use crate::repair::passes::rules::Rules;
use crate::repair::sink::Sink;
use crate::repair::stages::list::state::List;
use crate::repair::text::edits::Edits;
use crate::repair::v1::envelope::V1Response;
use crate::repair::validate::envelope_names::Prefixes;
use crate::repair::validate::schema::Verb;
use crate::repair::validate::start_tag::{Tags, declared_prefix, is_free_attribute};

/// What a stage made of the text it was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// So many bytes are settled, and perhaps the stage has changed.
    Settled(usize),
    /// Nothing can be said before more text is there.
    NeedMore,
}

/// Which stage reads next.
#[derive(Debug)]
pub(crate) enum Stage {
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

/// Where the list goes on.
pub(crate) enum ListStep {
    Stay(Step),
    /// The stage was set.
    Leave(Step),
}

/// What a `<` at the top level of the document begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopLevelTag {
    Verb(Verb),
    Error,
    RootEnd,
}

/// What the request was, as far as that is known.
#[derive(Debug, Default)]
pub(crate) struct RequestFacts {
    pub(crate) verb: Option<Verb>,
    pub(crate) identifier: Option<Vec<u8>>,
    /// Whether it goes on with a list.
    pub(crate) resumes: bool,
    /// Whether it is we who know, and not the source that says so.
    pub(crate) is_configured: bool,
}

/// The state that all stages of one response share.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) config: RepairConfig,
    pub(crate) stage: Stage,
    pub(crate) output: HeadBuffer,
    pub(crate) granularity_check: GranularityCheck,
    pub(crate) tags: Tags,
    pub(crate) entities: Vec<(Vec<u8>, Vec<u8>)>,
    /// Prefix of the OAI-PMH namespace with its colon, or nothing.
    pub(crate) prefix: Vec<u8>,
    /// What the root declares, as it came.
    pub(crate) root_context: Context,
    /// What the root declares, as it is written.
    pub(crate) written_context: Context,
    /// Local name of the verb element, where it is not the name of its verb.
    pub(crate) verb_name: Option<Vec<u8>>,
    /// What the head says was asked, as it is written.
    pub(crate) request_facts: RequestFacts,
    /// Whose record GetRecord was asked for, where that is known.
    pub(crate) requested_identifier: Option<Vec<u8>>,
    /// Whether ListIdentifiers holds whole records.
    pub(crate) headers_only: bool,
    /// The list that was read, once it is closed.
    pub(crate) verb: Option<Verb>,
    pub(crate) in_second_document: bool,
    /// What looking ahead has shown, and cost.
    pub(crate) lookahead: Lookahead,
    /// An error code for which the request is echoed without arguments.
    pub(crate) bad_request: bool,
    /// Whether an error was read whose code is near to no legal one.
    pub(crate) unknown_error: bool,
    /// Whether items were dropped that stood in no list: then no error is the answer.
    pub(crate) has_items_outside_list: bool,
    /// A list goes on at this offset of the text, whatever end tags come before it.
    pub(crate) continues_at: u64,
    /// Whether the document says that its list is incomplete.
    pub(crate) is_incomplete_noted: bool,
    pub(crate) not_oai: Option<NotOai>,
    pub(crate) version: Option<&'static str>,
    /// Set in a response of OAI-PMH 1.x.
    pub(crate) v1: Option<V1Response>,
    pub(crate) truncated: bool,
    /// Prefixes whose namespaces were corrected on the root, if provenance is told.
    pub(crate) corrected_namespaces: Vec<Vec<u8>>,
    /// Offset of the first unsettled byte in the text.
    pub(crate) base: u64,
    /// Length of unsettled text below which the stage need not look again.
    pub(crate) retry_at: usize,
}

impl Response {
    pub(crate) fn new(config: &RepairConfig, tags: Tags) -> Self {
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
            requested_identifier: None,
            headers_only: false,
            verb: None,
            in_second_document: false,
            lookahead: Lookahead::default(),
            bad_request: false,
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

    /// What mending an item needs, beside the tables.
    pub(crate) fn rules<'c>(config: &'c RepairConfig, entities: &'c [(Vec<u8>, Vec<u8>)]) -> Rules<'c> {
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

    /// Where the start tag that `rest` begins with ends: `Err(NeedMore)` before
    /// that can be said, `None` when it never does. Looks at `tag_bytes_max` bytes.
    pub(crate) fn tag_end(&mut self, rest: &[u8], last: bool) -> Result<Option<usize>, Step> {
        let bytes_max = self.limits().tag_bytes_max;
        let within = rest.get(..rest.len().min(bytes_max)).unwrap_or_default();
        let complete = last || rest.len() > bytes_max;
        match start_tag_end_so_far(within, complete) {
            None if !complete => Err(self.need_more(rest)),
            end => Ok(end),
        }
    }

    /// Whether an attribute of a tag at the top level or of a list may stand on any element.
    pub(crate) fn is_free(&self, text: &[u8], attributes: &[LenientAttribute], name: &[u8]) -> bool {
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
    pub(crate) fn need_more(&mut self, rest: &[u8]) -> Step {
        self.retry_at = rest.len() + rest.len() / 4 + 1;
        Step::NeedMore
    }

    /// Nothing will be written: the input is no OAI-PMH response that can be kept.
    pub(crate) fn refuse(&mut self, reason: NotOai) -> Step {
        if self.output.is_open() {
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
    pub(crate) fn keep(&mut self, role: Role, rest: &[u8], len: usize, sink: &mut impl Sink) -> Step {
        self.output.keep(role, self.base, rest.get(..len).unwrap_or_default(), sink);
        Step::Settled(len)
    }

    /// Replaces the first `len` bytes of `rest`.
    pub(crate) fn change(
        &mut self,
        id: RepairId,
        rest: &[u8],
        len: usize,
        replacement: &[u8],
        sink: &mut impl Sink,
    ) -> Step {
        let original = rest.get(..len).unwrap_or_default();
        self.output.change(Role::Plain, id, self.base, original, replacement, sink);
        Step::Settled(len)
    }

    /// Puts aside the first `len` bytes of `rest`, which hold an item or a token that cannot be read.
    pub(crate) fn quarantine_unread(&mut self, rest: &[u8], len: usize, sink: &mut impl Sink) -> Step {
        self.output.quarantine_unread(None, self.base, rest.get(..len).unwrap_or_default(), sink);
        Step::Settled(len)
    }

    /// Passes on the first `len` bytes of `rest` with changes inside.
    pub(crate) fn keep_edited(
        &mut self,
        role: Role,
        rest: &[u8],
        len: usize,
        edits: &Edits,
        sink: &mut impl Sink,
    ) -> Step {
        let mut at = 0;
        for edit in edits.iter() {
            self.output.keep(role, self.base + at as u64, rest.get(at..edit.start).unwrap_or_default(), sink);
            let original = rest.get(edit.start..edit.end).unwrap_or_default();
            let is_request = matches!(edit.id, RepairId::RewriteRequest | RepairId::MissingRequest);
            let role = if is_request && writes_request_echo(self) { Role::RequestEcho } else { role };
            self.output.change(
                role,
                edit.id,
                self.base + edit.start as u64,
                original,
                &edit.replacement,
                sink,
            );
            at = edit.end;
        }
        self.output.keep(role, self.base + at as u64, rest.get(at..len).unwrap_or_default(), sink);
        Step::Settled(len)
    }

    /// What becomes of prefixes of the envelope of this response.
    pub(crate) fn prefixes(&self) -> Prefixes {
        match (self.is_off(RepairId::EnvelopePrefix), self.prefix.is_empty()) {
            (true, _) => Prefixes::Stay,
            (false, true) => Prefixes::None,
            (false, false) => Prefixes::Off,
        }
    }

    /// The prefix that is written, with its colon.
    pub(crate) fn written_prefix(&self) -> &[u8] {
        if self.prefixes() == Prefixes::Off { b"" } else { &self.prefix }
    }
}

/// Whether the request element is written by us.
pub(crate) fn writes_request_echo(response: &Response) -> bool {
    response.config.request.is_some() && !response.is_off(RepairId::RewriteRequest)
}
