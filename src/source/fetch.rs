//! One HTTP exchange with a source, redirects included.
//!
//! The client follows nothing and decodes nothing by itself: each hop is
//! checked here, what comes is an [`Exchange`], and codings are [`decoding`](super::decoding)'s work.

use super::address::{Reach, Refused, Unresolved};
use super::breaker::{Breaker, Resting};
use super::budget::{Budget, Late};
use super::exchange::Exchange;
use super::failure::{Failure, Reason};
use super::method::Methods;
use super::politeness::{Turn, Turns};
use super::proof::Sayings;
use super::recall::Recalls;
use super::static_repository::StaticRepository;
use crate::config::{Credentials, Mapping, StaticFile};
use crate::oai::Request;
use reqwest::Method;
use reqwest::header::{self, HeaderMap, HeaderValue};
use std::error::Error as _;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use url::Url;

/// The connections to one source. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    reach: Reach,
    pub(super) mapping: Arc<Mapping>,
    breaker: Arc<Mutex<Breaker>>,
    pub(super) turns: Arc<Turns>,
    pub(super) methods: Arc<Methods>,
    pub(super) recalls: Arc<Recalls>,
    pub(super) sayings: Arc<Sayings>,
    /// Of the mapping.
    pub(super) fingerprint: Arc<str>,
    /// What answers in place of a server, where the source is a file.
    pub(super) stands_in: Option<Arc<StaticRepository>>,
}

impl Client {
    /// A client for a source.
    ///
    /// # Errors
    ///
    /// Its certificates cannot be read.
    pub fn new(mapping: &Arc<Mapping>) -> Result<Self, Failure> {
        let reach = Reach::of(&mapping.base_url, mapping.allow_private);
        let mut builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            // A proxy from the environment would make the address filter look at the wrong address.
            .no_proxy()
            .dns_resolver(Arc::new(reach))
            .connect_timeout(mapping.connect_timeout)
            .danger_accept_invalid_certs(!mapping.verify)
            .default_headers(headers(mapping));
        if let Some(path) = &mapping.ca_file {
            let unusable = |error: &dyn std::fmt::Display| {
                let path = path.display();
                Failure::new(Reason::Configuration, format!("tls.ca_file {path} cannot be used: {error}"))
            };
            let pem = std::fs::read(path).map_err(|error| unusable(&error))?;
            for root in reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| unusable(&error))? {
                builder = builder.add_root_certificate(root);
            }
        }
        let http = builder.build().map_err(|error| {
            Failure::new(Reason::Configuration, format!("no client can be made from the mapping: {error}"))
        })?;
        let turns = Arc::new(Turns::new(&mapping.politeness));
        let methods = Arc::new(Methods::new(mapping.quirks.method));
        let (breaker, recalls, sayings) = Default::default();
        let fingerprint = mapping.fingerprint().into();
        let mapping = Arc::clone(mapping);
        Ok(Self {
            http,
            reach,
            mapping,
            breaker,
            turns,
            methods,
            recalls,
            sayings,
            fingerprint,
            stands_in: None,
        })
    }

    /// May the source be asked now?
    pub(super) fn admit(&self, now: SystemTime) -> Result<(), Failure> {
        self.breaker().admit(now).map_err(|Resting { secs, because }| {
            let details = format!(
                "{} has failed often and is left alone for {secs} more seconds; it last said: {because}",
                self.name()
            );
            Failure { retry_after_secs: secs, ..Failure::new(Reason::Resting, details) }
        })
    }

    /// A request was answered.
    pub(super) fn succeeded(&self) {
        self.breaker().succeeded();
    }

    /// A request failed for good.
    pub(super) fn failed(&self, now: SystemTime, failure: &Failure) {
        self.breaker().failed(now, failure);
    }

    pub(super) fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn at the source.
    pub(super) async fn turn(&self, is_list: bool, budget: &mut Budget) -> Result<Turn, Failure> {
        self.turns.take(is_list, &self.name(), budget).await
    }

    /// Asks the source and follows its redirects. `query` is the request in its own words, `via` the
    /// `Via` header to send.
    ///
    /// By POST the request is a form, which goes wherever a redirect leads: without it
    /// the request would be another one. Only 303 says that the answer is had by GET.
    pub(super) async fn exchange(
        &self,
        query: &str,
        method: &Method,
        via: &str,
        budget: &mut Budget,
    ) -> Result<Exchange, Failure> {
        if let Some(repository) = &self.stands_in {
            let request = Request::parse(query.as_bytes())
                .map_err(|refusal| Failure::new(Reason::Configuration, refusal.text))?;
            let body = repository.answer(self, &request, budget).await?;
            return Ok(Exchange::of_file(self.mapping.base_url.clone(), body));
        }
        let mut form = (*method == Method::POST).then(|| query.to_owned());
        let mut url = match form {
            Some(_) => self.mapping.base_url.clone(),
            None => with_query(&self.mapping, query),
        };
        let mut redirects = 0;
        loop {
            let verb = if form.is_some() { Method::POST } else { Method::GET };
            let mut asked = self.prepare(verb, &url, redirects)?.header(header::VIA, via);
            if let Some(form) = &form {
                asked = asked.header(header::CONTENT_TYPE, FORM).body(form.clone());
            }
            let step = self.step();
            let began = budget.now();
            let asked = match budget.within(step, asked.send()).await {
                Ok(asked) => asked,
                Err(late) => {
                    self.turns.note(budget.now(), None, None, step);
                    return Err(self.late(late, &url));
                }
            };
            let response = asked.map_err(|error| self.failure(&error, &url))?;
            if !is_redirect(response.status().as_u16()) {
                let exchange = Exchange::new(url, response, budget.now());
                let took = budget.now().duration_since(began).unwrap_or_default();
                self.turns.note(budget.now(), Some(exchange.status), exchange.retry_after_secs, took);
                return Ok(exchange);
            }
            if response.status().as_u16() == 303 {
                form = None;
            }
            redirects += 1;
            let max = self.mapping.limits.redirects_max;
            if redirects > max {
                let details = format!("{} redirects more than {max} times (redirects_max)", self.name());
                return Err(
                    Failure::new(Reason::Redirect, details).after_status(response.status().as_u16(), None)
                );
            }
            url = self.redirected(&url, &response)?;
        }
    }

    /// A request to one address, once that is found to be allowed.
    pub(super) fn prepare(
        &self,
        method: Method,
        url: &Url,
        redirects: usize,
    ) -> Result<reqwest::RequestBuilder, Failure> {
        self.reach.check_literal(url).map_err(|refused| self.refused(&refused, redirects))?;
        let asked = self.http.request(method, url.clone());
        Ok(match self.credentials_for(url) {
            Some(credentials) => asked.basic_auth(credentials.user(), Some(credentials.password())),
            None => asked,
        })
    }

    /// Longest wait for a header; a connection may have to be made first.
    pub(super) fn step(&self) -> Duration {
        self.mapping.connect_timeout.max(self.mapping.read_timeout)
    }

    /// The repository that it is the client of.
    pub(super) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// What the source wants to know us by; nobody else is told, wherever a redirect leads.
    fn credentials_for(&self, url: &Url) -> Option<&Credentials> {
        self.mapping.credentials.as_ref().filter(|_| url.origin() == self.mapping.base_url.origin())
    }

    /// Where a redirect leads.
    pub(super) fn redirected(&self, from: &Url, response: &reqwest::Response) -> Result<Url, Failure> {
        let fail = |what: String| {
            let details = format!("{} {what}; set base_url to where it has moved", self.name());
            Failure::new(Reason::Redirect, details).after_status(response.status().as_u16(), None)
        };
        let Some(location) = response.headers().get(header::LOCATION) else {
            return Err(fail("redirects without saying where to".to_owned()));
        };
        let location = String::from_utf8_lossy(location.as_bytes());
        let mut to = from.join(location.trim()).map_err(|_| fail(format!("redirects to \"{location}\"")))?;
        to.set_fragment(None);
        // What a redirect says of users is not ours to say. Only a URL without a host refuses this.
        let _ = (to.set_username(""), to.set_password(None));
        if !matches!(to.scheme(), "http" | "https") {
            return Err(fail(format!("redirects to {to}, which is not http or https")));
        }
        if from.scheme() == "https" && to.scheme() == "http" {
            return Err(fail(format!("redirects from https to {to}, which is not followed")));
        }
        Ok(to)
    }

    fn refused(&self, refused: &Refused, redirects: usize) -> Failure {
        let how = if redirects > 0 { "redirects to an address that is not followed" } else { "is not asked" };
        Failure::new(Reason::AddressRefused, format!("{} {how}: {refused}", self.name()))
    }

    /// How a failure calls the source.
    pub(super) fn name(&self) -> String {
        let Mapping { id, base_url, static_file, .. } = &*self.mapping;
        match static_file {
            None => format!("the source of {id} ({base_url})"),
            // Where it lies on this machine is nobody's business who harvests.
            Some(StaticFile { path: Some(_), .. }) => format!("the static repository file of {id}"),
            Some(_) => format!("the static repository file of {id} ({base_url})"),
        }
    }

    /// What it means that nothing came in time.
    pub(super) fn late(&self, late: Late, url: &Url) -> Failure {
        let (name, host) = (self.name(), url.host_str().unwrap_or_default());
        let details = match late {
            Late::Step => {
                let limit = self.mapping.read_timeout;
                format!("{name}: {host} was silent for {limit:?} (read_timeout_secs)")
            }
            Late::Budget => {
                let limit = self.mapping.limits.first_record_timeout;
                format!("{name} sent no record within {limit:?} (first_record_timeout_secs)")
            }
        };
        Failure::new(Reason::ResponseTimeout, details)
    }

    /// What the client library's error means.
    pub(super) fn failure(&self, error: &reqwest::Error, url: &Url) -> Failure {
        let name = self.name();
        let host = url.host_str().unwrap_or_default();
        if let Some(refused) = cause::<Refused>(error) {
            return self.refused(refused, 0);
        }
        if let Some(unresolved) = cause::<Unresolved>(error) {
            let details =
                format!("{name}: the name {host} cannot be resolved ({unresolved}); check base_url");
            return Failure::new(Reason::Dns, details);
        }
        if let Some(tls) = cause::<rustls::Error>(error) {
            let (reason, remedy) = match tls {
                rustls::Error::InvalidCertificate(_) => (
                    Reason::TlsCertificate,
                    "tell its operator, or set tls.ca_file, or tls.verify = false if it must be trusted",
                ),
                _ => (Reason::TlsProtocol, "it may speak TLS 1.0 or 1.1 only, which are not spoken here"),
            };
            return Failure::new(reason, format!("{name}: TLS with {host} fails: {tls}; {remedy}"));
        }
        if error.is_timeout() {
            let limit = self.mapping.connect_timeout;
            let details = format!("{name}: no connection to {host} within {limit:?} (connect_timeout_secs)");
            return Failure::new(Reason::ConnectionTimeout, details);
        }
        let (reason, what) = kind_of(error);
        let said = innermost(error);
        Failure::new(reason, format!("{name}: {host} {what} ({said})"))
    }
}

fn headers(mapping: &Mapping) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // Some providers answer 406 to a narrower list.
    headers.insert(header::ACCEPT, HeaderValue::from_static("text/xml, application/xml, */*;q=0.5"));
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate, br, zstd"));
    let texts = [(header::USER_AGENT, Some(&mapping.user_agent)), (header::FROM, mapping.from.as_ref())];
    for (name, text) in texts {
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert(name, value);
        }
    }
    headers
}

/// The base URL with the request's query behind what it has of its own, or before it where the
/// mapping says that the verb comes first.
pub(super) fn with_query(mapping: &Mapping, query: &str) -> Url {
    let mut url = mapping.base_url.clone();
    let query = match mapping.base_url.query().filter(|own| !own.is_empty()) {
        None => query.to_owned(),
        Some(own) if mapping.quirks.verb_first => format!("{query}&{own}"),
        Some(own) => format!("{own}&{query}"),
    };
    url.set_query(Some(&query));
    url
}

/// The media type of a request that is made by POST.
pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// Whether the status leads elsewhere.
pub(super) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// The error of that type in the chain of causes.
fn cause<T: std::error::Error + 'static>(error: &reqwest::Error) -> Option<&T> {
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref::<T>() {
            return Some(found);
        }
        // An error wrapped into an io::Error is not its source but inside it.
        next = match cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    None
}

fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

fn kind_of(error: &reqwest::Error) -> (Reason, &'static str) {
    match cause::<std::io::Error>(error).map(std::io::Error::kind) {
        Some(ErrorKind::ConnectionRefused) => {
            return (
                Reason::ConnectionRefused,
                "refuses the connection; check base_url, or wait until it is up",
            );
        }
        Some(ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe) => {
            return (Reason::ConnectionLost, "closed the connection");
        }
        _ => {}
    }
    if error.is_connect() {
        return (Reason::ConnectionRefused, "cannot be reached");
    }
    match cause::<hyper::Error>(error) {
        Some(http) if http.is_parse() => (Reason::HttpProtocol, "does not speak HTTP"),
        Some(http) if http.is_incomplete_message() => {
            (Reason::Incomplete, "closed the connection before the answer was complete")
        }
        _ if error.is_body() || error.is_decode() => (Reason::Incomplete, "broke its answer off"),
        _ => (Reason::ConnectionLost, "closed the connection"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn the_query_goes_behind_the_one_of_the_base_url() {
        let mapping =
            |base: &str| Mapping::new("x", base, &crate::config::Limits::default()).expect("a legal mapping");
        let url = |base: &str| with_query(&mapping(base), "verb=Identify").to_string();
        assert_eq!(url("http://x.example/oai"), "http://x.example/oai?verb=Identify");
        assert_eq!(url("http://x.example/oai?"), "http://x.example/oai?verb=Identify");
        assert_eq!(url("http://x.example/oai?repo=1"), "http://x.example/oai?repo=1&verb=Identify");
        let mut mapping = mapping("http://x.example/oai?repo=1");
        mapping.quirks.verb_first = true;
        let url = with_query(&mapping, "verb=Identify").to_string();
        assert_eq!(url, "http://x.example/oai?verb=Identify&repo=1");
    }

    fn client(base_url: &str, http: reqwest::Client) -> Client {
        let mapping = Mapping::new("x", base_url, &crate::config::Limits::default());
        let made = Client::new(&Arc::new(mapping.expect("a legal mapping"))).expect("a client");
        Client { http, reach: Reach::Public, ..made }
    }

    fn http(reach: Reach) -> reqwest::Client {
        let builder = reqwest::Client::builder().no_proxy().dns_resolver(Arc::new(reach));
        builder.redirect(reqwest::redirect::Policy::none()).build().expect("a client")
    }

    async fn failure_of(client: &Client) -> Failure {
        let mut budget = Budget::new(Arc::new(crate::clock::SystemClock), Duration::from_secs(60));
        let exchange = client.exchange("verb=Identify", &Method::GET, "1.1 test", &mut budget).await;
        exchange.err().expect("it fails")
    }

    #[tokio::test]
    async fn a_public_source_must_not_lead_to_a_private_address() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            stream.read_u8().await.expect("a request");
            let head = "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(head.as_bytes()).await
        });
        // As if localhost were public: only the literal behind the redirect is refused.
        let redirected = client(&format!("http://localhost:{port}/"), http(Reach::Any));
        let by_name = client("http://localhost:1/", http(Reach::Public));
        let by_address = client("http://127.0.0.1:1/", http(Reach::Any));
        for (client, text) in [
            (redirected, "redirects to an address that is not followed: 169.254.169.254 is at"),
            (by_name, "is not asked: localhost is at"),
            (by_address, "is not asked: 127.0.0.1 is at 127.0.0.1, which is no public address"),
        ] {
            let failure = failure_of(&client).await;
            assert_eq!(failure.reason, Reason::AddressRefused, "{failure:?}");
            assert!(failure.details.contains(text), "{failure:?}");
            assert!(failure.details.contains("allow_private = true"), "{failure:?}");
        }
    }

    #[tokio::test]
    async fn a_name_that_cannot_be_resolved_is_named() {
        // Too long for a name, so no resolver has to be asked.
        let host = format!("{}.example", "x".repeat(64));
        let failure = failure_of(&client(&format!("http://{host}/"), http(Reach::Public))).await;
        assert_eq!(failure.reason, Reason::Dns, "{failure:?}");
        assert!(failure.details.contains(&format!("the name {host} cannot be resolved")), "{failure:?}");
    }
}
