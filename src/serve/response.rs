//! The responses of both listeners, except for pages of repositories: those are written as they arrive, by
//! `oai::page_response`.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{Method, Version, header};
use oaimend_repository::Failure;
use oaimend_store::MirrorError;
use pingora_error::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};

/// A response that is complete before it is sent, except for a body that is made meanwhile.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Body,
    /// Whether it is sent with gzip to clients that accept it.
    pub(crate) may_compress: bool,
}

/// The body of a response.
pub(crate) enum Body {
    Bytes(Bytes),
    /// A body of any length. One piece is held at a time. If one fails, the response is truncated.
    Stream(BoxStream<'static, Result<Bytes, MirrorError>>),
}

/// Writes a response to the client of a listener.
pub(crate) trait ResponseSink {
    /// The request that is answered.
    fn request(&self) -> &RequestHeader;

    /// Closes the connection after the response.
    fn close_afterwards(&mut self);

    /// Adds the headers that all responses of the listener have. Returns whether the body will be compressed.
    fn complete_head(&self, head: &mut ResponseHeader, may_compress: bool) -> Result<bool>;

    /// Writes the header; `end`: there is no body. A body without a length is sent in chunks.
    async fn write_head(&mut self, head: Box<ResponseHeader>, end: bool) -> Result<()>;

    /// Writes a piece of the body; `end`: it is the last one.
    async fn write_body(&mut self, piece: Option<Bytes>, end: bool) -> Result<()>;

    /// Waits for the next piece of a body.
    ///
    /// # Errors
    ///
    /// The client is gone.
    async fn next<T>(&mut self, piece: impl Future<Output = T> + Send) -> Result<T>;
}

/// The Content-Security-Policy of responses of repositories. A browser would execute XHTML script in their records.
pub(crate) const RESPONSE_SECURITY_POLICY: &str = "default-src 'none'; sandbox";
/// The `Vary` field of responses of repositories.
pub(crate) const RESPONSE_VARY: &str = "Accept-Encoding, Oaimend-Harvester, Sec-Fetch-Dest";

/// The `Vary` field of the response to a query. The URL of a repository without one is its page, if `Accept` names HTML.
pub(crate) const fn response_vary(query: &str) -> &'static str {
    if query.is_empty() {
        "Accept, Accept-Encoding, Oaimend-Harvester, Sec-Fetch-Dest"
    } else {
        RESPONSE_VARY
    }
}

impl Response {
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

    /// A response without content.
    pub(crate) fn no_content() -> Self {
        Self { status: 204, headers: Vec::new(), body: Body::Bytes(Bytes::new()), may_compress: false }
    }

    pub(crate) fn new(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let headers =
            vec![("Content-Type", content_type.to_owned()), ("X-Content-Type-Options", "nosniff".to_owned())];
        Self { status, headers, body: Body::Bytes(body.into()), may_compress: false }
    }

    /// A response with status 200 whose body is made while it is sent. It is sent without further compression.
    pub(crate) fn stream(
        content_type: &'static str,
        pieces: BoxStream<'static, Result<Bytes, MirrorError>>,
    ) -> Self {
        Self { body: Body::Stream(pieces), ..Self::new(200, content_type, "") }
    }

    /// [`Response::stream`] with text of others, which a browser must not execute.
    pub(crate) fn download(
        content_type: &'static str,
        pieces: BoxStream<'static, Result<Bytes, MirrorError>>,
    ) -> Self {
        Self::stream(content_type, pieces)
            .with("Content-Security-Policy", RESPONSE_SECURITY_POLICY.to_owned())
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

    /// Sends the response. Without its end, the client notices that a body is truncated.
    ///
    /// # Errors
    ///
    /// The client is gone, or a piece of the body cannot be made.
    pub(crate) async fn send(self, client: &mut impl ResponseSink) -> Result<()> {
        let mut head = ResponseHeader::build(self.status, Some(self.headers.len() + 2))?;
        for (name, value) in self.headers {
            head.insert_header(name, value)?;
        }
        let compresses = client.complete_head(&mut head, self.may_compress)?;
        let request = client.request();
        let is_empty = matches!(self.status, 204 | 304);
        let has_no_body = request.method == Method::HEAD || is_empty;
        match &self.body {
            // HTTP/1.0 knows no chunks: the end of the connection is the end of the response.
            Body::Stream(_) if request.version == Version::HTTP_10 => client.close_afterwards(),
            Body::Bytes(body) if !compresses && !is_empty => {
                head.insert_header(header::CONTENT_LENGTH, body.len())?;
            }
            _ => {}
        }
        client.write_head(Box::new(head), has_no_body).await?;
        match self.body {
            _ if has_no_body => Ok(()),
            Body::Bytes(body) => client.write_body(Some(body), true).await,
            Body::Stream(mut pieces) => {
                while let Some(piece) = client.next(pieces.next()).await? {
                    let failed = |error| Error::because(ErrorType::InternalError, "the mirror", error);
                    client.write_body(Some(piece.map_err(failed)?), false).await?;
                }
                client.write_body(None, true).await
            }
        }
    }
}
