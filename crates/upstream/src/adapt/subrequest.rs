//! Our own requests to a source, beside the page that a harvester asked for.
//!
//! The response passes through the engine like any other. It is held in memory and never sent as it is.

use crate::adapt::request_adapter::{FormPart, ListContext, RequestAdapter};
use crate::client::request_context::RequestContext;
use crate::http::body::SourceBody;
use crate::http::deadline::Deadline;
use crate::page::attempt::{Page, ResponseStart, Verdict};
use crate::page::buffer::{PageBuffer, to_quarantined_record};
use crate::page::item::FieldPlaces;
use crate::xml::text::unescape_text;
use http::Method;
use oaimend_base::clock;
use oaimend_oai::{ErrorCode, Request};
use oaimend_repair::{
    EnvelopeFacts, IdentifyFacts, NotOai, Quarantined, RecordFacts, Repair, RepositoryFacts, Sink, TokenFacts,
};
use oaimend_repository::lists::ItemHash;
use oaimend_repository::rebase_namespaces::NamespaceScope;
use oaimend_repository::{Failure, Reason};
use oaimend_store::QuarantinedRecord;
use std::sync::Arc;

/// Whether the source has listed the identifier of a request, so that it must know the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsListed {
    Yes,
    No,
}

/// How subrequests are sent, and what is known when their responses are read.
#[derive(Clone, Debug)]
pub(crate) struct SubrequestOptions {
    pub(crate) method: Method,
    pub(crate) adapter: RequestAdapter,
    pub(crate) facts: RepositoryFacts,
    /// The format of the list, if the request resumes one and it is known.
    pub(crate) metadata_prefix: Option<String>,
    /// The response is read no further than this many items.
    pub(crate) items_max: usize,
    /// The page of the same request holds the permit for a list already.
    pub(crate) is_beside_page: bool,
    /// The first request of the list that the request resumes, if known.
    pub(crate) first: Option<Request>,
}

impl SubrequestOptions {
    /// The same with a part of another form.
    pub(crate) fn with_form(mut self, part: Option<FormPart>) -> Self {
        if let Some(part) = part {
            part.add_to(&mut self.adapter.form);
        }
        self
    }
}

/// A response to a subrequest.
#[derive(Debug)]
pub(crate) struct SubResponse {
    pub(crate) buffer: PageBuffer,
    pub(crate) items: Vec<Item>,
    /// Items that could not be repaired.
    pub(crate) quarantined: Vec<QuarantinedRecord>,
    /// Whether an item was too long to be held.
    pub(crate) is_too_long: bool,
    /// The OAI-PMH version of the response.
    pub(crate) version: Option<&'static str>,
}

/// An item of the response to a subrequest.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// As written in the XML.
    pub(crate) identifier: Vec<u8>,
    /// As written in the XML.
    pub(crate) datestamp: Vec<u8>,
    /// The key of the item in a list.
    pub(crate) hash: u64,
    pub(crate) deleted: bool,
    pub(crate) bytes: Vec<u8>,
    /// The places of its fields in `bytes`.
    pub(crate) fields: FieldPlaces,
}

impl Item {
    /// The item as it has to be written in `place`, and the places of its fields there. `scope` are the
    /// namespaces around it now.
    pub(crate) fn rebase(&self, scope: &NamespaceScope, place: &NamespaceScope) -> (String, FieldPlaces) {
        let item = String::from_utf8_lossy(&self.bytes);
        let rebased = scope.rebase(&item, place);
        // Only the start tag of the item grows.
        let growth = rebased.len() as i64 - item.len() as i64;
        (rebased, self.fields.after_growth(growth))
    }
}

/// A subrequest that failed, and the bytes of its response.
#[derive(Clone, Debug)]
pub(crate) struct SubrequestError {
    pub(crate) failure: Failure,
    /// The body as received; empty if there was none or it was too long.
    pub(crate) raw: Vec<u8>,
}

impl SubrequestError {
    /// Whether the failure says nothing about the source.
    pub(crate) fn is_unrelated_to_source(&self) -> bool {
        self.failure.reason == Reason::Busy
    }
}

/// Longest response to a subrequest, in decoded bytes: it is held in memory.
const RESPONSE_BYTES_MAX: usize = 16 << 20;
/// Maximum number of items of a response to a subrequest that are beyond repair, because each needs more memory than its bytes.
const QUARANTINED_ITEMS_MAX: usize = 1000;

impl SubResponse {
    pub(crate) fn new(context: &RequestContext) -> Self {
        let hash = ItemHash::new(&context.store.token_key);
        Self {
            buffer: PageBuffer::new(hash, context.mapping.secrets()),
            items: Vec::new(),
            quarantined: Vec::new(),
            is_too_long: false,
            version: None,
        }
    }

    /// The resumptionToken, if the list has more pages.
    pub(crate) fn token(&self) -> Option<String> {
        self.buffer.token.value()
    }

    /// The error code, if the response is an error.
    pub(crate) fn error_code(&self) -> Option<ErrorCode> {
        if self.items.is_empty() { self.buffer.head.error() } else { None }
    }

    /// The namespaces that are declared around the items.
    pub(crate) fn scope(&self) -> NamespaceScope {
        self.buffer.head.envelope().map(|tags| tags.scope().clone()).unwrap_or_default()
    }

    /// The requested record, if the response is exactly this one and it is whole.
    pub(crate) fn record(&self, identifier: &str) -> Option<&Item> {
        match self.items.as_slice() {
            [item]
                if !self.is_too_long
                    && self.quarantined.is_empty()
                    && unescape_text(&item.identifier) == identifier =>
            {
                Some(item)
            }
            _ => None,
        }
    }
}

impl Sink for SubResponse {
    fn write(&mut self, bytes: &[u8]) {
        self.buffer.write(bytes);
    }

    fn envelope(&mut self, envelope: &EnvelopeFacts<'_>) {
        self.buffer.envelope(envelope);
    }

    fn error(&mut self, code: ErrorCode) {
        self.buffer.error(code);
    }

    fn identified(&mut self, identify: &IdentifyFacts<'_>) {
        self.buffer.identified(identify);
    }

    fn repaired(&mut self, repair: &Repair<'_>) {
        self.buffer.repaired(repair);
    }

    fn record_committed(&mut self, facts: &RecordFacts<'_>, bytes: &[u8]) {
        self.buffer.record_committed(facts, bytes);
        self.is_too_long |= bytes.is_empty();
        self.items.push(Item {
            identifier: facts.identifier.to_vec(),
            datestamp: facts.datestamp.to_vec(),
            hash: self.buffer.key(facts.identifier, facts.datestamp),
            deleted: facts.deleted,
            bytes: bytes.to_vec(),
            fields: FieldPlaces::new(&facts.spans),
        });
    }

    fn record_quarantined(&mut self, quarantined: &Quarantined<'_>) {
        self.buffer.record_quarantined(quarantined);
        self.quarantined.push(to_quarantined_record(quarantined));
    }

    fn resumption_token(&mut self, token: &TokenFacts<'_>) {
        self.buffer.resumption_token(token);
    }
}

/// Sends a request to the source once, and reads no further than `items_max` items.
///
/// Callers box the future: few pages need a subrequest, and a session reserves room for all that it may
/// await.
pub(crate) async fn send_subrequest(
    context: &RequestContext,
    request: &Request,
    options: SubrequestOptions,
    deadline: &mut Deadline,
) -> Result<SubResponse, SubrequestError> {
    let fail = |failure| SubrequestError { failure, raw: Vec::new() };
    let client = &context.client;
    let is_list = request.verb().is_list() && !options.is_beside_page;
    let _permit = client.acquire_permit(is_list, deadline).await.map_err(fail)?;
    let requested_at = clock::utc_datetime(deadline.now());
    let list = ListContext {
        first: options.first.as_ref(),
        metadata_prefix: options.metadata_prefix.as_deref(),
        ..ListContext::default()
    };
    let query = options.adapter.adapt(request, list).query;
    let exchange =
        client.exchange(&query, &options.method, &context.headers, deadline).await.map_err(fail)?;
    let start = ResponseStart {
        name: client.name(),
        status: exchange.status,
        retry_after_secs: exchange.retry_after_secs,
        charset: exchange.charset.clone(),
        requested_at,
        http_date_secs: exchange.date_secs,
        request_token: Some(request.request_token().to_owned()),
        repository: options.facts,
    };
    let echo = Arc::new(request.to_echo(&context.echo.base_url));
    let mut page = Page::new(&context.mapping, &echo, start, SubResponse::new(context));
    let mut body = SourceBody::new(client.http(), &context.mapping, exchange);
    let mut length = 0;
    let broken = loop {
        let (since, spent) = (deadline.now(), deadline.spent());
        match body.next(deadline).await {
            Ok(Some(piece)) => {
                length += piece.len();
                page.push(piece);
            }
            Ok(None) => break None,
            Err(broken) => break Some(broken),
        }
        if page.buffer.items.len() >= options.items_max {
            return Ok(page.buffer);
        }
        if length > RESPONSE_BYTES_MAX || page.buffer.quarantined.len() > QUARANTINED_ITEMS_MAX {
            let details = format!(
                "{} answers a subrequest with more than 16 MiB, or with more than {QUARANTINED_ITEMS_MAX} records beyond repair",
                client.name()
            );
            return Err(fail(Failure::new(Reason::TooLarge, details)));
        }
        if page.is_decided() {
            break None;
        }
        // Work on data that is always ready takes time too.
        deadline.count_since(since, spent);
        if deadline.left().is_zero() {
            break Some(body.timed_out());
        }
    };
    match page.finish(broken) {
        Verdict::Whole(summary) => Ok(SubResponse { version: summary.version, ..page.buffer }),
        // The quarantined items tell more than the failure.
        Verdict::Cut(Failure { reason: Reason::NotOai(NotOai::NothingKept), .. }, _)
            if !page.buffer.quarantined.is_empty() =>
        {
            Ok(page.buffer)
        }
        Verdict::Cut(failure, _) => Err(SubrequestError { failure, raw: page.take_raw() }),
    }
}
