//! POST requests to an address that the operator has configured, such as a webhook.
//!
//! It is not a source: private addresses are allowed, and a redirect is not followed.

use crate::http::address::Reach;
use crate::http::client_error::innermost;
use crate::http::connector::{ConnectOptions, Http, http};
use crate::http::proxy::Proxies;
use http::{HeaderMap, Method, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use oaimend_base::clock::Clock;
use std::path::Path;
use std::time::Duration;
use url::Url;

/// Longest wait for a connection, and longest wait for the header of the response.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Longest wait for the response to a long body, whole.
const LONG_TIMEOUT: Duration = Duration::from_secs(300);
/// Longest body of a response that is read, in bytes.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// An address that receives POST requests.
#[derive(Debug)]
pub struct Endpoint {
    http: Http,
    uri: Uri,
}

impl Endpoint {
    /// An address. The certificates in `ca_file` may sign that of the server, in addition to the usual ones.
    ///
    /// # Errors
    ///
    /// The certificates cannot be read, or the address cannot be requested.
    pub fn new(url: &Url, ca_file: Option<&Path>) -> Result<Self, String> {
        let options = ConnectOptions {
            reach: Reach::Any,
            ca_file,
            verify: true,
            timeout: TIMEOUT,
            proxies: Proxies::default(),
            client_certificate: None,
        };
        let http = http(options).map_err(|failure| failure.details)?;
        let uri = Uri::try_from(url.as_str()).map_err(|error| format!("its URL cannot be used: {error}"))?;
        Ok(Self { http, uri })
    }

    /// Sends a request, and returns the status of the response.
    ///
    /// # Errors
    ///
    /// There is no response. The text does not contain the URL.
    pub async fn post(
        &self,
        headers: HeaderMap,
        body: Vec<u8>,
        clock: &dyn Clock,
    ) -> Result<StatusCode, String> {
        tokio::select! {
            response = self.exchange(headers, body) => Ok(response?.status()),
            () = clock.deadline(TIMEOUT) => Err(format!("no response within {TIMEOUT:?}")),
        }
    }

    /// Sends a request with a long body, and returns the whole response, which has at most 1 MiB.
    ///
    /// # Errors
    ///
    /// There is no whole response. The text does not contain the URL.
    pub async fn post_long(
        &self,
        headers: HeaderMap,
        body: Vec<u8>,
        clock: &dyn Clock,
    ) -> Result<Response<Vec<u8>>, String> {
        let exchange = async {
            let (head, body) = self.exchange(headers, body).await?.into_parts();
            let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
            let body = body.map_err(|error| format!("the response is not whole: {error}"))?;
            Ok(Response::from_parts(head, body.to_bytes().to_vec()))
        };
        tokio::select! {
            response = exchange => response,
            () = clock.deadline(LONG_TIMEOUT) => Err(format!("no response within {LONG_TIMEOUT:?}")),
        }
    }

    async fn exchange(&self, headers: HeaderMap, body: Vec<u8>) -> Result<Response<Incoming>, String> {
        let mut request = http::Request::new(http_body_util::Full::from(body));
        (*request.method_mut(), *request.uri_mut()) = (Method::POST, self.uri.clone());
        *request.headers_mut() = headers;
        let user_agent = concat!("oaimend/", env!("CARGO_PKG_VERSION"));
        request.headers_mut().insert(header::USER_AGENT, header::HeaderValue::from_static(user_agent));
        self.http.request(request).await.map_err(|error| format!("no response: {}", innermost(&error)))
    }
}
