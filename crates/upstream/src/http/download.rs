//! GET requests to files that records link to, such as full texts.
//!
//! The URLs come from records, so they are hostile: the caller allows their hosts. No credentials are sent, no redirect is
//! followed, and a public name must have public addresses.

use crate::http::address::{Reach, Refused, names_private_host};
use crate::http::client_error::{cause, innermost};
use crate::http::connector::{ConnectOptions, Http, http};
use crate::http::exchange::retry_after_secs;
use crate::http::proxy::Proxies;
use crate::settings::SourceMapping;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use oaimend_base::clock::Clock;
use oaimend_repository::Failure;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Longest time of one exchange, with its body.
const EXCHANGE_MAX: Duration = Duration::from_secs(300);

/// Fetches files that records of a repository link to.
#[derive(Clone, Debug)]
pub struct Downloader {
    public: Http,
    any: Http,
    proxies: Proxies,
    headers: HeaderMap,
    allows_private: bool,
    read_timeout: Duration,
    clock: Arc<dyn Clock>,
}

/// A response. Its body is read if its status is 200.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Download {
    /// The status.
    pub status: u16,
    /// `Retry-After`, in seconds.
    pub retry_after_secs: Option<u64>,
    /// `Location`, resolved.
    pub location: Option<Url>,
    /// The body, at most one byte longer than allowed.
    pub body: Vec<u8>,
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DownloadError {
    /// The address is not public, or is never requested.
    AddressRefused(String),
    /// The server cannot be reached, or broke the response off.
    NoResponse(String),
}

impl Downloader {
    /// A client with the `User-Agent`, proxy and certificates of a mapping, and without its credentials.
    ///
    /// # Errors
    ///
    /// Its certificates cannot be read.
    pub fn new(mapping: &SourceMapping, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        let proxies = Proxies::new(mapping);
        let client = |reach| {
            let options = ConnectOptions::of_source(mapping, reach, proxies.clone())?;
            http(ConnectOptions { client_certificate: None, ..options })
        };
        let (public, any) = (client(Reach::Public)?, client(Reach::Any)?);
        let mut headers = HeaderMap::new();
        let texts = [
            (header::USER_AGENT, Some(&mapping.access.user_agent)),
            (header::FROM, mapping.access.from.as_ref()),
        ];
        for (name, text) in texts {
            if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
                headers.insert(name, value);
            }
        }
        let (allows_private, read_timeout) = (mapping.access.allow_private, mapping.timeouts.read);
        Ok(Self { public, any, proxies, headers, allows_private, read_timeout, clock })
    }

    /// Requests a URL, whose host the caller has allowed, and reads at most `bytes_max` and one byte of the body.
    ///
    /// # Errors
    ///
    /// There is no whole response.
    pub async fn get(
        &self,
        url: &Url,
        accept: &'static str,
        bytes_max: usize,
    ) -> Result<Download, DownloadError> {
        // A person has named the host, and a private one on purpose.
        let reach = if self.allows_private || names_private_host(url) { Reach::Any } else { Reach::Public };
        self.get_in(reach, url, accept, bytes_max).await
    }

    /// The same for a URL whose host nobody has allowed: it must have a public address.
    ///
    /// # Errors
    ///
    /// There is no whole response.
    pub async fn get_public(
        &self,
        url: &Url,
        accept: &'static str,
        bytes_max: usize,
    ) -> Result<Download, DownloadError> {
        self.get_in(Reach::Public, url, accept, bytes_max).await
    }

    async fn get_in(
        &self,
        reach: Reach,
        url: &Url,
        accept: &'static str,
        bytes_max: usize,
    ) -> Result<Download, DownloadError> {
        tokio::select! {
            download = self.exchange(reach, url, accept, bytes_max) => download,
            () = self.clock.deadline(EXCHANGE_MAX) => Err(late(EXCHANGE_MAX)),
        }
    }

    async fn exchange(
        &self,
        reach: Reach,
        url: &Url,
        accept: &'static str,
        bytes_max: usize,
    ) -> Result<Download, DownloadError> {
        reach.check_literal(url).map_err(|refused| DownloadError::AddressRefused(refused.to_string()))?;
        let uri =
            Uri::try_from(url.as_str()).map_err(|error| DownloadError::NoResponse(error.to_string()))?;
        let mut request = http::Request::new(Full::default());
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(accept));
        if let Some(authorization) = self.proxies.authorization(&uri) {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization);
        }
        *request.uri_mut() = uri;
        let client = if reach == Reach::Any { &self.any } else { &self.public };
        let response = self.within(client.request(request)).await?.map_err(|error| explain(&error))?;
        self.read(url, response, bytes_max).await
    }

    async fn read(
        &self,
        url: &Url,
        mut response: Response<Incoming>,
        bytes_max: usize,
    ) -> Result<Download, DownloadError> {
        let text = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok());
        let mut download = Download {
            status: response.status().as_u16(),
            retry_after_secs: text(header::RETRY_AFTER)
                .and_then(|text| retry_after_secs(text, self.clock.now())),
            location: text(header::LOCATION).and_then(|text| url.join(text.trim()).ok()),
            body: Vec::new(),
        };
        if download.status != 200 {
            return Ok(download);
        }
        while download.body.len() <= bytes_max {
            let frame = self.within(response.body_mut().frame()).await?;
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| explain(&error))?;
            if let Ok(data) = frame.into_data() {
                let room = (bytes_max + 1).saturating_sub(download.body.len());
                download.body.extend_from_slice(&data[..data.len().min(room)]);
            }
        }
        Ok(download)
    }

    /// Awaits a step of the server, within the read timeout of the mapping.
    async fn within<T>(&self, step: impl Future<Output = T>) -> Result<T, DownloadError> {
        tokio::select! {
            result = step => Ok(result),
            () = self.clock.deadline(self.read_timeout) => Err(late(self.read_timeout)),
        }
    }
}

fn late(limit: Duration) -> DownloadError {
    DownloadError::NoResponse(format!("no response within {limit:?}"))
}

fn explain(error: &(dyn std::error::Error + 'static)) -> DownloadError {
    match cause::<Refused>(error) {
        Some(refused) => DownloadError::AddressRefused(refused.to_string()),
        None => DownloadError::NoResponse(innermost(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Limits;
    use oaimend_base::clock::SystemClock;

    #[tokio::test]
    async fn addresses_of_the_link_are_refused() {
        let base_url = "http://x.example/oai".parse().expect("a literal URL");
        let mapping = SourceMapping::new("x", base_url, &Limits::default());
        let downloader = Downloader::new(&mapping, Arc::new(SystemClock)).expect("a client");
        for url in ["http://169.254.169.254/1.pdf", "http://[fd00:ec2::254]/1.pdf"] {
            let got = downloader.get(&url.parse().expect("a literal URL"), "application/pdf", 10).await;
            assert!(matches!(got, Err(DownloadError::AddressRefused(_))), "{url}: {got:?}");
        }
        let private = "http://127.0.0.1:1/robots.txt".parse().expect("a literal URL");
        let got = downloader.get_public(&private, "text/plain", 10).await;
        assert!(matches!(got, Err(DownloadError::AddressRefused(_))), "{got:?}");
    }
}
