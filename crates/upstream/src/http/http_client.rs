//! One HTTP exchange with a source, redirects included.
//!
//! The client library follows no redirect and decodes nothing: this file checks each hop. The result is
//! an [`Exchange`]; [`decoding`](crate::http::decoding) removes the content codings.

use crate::http::address::{Reach, names_private_host};
use crate::http::client_error::{explain_error, refused_address, timed_out};
use crate::http::connector::{ConnectOptions, Http, http};
use crate::http::deadline::{Deadline, TimedOut};
use crate::http::exchange::Exchange;
use crate::http::hop_headers::HopHeaders;
use crate::http::proxy::Proxies;
use crate::http::rate_limit::{HostPermit, LimitUsage, RequestedBy, SourceLimiter};
use crate::http::redirects::{is_redirect, redirect_target};
use crate::settings::{SourceMapping, StaticFile};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, Uri};
use hyper::body::Incoming;
use oaimend_base::credentials::Credentials;
use oaimend_repository::{Failure, Reason, for_operators};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use url::Url;

/// The connections to one source, and the limits of its host. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient {
    http: Http,
    reach: Reach,
    proxies: Proxies,
    /// Headers of each request.
    headers: Arc<HeaderMap>,
    name: Arc<str>,
    mapping: Arc<SourceMapping>,
    limiter: Arc<SourceLimiter>,
    requested_by: RequestedBy,
}

impl HttpClient {
    /// A client for the source of a mapping.
    ///
    /// # Errors
    ///
    /// Its certificates cannot be read.
    pub(crate) fn new(mapping: &Arc<SourceMapping>) -> Result<Self, Failure> {
        let reach = Reach::for_base_url(&mapping.base_url, mapping.access.allow_private);
        let proxies = Proxies::new(mapping);
        let name: Arc<str> = name_of(mapping).into();
        if let Ok(Err(unsupported)) = Uri::try_from(mapping.base_url.as_str()).map(|uri| proxies.find(&uri)) {
            return Err(explain_error(mapping, &name, &unsupported, &mapping.base_url));
        }
        let http = http(ConnectOptions::of_source(mapping, reach, proxies.clone())?)?;
        let headers = Arc::new(headers(mapping));
        let limiter = Arc::new(SourceLimiter::new(mapping));
        let (mapping, requested_by) = (Arc::clone(mapping), RequestedBy::Harvester(None));
        Ok(Self { http, reach, proxies, headers, name, mapping, limiter, requested_by })
    }

    /// The same client for the requests of another client of ours, or of the mirror.
    pub(crate) fn requested_by(self, requested_by: RequestedBy) -> Self {
        Self { requested_by, ..self }
    }

    /// Shares the limits of the host with another client: both send requests to the same host.
    pub(crate) fn share_host(&mut self, other: &Self) {
        self.limiter = Arc::new(self.limiter.on_host_of(&other.limiter));
    }

    /// The number of requests that wait for the limits of the host.
    pub(crate) fn limit_usage(&self, now: SystemTime) -> LimitUsage {
        self.limiter.usage(now)
    }

    /// Waits until the limits of the host allow a request.
    pub(crate) async fn acquire_permit(
        &self,
        is_list: bool,
        deadline: &mut Deadline,
    ) -> Result<HostPermit, Failure> {
        self.limiter.acquire(is_list, self.requested_by, &self.name, deadline).await
    }

    /// Sends a request to the source and follows its redirects. `query` is the request as the source takes
    /// it, `headers` are those that depend on the harvester.
    ///
    /// By POST the request is a form, which is sent to the target of each redirect: without it the request
    /// would be another one. Only after 303 the response is fetched by GET.
    pub(crate) async fn exchange(
        &self,
        query: &str,
        method: &Method,
        headers: &HopHeaders,
        budget: &mut Deadline,
    ) -> Result<Exchange, Failure> {
        let mut form = (*method == Method::POST).then(|| query.to_owned());
        let mut url = match form {
            Some(_) => self.mapping.base_url.clone(),
            None => with_query(&self.mapping, query),
        };
        let (mut redirects, mut redirected_by) = (0, None);
        loop {
            let mut request = self.prepare(&url, form.as_deref(), redirects)?;
            headers.add_to(request.headers_mut());
            let step = self.step();
            let began = budget.now();
            let response = match budget.within(step, self.send(request, &url)).await {
                // After a redirect another server may have failed.
                Ok(Err(failure)) => {
                    return Err(match redirected_by {
                        Some(status) => failure.after_status(status, None),
                        None => failure,
                    });
                }
                Ok(Ok(response)) => response,
                Err(late) => {
                    self.limiter.note(budget.now(), None, None, step);
                    return Err(self.timed_out(late, &url));
                }
            };
            if !is_redirect(response.status().as_u16()) {
                let exchange = Exchange::new(url, response, budget.now());
                let took = budget.now().duration_since(began).unwrap_or_default();
                self.limiter.note(budget.now(), Some(exchange.status), exchange.retry_after_secs, took);
                return Ok(exchange);
            }
            if response.status().as_u16() == 303 {
                form = None;
            }
            (redirects, redirected_by) = (redirects + 1, Some(response.status().as_u16()));
            let max = self.mapping.limits.redirects_max;
            if redirects > max {
                let details = format!("{} redirects more than {max} times (redirects_max)", self.name());
                return Err(
                    Failure::new(Reason::Redirect, details).after_status(response.status().as_u16(), None)
                );
            }
            url = redirect_target(&self.mapping, &self.name, &url, &response)?;
        }
    }

    /// Prepares a request to one address, after a check that the address is allowed: by POST if there is a
    /// form.
    pub(crate) fn prepare(
        &self,
        url: &Url,
        form: Option<&str>,
        redirects: usize,
    ) -> Result<OutgoingRequest, Failure> {
        self.reach.check_literal(url).map_err(|refused| refused_address(&self.name, &refused, redirects))?;
        let uri = Uri::try_from(url.as_str()).map_err(|error| {
            let details =
                format!("{} cannot be requested ({error}); check base_url and its redirects", self.name());
            Failure::new(Reason::Configuration, details)
        })?;
        self.check_proxied(url, &uri, redirects)?;
        let mut request = OutgoingRequest::new(form.unwrap_or_default().to_owned().into());
        *request.uri_mut() = uri;
        *request.headers_mut() = HeaderMap::clone(&self.headers);
        if form.is_some() {
            *request.method_mut() = Method::POST;
            request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(FORM));
        }
        if let Some(authorization) = self.proxies.authorization(request.uri()) {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization);
        }
        if url.origin() == self.mapping.base_url.origin() {
            add_own_headers(&self.mapping, request.headers_mut());
        }
        Ok(request)
    }

    /// Sends a request to the address that it was prepared for.
    pub(crate) async fn send(
        &self,
        request: OutgoingRequest,
        url: &Url,
    ) -> Result<Response<Incoming>, Failure> {
        self.http.request(request).await.map_err(|error| self.failure(&error, url))
    }

    /// Longest wait for a header; a connection may have to be established first.
    pub(crate) fn step(&self) -> Duration {
        self.mapping.timeouts.connect.max(self.mapping.timeouts.read)
    }

    /// The mapping of the repository.
    pub(crate) fn mapping(&self) -> &Arc<SourceMapping> {
        &self.mapping
    }

    /// The name of the source in failures.
    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// A name in a private network is not requested through a proxy, unless the mapping allows private addresses: the
    /// proxy resolves the name, so the resolver cannot check its address.
    fn check_proxied(&self, url: &Url, uri: &Uri, redirects: usize) -> Result<(), Failure> {
        let is_checked = self.reach == Reach::Any || !names_private_host(url);
        if is_checked || !matches!(self.proxies.find(uri), Ok(Some(_))) {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default();
        let host = for_operators(format_args!("{host}, a name"), "a name");
        let how = if redirects > 0 { "redirects to" } else { "is" };
        let details = format!(
            "{} {how} {host} in a private network, which is not requested through a proxy; if this is \
             intended, set allow_private = true in the mapping",
            self.name()
        );
        Err(Failure::new(Reason::AddressRefused, details))
    }

    /// The failure of a response that was not received in time.
    pub(crate) fn timed_out(&self, late: TimedOut, url: &Url) -> Failure {
        timed_out(&self.mapping, &self.name, late, url)
    }

    /// The failure that an error of the client library means.
    pub(crate) fn failure(&self, error: &(dyn Error + 'static), url: &Url) -> Failure {
        explain_error(&self.mapping, &self.name, error, url)
    }
}

/// The name of a source in failures. Harvesters do not learn its address.
fn name_of(mapping: &SourceMapping) -> String {
    let (id, base_url) = (&mapping.id, mapping.shown_base_url());
    match &mapping.static_file {
        None if mapping.tape_file.is_some() => format!("the tape of {id}"),
        None => format!("the source of {id}{}", for_operators(format_args!(" ({base_url})"), "")),
        // Harvesters must not learn the path on this machine.
        Some(StaticFile { path: Some(_), .. }) => format!("the static repository file of {id}"),
        Some(_) => {
            format!("the static repository file of {id}{}", for_operators(format_args!(" ({base_url})"), ""))
        }
    }
}

/// A request on its way to a source.
pub(crate) type OutgoingRequest = http::Request<http_body_util::Full<bytes::Bytes>>;

/// Adds what only the source itself gets: the headers of the mapping and its credentials. No other origin gets them after
/// a redirect, and no log shows them.
fn add_own_headers(mapping: &SourceMapping, headers: &mut HeaderMap) {
    for (name, value) in mapping.access.headers.map() {
        headers.insert(name, value.clone());
    }
    let basic = mapping.access.credentials.as_ref().map(basic);
    let token = mapping.access.bearer_token.as_ref().map(|token| format!("Bearer {}", token.current()));
    if let Some(text) = basic.or(token) {
        let mut value = HeaderValue::from_str(&text).expect("base64 and tokens are visible ASCII");
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
}

fn basic(credentials: &Credentials) -> String {
    format!("Basic {}", STANDARD.encode(format!("{}:{}", credentials.user(), credentials.password())))
}

fn headers(mapping: &SourceMapping) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // Some providers respond to a narrower list with 406.
    headers.insert(header::ACCEPT, HeaderValue::from_static("text/xml, application/xml, */*;q=0.5"));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate, br, zstd"));
    let texts = [
        (header::USER_AGENT, Some(&mapping.access.user_agent)),
        (header::FROM, mapping.access.from.as_ref()),
    ];
    for (name, text) in texts {
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert(name, value);
        }
    }
    headers
}

/// The base URL with the query of the request after its own query, or before it if the mapping says that
/// the verb comes first.
pub(crate) fn with_query(mapping: &SourceMapping, query: &str) -> Url {
    let mut url = mapping.base_url.clone();
    let query = match mapping.base_url.query().filter(|fixed| !fixed.is_empty()) {
        None => query.to_owned(),
        Some(fixed) if mapping.quirks.verb_first => format!("{query}&{fixed}"),
        Some(fixed) => format!("{fixed}&{query}"),
    };
    url.set_query(Some(&query));
    url
}

/// The media type of a request that is sent by POST.
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Limits;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn the_query_follows_the_query_of_the_base_url() {
        let mapping =
            |base: &str| SourceMapping::new("x", base.parse().expect("a literal URL"), &Limits::default());
        let url = |base: &str| with_query(&mapping(base), "verb=Identify").to_string();
        assert_eq!(url("http://x.example/oai"), "http://x.example/oai?verb=Identify");
        assert_eq!(url("http://x.example/oai?"), "http://x.example/oai?verb=Identify");
        assert_eq!(url("http://x.example/oai?repo=1"), "http://x.example/oai?repo=1&verb=Identify");
        let mut mapping = mapping("http://x.example/oai?repo=1");
        mapping.quirks.verb_first = true;
        let url = with_query(&mapping, "verb=Identify").to_string();
        assert_eq!(url, "http://x.example/oai?verb=Identify&repo=1");
    }

    /// A client whose connections may use the addresses of `connections`, independently of its base URL.
    fn client(base_url: &str, connections: Reach) -> HttpClient {
        let base_url = base_url.parse().expect("a literal URL");
        let mut mapping = SourceMapping::new("x", base_url, &Limits::default());
        mapping.access.redirect_hosts = vec!["192.168.0.1".to_owned()];
        let mapping = Arc::new(mapping);
        let client = HttpClient::new(&mapping).expect("a client");
        let options = ConnectOptions::of_source(&mapping, connections, Proxies::new(&mapping));
        let http = options.and_then(http).expect("a client");
        HttpClient { http, reach: Reach::Public, ..client }
    }

    async fn failure_of(client: &HttpClient) -> Failure {
        let mut budget = Deadline::new(Arc::new(oaimend_base::clock::SystemClock), Duration::from_secs(60));
        let exchange =
            client.exchange("verb=Identify", &Method::GET, &HopHeaders::default(), &mut budget).await;
        exchange.err().expect("it fails")
    }

    #[tokio::test]
    async fn a_public_source_must_not_lead_to_a_private_address() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            stream.read_u8().await.expect("a request");
            let head = "HTTP/1.1 302 Found\r\nLocation: http://192.168.0.1/\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(head.as_bytes()).await
        });
        // As if localhost were public: only the literal address in the redirect is refused.
        let redirected = client(&format!("http://localhost:{port}/"), Reach::Any);
        let by_name = client("http://localhost:1/", Reach::Public);
        let by_address = client("http://127.0.0.1:1/", Reach::Any);
        for (client, text) in [
            (redirected, "redirects to an address that is not followed: 192.168.0.1 is at"),
            (by_name, "is not requested: localhost is at"),
            (by_address, "is not requested: 127.0.0.1 is at 127.0.0.1, which is not a public address"),
        ] {
            let failure = failure_of(&client).await;
            assert_eq!(failure.reason, Reason::AddressRefused, "{failure:?}");
            assert!(failure.details.contains(text), "{failure:?}");
            assert!(failure.details.contains("allow_private = true"), "{failure:?}");
        }
    }

    #[tokio::test]
    async fn a_connection_without_tls_handshake_times_out() {
        // The system accepts the connection, and no bytes follow.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let url = format!("https://127.0.0.1:{port}/");
        let mut mapping = SourceMapping::new("x", url.parse().expect("a literal URL"), &Limits::default());
        (mapping.timeouts.connect, mapping.timeouts.read) =
            (Duration::from_millis(50), Duration::from_millis(500));
        let failure = failure_of(&HttpClient::new(&Arc::new(mapping)).expect("a client")).await;
        assert_eq!(failure.reason, Reason::ConnectionTimeout, "{failure:?}");
    }

    #[tokio::test]
    async fn the_failure_contains_an_unresolvable_name() {
        // The name is too long, so no resolver is needed.
        let host = format!("{}.example", "x".repeat(64));
        let failure = failure_of(&client(&format!("http://{host}/"), Reach::Public)).await;
        assert_eq!(failure.reason, Reason::Dns, "{failure:?}");
        assert!(failure.details.contains(&format!("the name {host} cannot be resolved")), "{failure:?}");
    }
}
