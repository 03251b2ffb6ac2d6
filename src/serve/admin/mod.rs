//! The listener for operators: metrics, state and quarantine as JSON, and pages. It only reads, except for
//! `PURGE`, `POST` and `DELETE`.

mod backup;
mod cache;
mod lines;
mod maintain;
mod metrics;
mod mirror;
mod pages;
mod quarantine;
mod repositories;
mod search;
mod web_page;

pub(super) use self::web_page::AllowedHosts;

use self::cache::purge;
use self::metrics::metrics;
use crate::serve::context::ServerContext;
use crate::serve::dumps::answer_operator;
use crate::serve::health;
use crate::serve::response::{Response, ResponseSink};
use crate::serve::routes::{ADMIN, Access, AdminEndpoint, Found, listed_pages};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Version, header};
use pingora_core::apps::{HttpPersistentSettings, HttpServerApp, ReusedHttpStream};
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::ShutdownWatch;
use pingora_error::Result;
use pingora_http::{RequestHeader, ResponseHeader};
use serde_json::{Value, json};
use std::fmt::Display;
use std::sync::Arc;

/// Answers requests of operators.
pub(super) struct Admin {
    pub(super) shared: Arc<ServerContext>,
    pub(super) hosts: AllowedHosts,
}

#[async_trait]
impl HttpServerApp for Admin {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        // The client has sent no request, or is gone.
        if !session.read_request().await.unwrap_or(false) {
            return None;
        }
        session.set_keepalive((!*shutdown.borrow()).then_some(KEEPALIVE_SECS));
        let response = self.respond(session.req_header()).await;
        if let Err(error) = response.send(&mut Operator(&mut session)).await {
            // Without its end, the client sees that the response is truncated.
            tracing::debug!(%error, "a response of the admin listener was not sent completely");
            return None;
        }
        let settings = HttpPersistentSettings::for_session(&session);
        let stream = session.finish().await.ok()??;
        Some(ReusedHttpStream::from_reusable_stream(stream, settings))
    }
}

/// Seconds for which a connection without requests stays open.
const KEEPALIVE_SECS: u64 = 60;

impl Admin {
    async fn respond(&self, head: &RequestHeader) -> Response {
        let (method, path) = (head.method.as_str(), head.uri.path());
        let access = ADMIN.find(method, path).map_or(Access::Operators, |found| found.route.access);
        match self.hosts.refusal(head, access) {
            Some(refusal) => Response::text(403, refusal),
            None => respond(&self.shared, method, path, head.uri.query()).await,
        }
    }
}

/// The response to a request.
pub(super) async fn respond(
    context: &ServerContext,
    method: &str,
    path: &str,
    query: Option<&str>,
) -> Response {
    match &ADMIN.find(method, path) {
        Some(found) => answer(context, found, path, query).await,
        None => without_route(context, method, query).await,
    }
}

async fn answer(
    context: &ServerContext,
    found: &Found<'_, AdminEndpoint>,
    path: &str,
    query: Option<&str>,
) -> Response {
    let ServerContext { served, gateway, telemetry, lifecycle, .. } = context;
    let (id, key) = (found.id(), found.part("key"));
    match found.route.endpoint {
        AdminEndpoint::Livez => health::livez(),
        AdminEndpoint::Readyz => health::readyz(lifecycle, &served.store.databases),
        AdminEndpoint::Metrics => metrics(served, telemetry).await,
        AdminEndpoint::Repositories => Response::json(200, &repositories::list(served, telemetry)),
        AdminEndpoint::Repository => json_page(repositories::state(served, telemetry, id)),
        AdminEndpoint::Repairs => json_page(repositories::repairs(served, telemetry, id)),
        AdminEndpoint::Report => json_or_error(repositories::report(served, &context.notices, id).await),
        AdminEndpoint::Quarantine => quarantine::list(served, id, query).await.unwrap_or_else(no_such_page),
        AdminEndpoint::QuarantinedRecord => {
            let page = quarantine::record(served, id, key.unwrap_or_default()).await;
            page.unwrap_or_else(no_such_page)
        }
        AdminEndpoint::RemoveQuarantined => quarantine::remove(served, id, key, query).await,
        AdminEndpoint::RetryQuarantined => quarantine::retry(served, lifecycle, id, key, query).await,
        AdminEndpoint::Mirrors => json_or_error(mirror::list(served).await),
        AdminEndpoint::Mirror => json_or_error(mirror::repository(served, id).await),
        AdminEndpoint::Harvest => json_page(mirror::harvest(served, id)),
        AdminEndpoint::Description => json_or_error(mirror::description(served, id).await),
        AdminEndpoint::Records => maintain::export(served, id, query).await,
        AdminEndpoint::Sync => mirror::request_harvest(served, lifecycle, id, query),
        AdminEndpoint::Maintenance(name) => maintain::maintain(served, lifecycle, id, name, query).await,
        AdminEndpoint::Search => json_or_error(search::state(served).await),
        AdminEndpoint::RebuildSearch => search::rebuild(served, lifecycle).await,
        AdminEndpoint::Backup => backup::back_up(served, lifecycle).await,
        AdminEndpoint::BackupSize => json_or_error(backup::size(served).await.map(|size| Some(json!(size)))),
        AdminEndpoint::Dump => answer_operator(served, query, false).await,
        AdminEndpoint::DumpManifest => answer_operator(served, query, true).await,
        AdminEndpoint::Purge => purge(served, id, query).await,
        AdminEndpoint::StatusPage => pages::status::status(served, &context.live_requests, gateway),
        AdminEndpoint::PlanChart => pages::status::chart(served).await,
        AdminEndpoint::StyleSheet => pages::style_sheet(gateway, path),
        AdminEndpoint::OverviewPage => pages::repositories::overview(served, gateway, query).await,
        AdminEndpoint::RepositoryPage if query.is_some_and(|query| !query.is_empty()) => no_such_page(),
        AdminEndpoint::RepositoryPage => pages::repositories::repository(served, gateway, id).await,
        AdminEndpoint::QuarantinePage => pages::quarantine::list(served, gateway, id).await,
        AdminEndpoint::QuarantinedRecordPage => {
            pages::quarantine::record(served, gateway, id, key.unwrap_or_default()).await
        }
    }
}

/// The response to a request that no route fits.
async fn without_route(context: &ServerContext, method: &str, query: Option<&str>) -> Response {
    let wrong_method = |error: &str| Response::json(405, &json!({ "error": error }));
    match method {
        "GET" | "HEAD" => no_such_page(),
        "DELETE" => {
            wrong_method("expected DELETE /-/repositories/ID/quarantine/KEY").with("Allow", "GET".to_owned())
        }
        "POST" => wrong_method(
            "expected POST /-/mirror/ID/TASK, with sync, verify, accept-loss, compact or forget as TASK, \
             /-/repositories/ID/quarantine/retry, /-/search/rebuild, or /-/backup",
        )
        .with("Allow", "GET".to_owned()),
        // It says what is right.
        "PURGE" => purge(&context.served, "", query).await,
        _ => {
            let page = Response::text(405, "the admin listener accepts GET, POST, DELETE and PURGE");
            page.with("Allow", "GET, POST, DELETE, PURGE".to_owned())
        }
    }
}

/// A page of JSON; `None`: it does not exist.
fn json_page(found: Option<Value>) -> Response {
    found.map_or_else(no_such_page, |value| Response::json(200, &value))
}

/// [`json_page`] from a store that may be unreadable.
fn json_or_error(found: Result<Option<Value>, impl Display>) -> Response {
    match found {
        Ok(found) => json_page(found),
        Err(error) => Response::json(500, &json!({ "error": error.to_string() })),
    }
}

/// The response to a request for a page that does not exist.
fn no_such_page() -> Response {
    Response::json(404, &json!({"error": "no such page", "pages": listed_pages()}))
}

/// The connection of an operator.
struct Operator<'a>(&'a mut ServerSession);

impl ResponseSink for Operator<'_> {
    fn request(&self) -> &RequestHeader {
        self.0.req_header()
    }

    fn close_afterwards(&mut self) {
        self.0.set_keepalive(None);
    }

    fn complete_head(&self, _head: &mut ResponseHeader, _may_compress: bool) -> Result<bool> {
        Ok(false)
    }

    async fn write_head(&mut self, mut head: Box<ResponseHeader>, _end: bool) -> Result<()> {
        let has_length = head.headers.contains_key(header::CONTENT_LENGTH);
        if !has_length && self.request().version != Version::HTTP_10 {
            head.insert_header(header::TRANSFER_ENCODING, "chunked")?;
        }
        self.0.write_response_header(head).await
    }

    async fn write_body(&mut self, piece: Option<Bytes>, end: bool) -> Result<()> {
        self.0.write_response_body(piece.unwrap_or_default(), end).await
    }

    async fn next<T>(&mut self, piece: impl Future<Output = T> + Send) -> Result<T> {
        Ok(piece.await)
    }
}
