//! The listener for operators: metrics, state and quarantine. It only reads, except for `PURGE` and `POST`.

use super::context::ServerContext;
use super::mirror::admin::{measure_mirror, mirror_json, request_harvest};
use super::own_pages::OwnPage;
use crate::config::Mapping;
use crate::oai::Request;
use crate::store::QuarantineError;
use async_trait::async_trait;
use http::{Method, Response, header};
use pingora_core::apps::http_app::ServeHttp;
use pingora_core::protocols::http::ServerSession;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

/// Answers requests of operators.
pub(super) struct Admin {
    pub(super) shared: Arc<ServerContext>,
    pub(super) listens_on: SocketAddr,
}

#[async_trait]
impl ServeHttp for Admin {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        let head = session.req_header();
        let method = head.method.clone();
        let path = head.uri.path().to_owned();
        let query = head.uri.query().map(str::to_owned);
        let is_purge = method.as_str() == "PURGE";
        let host = head.uri.authority().map(|authority| authority.as_str().to_owned()).or_else(|| {
            head.headers.get(header::HOST).map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned())
        });
        let page = if !self.is_own_host(host.as_deref().unwrap_or_default()) {
            OwnPage::text(
                403,
                "use the address of the admin listener in the URL; other Host headers are refused",
            )
        } else if method == Method::POST {
            // Browsers send POST requests of any web page, and name its origin.
            match head.headers.contains_key(header::ORIGIN) {
                true => OwnPage::text(403, "requests of web pages are refused"),
                false => self.shared.post(&path, query.as_deref()),
            }
        } else if method != Method::GET && method != Method::HEAD && !is_purge {
            OwnPage::text(405, "the admin listener accepts GET, POST and PURGE")
                .with("Allow", "GET, POST, PURGE".to_owned())
        } else {
            match is_purge {
                true => {
                    let shared = Arc::clone(&self.shared);
                    // A purge removes files.
                    let purge = move || shared.purge(&path, query.as_deref());
                    tokio::task::spawn_blocking(purge).await.unwrap_or_else(|_| {
                        OwnPage::text(500, "the response could not be created; the log says why")
                    })
                }
                false => self.shared.admin_page(&path).await,
            }
        };
        response(page, method == Method::HEAD)
    }
}

impl Admin {
    /// A page in a browser must not reach a loopback listener through a host name of its own (DNS rebinding).
    fn is_own_host(&self, host: &str) -> bool {
        if !self.listens_on.ip().is_loopback() {
            return true;
        }
        let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
        let name = name.map_or(host, |(name, _)| name);
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
        name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    }
}

impl ServerContext {
    async fn admin_page(&self, path: &str) -> OwnPage {
        let mut parts = path.trim_start_matches("/-/").split('/');
        let found: Result<Option<Value>, String> = match (path.starts_with("/-/"), parts.next()) {
            (true, Some("livez")) => return OwnPage::text(200, "ok"),
            (true, Some("readyz")) => return self.readiness(),
            (true, Some("metrics")) => {
                if let Some(cache) = &self.cache {
                    let size = cache.size();
                    self.telemetry.cache_entries.set(size.entries.cast_signed());
                    self.telemetry.cache_bytes.set(size.bytes.cast_signed());
                }
                if let Err(error) = measure_mirror(self).await {
                    tracing::warn!(%error, "the mirror cannot be measured; its metrics are old");
                }
                return OwnPage::new(
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
            Ok(Some(value)) => OwnPage::json(200, &value),
            Ok(None) => OwnPage::json(
                404,
                &json!({"error": "no such page", "pages": [
                    "/-/livez", "/-/readyz", "/-/metrics", "/-/repositories", "/-/repositories/ID",
                    "/-/repositories/ID/repairs", "/-/repositories/ID/quarantine",
                    "/-/repositories/ID/quarantine/KEY", "/-/mirror", "/-/mirror/ID", "/-/mirror/ID/harvest",
                ]}),
            ),
            Err(error) => OwnPage::json(500, &json!({ "error": error })),
        }
    }

    /// Starts a task.
    fn post(&self, path: &str, query: Option<&str>) -> OwnPage {
        match path.strip_prefix("/-/mirror/").and_then(|rest| rest.strip_suffix("/sync")) {
            Some(id) => request_harvest(self, id, query),
            None => OwnPage::json(405, &json!({"error": "expected POST /-/mirror/ID/sync"}))
                .with("Allow", "GET".to_owned()),
        }
    }

    /// Removes pages from the cache: all pages of a repository, or with a query the one that answers it.
    fn purge(&self, path: &str, query: Option<&str>) -> OwnPage {
        let Some(cache) = &self.cache else {
            return OwnPage::json(409, &json!({"error": "the cache is off (cache.enabled)"}));
        };
        let id = path.strip_prefix("/-/cache/").unwrap_or_default();
        let purged = match (self.repositories.find(id), query) {
            (Some(mapping), Some(query)) => {
                let mut own = mapping.base_url.clone();
                own.set_query(None);
                let base_urls = [format!("{}/{id}", self.public_url), own.to_string()];
                match Request::parse(query.as_bytes()) {
                    Ok(request) => {
                        let lowered_to = self.lowered_to(&mapping, &request);
                        cache.purge(&mapping, &base_urls, Some(&request), lowered_to.as_deref())
                    }
                    Err(refusal) => return OwnPage::json(400, &json!({"error": refusal.text})),
                }
            }
            (Some(mapping), None) => cache.purge(&mapping, &[], None, None),
            (None, _) => {
                let right = "PURGE /-/cache/ID, or /-/cache/ID?verb=... for one page; ID is a repository";
                return OwnPage::json(404, &json!({"error": right}));
            }
        };
        OwnPage::json(200, &json!({ "purged": purged }))
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
            ["repairs"] => Some(json!({ "repairs": self.telemetry.last(id).repairs })),
            ["quarantine"] => {
                let records = self.store.quarantine.list(id, QUARANTINE_LISTED_MAX).await?;
                let records: Vec<Value> =
                    records.iter().map(|(key, entry)| with_key(key, json!(entry))).collect();
                Some(json!({ "records": records }))
            }
            ["quarantine", key] => self.store.quarantine.find(id, key).await?.map(|(entry, raw)| {
                let mut value = with_key(key, json!(entry));
                match String::from_utf8(raw) {
                    Ok(text) => value["raw"] = json!(text),
                    Err(bytes) => {
                        let hex: String = bytes.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
                        value["raw_hex"] = json!(hex);
                    }
                }
                value
            }),
            _ => None,
        })
    }

    fn repository_json(&self, mapping: &Mapping) -> Value {
        let mut value = json!(self.telemetry.last(&mapping.id));
        value["id"] = json!(mapping.id);
        value["url"] = json!(format!("{}/{}", self.public_url, mapping.id));
        value["base_url"] = json!(mapping.base_url.as_str());
        if mapping.static_file.is_some() {
            value["static_file"] = json!(self.clients.file_state(&mapping.id));
        }
        value["set_collisions"] = json!(self.store.profiles.collisions(&mapping.source_key()));
        let learned = self.store.capabilities.detected(&mapping.id, &mapping.fingerprint());
        let pinned = mapping.quirks.version.map(|version| version.name().to_owned());
        value["version"] = json!(pinned.or(learned.version));
        value["requests_in_days"] = json!(mapping.quirks.in_days || learned.refuses_seconds);
        value["circuit_open_secs"] = json!(self.clients.circuit_open_secs(&mapping.id, self.clock.now()));
        value
    }
}

fn with_key(key: &str, mut entry: Value) -> Value {
    entry["key"] = json!(key);
    entry
}

fn response(page: OwnPage, head_only: bool) -> Response<Vec<u8>> {
    let mut response =
        Response::builder().status(page.status).header(header::CONTENT_LENGTH, page.body.len());
    for (name, value) in page.headers {
        response = response.header(name, value);
    }
    let body = if head_only { Vec::new() } else { page.body.to_vec() };
    response.body(body).unwrap_or_else(|_| Response::new(Vec::new()))
}

/// Most records in one listing of the quarantine.
const QUARANTINE_LISTED_MAX: usize = 1000;
