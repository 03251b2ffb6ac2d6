//! The listener for operators: metrics, state and quarantine as JSON, and pages. It only reads, except for
//! `PURGE`, `POST` and `DELETE`.

mod maintain;
mod mirror;
mod pages;
mod quarantine;
mod web_page;

pub(super) use self::web_page::AllowedHosts;

use self::maintain::{MaintenanceTask, export, maintain};
use self::mirror::{measure_mirror, mirror_json, request_harvest};
use self::pages::operator_page;
use self::quarantine::{quarantine_json, remove_entries, retry, retry_path};
use crate::config::Mapping;
use crate::serve::background::notifications::reports::report_of;
use crate::serve::context::ServerContext;
use crate::serve::oai::cache::PageVariant;
use crate::serve::response::{Response, ResponseWriter};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Version, header};
use oaimend_base::clock;
use oaimend_oai::Request;
use oaimend_pages::operator_route::OperatorTarget;
use oaimend_store::QuarantineError;
use pingora_core::apps::{HttpPersistentSettings, HttpServerApp, ReusedHttpStream};
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::ShutdownWatch;
use pingora_error::Result;
use pingora_http::{RequestHeader, ResponseHeader};
use serde_json::{Value, json};
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
        let (path, query) = (head.uri.path().to_owned(), head.uri.query().map(str::to_owned));
        if let Some(refusal) = self.hosts.refusal(head) {
            return Response::text(403, refusal);
        }
        let shared = Arc::clone(&self.shared);
        match head.method.as_str() {
            "DELETE" => remove_entries(&shared, &path, query.as_deref()).await,
            "POST" => shared.post(&path, query.as_deref()).await,
            "PURGE" => {
                // A purge removes files.
                let purge = move || shared.purge(&path, query.as_deref());
                let purged = tokio::task::spawn_blocking(purge).await;
                let failed = |_| Response::text(500, "the response could not be created; the log says why");
                purged.unwrap_or_else(failed)
            }
            "GET" | "HEAD" => {
                let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
                match (mirror_path(&path), OperatorTarget::read(target)) {
                    (Some((id, "records")), _) => export(&shared, id, query.as_deref()).await,
                    (_, Some(target)) => operator_page(&shared, &target).await,
                    (_, None) => shared.admin_page(&path, query.as_deref()).await,
                }
            }
            _ => {
                let page = Response::text(405, "the admin listener accepts GET, POST, DELETE and PURGE");
                page.with("Allow", "GET, POST, DELETE, PURGE".to_owned())
            }
        }
    }
}

impl ServerContext {
    async fn admin_page(&self, path: &str, query: Option<&str>) -> Response {
        if let Some(page) = quarantine_json(self, path, query).await {
            return page;
        }
        let mut parts = path.trim_start_matches("/-/").split('/');
        let found: Result<Option<Value>, String> = match (path.starts_with("/-/"), parts.next()) {
            (true, Some("livez")) => return Response::text(200, "ok"),
            (true, Some("readyz")) => return self.readiness(),
            (true, Some("metrics")) => {
                if let Some(cache) = &self.cache {
                    let size = cache.size();
                    self.telemetry.cache_entries.set(size.entries.cast_signed());
                    self.telemetry.cache_bytes.set(size.bytes.cast_signed());
                }
                let (mappings, now) = (self.repositories.all(), self.clock.now());
                let is_open = |id: &str| self.clients.circuit_open_secs(id, now).is_some();
                self.telemetry.set_circuits(mappings.keys().map(|id| (id.as_str(), is_open(id))));
                self.telemetry.set_stores(&self.store.databases.states());
                match self.store.quarantine.sizes().await {
                    Ok(sizes) => {
                        let is_mapped = |(id, _): &(String, _)| mappings.contains_key(id);
                        self.telemetry.set_quarantine_sizes(sizes.into_iter().filter(is_mapped));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the quarantine cannot be measured; its metrics are old");
                    }
                }
                if let Err(error) = measure_mirror(self).await {
                    tracing::warn!(%error, "the mirror cannot be measured; its metrics are old");
                }
                return Response::new(
                    200,
                    "text/plain; version=0.0.4; charset=utf-8",
                    self.telemetry.metrics(),
                );
            }
            (true, Some("repositories")) => {
                let found = self.repositories_json(parts.collect::<Vec<_>>().as_slice()).await;
                found.map_err(|error| error.to_string())
            }
            (true, Some("mirror")) => {
                let found = mirror_json(self, parts.collect::<Vec<_>>().as_slice()).await;
                found.map_err(|error| error.to_string())
            }
            _ => Ok(None),
        };
        match found {
            Ok(Some(value)) => Response::json(200, &value),
            Ok(None) => Response::json(
                404,
                &json!({"error": "no such page", "pages": [
                    "/-/status", "/-/livez", "/-/readyz", "/-/metrics", "/-/repositories", "/-/repositories/ID",
                    "/-/repositories/ID/repairs", "/-/repositories/ID/report", "/-/repositories/ID/quarantine",
                    "/-/repositories/ID/quarantine/KEY", "/-/mirror", "/-/mirror/ID", "/-/mirror/ID/harvest",
                    "/-/mirror/ID/records",
                ]}),
            ),
            Err(error) => Response::json(500, &json!({ "error": error })),
        }
    }

    /// Starts a harvest, a task of maintenance or a retry.
    async fn post(self: &Arc<Self>, path: &str, query: Option<&str>) -> Response {
        if let Some((id, key)) = retry_path(path) {
            return retry(self, id, key, query).await;
        }
        match mirror_path(path) {
            Some((id, "sync")) => return request_harvest(self, id, query),
            Some((id, name @ ("verify" | "accept-loss" | "compact" | "forget"))) => {
                match MaintenanceTask::parse(name, query) {
                    Some(task) => return maintain(self, id, task).await,
                    None => {
                        let error = "expected no query; verify accepts against_source=true";
                        return Response::json(400, &json!({ "error": error }));
                    }
                }
            }
            _ => {}
        }
        let error = "expected POST /-/mirror/ID/TASK, with sync, verify, accept-loss, compact or forget as TASK, or \
                     /-/repositories/ID/quarantine/retry";
        Response::json(405, &json!({ "error": error })).with("Allow", "GET".to_owned())
    }

    /// Removes pages from the cache: all pages of a repository, or with a query the one that answers it.
    fn purge(&self, path: &str, query: Option<&str>) -> Response {
        let Some(cache) = &self.cache else {
            return Response::json(409, &json!({"error": "the cache is off (cache.enabled)"}));
        };
        let id = path.strip_prefix("/-/cache/").unwrap_or_default();
        let purged = match (self.repositories.find(id), query) {
            (Some(mapping), Some(query)) => {
                let mut own = mapping.source.base_url.clone();
                own.set_query(None);
                let base_urls = [format!("{}/{id}", self.public_url), own.to_string()];
                match Request::parse(query.as_bytes()) {
                    Ok(request) => match self.page_variant(&mapping, &request) {
                        PageVariant::Shared(variant) => {
                            cache.purge(&mapping, &base_urls, Some(&request), variant.as_deref())
                        }
                        PageVariant::Unshared => 0,
                    },
                    Err(refusal) => return Response::json(400, &json!({"error": refusal.text})),
                }
            }
            (Some(mapping), None) => cache.purge(&mapping, &[], None, None),
            (None, _) => {
                let right = "PURGE /-/cache/ID, or /-/cache/ID?verb=... for one page; ID is a repository";
                return Response::json(404, &json!({"error": right}));
            }
        };
        Response::json(200, &json!({ "purged": purged }))
    }

    async fn repositories_json(&self, parts: &[&str]) -> Result<Option<Value>, QuarantineError> {
        let mappings = self.repositories.all();
        let Some((id, rest)) = parts.split_first() else {
            let all: Vec<Value> = mappings.values().map(|mapping| self.repository_json(mapping)).collect();
            return Ok(Some(json!({ "repositories": all })));
        };
        let Some(mapping) = mappings.get(*id) else { return Ok(None) };
        Ok(match rest {
            [] => Some(self.repository_json(mapping)),
            ["report"] => {
                let now_secs = i64::try_from(clock::secs(self.clock.now())).unwrap_or(i64::MAX);
                let report = report_of(self, mapping, now_secs).await?;
                Some(json!({ "text": report.map(|report| report.text) }))
            }
            ["repairs"] => Some(json!({ "repairs": self.telemetry.last(id).repairs })),
            _ => None,
        })
    }

    fn repository_json(&self, mapping: &Mapping) -> Value {
        let mut value = json!(self.telemetry.last(mapping.id()));
        value["id"] = json!(mapping.id());
        value["url"] = json!(format!("{}/{}", self.public_url, mapping.id()));
        value["base_url"] = json!(mapping.source.shown_base_url());
        if mapping.source.static_file.is_some() {
            value["static_file"] = json!(self.clients.file_state(mapping.id()));
        }
        value["set_collisions"] = json!(self.store.profiles.collisions(&mapping.source.source_key()));
        let learned = self.store.capabilities.detected(mapping.id(), &mapping.fingerprint());
        let pinned = mapping.source.quirks.version.map(|version| version.name().to_owned());
        value["version"] = json!(pinned.or(learned.version));
        let is_in_days = mapping.source.quirks.in_days || learned.refuses_seconds || learned.misses_seconds;
        value["requests_in_days"] = json!(is_in_days);
        let usage = self.clients.limit_usage(mapping.id(), self.clock.now());
        let now_secs = i64::try_from(clock::secs(self.clock.now())).unwrap_or(i64::MAX);
        let oai_errors =
            self.store.activity.read(mapping.id(), |activity| activity.oai_errors(now_secs, OAI_ERROR_DAYS));
        value["oai_errors"] = json!(oai_errors);
        value["waiting_requests"] = json!(usage.map_or(0, |usage| usage.waiting));
        value["circuit_open_secs"] = json!(self.clients.circuit_open_secs(mapping.id(), self.clock.now()));
        value
    }
}

/// The days whose OAI errors are counted in the state of a repository, today included.
const OAI_ERROR_DAYS: usize = 7;

/// The id and the page of a path about a mirrored repository.
fn mirror_path(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("/-/mirror/")?.split_once('/')
}

/// The connection of an operator.
struct Operator<'a>(&'a mut ServerSession);

impl ResponseWriter for Operator<'_> {
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
