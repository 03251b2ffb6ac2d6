//! Which repository a request is for, or which page of ours.

use super::Shared;
use super::pages::Page;
use crate::config::Mapping;
use http::{Uri, Version};
use pingora_http::RequestHeader;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Where a request goes.
pub(super) enum Target {
    /// It is answered by ourselves.
    Page(Page),
    /// A repository, and the base URL that its answers are to say.
    Repository(Arc<Mapping>, String),
}

impl Shared {
    /// Finds the target of a request.
    pub(super) fn route(&self, head: &RequestHeader) -> Target {
        let uri = &head.uri;
        // HTTP/2 always names the authority; in HTTP/1 that is the form for proxies (RFC 9112, 3.2.2).
        if head.version < Version::HTTP_2 && uri.authority().is_some() && !self.is_own(uri) {
            return self.route_absolute(uri);
        }
        let path = uri.path();
        let mappings = self.repositories.all();
        Target::Page(match path {
            "/" => Page::repositories(200, &self.public_url, &mappings),
            "/friends.xml" => Page::friends(&self.public_url, &mappings),
            "/robots.txt" => Page::robots(),
            "/-/livez" => Page::text(200, "ok"),
            "/-/readyz" => self.readiness(),
            _ => {
                let id = path.trim_start_matches('/').trim_end_matches('/');
                match mappings.get(id) {
                    Some(mapping) => {
                        return Target::Repository(Arc::clone(mapping), format!("{}/{id}", self.public_url));
                    }
                    None => Page::repositories(404, &self.public_url, &mappings),
                }
            }
        })
    }

    /// Whether we take requests; the sources have no say in it.
    pub(super) fn readiness(&self) -> Page {
        if self.draining.load(Ordering::Relaxed) {
            return Page::text(503, "ending");
        }
        Page::text(200, "ok")
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
    fn is_own(&self, uri: &Uri) -> bool {
        let public = self.public_url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        public.split('/').next().is_some_and(|own| own.eq_ignore_ascii_case(authority))
            || authority == self.listens_on.to_string()
    }

    /// We are the harvester's HTTP proxy: a repository under its own name.
    fn route_absolute(&self, uri: &Uri) -> Target {
        for mapping in self.repositories.all().values() {
            let base = &mapping.base_url;
            let same_host = uri
                .host()
                .is_some_and(|host| base.host_str().is_some_and(|own| own.eq_ignore_ascii_case(host)));
            let port = uri.port_u16().filter(|&port| !(port == 80 && uri.scheme_str() == Some("http")));
            if same_host
                && port == base.port()
                && uri.path().trim_end_matches('/') == base.path().trim_end_matches('/')
            {
                let own = format!(
                    "{}://{}{}",
                    uri.scheme_str().unwrap_or("http"),
                    uri.authority().map_or("", |a| a.as_str()),
                    uri.path()
                );
                return Target::Repository(Arc::clone(mapping), own);
            }
        }
        Target::Page(Page::text(
            403,
            "this host and path are no repository here; only repositories that are mapped are asked",
        ))
    }
}
