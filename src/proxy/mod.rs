//! pingora in front: the phases of a request, and nothing else.
//!
//! A request is routed and judged in `request_filter`; what is ours is
//! answered there. What is the source's is looked for in the cache (`cache`),
//! then goes to a custom upstream (`upstream`) as a job, and its answer comes
//! back, through the spool where it may be shared or kept, to
//! `response_filter`, and is compressed (`gzip`) last of all.
//! See docs/life-of-a-request.md.

mod admin;
mod cache;
mod gzip;
mod pages;
mod route;
mod server;
mod upstream;

pub use server::{Running, Server};

use crate::clock;
use crate::config::Repositories;
use crate::oai::{self, Request, Verb};
use crate::repair::OwnRequest;
use crate::source::{Clients, Failure, Job};
use crate::state::Quarantine;
use crate::telemetry::{Finished, Telemetry};
use async_trait::async_trait;
use cache::{Cache, Errand};
use gzip::GzipBuilder;
use http::{Method, Version, header};
use pages::Page;
use pingora_cache::{CacheKey, CacheMeta, ForcedFreshness, HitHandler, NoCacheReason, RespCacheable};
use pingora_core::modules::http::HttpModules;
use pingora_core::protocols::ALPN;
use pingora_core::protocols::tls::CustomALPN;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, ProxyWarnLogContext, RangeType, Session};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};
use upstream::Ticket;

/// What all requests share.
#[derive(Debug)]
struct Shared {
    /// What `request` and `baseURL` say, without a slash at the end.
    public_url: String,
    /// The address harvesters are answered on.
    listens_on: std::net::SocketAddr,
    /// How we call ourselves in `Via`; another one at each start.
    instance: String,
    repositories: Repositories,
    clients: Clients,
    cache: Option<Cache>,
    quarantine: Quarantine,
    telemetry: Telemetry,
    /// Set when the program ends: what is in flight is answered, nothing new.
    draining: AtomicBool,
}

/// The proxy as pingora drives it.
struct Front(Arc<Shared>);

/// One request on its way.
struct Passage {
    shared: Arc<Shared>,
    started: SystemTime,
    repository: Option<String>,
    verb: Option<Verb>,
    query: String,
    ticket: Option<Ticket>,
    /// What it wants of the cache; `None` goes past it.
    errand: Option<Errand>,
    /// Why there is no job.
    failure: Option<Failure>,
    /// How it came out, where that is known before the end.
    outcome: Option<&'static str>,
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.shared.telemetry.in_flight.dec();
    }
}

#[async_trait]
impl ProxyHttp for Front {
    type CTX = Passage;

    fn new_ctx(&self) -> Passage {
        self.0.telemetry.in_flight.inc();
        Passage {
            shared: Arc::clone(&self.0),
            started: clock::now(),
            repository: None,
            verb: None,
            query: String::new(),
            ticket: None,
            errand: None,
            failure: None,
            outcome: None,
        }
    }

    fn init_downstream_modules(&self, modules: &mut HttpModules) {
        modules.add_module(Box::new(GzipBuilder));
    }

    /// Routes and judges. `true`: it is answered.
    async fn request_filter(&self, session: &mut Session, passage: &mut Passage) -> Result<bool> {
        session.as_downstream_mut().set_write_timeout(Some(WRITE_TIMEOUT));
        let page = match self.judge(session, passage).await? {
            Ok(job) => {
                passage.ticket = Some(Ticket::new(job));
                return Ok(false);
            }
            Err(page) => page,
        };
        self.send(session, page).await?;
        Ok(true)
    }

    fn request_cache_filter(&self, session: &mut Session, passage: &mut Passage) -> Result<()> {
        if let Some(errand) = &passage.errand {
            errand.enable(&mut session.cache);
        }
        Ok(())
    }

    fn cache_key_callback(&self, _session: &Session, passage: &mut Passage) -> Result<CacheKey> {
        let none = || Error::explain(ErrorType::InternalError, "the cache is asked for nothing");
        passage.errand.as_ref().map(Errand::cache_key).ok_or_else(none)
    }

    async fn cache_hit_filter(
        &self,
        _session: &mut Session,
        meta: &CacheMeta,
        hit: &mut HitHandler,
        is_fresh: bool,
        passage: &mut Passage,
    ) -> Result<Option<ForcedFreshness>> {
        Ok(passage.errand.as_mut().and_then(|errand| errand.judge(meta, hit, is_fresh)))
    }

    fn response_cache_filter(
        &self,
        _session: &Session,
        head: &ResponseHeader,
        passage: &mut Passage,
    ) -> Result<RespCacheable> {
        let fill = passage.ticket.as_ref().and_then(Ticket::fill).cloned();
        Ok(match passage.errand.as_ref().zip(fill) {
            // Whether it is kept is seen at its end; it is shared in any case.
            Some((errand, fill)) => RespCacheable::Cacheable(errand.meta(head, fill)),
            None => RespCacheable::Uncacheable(NoCacheReason::InternalError),
        })
    }

    fn should_serve_stale(
        &self,
        _session: &mut Session,
        passage: &mut Passage,
        error: Option<&Error>,
    ) -> bool {
        // Without an error it is a page that could be had while the source is asked.
        let Some((errand, _)) = passage.errand.as_mut().zip(error) else { return false };
        errand.stands_in();
        true
    }

    fn cache_not_modified_filter(
        &self,
        _session: &Session,
        _head: &ResponseHeader,
        _passage: &mut Passage,
    ) -> Result<bool> {
        // Answers have no validators.
        Ok(false)
    }

    fn range_header_filter(
        &self,
        _session: &mut Session,
        _head: &mut ResponseHeader,
        _passage: &mut Passage,
    ) -> RangeType {
        RangeType::None
    }

    fn suppress_proxy_warn_log(
        &self,
        _session: &Session,
        passage: &Passage,
        _error: &Error,
        context: ProxyWarnLogContext,
    ) -> bool {
        // pingora's only word on a harvester that left while its answer goes on.
        if let (ProxyWarnLogContext::DownstreamCache, Some(ticket)) = (context, &passage.ticket) {
            ticket.harvester_left();
        }
        true
    }

    async fn upstream_peer(&self, _session: &mut Session, _passage: &mut Passage) -> Result<Box<HttpPeer>> {
        // The address is never dialled: the custom connector goes its own way.
        let mut peer = HttpPeer::new("127.0.0.1:1", false, String::new());
        peer.options.alpn = ALPN::Custom(CustomALPN::new(b"oai-source".to_vec()));
        Ok(Box::new(peer))
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        request: &mut RequestHeader,
        passage: &mut Passage,
    ) -> Result<()> {
        if let Some(ticket) = passage.ticket.clone() {
            if let Some(errand) = passage.errand.clone().filter(|_| session.cache.enabled()) {
                ticket.through_spool(errand);
            }
            request.extensions_mut().insert(ticket);
        }
        Ok(())
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        head: &mut ResponseHeader,
        passage: &mut Passage,
    ) -> Result<()> {
        head.insert_header(header::VIA, format!("1.1 {}", self.0.instance))?;
        if let Some(errand) = passage.errand.as_ref().filter(|_| session.cache.enabled()) {
            let said = head.headers.get("Cache-Status").and_then(|said| said.to_str().ok());
            let status = errand.cache_status(session.cache.phase(), said.unwrap_or_default());
            head.insert_header("Cache-Status", status)?;
        }
        Ok(())
    }

    /// Answers what went wrong in pingora, or breaks off what was begun.
    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        _passage: &mut Passage,
    ) -> FailToProxy {
        let begun = session.response_written().is_some();
        let downstream = *error.esource() == pingora_error::ErrorSource::Downstream;
        if begun || downstream {
            return FailToProxy { error_code: 0, can_reuse_downstream: false };
        }
        tracing::error!(%error, "a request failed in the proxy itself");
        let status = "oaimend; error=proxy_internal_error".to_owned();
        let page = Page::unavailable(60, status, "oaimend itself failed; its log says why");
        // A client that is gone needs no answer.
        let _ = self.send(session, page).await;
        FailToProxy { error_code: 503, can_reuse_downstream: false }
    }

    fn suppress_error_log(&self, _session: &Session, _passage: &Passage, _error: &Error) -> bool {
        true
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, passage: &mut Passage) {
        let status = session.response_written().map_or(0, |head| head.status.as_u16());
        let bytes = session.body_bytes_sent();
        passage.log(session.req_header().uri.path(), status, bytes, error);
    }
}

impl Front {
    /// The job for the source, or the page that answers the request.
    async fn judge(&self, session: &mut Session, passage: &mut Passage) -> Result<Result<Job, Page>> {
        let head = session.req_header();
        let is_form = head.method == Method::POST;
        let (mapping, base_url) = match self.0.route(head) {
            Ok(target) => target,
            Err(page) => {
                // A body that nobody reads is not waited for.
                session.set_keepalive(None);
                return Ok(Err(page));
            }
        };
        passage.repository = Some(mapping.id.clone());
        passage.outcome = Some("refused");
        let via = joined(head, header::VIA);
        let spool = head.version == Version::HTTP_10;
        if let Some(page) = self.0.refuse(&via) {
            session.set_keepalive(None);
            return Ok(Err(page));
        }
        let Some(query) = query_of(session, is_form).await? else {
            session.set_keepalive(None);
            return Ok(Err(Page::text(413, "the form is longer than 64 KiB, the longest that is read")));
        };
        let request = match Request::parse(&query) {
            Ok(request) => request,
            Err(refusal) => {
                let own = OwnRequest { base_url, arguments: Vec::new() };
                let date = clock::utc_datetime(passage.started);
                return Ok(Err(Page::oai(oai::error_response(&own, &date, refusal.code, &refusal.text))));
            }
        };
        passage.verb = Some(request.verb());
        passage.query = request.query();
        passage.outcome = None;
        let client = match self.0.clients.of(&mapping) {
            Ok(client) => client,
            Err(failure) => {
                let page =
                    Page::unavailable(failure.retry_after_secs, failure.proxy_status(), &failure.details);
                passage.failure = Some(failure);
                return Ok(Err(page));
            }
        };
        let goes_past = spool || session.req_header().method == Method::HEAD;
        if let Some(cache) = self.0.cache.as_ref().filter(|_| !goes_past) {
            passage.errand = Some(cache.errand(&mapping, &request, &base_url, passage.started));
        }
        let own = request.own(&base_url);
        let hop = format!("1.1 {}", self.0.instance);
        let via = if via.is_empty() { hop } else { format!("{via}, {hop}") };
        let quarantine = self.0.quarantine.clone();
        Ok(Ok(Job { mapping, request, own, via, quarantine, client, spool }))
    }

    async fn send(&self, session: &mut Session, page: Page) -> Result<()> {
        let mut head = ResponseHeader::build(page.status, Some(page.headers.len() + 2))?;
        for (name, value) in page.headers {
            head.insert_header(name, value)?;
        }
        head.insert_header(header::VIA, format!("1.1 {}", self.0.instance))?;
        head.insert_header(header::CONTENT_LENGTH, page.body.len())?;
        let head_only = session.req_header().method == Method::HEAD;
        session.write_response_header(Box::new(head), head_only).await?;
        if !head_only {
            session.write_response_body(Some(page.body), true).await?;
        }
        Ok(())
    }
}

impl Passage {
    /// Counts the request, and writes its line.
    fn log(&self, path: &str, status: u16, bytes: usize, error: Option<&Error>) {
        let Some(repository) = &self.repository else {
            tracing::debug!(path, status, "page");
            return;
        };
        let ended = self.ticket.as_ref().and_then(Ticket::ended);
        let failure = ended.as_ref().map_or(&self.failure, |ended| &ended.failure).as_ref();
        let account = ended.as_ref().map(|ended| &ended.account);
        // A page of another request's conversation: what became of it is counted there.
        let shared = self.errand.as_ref().and_then(|errand| errand.shared.as_ref());
        let outcome = self.outcome.unwrap_or(match (failure, error) {
            _ if status == 503 => "failed",
            (Some(_), Some(_)) => "broken-off",
            (None, Some(_)) if shared.is_some_and(|fill| fill.is_broken()) => "broken-off",
            (_, Some(_)) => "abandoned",
            (_, None) => "whole",
        });
        let cache = self.errand.as_ref().map_or("bypass", |errand| errand.got().name());
        if self.verb.is_some() {
            self.shared.telemetry.looked_up(repository, cache);
        }
        let now = clock::now();
        let at = clock::utc_datetime(now);
        let verb = self.verb.map(Verb::name);
        let request = &self.query;
        let finished = Finished { repository, verb, request, at: &at, outcome, account, failure };
        self.shared.telemetry.finished(&finished);
        let millis = now.duration_since(self.started).unwrap_or_default().as_millis();
        let summary = account.and_then(|account| account.summary.as_ref());
        tracing::info!(
            repository,
            request,
            status,
            outcome,
            cache,
            bytes,
            millis = u64::try_from(millis).unwrap_or(u64::MAX),
            records = summary.map(|summary| summary.records),
            repaired = account.map(|account| account.repaired),
            quarantined = summary.map(|summary| summary.quarantined),
            reason = failure.map(|failure| failure.reason.name()),
            details = failure.map(|failure| failure.details.as_str()),
            "request"
        );
    }
}

/// The query, with the form of a POST behind it; `None` when that is too long.
async fn query_of(session: &mut Session, is_form: bool) -> Result<Option<Vec<u8>>> {
    // The bytes as they came: the URI replaces what is not UTF-8.
    let target = session.req_header().raw_path();
    let mut query = target.splitn(2, |&byte| byte == b'?').nth(1).unwrap_or_default().to_vec();
    if is_form {
        if joined(session.req_header(), header::EXPECT).eq_ignore_ascii_case("100-continue") {
            let go_on = ResponseHeader::build(100, None)?;
            session.as_downstream_mut().write_response_header(Box::new(go_on)).await?;
        }
        query.push(b'&');
        let before = query.len();
        while let Some(piece) = session.read_request_body().await? {
            query.extend_from_slice(&piece);
            if query.len() - before > FORM_BYTES_MAX {
                return Ok(None);
            }
        }
    }
    Ok(Some(query))
}

/// All values of a header, as one.
fn joined(head: &RequestHeader, name: header::HeaderName) -> String {
    let values = head.headers.get_all(name);
    values.iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>().join(", ")
}

/// Longest form of a POST, in bytes.
const FORM_BYTES_MAX: usize = 64 << 10;
/// Longest that a harvester may leave a piece of an answer unread.
const WRITE_TIMEOUT: Duration = Duration::from_secs(120);
