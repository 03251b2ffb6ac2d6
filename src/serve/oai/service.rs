//! The phases of a request in pingora.
//!
//! `request_filter` routes, validates and answers each request. `cache` finds the page, `page_response` sends it, and
//! `gzip` compresses it. The cache and the upstreams of pingora are not used; docs/explanation/request-path.md
//! explains why.

use super::cache::{CacheLookup, CachedRequest, PageVariant};
use super::collected::CollectedResponse;
use super::cors::CorsBuilder;
use super::crosswalks::with_crosswalks;
use super::downstream::{Downstream, send_held};
use super::federation_view::federation_view;
use super::gzip::GzipBuilder;
use super::headers::joined;
use super::live_requests::LiveRequest;
use super::mapped_repository::{CountedBy, mapped_repository};
use super::mirror_views::{aggregate_view, component_view, index_view, subject_view};
use super::page_response::PageResponder;
use super::request_context::RequestContext;
use super::request_query::body_of;
use super::router::{Admitted, Destination, PublicRouter, ResolverRequest};
use super::target::{Target, TargetRepository};
use crate::config::{Mapping, ServeFrom};
use crate::serve::api::request::is_api;
use crate::serve::clients::client_class::CRAWLERS;
use crate::serve::context::ServerContext;
use crate::serve::deposit::PutRecord;
use crate::serve::dumps::{answer_changes, answer_dump};
use crate::serve::pages::resolver::{self, LIST_BYTES_MAX, answer_list, answer_openurl};
use crate::serve::pages::target::PageTarget;
use crate::serve::pages::{
    CollectedPage, GatewayResponse, LiveRecordRequest, ResponseBody, ResponsePageRequest, answer,
    is_navigation,
};
use crate::serve::problem::as_problem;
use crate::serve::response::{Response, response_vary};
use crate::serve::routes::{PublicEndpoint, Route};
use crate::serve::search::sru;
use crate::serve::telemetry::labels::RequestOutcome;
use async_trait::async_trait;
use http::{Method, Version, header};
use oaimend_base::clock;
use oaimend_oai::{Request, RequestEcho};
use oaimend_pages::oai_page::RequestAddress;
use oaimend_pages::route::RecordTarget;
use oaimend_repository::{Failure, HarvesterTraits, Repository, RepositoryRequest};
use oaimend_search::SearchClient;
use oaimend_store::RepositoryId;
use oaimend_upstream::RequestedBy;
use pingora_core::modules::http::HttpModules;
use pingora_core::protocols::l4::socket::SocketAddr as PeerAddr;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_error::{Error, ErrorType, Result};
use pingora_proxy::{FailToProxy, ProxyHttp, Session};
use std::sync::Arc;
use std::time::SystemTime;

/// The proxy service of pingora.
pub(crate) struct ProxyService(pub(crate) Arc<ServerContext>);

/// The header with the properties of a harvester.
const HARVESTER_TRAITS: header::HeaderName = header::HeaderName::from_static(HarvesterTraits::HEADER);

/// The repository and the request to it, or the response that needs none.
pub(super) type Prepared = std::result::Result<(Box<dyn Repository>, RepositoryRequest), Response>;

/// The repository of a request.
pub(super) struct RequestedRepository {
    pub(super) repository: TargetRepository,
    /// The base URL for its responses.
    pub(super) base_url: String,
}

#[async_trait]
impl ProxyHttp for ProxyService {
    type CTX = RequestContext;

    fn new_ctx(&self) -> RequestContext {
        RequestContext::new(Arc::clone(&self.0.served), Arc::clone(&self.0.telemetry))
    }

    fn init_downstream_modules(&self, modules: &mut HttpModules) {
        modules.add_module(Box::new(GzipBuilder));
        modules.add_module(Box::new(CorsBuilder(Arc::clone(&self.0.gateway))));
    }

    /// Routes, validates and answers. `true`: pingora has nothing left to do.
    async fn request_filter(&self, session: &mut Session, context: &mut RequestContext) -> Result<bool> {
        let now = self.0.clients.current();
        let limits = &now.connections;
        session.as_downstream_mut().set_write_timeout(Some(limits.write_timeout));
        session.as_downstream_mut().set_total_drain_timeout(Some(limits.request_timeout));
        let routed = self.admit(session, context).await;
        let client = context.permit.as_ref().map(|permit| permit.client.as_search_client());
        SearchClient::request(client, self.respond(session, context, routed)).await
    }

    async fn upstream_peer(
        &self,
        _session: &mut Session,
        _context: &mut RequestContext,
    ) -> Result<Box<HttpPeer>> {
        Error::e_explain(ErrorType::InternalError, "a request was not answered")
    }

    /// Responds to a failure in pingora, or truncates a response that has started.
    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        _context: &mut RequestContext,
    ) -> FailToProxy {
        let has_started = session.response_written().is_some();
        // No request goes through pingora, so every write error concerns a response.
        let downstream = *error.esource() == pingora_error::ErrorSource::Downstream
            || *error.etype() == ErrorType::WriteError;
        if has_started || downstream {
            if has_started {
                send_held(session).await;
            }
            return FailToProxy { error_code: 0, can_reuse_downstream: false };
        }
        tracing::error!(%error, "a request failed in the proxy itself");
        let status = "oaimend; error=proxy_internal_error".to_owned();
        let page = Response::unavailable(60, status, "oaimend itself failed; its log says why");
        // The client is gone; ignore.
        let _ = self.send(session, page).await;
        FailToProxy { error_code: 503, can_reuse_downstream: false }
    }

    fn suppress_error_log(&self, _session: &Session, _context: &RequestContext, _error: &Error) -> bool {
        true
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, context: &mut RequestContext) {
        let status = session.response_written().map_or(0, |head| head.status.as_u16());
        let bytes = session.body_bytes_sent();
        context.log(session.req_header().uri.path(), status, bytes, error);
    }
}

impl ProxyService {
    /// Waits until the limits of the client allow the request.
    async fn admit(&self, session: &mut Session, context: &mut RequestContext) -> Admitted {
        let head = session.req_header();
        let inet = |address: Option<&PeerAddr>| address?.as_inet().copied();
        let routed = self.router().route(head, inet(session.server_addr()));
        if let Some(kind) = routed.limited_kind() {
            let client = inet(session.client_addr());
            let admitted = self.0.clients.admit(kind, client, &head.headers, &self.0.telemetry).await;
            context.permit = admitted.inspect_err(|_| session.set_keepalive(None))?;
        }
        Ok(routed)
    }

    /// Responds to an admitted request, or refuses it.
    async fn respond(
        &self,
        session: &mut Session,
        context: &mut RequestContext,
        routed: Admitted,
    ) -> Result<bool> {
        let prepared = match routed {
            Ok(routed) => self.prepare(session, context, routed).await?,
            Err(response) => Err(response),
        };
        let RequestContext { lookup, handle, page_request, outcome, .. } = context;
        let mut downstream = Downstream { session, via: &self.0.served.via, collected: None };
        match (prepared, page_request.take()) {
            (Ok((repository, request)), None) => {
                let responder = PageResponder { repository: &*repository };
                responder.answer(&mut downstream, lookup.as_mut(), handle, request).await?;
            }
            (Ok((repository, request)), Some(page_request)) => {
                let mut collected = CollectedResponse::new(self.0.gateway.rendering.memory());
                downstream.collected = Some(&mut collected);
                let responder = PageResponder { repository: &*repository };
                let result = responder.answer(&mut downstream, lookup.as_mut(), handle, request).await;
                let answered = collected.finish(result)?;
                if matches!(answered.body, ResponseBody::BrokenOff(_)) {
                    *outcome = Some(RequestOutcome::BrokenOff);
                }
                self.send(session, page_request.render(&self.0.gateway, answered).await).await?;
            }
            (Err(response), Some(page_request)) => {
                self.send(session, page_request.page_of(&self.0.gateway, response).await).await?;
            }
            (Err(response), None) if is_api(session.req_header().raw_path()) => {
                self.send(session, as_problem(response)).await?;
            }
            (Err(response), None) => self.send(session, response).await?,
        }
        Ok(true)
    }

    /// The repository and the request to it, or the response that needs none.
    async fn prepare(
        &self,
        session: &mut Session,
        context: &mut RequestContext,
        routed: Destination,
    ) -> Result<Prepared> {
        let is_form = session.req_header().method == Method::POST;
        let target = match routed {
            Destination::Repository(target) => target,
            Destination::LiveRecord { mapping, target, label } => {
                context.page = label;
                return Ok(self.prepare_live_record(session, context, mapping, target).await);
            }
            Destination::Sru => return self.sru(session, is_form).await.map(Err),
            Destination::OpenUrl => return self.openurl(session, is_form).await.map(Err),
            Destination::Resolver(request) => {
                context.page = request.label;
                let page = self.resolver(session, context, request).await?;
                context.outcome = (400..500).contains(&page.status).then_some(RequestOutcome::Refused);
                return Ok(Err(page));
            }
            Destination::Deposit(request) => {
                (context.page, context.repository) = (request.label, Some(request.mapping.id().to_owned()));
                let page = self.deposit(session, &request).await?;
                context.outcome = (400..500).contains(&page.status).then_some(RequestOutcome::Refused);
                return Ok(Err(page));
            }
            Destination::Api(request) => {
                let page = self.api_page(session, context, request).await;
                context.outcome = (400..500).contains(&page.status).then_some(RequestOutcome::Refused);
                return Ok(Err(page));
            }
            Destination::ApiRead(target, read) => {
                return Ok(self.prepare_api(session, context, target, *read).await);
            }
            Destination::Dump(request) => {
                context.page = request.label;
                if let Some(page) = self.refuse_unread(session) {
                    return Ok(Err(page));
                }
                let client = context.permit.as_ref().map(|permit| permit.client.origin);
                let page = answer_dump(&self.0.served, &request, client, &session.req_header().headers).await;
                return Ok(Err(page));
            }
            Destination::Changes(request) => {
                context.page = request.label;
                if let Some(page) = self.refuse_unread(session) {
                    return Ok(Err(page));
                }
                let client = context.permit.as_ref().map(|permit| permit.client.origin);
                let page = answer_changes(&self.0, &request, client, &session.req_header().headers).await;
                return Ok(Err(page));
            }
            Destination::Page(target, route) => {
                return Ok(Err(self.gateway_page(session, context, &target, route).await));
            }
            Destination::Response(page, _) => {
                // Do not wait for an unread body.
                session.set_keepalive(None);
                return Ok(Err(page));
            }
        };
        context.repository = Some(target.repository.name().to_owned());
        context.outcome = Some(RequestOutcome::Refused);
        if let Some(page) = self.refuse(&joined(session.req_header(), header::VIA)) {
            session.set_keepalive(None);
            return Ok(Err(page));
        }
        let query = match self.query(session, is_form, target.repository.local()).await? {
            Ok(query) => target.arguments(query),
            Err(page) => {
                session.set_keepalive(None);
                return Ok(Err(page));
            }
        };
        // HEAD changes nothing (RFC 9110, section 9.2.1).
        if let Some(mapping) = target.repository.local()
            && session.req_header().method != Method::HEAD
            && PutRecord::is_requested(&query)
        {
            context.page = Some(PutRecord::VERB);
            let page = self.put_record(session, mapping, &query, context.started).await;
            context.outcome = (400..500).contains(&page.status).then_some(RequestOutcome::Refused);
            return Ok(Err(page));
        }
        let Target { repository, base_url, path_for_pages, .. } = target;
        let request = repository.read_request(&query);
        let head = session.req_header();
        if is_navigation(&head.method, &head.headers)
            && let Some(path) = path_for_pages
        {
            let page = self.page_request(&repository, path, &query, request.as_ref().ok());
            context.page_request = Some(CollectedPage::Response(page));
        }
        let request = match request {
            Ok(request) => request,
            Err(refusal) => {
                let echo = RequestEcho { base_url, arguments: Vec::new() };
                let date = clock::utc_datetime(context.started);
                let xml = oaimend_oai::error_response(&echo, &date, refusal.code, &refusal.text);
                let vary = response_vary(std::str::from_utf8(&query).unwrap_or("?"));
                return Ok(Err(Response::oai(xml).with("Vary", vary.to_owned())));
            }
        };
        context.outcome = None;
        Ok(self.open_request(session, context, RequestedRepository { repository, base_url }, request).await)
    }

    /// The same for the page of a record that is not mirrored.
    async fn prepare_live_record(
        &self,
        session: &mut Session,
        context: &mut RequestContext,
        mapping: Arc<Mapping>,
        target: RecordTarget,
    ) -> Prepared {
        context.repository = Some(mapping.id().to_owned());
        context.outcome = Some(RequestOutcome::Refused);
        if !session.as_downstream_mut().is_body_done() {
            // Do not wait for an unread body.
            session.set_keepalive(None);
        }
        let head = session.req_header();
        if let Some(page) = self.refuse(&joined(head, header::VIA)) {
            session.set_keepalive(None);
            return Err(page);
        }
        let served = &self.0.served;
        let gateway = self.0.gateway.current_for_pages(served);
        let page = LiveRecordRequest::new(served, gateway, Arc::clone(&mapping), target, &head.headers).await;
        let is_crawler = context.permit.as_ref().is_some_and(|permit| permit.client.class == CRAWLERS);
        if let Some(refusal) = page.refusal(is_crawler && !mapping.live_pages.admit_crawlers()) {
            return Err(refusal);
        }
        let Some(request) = page.request() else { return Err(page.unknown()) };
        context.page_request = Some(CollectedPage::Record(Box::new(page)));
        context.outcome = None;
        let base_url = format!("{}/{}", served.public_url, mapping.id());
        let repository = TargetRepository::Mapped(mapping, ServeFrom::Live);
        self.open_request(session, context, RequestedRepository { repository, base_url }, request).await
    }

    /// Opens the repository that answers a valid request, and the lookup in the cache.
    pub(super) async fn open_request(
        &self,
        session: &Session,
        context: &mut RequestContext,
        requested: RequestedRepository,
        request: Request,
    ) -> Prepared {
        let RequestedRepository { repository, base_url } = requested;
        let head = session.req_header();
        let via = joined(head, header::VIA);
        let limits = self.0.clients.current();
        let class =
            context.permit.as_ref().and_then(|permit| limits.classes.names().get(permit.client.class));
        context.live = Some(self.0.live_requests.begin(LiveRequest {
            repository: repository.name().to_owned(),
            query: request.query().to_owned(),
            class: class.cloned(),
            began: context.started,
        }));
        context.request = Some(request.clone());
        // A page needs the whole response, also for its header.
        if head.method != Method::HEAD || context.page_request.is_some() {
            context.lookup = self.cache_lookup(&repository, &request, &base_url, context.started).await;
        }
        let echo = Arc::new(request.to_echo(&base_url));
        let own_via = self.0.served.via.to_str().unwrap_or_default();
        let via = if via.is_empty() { own_via.to_owned() } else { format!("{via}, {own_via}") };
        let requested_by = context.permit.as_ref().map(|permit| permit.client.as_requester());
        let requested_by = requested_by.unwrap_or(RequestedBy::Harvester(None));
        context.is_of_mirror = repository.live_mapping().is_none();
        // Clients of ODL name no format. The response repeats the arguments as they were sent.
        let request = match &repository {
            TargetRepository::Component(_) => request.or_format("oai_dc"),
            TargetRepository::Mapped(..)
            | TargetRepository::Aggregate
            | TargetRepository::View(_)
            | TargetRepository::Federation(_)
            | TargetRepository::Index => request,
        };
        let repository = match self.open(repository, requested_by).await {
            Ok(repository) => repository,
            Err(failure) => {
                let page = Response::failed(&failure);
                context.failure = Some(failure);
                return Err(page);
            }
        };
        // HTTP/1.0 needs the length of a response. The page of a response and pages in the cache have one.
        let in_one_piece =
            head.version == Version::HTTP_10 && context.page_request.is_none() && context.lookup.is_none();
        // All harvesters of a source share its responses.
        let harvester = if context.is_of_mirror {
            HarvesterTraits::read(&joined(head, HARVESTER_TRAITS))
        } else {
            HarvesterTraits::default()
        };
        let request =
            RepositoryRequest { request, echo, via, harvester, in_one_piece, reports_records: false };
        Ok((repository, request))
    }

    /// The response to a search of a library system.
    async fn sru(&self, session: &mut Session, is_form: bool) -> Result<Response> {
        if let Some(page) = self.refuse(&joined(session.req_header(), header::VIA)) {
            session.set_keepalive(None);
            return Ok(page);
        }
        match self.query(session, is_form, None).await? {
            Ok(query) => Ok(sru::answer(&self.0.served, &self.0.gateway.rendering, &query).await),
            Err(page) => {
                session.set_keepalive(None);
                Ok(page)
            }
        }
    }

    /// The response to the description of a work.
    async fn openurl(&self, session: &mut Session, is_form: bool) -> Result<Response> {
        if let Some(page) = self.refuse(&joined(session.req_header(), header::VIA)) {
            session.set_keepalive(None);
            return Ok(page);
        }
        match self.query(session, is_form, None).await? {
            Ok(query) => {
                let headers = &session.req_header().headers;
                Ok(answer_openurl(&self.0.served, &self.0.gateway, &query, headers).await)
            }
            Err(page) => {
                session.set_keepalive(None);
                Ok(page)
            }
        }
    }

    /// The response of the resolver: to one identifier, or to the list in the body.
    async fn resolver(
        &self,
        session: &mut Session,
        context: &RequestContext,
        request: ResolverRequest,
    ) -> Result<Response> {
        if let Some(page) = self.refuse(&joined(session.req_header(), header::VIA)) {
            session.set_keepalive(None);
            return Ok(page);
        }
        let (served, gateway) = (&self.0.served, &self.0.gateway);
        if session.req_header().method == Method::POST {
            let read =
                body_of(session, (LIST_BYTES_MAX, ""), self.0.clients.current().connections.request_timeout);
            return Ok(match read.await? {
                Ok(body) => answer_list(served, gateway, &body).await,
                Err(page) => {
                    session.set_keepalive(None);
                    page
                }
            });
        }
        if !session.as_downstream_mut().is_body_done() {
            // Do not wait for an unread body.
            session.set_keepalive(None);
        }
        let is_crawler = context.permit.as_ref().is_some_and(|permit| permit.client.class == CRAWLERS);
        let headers = &session.req_header().headers;
        Ok(resolver::answer(served, gateway, request.target.as_ref(), headers, is_crawler).await)
    }

    /// Refuses a request that came back to this server, or while it stops. An unread body is not waited for.
    fn refuse_unread(&self, session: &mut Session) -> Option<Response> {
        if !session.as_downstream_mut().is_body_done() {
            session.set_keepalive(None);
        }
        let page = self.refuse(&joined(session.req_header(), header::VIA))?;
        session.set_keepalive(None);
        Some(page)
    }

    fn router(&self) -> PublicRouter<'_> {
        PublicRouter {
            served: &self.0.served,
            gateway: self.0.gateway.current(),
            lifecycle: &self.0.lifecycle,
            listens_on: self.0.listens_on,
            uri_bytes_max: self.0.clients.current().connections.uri_bytes_max,
        }
    }

    /// Opens the repository that answers a request.
    ///
    /// # Errors
    ///
    /// The source is not asked now, or the mirror cannot be read.
    async fn open(
        &self,
        repository: TargetRepository,
        requested_by: RequestedBy,
    ) -> std::result::Result<Box<dyn Repository>, Failure> {
        let served = &self.0.served;
        let opened: Box<dyn Repository> = match &repository {
            TargetRepository::Mapped(mapping, serve) => {
                let mapped = (Arc::clone(mapping), *serve);
                mapped_repository(served, mapped, requested_by, CountedBy::Request).await?
            }
            TargetRepository::Aggregate => Box::new(aggregate_view(served).await?),
            TargetRepository::Component(component) => component_view(served, *component).await?,
            TargetRepository::View(view) => Box::new(subject_view(served, view).await?),
            TargetRepository::Federation(file) => {
                federation_view(served, file.as_ref(), requested_by).await?
            }
            TargetRepository::Index => index_view(served).await?,
        };
        with_crosswalks(served, &repository, opened).await
    }

    /// Refuses a request that must not reach a source.
    pub(super) fn refuse(&self, via: &str) -> Option<Response> {
        if via.split(',').any(|hop| hop.split_whitespace().nth(1) == Some(&self.0.instance)) {
            let status = "oaimend; error=proxy_loop_detected".to_owned();
            let text = "this request is from this server; the base_url of a mapping points to oaimend itself";
            return Some(Response::unavailable(3600, status, text));
        }
        if self.0.lifecycle.is_draining() {
            let status = "oaimend; error=connection_limit_reached; details=\"ending\"".to_owned();
            return Some(Response::unavailable(5, status, "oaimend is stopping; retry later"));
        }
        None
    }

    /// The page of the response to a request.
    fn page_request(
        &self,
        repository: &TargetRepository,
        path: String,
        query: &[u8],
        request: Option<&Request>,
    ) -> ResponsePageRequest {
        let query = request.map_or_else(
            || String::from_utf8_lossy(query).into_owned(),
            |request| request.query().to_owned(),
        );
        let mapping = repository.mapping();
        let has_record_pages = mapping.is_some_and(|mapping| mapping.has_record_pages());
        ResponsePageRequest {
            gateway: self.0.gateway.current_for_pages(&self.0.served),
            address: RequestAddress { repository: path, query },
            request: request.cloned(),
            repository: mapping.map(|mapping| mapping.id().to_owned()),
            has_record_pages,
        }
    }

    /// A page of the gateway.
    async fn gateway_page(
        &self,
        session: &mut Session,
        context: &mut RequestContext,
        target: &PageTarget,
        route: Option<&'static Route<PublicEndpoint>>,
    ) -> Response {
        if !session.as_downstream_mut().is_body_done() {
            // Do not wait for an unread body.
            session.set_keepalive(None);
        }
        let head = session.req_header();
        if let Some(page) = self.refuse(&joined(head, header::VIA)) {
            session.set_keepalive(None);
            return page;
        }
        if let Some(route) = route.filter(|route| !route.methods.contains(&head.method.as_str())) {
            let page = Response::text(405, "pages accept GET and HEAD");
            return page.with("Allow", route.methods.join(", "));
        }
        let GatewayResponse { page, repository } =
            answer(&self.0.served, &self.0.gateway, target, &head.headers).await;
        context.repository = repository;
        context.page = route.and_then(|route| route.label);
        context.outcome = (400..500).contains(&page.status).then_some(RequestOutcome::Refused);
        page
    }

    /// The cache lookup for a request; `None` if it bypasses the cache. Pages of the mirror are not cached here: no
    /// source is asked for them, and the views keep written pages themselves.
    async fn cache_lookup(
        &self,
        repository: &TargetRepository,
        request: &Request,
        base_url: &str,
        started: SystemTime,
    ) -> Option<CacheLookup> {
        let (cache, mapping) = self.0.served.cache.as_ref().zip(repository.live_mapping())?;
        // Two windows may share a token but have different parts of a page.
        let now_secs = self.0.served.clock.now_secs();
        let is_part = request.is_resumption()
            && self.0.served.store.ledger.has_windows(RepositoryId(mapping.id()), now_secs).await;
        if is_part {
            return None;
        }
        match self.0.served.page_variant(mapping, request).await {
            PageVariant::Shared(variant) => {
                let variant = variant.as_deref();
                Some(cache.lookup(&CachedRequest { mapping, request, base_url, variant }, started))
            }
            PageVariant::Unshared => None,
        }
    }

    async fn send(&self, session: &mut Session, response: Response) -> Result<()> {
        response.send(&mut Downstream { session, via: &self.0.served.via, collected: None }).await
    }
}
