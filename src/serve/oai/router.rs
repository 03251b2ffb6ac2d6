//! Finds the repository of a request, or the response that needs none. `local` is the address that received the
//! request.

use super::target::{OdlComponent, Target, TargetRepository};
use crate::config::{CorsOrigins, FEDERATION_NAME, Mapping, ServeFrom};
use crate::serve::api::request::{ApiRead, ApiRequest, OwnRequest, is_api, unknown_repository_problem};
use crate::serve::clients::quotas::RequestKind;
use crate::serve::deposit::DepositRequest;
use crate::serve::dumps::{ChangesRequest, DumpRequest};
use crate::serve::health;
use crate::serve::net::lifecycle::Lifecycle;
use crate::serve::pages::start::{friends, repository_list, robots};
use crate::serve::pages::state::GatewayState;
use crate::serve::pages::target::PageTarget;
use crate::serve::pages::{announced_sitemap, is_html_named};
use crate::serve::response::Response;
use crate::serve::routes::{Access, PUBLIC, PublicEndpoint, Route};
use crate::serve::served::ServedRepositories;
use http::{Method, header};
use oaimend_crosswalks::{JSON_LD_SCHEMA, LINKS_SCHEMA};
use oaimend_mirror::repository_index::{INDEX_NAME, SCHEMA};
use oaimend_mirror::view::AggregateRepository;
use oaimend_pages::resolver::ResolverTarget;
use oaimend_pages::route::RecordTarget;
use pingora_http::RequestHeader;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use url::{Position, Url};

/// The part of the program that answers a request.
pub(crate) enum Destination {
    /// A repository.
    Repository(Target),
    /// The search of library systems.
    Sru,
    /// The description of a work.
    OpenUrl,
    /// The resolver of identifiers.
    Resolver(ResolverRequest),
    /// A dump, or its manifest.
    Dump(DumpRequest),
    /// The feed of changes.
    Changes(ChangesRequest),
    /// A page, at a path of this route. `None`: no route leads there.
    Page(PageTarget, Option<&'static Route<PublicEndpoint>>),
    /// A request of a writer.
    Deposit(DepositRequest),
    /// A request to the API that no repository answers.
    Api(OwnRequest),
    /// A request to the API that this repository answers.
    ApiRead(Target, Box<ApiRead>),
    /// The page of a record that is not mirrored, so that its source is asked.
    LiveRecord { mapping: Arc<Mapping>, target: RecordTarget, label: Option<&'static str> },
    /// This response, for those who may have it.
    Response(Response, Access),
}

/// The destination of a request that the limits of its client allow, or the response that refuses it.
pub(crate) type Admitted = std::result::Result<Destination, Response>;

impl Destination {
    /// What the request needs of the limits of its client; `None`: it has none.
    pub(crate) const fn limited_kind(&self) -> Option<RequestKind> {
        match self {
            Self::Repository(_) | Self::Deposit(_) | Self::LiveRecord { .. } | Self::ApiRead(..) => {
                Some(RequestKind::Repository)
            }
            Self::Response(_, Access::Everyone) => None,
            // Services are sources, too.
            Self::Resolver(ResolverRequest { has_services: true, .. }) => Some(RequestKind::Repository),
            Self::Sru
            | Self::OpenUrl
            | Self::Resolver(_)
            | Self::Api(_)
            | Self::Dump(_)
            | Self::Changes(_)
            | Self::Page(..)
            | Self::Response(..) => Some(RequestKind::Page),
        }
    }
}

/// A request to the resolver.
pub(crate) struct ResolverRequest {
    /// What it names; `None` if that is not text in UTF-8.
    pub(crate) target: Option<ResolverTarget>,
    /// Whether it may cause requests to other services.
    pub(crate) has_services: bool,
    pub(crate) label: Option<&'static str>,
}

/// Finds what answers requests, with what it needs to know of the server.
pub(crate) struct PublicRouter<'a> {
    pub(crate) served: &'a ServedRepositories,
    /// The configuration of the gateway for this request.
    pub(crate) gateway: Arc<GatewayState>,
    pub(crate) lifecycle: &'a Lifecycle,
    /// The address of the listener for harvesters.
    pub(crate) listens_on: SocketAddr,
    /// Longest request target, in bytes.
    pub(crate) uri_bytes_max: usize,
}

impl PublicRouter<'_> {
    /// Finds the part of the program that answers a request. `local` is the address that received the request.
    pub(crate) fn route(&self, head: &RequestHeader, local: Option<SocketAddr>) -> Destination {
        let refused = |response| Destination::Response(response, Access::Clients);
        let max = self.uri_bytes_max;
        if head.raw_path().len() > max {
            return refused(Response::uri_too_long(max));
        }
        if self.is_preflight(head) {
            return refused(preflight());
        }
        // The absolute form (RFC 9112, 3.2.2); pingora stores it separately from the URI.
        let is_path = head.raw_path().starts_with(b"/");
        let target = if is_path { None } else { std::str::from_utf8(head.raw_path()).ok() };
        let absolute = target.and_then(|target| Url::parse(target).ok());
        let is_read = [Method::GET, Method::HEAD, Method::POST].contains(&head.method);
        if let Some(url) = &absolute {
            if is_read && let Some(target) = self.mapped(url) {
                return Destination::Repository(target);
            }
            if !self.is_own(url, local) {
                let url = &self.served.public_url;
                let text =
                    format!("no repository here has this base URL; see {url}/ for the known repositories");
                return refused(Response::text(403, &text));
            }
        }
        let own_target =
            absolute.as_ref().map_or(head.raw_path(), |url| url[Position::BeforePath..].as_bytes());
        if is_api(own_target) {
            return self.api(own_target, head);
        }
        let find = |id: &str| self.served.repositories.find(id);
        let written = str::from_utf8(own_target).ok();
        if let Some(deposit) =
            written.and_then(|target| DepositRequest::read(head.method.as_str(), target, find))
        {
            return Destination::Deposit(deposit);
        }
        if !is_read {
            let page = Response::text(405, "GET, HEAD and POST are allowed here");
            return refused(page.with("Allow", "GET, HEAD, POST".to_owned()));
        }
        if let Some(resolver) = self.resolver(own_target, head) {
            return resolver;
        }
        if let Some(dump) = dump_or_changes(own_target, head) {
            return dump;
        }
        if self.gateway.policy.enabled
            && let Some((page, route)) = std::str::from_utf8(own_target).ok().and_then(PageTarget::read)
            && self.is_page(&page, head)
        {
            return self.page(page, route, head);
        }
        self.without_pages(head.uri.path())
    }

    /// What answers a request to the API.
    fn api(&self, target: &[u8], head: &RequestHeader) -> Destination {
        let key = &self.served.store.token_key;
        let mut read = match ApiRequest::read(head.method.as_str(), target, &head.headers, key) {
            ApiRequest::Read(read) => read,
            ApiRequest::Own(request) => return Destination::Api(*request),
        };
        let found = self.repository_at(&read.repository, &self.served.repositories.all());
        let found = found.and_then(|target| Some((target.repository.kind()?, target)));
        match found {
            Some((kind, target)) => {
                read.page.kind = kind;
                Destination::ApiRead(target, read)
            }
            None => Destination::Api(OwnRequest::Response(unknown_repository_problem())),
        }
    }

    /// The resolver, if its path is requested.
    fn resolver(&self, target: &[u8], head: &RequestHeader) -> Option<Destination> {
        let path = target.split(|byte| *byte == b'?').next().map(String::from_utf8_lossy)?;
        let route = PUBLIC.find("GET", &path)?.route;
        if route.endpoint != PublicEndpoint::Resolver {
            return None;
        }
        if PUBLIC.find(head.method.as_str(), &path).is_none() {
            let page = Response::text(405, "one identifier is read by GET or HEAD")
                .with("Allow", route.methods.join(", "));
            return Some(Destination::Response(page, Access::Clients));
        }
        let target = ResolverTarget::read(target);
        let has_identifier = target.as_ref().is_some_and(|target| !target.identifier.is_empty());
        let has_services = has_identifier && self.served.broker.has_services();
        Some(Destination::Resolver(ResolverRequest { target, has_services, label: route.label }))
    }

    /// Whether a browser asks on behalf of a script of another site whether that may send a request (CORS).
    fn is_preflight(&self, head: &RequestHeader) -> bool {
        head.method == Method::OPTIONS
            && self.gateway.policy.cors_origins != CorsOrigins::default()
            && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
    }

    /// The page at a path of this route: from the stores, or from the response of a source.
    fn page(
        &self,
        page: PageTarget,
        route: &'static Route<PublicEndpoint>,
        head: &RequestHeader,
    ) -> Destination {
        let is_allowed = route.methods.contains(&head.method.as_str());
        let mapping = match &page {
            PageTarget::Record(target) if is_allowed => self.served.repositories.find(&target.repository),
            _ => None,
        };
        match (page, mapping.filter(|mapping| mapping.has_live_pages())) {
            (PageTarget::Record(target), Some(mapping)) => {
                Destination::LiveRecord { mapping, target, label: route.label }
            }
            (page, _) => Destination::Page(page, Some(route)),
        }
    }

    /// Whether a request is answered by a page. The URL of a repository is for harvesters too: only browsers get its
    /// page. A repository with the name of a sitemap answers requests with arguments.
    fn is_page(&self, page: &PageTarget, head: &RequestHeader) -> bool {
        match page {
            PageTarget::Repository(id) => {
                let reads = [Method::GET, Method::HEAD].contains(&head.method);
                reads && is_html_named(&head.headers) && self.served.repositories.find(id).is_some()
            }
            PageTarget::Aggregate => {
                let reads = [Method::GET, Method::HEAD].contains(&head.method);
                let mappings = self.served.repositories.all();
                reads && is_html_named(&head.headers) && self.has_aggregate(&mappings)
            }
            PageTarget::Federation(name) => {
                let reads = [Method::GET, Method::HEAD].contains(&head.method);
                let is_served = match name {
                    None => !self.served.repositories.all().is_empty(),
                    Some(name) => self.served.federations.all().contains_key(name),
                };
                reads && is_html_named(&head.headers) && is_served
            }
            PageTarget::View(name) | PageTarget::ViewFeed(name) => {
                let reads = [Method::GET, Method::HEAD].contains(&head.method);
                let is_page = matches!(page, PageTarget::ViewFeed(_)) || is_html_named(&head.headers);
                reads && is_page && self.served.views.all().contains_key(name)
            }
            // ODL-Search and ODL-Recent accept forms.
            PageTarget::Search(target) => target.form.is_some() || head.method != Method::POST,
            PageTarget::Sitemap(_) => {
                let has_arguments =
                    head.method == Method::POST || !head.uri.query().unwrap_or_default().is_empty();
                let name = head.uri.path().trim_start_matches('/');
                !has_arguments || self.served.repositories.find(name).is_none()
            }
            _ => true,
        }
    }

    /// What answers at this path if no page does: a repository, or what exists without a gateway.
    fn without_pages(&self, path: &str) -> Destination {
        let mappings = self.served.repositories.all();
        let route = PUBLIC.find("GET", path).map(|found| found.route);
        let access = route.map_or(Access::Clients, |route| route.access);
        let response = match route.map(|route| route.endpoint) {
            Some(PublicEndpoint::Overview) => repository_list(200, &self.served.public_url, &mappings),
            Some(PublicEndpoint::Friends) => friends(&self.served.public_url, &mappings),
            Some(PublicEndpoint::Robots) => {
                let sitemap = announced_sitemap(&self.gateway, &mappings);
                robots(self.gateway.policy.robots, sitemap.as_deref(), self.served.search().is_some())
            }
            Some(PublicEndpoint::Sru) => return Destination::Sru,
            Some(PublicEndpoint::OpenUrl) => return Destination::OpenUrl,
            Some(PublicEndpoint::IndexSchema) => Response::new(200, "application/xml", SCHEMA),
            Some(PublicEndpoint::CrosswalkSchema) => Response::new(200, "application/xml", JSON_LD_SCHEMA),
            Some(PublicEndpoint::LinksSchema) => Response::new(200, "application/xml", LINKS_SCHEMA),
            // Browsers request it for every site. The pages have no icon.
            Some(PublicEndpoint::Favicon) => {
                Response::no_content().with("Cache-Control", "public, max-age=86400".to_owned())
            }
            Some(PublicEndpoint::Livez) => health::livez(),
            Some(PublicEndpoint::Readyz) => health::readyz(self.lifecycle, &self.served.store.databases),
            _ => {
                let name = path.trim_start_matches('/').trim_end_matches('/');
                match self.repository_at(name, &mappings) {
                    Some(target) => return Destination::Repository(target),
                    None if self.gateway.policy.enabled => {
                        return Destination::Page(PageTarget::Unknown(name.to_owned()), None);
                    }
                    None => repository_list(404, &self.served.public_url, &mappings),
                }
            }
        };
        Destination::Response(response, access)
    }

    /// The repository at this path without slashes around it.
    fn repository_at(&self, name: &str, mappings: &BTreeMap<String, Arc<Mapping>>) -> Option<Target> {
        let path = format!("/{name}");
        let found = PUBLIC.find("GET", &path)?;
        let (endpoint, id) = (found.route.endpoint, found.id());
        let mapped = |id: &str| {
            let mapping = mappings.get(id)?;
            Some(TargetRepository::Mapped(Arc::clone(mapping), mapping.serve))
        };
        let mirrored = || {
            let mapping = mappings.get(id).filter(|mapping| mapping.mirror.is_some())?;
            Some(TargetRepository::Mapped(Arc::clone(mapping), ServeFrom::Mirror))
        };
        let aggregate = || self.has_aggregate(mappings).then_some(TargetRepository::Aggregate);
        let component = |component: OdlComponent| {
            self.served.search()?;
            // The route has the other forms of a page too.
            (name == component.name())
                .then(|| (TargetRepository::Component(component), component.name().to_owned()))
        };
        let view = || Some(TargetRepository::View(Arc::clone(self.served.views.all().get(id)?)));
        let all = || (!mappings.is_empty()).then_some(TargetRepository::Federation(None));
        let federation = || {
            let file = Arc::clone(self.served.federations.all().get(id)?);
            let path = file.path.clone();
            Some((TargetRepository::Federation(Some(file)), path))
        };
        let (repository, name) = match endpoint {
            // A repository may have the name of a sitemap.
            PublicEndpoint::Repository | PublicEndpoint::Sitemap => (mapped(name)?, name.to_owned()),
            PublicEndpoint::RepositoryXml => (mapped(id)?, id.to_owned()),
            PublicEndpoint::Mirror | PublicEndpoint::MirrorXml => (mirrored()?, format!("_mirror/{id}")),
            PublicEndpoint::Aggregate | PublicEndpoint::AggregateXml => {
                (aggregate()?, AggregateRepository::NAME.to_owned())
            }
            PublicEndpoint::Search => component(OdlComponent::Search)?,
            PublicEndpoint::Browse => component(OdlComponent::Browse)?,
            PublicEndpoint::Recent => component(OdlComponent::Recent)?,
            PublicEndpoint::Index => (TargetRepository::Index, INDEX_NAME.to_owned()),
            PublicEndpoint::View | PublicEndpoint::ViewXml => (view()?, format!("_view/{id}")),
            PublicEndpoint::FederationOfAll => (all()?, FEDERATION_NAME.to_owned()),
            PublicEndpoint::Federation => federation()?,
            _ => return None,
        };
        let is_xml = matches!(
            endpoint,
            PublicEndpoint::RepositoryXml
                | PublicEndpoint::MirrorXml
                | PublicEndpoint::AggregateXml
                | PublicEndpoint::ViewXml
        );
        let has_gateway = self.gateway.policy.enabled;
        // Without pages, XML has no URL of its own.
        if is_xml && !has_gateway {
            return None;
        }
        let base_url = format!("{}/{name}", self.served.public_url);
        let path_for_pages = if has_gateway && !is_xml { Some(name) } else { None };
        Some(Target { repository, base_url, path_for_pages, is_absolute: false })
    }

    /// Whether an absolute URL names this server itself.
    fn is_own(&self, url: &Url, local: Option<SocketAddr>) -> bool {
        let loopback = local.filter(|local| local.ip().to_canonical().is_loopback());
        let loopback = loopback.map(|local| format!("http://localhost:{}", local.port()));
        let addresses = [Some(self.listens_on), local].into_iter().flatten();
        let addresses = addresses.map(|address| {
            format!("http://{}", SocketAddr::new(address.ip().to_canonical(), address.port()))
        });
        let names = addresses.chain(loopback).chain([self.served.public_url.clone()]);
        names.filter_map(|name| Url::parse(&name).ok()).any(|name| same_server(&name, url))
    }

    /// The harvester uses this server as its HTTP proxy: finds a repository by its own base URL. Where several share
    /// one path, the query of the base URL decides.
    fn mapped(&self, url: &Url) -> Option<Target> {
        let mappings = self.served.repositories.all();
        let requested: Vec<_> = url.query_pairs().collect();
        let fits = |base: &Url| {
            same_server(base, url)
                && plain_path(base) == plain_path(url)
                && base.query_pairs().all(|pair| requested.contains(&pair))
        };
        let of_source = mappings.values().filter(|mapping| mapping.local.is_none());
        let fitting = of_source.filter(|mapping| fits(&mapping.source.base_url));
        let mapping = fitting.max_by_key(|mapping| {
            let base = &mapping.source.base_url;
            (base.query_pairs().count(), base.scheme() == url.scheme())
        })?;
        let mut base_url = url.clone();
        base_url.set_query(mapping.source.base_url.query());
        base_url.set_fragment(None);
        let repository = TargetRepository::Mapped(Arc::clone(mapping), mapping.serve);
        Some(Target { repository, base_url: base_url.into(), path_for_pages: None, is_absolute: true })
    }

    /// Whether all mirrored repositories are served as one.
    fn has_aggregate(&self, mappings: &BTreeMap<String, Arc<Mapping>>) -> bool {
        self.served.mirror.policy().aggregate && mappings.values().any(|mapping| mapping.mirror.is_some())
    }
}

/// A dump or the feed of changes, if its path is requested.
fn dump_or_changes(target: &[u8], head: &RequestHeader) -> Option<Destination> {
    let target = String::from_utf8_lossy(target);
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let route = PUBLIC.find("GET", path)?.route;
    let (query, label) = (query.to_owned(), route.label);
    let destination = match route.endpoint {
        PublicEndpoint::Dump => Destination::Dump(DumpRequest { query, is_manifest: false, label }),
        PublicEndpoint::DumpManifest => Destination::Dump(DumpRequest { query, is_manifest: true, label }),
        PublicEndpoint::Changes => Destination::Changes(ChangesRequest { query, label }),
        _ => return None,
    };
    if route.methods.contains(&head.method.as_str()) {
        return Some(destination);
    }
    let page = Response::text(405, "GET and HEAD are allowed here").with("Allow", route.methods.join(", "));
    Some(Destination::Response(page, Access::Clients))
}

/// What scripts of other sites may send. `cors` adds whether the site of this one may.
fn preflight() -> Response {
    Response::no_content()
        .with("Access-Control-Allow-Methods", "GET, HEAD, POST".to_owned())
        .with("Access-Control-Allow-Headers", PREFLIGHT_HEADERS.to_owned())
        .with("Access-Control-Max-Age", "86400".to_owned())
}

/// The headers that change a response, and that scripts may send.
const PREFLIGHT_HEADERS: &str = "Accept, Authorization, Content-Type, If-Modified-Since, If-None-Match";

/// Whether two URLs have the same server. The scheme is ignored, since a harvester writes http:// to a proxy for any
/// source. Therefore the default ports of both schemes are equal.
fn same_server(one: &Url, other: &Url) -> bool {
    let port = |url: &Url| url.port().filter(|port| ![80, 443].contains(port));
    let host = |url: &Url| url.host_str().map(|host| host.trim_end_matches('.').to_owned());
    host(one) == host(other) && port(one) == port(other)
}

/// A normalized path (RFC 3986, 6.2.2), without percent-encoding of unreserved characters and without a trailing
/// slash.
fn plain_path(url: &Url) -> String {
    let mut rest = url.path().trim_end_matches('/');
    let mut plain = String::with_capacity(rest.len());
    while let Some((before, after)) = rest.split_once('%') {
        plain.push_str(before);
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                plain.push(char::from(byte));
            }
            Some(byte) => plain.push_str(&format!("%{byte:02X}")),
            None => plain.push('%'),
        }
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a literal URL")
    }

    #[test]
    fn servers_are_compared_by_host_and_port_without_the_scheme() {
        for same in [
            "http://X.example/",
            "https://x.example",
            "http://x.example:80/",
            "http://x.example:443/",
            "http://x.example./",
        ] {
            assert!(same_server(&url("https://x.example/oai"), &url(same)), "{same}");
            assert!(same_server(&url("http://x.example:80/oai"), &url(same)), "{same}");
        }
        for other in ["http://x.example:8080/", "http://y.example/", "http://x.example.org/"] {
            assert!(!same_server(&url("https://x.example/oai"), &url(other)), "{other}");
        }
        assert!(same_server(&url("https://x.example:8443/"), &url("http://x.example:8443/")));
        assert!(same_server(&url("http://[2001:db8::1]:8080/"), &url("http://[2001:DB8:0::1]:8080/")));
    }

    #[test]
    fn paths_are_normalized() {
        let path = |text: &str| plain_path(&url(&format!("http://x{text}")));
        for (one, other) in [
            ("/%7Eme/oai", "/~me/oai"),
            ("/a%2fb", "/a%2Fb"),
            ("/oai/", "/oai"),
            ("", "/"),
            ("/%6f%61i", "/oai"),
        ] {
            assert_eq!(path(one), path(other), "{one}");
        }
        for (one, other) in [("/a%2Fb", "/a/b"), ("/OAI", "/oai"), ("/oai/x", "/oai"), ("/a%2", "/a%25")] {
            assert_ne!(path(one), path(other), "{one}");
        }
    }
}
