//! The receiver of a response: the client, or a buffer from which its page is made.

use super::cache::PageForm;
use super::collected::CollectedResponse;
use super::{gzip, headers};
use crate::serve::net::vectored_stream::VectoredStream;
use crate::serve::response::ResponseSink;
use bytes::Bytes;
use http::{HeaderValue, Method, Version, header};
use oaimend_files::{FileSlice, PageCoding};
use pingora_error::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::Session;
use tokio::task::unconstrained;

/// The receiver of a response.
pub(super) struct Downstream<'a> {
    pub(super) session: &'a mut Session,
    /// The `Via` field of responses.
    pub(super) via: &'a HeaderValue,
    /// `Some`: the response is collected here, and nothing is sent.
    pub(super) collected: Option<&'a mut CollectedResponse>,
}

impl Downstream<'_> {
    /// Whether a response needs its length before its body: HTTP/1.0 has no chunks.
    pub(super) fn needs_length(&self) -> bool {
        self.collected.is_none() && self.session.req_header().version == Version::HTTP_10
    }

    /// Whether the conditions of the request apply to the page: a client receives it by GET or HEAD.
    pub(super) fn is_conditional(&self) -> bool {
        let method = &self.session.req_header().method;
        self.collected.is_none() && (method == Method::GET || method == Method::HEAD)
    }

    /// Whether the response has no body. A page needs the body of its response, also for HEAD.
    pub(super) fn is_head_only(&self) -> bool {
        self.collected.is_none() && self.session.req_header().method == Method::HEAD
    }

    /// The coding in which the client accepts a page. HTTP/1.0 has no codings.
    pub(super) fn accepted_coding(&self) -> PageCoding {
        let request = self.session.req_header();
        let accepted = || headers::joined(request, header::ACCEPT_ENCODING);
        if self.collected.is_none() && request.version != Version::HTTP_10 && gzip::is_accepted(&accepted()) {
            PageCoding::Gzip
        } else {
            PageCoding::Plain
        }
    }

    /// The form in which the client receives a page that is cached.
    pub(super) fn page_form(&self) -> PageForm {
        let may_be_file = self.collected.is_none() && !self.is_head_only() && self.connection().is_some();
        PageForm { coding: self.accepted_coding(), may_be_file }
    }

    /// The connection, if it can send parts of files: HTTP/1 without TLS.
    fn connection(&self) -> Option<&VectoredStream> {
        let stream = self.session.as_downstream().as_http1()?.stream();
        (**stream).as_any().downcast_ref::<VectoredStream>().filter(|stream| stream.sends_files())
    }

    /// Takes the header of a response; `end`: it has no body.
    pub(super) async fn write_head(&mut self, mut head: Box<ResponseHeader>, end: bool) -> Result<()> {
        if let Some(collected) = &mut self.collected {
            collected.head = Some(head);
            return Ok(());
        }
        head.insert_header(header::VIA, self.via.clone())?;
        ResponseSink::write_head(self, head, end).await
    }

    /// Takes a piece of the body.
    ///
    /// # Errors
    ///
    /// The client is gone, or the response does not fit into the buffer.
    pub(super) async fn write_piece(&mut self, piece: Bytes) -> Result<()> {
        match &mut self.collected {
            Some(collected) => collected.push(&piece),
            None => self.session.write_response_body(Some(piece), false).await,
        }
    }

    /// Takes a part of a file as the next piece of the body. The form of the page allows files.
    ///
    /// # Errors
    ///
    /// The client is gone, or the file is shorter.
    pub(super) async fn write_file(&mut self, slice: FileSlice) -> Result<()> {
        let mut left = slice.bytes;
        if let Some(connection) = self.connection() {
            connection.send_file(slice);
        }
        while left > 0 {
            let place = VectoredStream::place(left);
            left -= place.len() as u64;
            self.session.write_response_body(Some(place), false).await?;
        }
        if self.connection().is_some_and(VectoredStream::has_sent_file) {
            Ok(())
        } else {
            Error::e_explain(ErrorType::InternalError, "a part of a file was not sent")
        }
    }

    /// Takes the end of the body.
    pub(super) async fn write_end(&mut self) -> Result<()> {
        match &self.collected {
            Some(_) => Ok(()),
            None => self.session.write_response_body(None, true).await,
        }
    }

    /// Waits for a part of a page while the client is connected.
    pub(super) async fn while_connected<T>(&mut self, awaited: impl Future<Output = T>) -> Result<T> {
        // Data that is always ready uses up the turn of this task, in which the end of the connection would not be seen.
        let disconnected = unconstrained(self.session.as_downstream_mut().read_body_or_idle(true));
        tokio::select! {
            biased;
            done = awaited => Ok(done),
            disconnected = disconnected => {
                Err(disconnected.err().unwrap_or_else(|| Error::new(ErrorType::ConnectionClosed)).into_down())
            }
        }
    }
}

impl ResponseSink for Downstream<'_> {
    fn request(&self) -> &RequestHeader {
        self.session.req_header()
    }

    fn close_afterwards(&mut self) {
        self.session.set_keepalive(None);
    }

    fn complete_head(&self, head: &mut ResponseHeader, may_compress: bool) -> Result<bool> {
        head.insert_header(header::VIA, self.via.clone())?;
        let compresses = may_compress && self.accepted_coding() == PageCoding::Gzip;
        if compresses {
            gzip::mark_tag(head)?;
        }
        Ok(compresses)
    }

    async fn write_head(&mut self, mut head: Box<ResponseHeader>, end: bool) -> Result<()> {
        let has_length = head.headers.contains_key(header::CONTENT_LENGTH);
        if !end && !has_length && self.request().version != Version::HTTP_10 {
            // pingora adds the field only for its own upstreams; HTTP/2 has no such field.
            head.insert_header(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"))?;
        }
        self.session.write_response_header(head, end).await
    }

    async fn write_body(&mut self, piece: Option<Bytes>, end: bool) -> Result<()> {
        self.session.write_response_body(piece, end).await
    }

    async fn next<T>(&mut self, piece: impl Future<Output = T> + Send) -> Result<T> {
        self.while_connected(piece).await
    }
}

/// Sends the start of a response that ends with an error. The connection holds short writes until it is read from, and
/// a client that receives nothing cannot distinguish a truncated page from a proxy that is down.
pub(super) async fn send_held(session: &mut Session) {
    let read = std::pin::pin!(session.as_downstream_mut().read_body_or_idle(true));
    // The connection is closed next; ignore what the client sent.
    let _ = futures::poll!(read);
}
