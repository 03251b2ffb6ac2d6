//! A question of our own to the source, beside the page that a harvester asked for.
//!
//! Its answer goes through the engine like any other, and is held: it is never
//! passed on as it is.

use crate::clock;
use crate::oai::Request;
use crate::repair::{NotOai, Quarantined, RecordFacts, Repair, RepositoryFacts, Sink, TokenFacts};
use crate::store::QuarantinedRecord;
use crate::upstream::adapt::request_adapter::RequestAdapter;
use crate::upstream::failure::{Failure, Reason};
use crate::upstream::http::body::Body;
use crate::upstream::http::deadline::Deadline;
use crate::upstream::page::attempt::{Page, ResponseStart, Verdict};
use crate::upstream::page::buffer::{ItemHash, PageBuffer, aside_of};
use crate::upstream::session::list_session::{Job, ListSession, error_code, resolved};
use crate::upstream::xml::rebase_namespaces::NamespaceScope;
use http::Method;
use std::sync::Arc;

/// How questions of ours are put, and what is known where they are answered.
#[derive(Clone, Debug)]
pub(crate) struct SubrequestOptions {
    pub(crate) method: Method,
    pub(crate) dialect: RequestAdapter,
    pub(crate) repository: RepositoryFacts,
}

/// An answer to a question of ours.
#[derive(Debug)]
pub(crate) struct SubResponse {
    pub(crate) pieces: PageBuffer,
    pub(crate) items: Vec<Item>,
    /// What could not be mended of it.
    pub(crate) aside: Vec<QuarantinedRecord>,
    /// Whether an item was too long to be held.
    pub(crate) is_too_long: bool,
    /// The version that the answer is of.
    pub(crate) version: Option<&'static str>,
}

/// An item of such an answer.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// As it stands in the XML.
    pub(crate) identifier: Vec<u8>,
    /// Likewise.
    pub(crate) datestamp: Vec<u8>,
    /// What it is known by in a list.
    pub(crate) hash: u64,
    pub(crate) deleted: bool,
    pub(crate) bytes: Vec<u8>,
}

/// A question that was not answered, and what came instead.
#[derive(Clone, Debug)]
pub(crate) struct SubrequestError {
    pub(crate) failure: Failure,
    /// As it came; empty where it was nothing or too much.
    pub(crate) raw: Vec<u8>,
}

impl SubrequestError {
    /// Whether that is nothing that the source could do anything about.
    pub(crate) fn says_nothing(&self) -> bool {
        self.failure.reason == Reason::Busy
    }
}

/// Longest answer to a question of ours, in decoded bytes: it is held.
const ANSWER_BYTES_MAX: usize = 16 << 20;

impl SubResponse {
    pub(crate) fn new(job: &Job) -> Self {
        let hash = ItemHash::with(&job.store.token_key);
        Self {
            pieces: PageBuffer::new(hash),
            items: Vec::new(),
            aside: Vec::new(),
            is_too_long: false,
            version: None,
        }
    }

    /// The resumptionToken, where the list goes on.
    pub(crate) fn token(&self) -> Option<String> {
        self.pieces.token.as_deref().map(resolved).filter(|token| !token.is_empty())
    }

    /// The code of the error that it is.
    pub(crate) fn error(&self) -> Option<String> {
        if self.items.is_empty() { error_code(&self.pieces.made.bytes()) } else { None }
    }

    /// What came before its items; all of it where it has none.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.pieces.made.bytes()).into_owned()
    }

    /// The namespaces around its items.
    pub(crate) fn scope(&self) -> NamespaceScope {
        NamespaceScope::of(&String::from_utf8_lossy(&self.pieces.before_items()))
    }

    /// The record that was asked for by its identifier, if it is that, and whole.
    pub(crate) fn record(&self, identifier: &str) -> Option<&Item> {
        match self.items.as_slice() {
            [item]
                if !self.is_too_long && self.aside.is_empty() && resolved(&item.identifier) == identifier =>
            {
                Some(item)
            }
            _ => None,
        }
    }
}

impl Sink for SubResponse {
    fn write(&mut self, bytes: &[u8]) {
        self.pieces.write(bytes);
    }

    fn repaired(&mut self, repair: &Repair<'_>) {
        self.pieces.repaired(repair);
    }

    fn record_committed(&mut self, facts: &RecordFacts<'_>, bytes: &[u8]) {
        self.pieces.record_committed(facts, bytes);
        self.is_too_long |= bytes.is_empty();
        self.items.push(Item {
            identifier: facts.identifier.to_vec(),
            datestamp: facts.datestamp.to_vec(),
            hash: self.pieces.hash.of(facts.identifier, facts.datestamp),
            deleted: facts.deleted,
            bytes: bytes.to_vec(),
        });
    }

    fn record_quarantined(&mut self, quarantined: &Quarantined<'_>) {
        self.pieces.record_quarantined(quarantined);
        self.aside.push(aside_of(quarantined));
    }

    fn resumption_token(&mut self, token: &TokenFacts<'_>) {
        self.pieces.resumption_token(token);
    }
}

impl ListSession<'_> {
    /// As this request is put.
    pub(crate) fn manner(&self) -> SubrequestOptions {
        SubrequestOptions {
            method: self.method.clone(),
            dialect: self.dialect.clone(),
            repository: self.repository.clone(),
        }
    }
}

/// Asks the source once, in its turn, or in that which a page of ours has `beside` it. Reads no further
/// once there are `enough` items.
///
/// Callers put it into a box: few pages need a question, and a conversation has room in itself for all
/// that it may wait for.
pub(crate) async fn inquire(
    job: &Job,
    request: &Request,
    manner: SubrequestOptions,
    enough: usize,
    beside: bool,
    budget: &mut Deadline,
) -> Result<SubResponse, SubrequestError> {
    let nothing = |failure| SubrequestError { failure, raw: Vec::new() };
    let client = &job.client;
    let _turn = client.turn(request.verb().is_list() && !beside, budget).await.map_err(nothing)?;
    let asked_at = clock::utc_datetime(budget.now());
    let query = manner.dialect.put(request, None, None).query;
    let exchange = client.exchange(&query, &manner.method, &job.via, budget).await.map_err(nothing)?;
    let start = ResponseStart {
        name: client.name(),
        status: exchange.status,
        retry_after_secs: exchange.retry_after_secs,
        charset: exchange.charset.clone(),
        asked_at,
        repository: manner.repository,
    };
    let own = Arc::new(request.own(&job.own.base_url));
    let mut page = Page::new(&job.mapping, &own, start, SubResponse::new(job));
    let mut body = Body::new(client, &job.mapping, exchange);
    let mut length = 0;
    let broken = loop {
        match body.next(budget).await {
            Ok(Some(piece)) => {
                length += piece.len();
                page.push(piece);
            }
            Ok(None) => break None,
            Err(broken) => break Some(broken),
        }
        if page.pieces.items.len() >= enough {
            return Ok(page.pieces);
        }
        if length > ANSWER_BYTES_MAX {
            let details = format!("{} answers a question of ours with more than 16 MiB", client.name());
            return Err(nothing(Failure::new(Reason::TooLarge, details)));
        }
        if page.is_decided() {
            break None;
        }
    };
    match page.finish(broken) {
        Verdict::Whole(summary) => Ok(SubResponse { version: summary.version, ..page.pieces }),
        // What was put aside of it says more than that nothing is left.
        Verdict::Cut(Failure { reason: Reason::NotOai(NotOai::NothingKept), .. }, _)
            if !page.pieces.aside.is_empty() =>
        {
            Ok(page.pieces)
        }
        Verdict::Cut(failure, _) => Err(SubrequestError { failure, raw: page.take_raw() }),
    }
}
