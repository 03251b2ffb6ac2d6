//! pingora in front: the phases of a request, and nothing else.
//!
//! A request is routed, judged and answered in `request_filter`. What is the
//! source's is looked for in the cache (`cache`) and read out of it (`answers`);
//! `gzip` compresses it last of all. pingora's own cache and upstreams have no
//! part in it: docs/explanation/pingora.md says why. See docs/explanation/request-path.md.

mod admin;
mod answers;
mod cache;
mod clients;
mod connections;
mod gzip;
mod head_with_body;
mod heads;
mod pages;
mod quotas;
mod route;
mod server;
mod upgrade;

pub use server::{Running, Server};

use crate::clock::{self, Clock};
use crate::config::{self, Mapping, Repositories};
use crate::oai::{self, Argument, Request, Verb};
use crate::repair::RequestEcho;
use crate::store::Store;
use crate::telemetry::{Finished, Telemetry};
use crate::upstream::{Account, Failure, Job, SourceClients};
use answers::Ticket;
use async_trait::async_trait;
use cache::{Cache, Errand};
use gzip::GzipBuilder;
use http::{HeaderValue, Method, Version, header};
use pages::Page;
use pingora_core::modules::http::HttpModules;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, Session};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;
use tokio::sync::watch;
use upgrade::Leaving;

/// What all requests share.
#[derive(Debug)]
struct Shared {
    /// What `request` and `baseURL` say, without a slash at the end.
    public_url: String,
    /// The address harvesters are answered on.
    listens_on: std::net::SocketAddr,
    /// How we call ourselves in `Via`; another one at each start.
    instance: String,
    /// The same as the hop of a request.
    via: HeaderValue,
    repositories: Repositories,
    clients: SourceClients,
    bounds: RwLock<Arc<Bounds>>,
    cache: Option<Cache>,
    store: Store,
    telemetry: Telemetry,
    /// Time for the conversations with sources.
    clock: Arc<dyn Clock>,
    /// Set when the program ends: what is in flight is answered, nothing new.
    draining: AtomicBool,
    /// Set when another process takes over.
    leaving: watch::Sender<Leaving>,
}

/// What clients may ask of us. One request or connection sees one state of it.
#[derive(Debug)]
struct Bounds {
    classes: Arc<clients::Classes>,
    quotas: Arc<quotas::Quotas>,
    connections: config::Connections,
    /// What the first two were made of.
    clients: config::Clients,
}

impl Bounds {
    fn new(clients: config::Clients, connections: config::Connections) -> Self {
        let classes = Arc::new(clients::Classes::new(&clients));
        let quotas = Arc::new(quotas::Quotas::new(&clients, quotas::Uptime));
        Self { classes, quotas, connections, clients }
    }

    /// The same with another configuration. Quotas that stay as they are know what was asked.
    fn changed(&self, clients: config::Clients, connections: config::Connections) -> Self {
        if clients != self.clients {
            return Self::new(clients, connections);
        }
        let (classes, quotas) = (Arc::clone(&self.classes), Arc::clone(&self.quotas));
        Self { classes, quotas, connections, clients }
    }
}

impl Shared {
    /// The earliestDatestamp that an Identify has to say in place of its source's.
    fn lowered_to(&self, mapping: &Mapping, request: &Request) -> Option<String> {
        let is_identify = request.verb() == Verb::Identify;
        is_identify.then(|| self.store.profiles.lowered_to(&mapping.source())).flatten()
    }

    /// What clients may ask of us now.
    fn bounds(&self) -> Arc<Bounds> {
        Arc::clone(&self.bounds.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The proxy as pingora drives it.
struct Front(Arc<Shared>);

/// One request on its way.
struct Passage {
    shared: Arc<Shared>,
    started: SystemTime,
    repository: Option<String>,
    request: Option<Request>,
    ticket: Option<Ticket>,
    /// What it wants of the cache; `None` goes past it.
    errand: Option<Errand>,
    /// Why there is no job.
    failure: Option<Failure>,
    /// How it came out, where that is known before the end.
    outcome: Option<&'static str>,
    /// Held until the answer is sent.
    permit: Option<quotas::Permit>,
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
            request: None,
            ticket: None,
            errand: None,
            failure: None,
            outcome: None,
            permit: None,
        }
    }

    fn init_downstream_modules(&self, modules: &mut HttpModules) {
        modules.add_module(Box::new(GzipBuilder));
    }

    /// Routes and judges. `true`: it is answered.
    async fn request_filter(&self, session: &mut Session, passage: &mut Passage) -> Result<bool> {
        let now = self.0.bounds();
        let bounds = &now.connections;
        session.as_downstream_mut().set_write_timeout(Some(bounds.write_timeout));
        session.as_downstream_mut().set_total_drain_timeout(Some(bounds.request_timeout));
        match self.judge(session, passage).await? {
            Ok(job) => self.answer(session, passage, job).await?,
            Err(page) => self.send(session, page).await?,
        }
        Ok(true)
    }

    async fn upstream_peer(&self, _session: &mut Session, _passage: &mut Passage) -> Result<Box<HttpPeer>> {
        Error::e_explain(ErrorType::InternalError, "a request was left unanswered")
    }

    /// Answers what went wrong in pingora, or breaks off what was begun.
    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        _passage: &mut Passage,
    ) -> FailToProxy {
        let begun = session.response_written().is_some();
        // Towards sources nothing is written: what cannot be written is an answer.
        let downstream = *error.esource() == pingora_error::ErrorSource::Downstream
            || *error.etype() == ErrorType::WriteError;
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
        let inet = |address: Option<&pingora_core::protocols::l4::socket::SocketAddr>| {
            address.and_then(|address| address.as_inet()).copied()
        };
        let routed = self.0.route(head, inet(session.server_addr()));
        if !matches!(&routed, Err(page) if page.is_health) {
            match self.0.admit(inet(session.client_addr()), &head.headers).await {
                Ok(permit) => passage.permit = permit,
                Err(page) => {
                    session.set_keepalive(None);
                    return Ok(Err(page));
                }
            }
        }
        let target = match routed {
            Ok(target) => target,
            Err(page) => {
                // A body that nobody reads is not waited for.
                session.set_keepalive(None);
                return Ok(Err(page));
            }
        };
        passage.repository = Some(target.mapping.id.clone());
        passage.outcome = Some("refused");
        let via = joined(head, header::VIA);
        let spool = head.version == Version::HTTP_10;
        if let Some(page) = self.0.refuse(&via) {
            session.set_keepalive(None);
            return Ok(Err(page));
        }
        let query = match query_of(session, is_form, &self.0.bounds().connections).await? {
            Ok(query) => target.arguments(query),
            Err(page) => {
                session.set_keepalive(None);
                return Ok(Err(page));
            }
        };
        let route::Target { mapping, base_url, .. } = target;
        let request = match Request::parse(&query) {
            Ok(request) => request,
            Err(refusal) => {
                let own = RequestEcho { base_url, arguments: Vec::new() };
                let date = clock::utc_datetime(passage.started);
                return Ok(Err(Page::oai(oai::error_response(&own, &date, refusal.code, &refusal.text))));
            }
        };
        passage.request = Some(request.clone());
        passage.outcome = None;
        let client = match self.0.clients.client_for(&mapping) {
            Ok(client) => client,
            Err(failure) => {
                let page = Page::failed(&failure);
                passage.failure = Some(failure);
                return Ok(Err(page));
            }
        };
        // Of two windows that are asked for as the same days, each has its own part of a page, by the same token.
        let is_part = request.is_resumption()
            && self.0.store.ledger.has_windows(&mapping.id, clock::secs(self.0.clock.now()));
        let goes_past = spool || is_part || session.req_header().method == Method::HEAD;
        if let Some(cache) = self.0.cache.as_ref().filter(|_| !goes_past) {
            let lowered_to = self.0.lowered_to(&mapping, &request);
            let lowered_to = lowered_to.as_deref();
            passage.errand = Some(cache.errand(&mapping, &request, &base_url, lowered_to, passage.started));
        }
        let own = Arc::new(request.own(&base_url));
        let hop = self.0.via.to_str().unwrap_or_default();
        let via = if via.is_empty() { hop.to_owned() } else { format!("{via}, {hop}") };
        let store = self.0.store.clone();
        let set = request.argument(Argument::Set);
        let of_the_source = set.and_then(|set| store.profiles.source_set(&mapping.source(), set));
        let asked = of_the_source.map_or_else(|| request.clone(), |set| request.of_set(&set));
        let clock = Arc::clone(&self.0.clock);
        Ok(Ok(Job { mapping, request, asked, own, via, store, client, clock, spool }))
    }

    async fn send(&self, session: &mut Session, page: Page) -> Result<()> {
        let mut head = ResponseHeader::build(page.status, Some(page.headers.len() + 2))?;
        for (name, value) in page.headers {
            head.insert_header(name, value)?;
        }
        head.insert_header(header::VIA, self.0.via.clone())?;
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
            tracing::debug!(path, status, "page of our own");
            return;
        };
        let ended = self.ticket.as_ref().and_then(Ticket::ended);
        let account = ended.as_ref().map(|ended| &ended.account);
        let continued = account.and_then(|account| account.continued.as_ref());
        let failure = ended.as_ref().map_or(&self.failure, |ended| &ended.failure).as_ref().or(continued);
        // A page of another request's conversation: what became of it is counted there.
        let shared = self.errand.as_ref().and_then(|errand| errand.shared.as_ref());
        let outcome = self.outcome.unwrap_or(match (failure, error) {
            _ if matches!(status, 502..=504) => "failed",
            (Some(_), None) if continued.is_some() => "continued",
            (Some(_), Some(_)) => "broken-off",
            (None, Some(_)) if shared.is_some_and(|fill| fill.ended() == Some(false)) => "broken-off",
            (_, Some(_)) => "abandoned",
            (_, None) => "complete",
        });
        let cache = self.errand.as_ref().map_or("bypass", |errand| errand.got().name());
        if self.request.is_some() {
            self.shared.telemetry.looked_up(repository, cache);
        }
        let now = clock::now();
        let at = clock::utc_datetime(now);
        let verb = self.request.as_ref().map(|request| request.verb().name());
        let query = self.request.as_ref().map(Request::query).unwrap_or_default();
        let finished = Finished { repository, verb, request: query, at: &at, outcome, account, failure };
        self.shared.telemetry.finished(&finished);
        let millis = now.duration_since(self.started).unwrap_or_default().as_millis();
        let argument = |name| self.request.as_ref().and_then(|request| request.argument(name));
        tracing::info!(
            ts = at,
            repo = repository,
            verb,
            set = argument(Argument::Set),
            token = argument(Argument::ResumptionToken),
            cursor = account.and_then(|account| account.progress.0),
            total = account.and_then(|account| account.progress.1),
            status,
            outcome,
            cache,
            records = account.map(|account| account.records),
            repairs = account.map(Account::repairs_made),
            quarantined = account.map(|account| account.quarantined),
            attempts = account.map(|account| account.attempts),
            version = account.and_then(|account| account.version),
            ms = u64::try_from(millis).unwrap_or(u64::MAX),
            bytes,
            request = query,
            reason = failure.map(|failure| failure.reason.name()),
            details =
                failure.map(|failure| failure.details.clone()).or_else(|| error.map(ToString::to_string)),
            "page"
        );
    }
}

/// Says how a request came to its answer, and how long that is in bytes where it is known.
fn complete_head(
    head: &mut ResponseHeader,
    session: &Session,
    errand: &Errand,
    length: Option<u64>,
) -> Result<()> {
    let said = head.headers.get(header::CACHE_STATUS).and_then(|said| said.to_str().ok());
    let status = errand.cache_status(said.unwrap_or_default());
    head.insert_header(header::CACHE_STATUS, status)?;
    let accepted = joined(session.req_header(), header::ACCEPT_ENCODING);
    let length = length.filter(|_| head.status == http::StatusCode::OK);
    if let Some(length) = length.filter(|_| !gzip::is_accepted(&accepted)) {
        head.remove_header(&header::TRANSFER_ENCODING);
        head.insert_header(header::CONTENT_LENGTH, length)?;
        head.insert_header(header::VARY, HeaderValue::from_static("Accept-Encoding"))?;
    }
    Ok(())
}

/// The query, with the form of a POST behind it; or the page that says why it is not read.
/// A body that is no form is read and forgotten: what waits for an answer sees that its
/// harvester leaves only when nothing more can come from it.
async fn query_of(
    session: &mut Session,
    is_form: bool,
    bounds: &config::Connections,
) -> Result<Result<Vec<u8>, Page>> {
    // The bytes as they came: the URI replaces what is not UTF-8.
    let target = session.req_header().raw_path();
    let mut query = target.splitn(2, |&byte| byte == b'?').nth(1).unwrap_or_default().to_vec();
    if !is_form && session.as_downstream_mut().is_body_done() {
        return Ok(Ok(query));
    }
    if joined(session.req_header(), header::EXPECT).eq_ignore_ascii_case("100-continue") {
        let go_on = ResponseHeader::build(100, None)?;
        session.as_downstream_mut().write_response_header(Box::new(go_on)).await?;
    }
    let reading = async {
        let mut body = Vec::new();
        while let Some(piece) = session.read_request_body().await? {
            body.extend_from_slice(&piece);
            if body.len() > bounds.form_bytes_max {
                let max = bounds.form_bytes_max;
                let text =
                    format!("the body is longer than {max} bytes (form_bytes_max), the longest that is read");
                return Ok(Err(Page::text(413, &text)));
            }
        }
        if !session.as_downstream_mut().is_body_done() {
            // Of HTTP/2: pingora would look for an end that never comes, and for nothing else.
            return Ok(Err(Page::text(400, "trailers behind a request are not read; ask without them")));
        }
        Result::<_, Box<Error>>::Ok(Ok(body))
    };
    Ok(match tokio::time::timeout(bounds.request_timeout, reading).await {
        Ok(read) => read?.map(|body| {
            if is_form {
                query.push(b'&');
                query.extend_from_slice(&body);
            }
            query
        }),
        Err(_) => Err(Page::text(408, "the body took too long to come")),
    })
}

/// All values of a header, as one.
fn joined(head: &RequestHeader, name: header::HeaderName) -> String {
    let values = head.headers.get_all(name);
    values.iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>().join(", ")
}
