//! Which repository a request is for, or which page of ours.

use super::Shared;
use super::connections::uri_too_long;
use super::pages::Page;
use super::quotas::Permit;
use crate::config::Mapping;
use http::{HeaderMap, Method};
use pingora_http::RequestHeader;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use url::Url;

/// A repository, and the base URL that its answers are to say.
type Target = (Arc<Mapping>, String);

impl Shared {
    /// Finds the repository that a request is for, or the page of ours that answers it.
    pub(super) fn route(&self, head: &RequestHeader) -> Result<Target, Page> {
        let max = self.connections.uri_bytes_max;
        if head.raw_path().len() > max {
            return Err(uri_too_long(max));
        }
        if ![Method::GET, Method::HEAD, Method::POST].contains(&head.method) {
            let page = Page::text(405, "GET, HEAD and POST are allowed here");
            return Err(page.with("Allow", "GET, HEAD, POST".to_owned()));
        }
        // The form for proxies (RFC 9112, 3.2.2); pingora keeps it beside the URI.
        let absolute = std::str::from_utf8(head.raw_path()).ok().and_then(|target| Url::parse(target).ok());
        if let Some(url) = absolute.filter(|url| !self.is_own(url)) {
            return self.route_absolute(&url);
        }
        let path = head.uri.path();
        let mappings = self.repositories.all();
        Err(match path {
            "/" => Page::repositories(200, &self.public_url, &mappings),
            "/friends.xml" => Page::friends(&self.public_url, &mappings),
            "/robots.txt" => Page::robots(),
            "/-/livez" => Page::health(200, "ok"),
            "/-/readyz" => self.readiness(),
            _ => {
                let id = path.trim_start_matches('/').trim_end_matches('/');
                match mappings.get(id) {
                    Some(mapping) => {
                        return Ok((Arc::clone(mapping), format!("{}/{id}", self.public_url)));
                    }
                    None => Page::repositories(404, &self.public_url, &mappings),
                }
            }
        })
    }

    /// Whether we take requests; the sources have no say in it.
    pub(super) fn readiness(&self) -> Page {
        if self.draining.load(Ordering::Relaxed) {
            return Page::health(503, "ending");
        }
        Page::health(200, "ok")
    }

    /// Lets a client in; `None` for one without a quota, or the page that sends it away.
    pub(super) async fn admit(
        &self,
        peer: Option<SocketAddr>,
        headers: &HeaderMap,
    ) -> Result<Option<Permit>, Page> {
        let Some(client) = self.classes.client(peer, headers) else {
            if self.classes.is_surprised(headers) {
                tracing::warn!(
                    "X-Forwarded-For from loopback is not believed, so who comes that way has no quota; \
                     set clients.trusted_proxies"
                );
            }
            return Ok(None);
        };
        self.quotas.admit(client).await.map(Some).map_err(|refused| {
            let class = &self.classes.names()[client.class];
            self.telemetry.refused(class, refused.reason());
            tracing::debug!(class, client = %client.origin, reason = refused.reason(), "refused");
            Page::refused(refused.retry_after_secs, &refused.text(class))
        })
    }

    /// Refuses a request that must not reach a source.
    pub(super) fn refuse(&self, via: &str) -> Option<Page> {
        if via.split(',').any(|hop| hop.split_whitespace().nth(1) == Some(&self.instance)) {
            let status = "oaimend; error=proxy_loop_detected".to_owned();
            let text = "this request came from here; the base_url of a mapping leads back to oaimend";
            return Some(Page::unavailable(3600, status, text));
        }
        if self.draining.load(Ordering::Relaxed) {
            let status = "oaimend; error=connection_limit_reached; details=\"ending\"".to_owned();
            return Some(Page::unavailable(5, status, "oaimend is ending; ask again"));
        }
        None
    }

    /// Whether an absolute URL names this server itself.
    fn is_own(&self, url: &Url) -> bool {
        let listens_on = format!("http://{}", self.listens_on);
        [&self.public_url, &listens_on]
            .iter()
            .any(|own| Url::parse(own).is_ok_and(|own| same_server(&own, url)))
    }

    /// We are the harvester's HTTP proxy: a repository under its own name.
    fn route_absolute(&self, url: &Url) -> Result<Target, Page> {
        let path = |url: &Url| url.path().trim_end_matches('/').to_owned();
        for mapping in self.repositories.all().values() {
            if same_server(&mapping.base_url, url) && path(&mapping.base_url) == path(url) {
                let mut own = url.clone();
                own.set_query(None);
                return Ok((Arc::clone(mapping), own.to_string()));
            }
        }
        let text = "this host and path are no repository here; only repositories that are mapped are asked";
        Err(Page::text(403, text))
    }
}

/// Whether two URLs name one server; the scheme says nothing, a harvester
/// writes http:// to a proxy whatever the source speaks.
fn same_server(one: &Url, other: &Url) -> bool {
    one.host() == other.host() && one.port() == other.port()
}
