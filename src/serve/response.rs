//! Responses that need no source: the start page, the list of repositories, health and refusals.

use bytes::Bytes;
use futures::stream::BoxStream;
use oaimend_base::clock;
use oaimend_repository::Failure;
use oaimend_store::MirrorError;
use std::fmt::Write as _;

/// A response that needs no source.
#[derive(Debug)]
pub(crate) struct OwnPage {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body, if it is not a stream.
    pub(crate) body: Bytes,
    /// A body of any length in place of `body`.
    pub(crate) stream: Option<BodyStream>,
    /// Whether it is answered without a quota: a health check.
    pub(crate) is_health: bool,
    /// Whether it is sent with gzip to clients that accept it.
    pub(crate) may_compress: bool,
}

/// A body of any length. One piece is held at a time. If one fails, the response is truncated.
pub(crate) struct BodyStream(pub(crate) BoxStream<'static, Result<Bytes, MirrorError>>);

impl std::fmt::Debug for BodyStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BodyStream")
    }
}

/// A response of the admin listener.
pub(crate) enum AdminResponse {
    Page(OwnPage),
    /// A response of any length. One piece is held at a time. If one fails, the response is truncated.
    Stream {
        content_type: &'static str,
        pieces: BoxStream<'static, Result<Bytes, MirrorError>>,
    },
}

impl From<OwnPage> for AdminResponse {
    fn from(page: OwnPage) -> Self {
        Self::Page(page)
    }
}

/// The Content-Security-Policy of responses of repositories. A browser would execute XHTML script in their records.
pub(crate) const RESPONSE_SECURITY_POLICY: &str = "default-src 'none'; sandbox";
/// The `Vary` field of responses of repositories.
pub(crate) const RESPONSE_VARY: &str = "Accept-Encoding, Sec-Fetch-Dest";

impl OwnPage {
    /// A plain text.
    pub(crate) fn text(status: u16, text: &str) -> Self {
        Self::new(status, "text/plain; charset=UTF-8", format!("{text}\n"))
    }

    /// A temporary failure with `Retry-After`.
    pub(crate) fn unavailable(retry_after_secs: u64, proxy_status: String, text: &str) -> Self {
        Self::text(503, text)
            .with("Retry-After", retry_after_secs.to_string())
            .with("Proxy-Status", proxy_status)
    }

    /// A request that fails before a request is sent to the source.
    pub(crate) fn failed(failure: &Failure) -> Self {
        let page = Self::new(failure.status(), "text/plain; charset=UTF-8", failure.text())
            .with("Proxy-Status", failure.proxy_status())
            .of_repository();
        match failure.retry_after() {
            Some(secs) => page.with("Retry-After", secs.to_string()),
            None => page,
        }
    }

    /// The request target is too long.
    pub(crate) fn uri_too_long(max: usize) -> Self {
        let text =
            format!("the request target is longer than {max} bytes, the longest that is read; send a POST");
        Self::text(414, &text)
    }

    /// The health of the server.
    pub(crate) fn health(status: u16, text: &str) -> Self {
        Self { is_health: true, ..Self::text(status, text) }
    }

    /// Refuses a client that exceeds a limit. `Proxy-Status` is absent, since the source has not failed.
    pub(crate) fn refused(retry_after_secs: u64, text: &str) -> Self {
        Self::text(503, text)
            .with("Retry-After", retry_after_secs.to_string())
            .with("Cache-Control", "no-store".to_owned())
    }

    /// An OAI-PMH response.
    pub(crate) fn oai(xml: String) -> Self {
        Self::new(200, "text/xml; charset=UTF-8", xml).of_repository()
    }

    /// The page with the headers of all responses of repositories.
    fn of_repository(self) -> Self {
        self.with("Content-Security-Policy", RESPONSE_SECURITY_POLICY.to_owned())
            .with("Vary", RESPONSE_VARY.to_owned())
    }

    pub(crate) fn json(status: u16, value: &serde_json::Value) -> Self {
        Self::new(status, "application/json", format!("{value:#}\n"))
    }

    pub(crate) fn new(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let headers =
            vec![("Content-Type", content_type.to_owned()), ("X-Content-Type-Options", "nosniff".to_owned())];
        Self { status, headers, body: body.into(), stream: None, is_health: false, may_compress: false }
    }

    /// A response with status 200 whose body is made while it is sent. It is sent without further compression.
    pub(crate) fn stream(
        content_type: &'static str,
        pieces: BoxStream<'static, Result<Bytes, MirrorError>>,
    ) -> Self {
        Self { stream: Some(BodyStream(pieces)), ..Self::new(200, content_type, "") }
    }

    /// The complete HTTP/1.1 response, after which the connection is closed.
    pub(crate) fn on_the_wire(&self, instance: &str) -> Vec<u8> {
        let status = http::StatusCode::from_u16(self.status).unwrap_or_default();
        let date = httpdate::fmt_http_date(clock::now());
        let length = self.body.len();
        let mut head = format!("HTTP/1.1 {status}\r\nDate: {date}\r\nVia: 1.1 {instance}\r\n");
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let _ = write!(head, "Content-Length: {length}\r\nConnection: close\r\n\r\n");
        [head.as_bytes(), &self.body].concat()
    }

    /// The page with gzip for clients that accept it.
    #[must_use]
    pub(crate) fn compressible(self) -> Self {
        Self { may_compress: true, ..self }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}
