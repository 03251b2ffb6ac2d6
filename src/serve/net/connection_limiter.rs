//! Limits connections of harvesters, from the first byte to the first complete header.
//!
//! pingora has no deadline for a complete header, keeps idle connections open without limit, and counts neither.
//! Therefore each connection passes this module first: it is counted, its header is read within limits, and then pingora
//! serves it like a new connection.
//!
//! Invariants: the number of connections is limited, in total and for each address. A connection without a request is
//! closed after a limited time. The bytes read of a header are limited. pingora always receives a complete header.

use super::connection::Connection;
use super::handover::{self, HandoverState};
use super::tls_listener::{Started, TlsListener};
use super::vectored_stream::VectoredStream;
use crate::config::Connections;
use crate::serve::clients::client_class::ClientNetwork;
use crate::serve::context::ServerContext;
use crate::serve::oai::ProxyService;
use crate::serve::response::{Body, Response};
use crate::serve::telemetry::labels::RefusalReason;
use async_trait::async_trait;
use bytes::{Buf as _, BytesMut};
use oaimend_base::clock;
use pingora_core::apps::{
    HttpPersistentSettings, HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp,
};
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::{ALPN, Stream};
use pingora_core::server::ShutdownWatch;
use pingora_proxy::HttpProxy;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The proxy of pingora with our phases.
pub(super) type Proxy = HttpProxy<ProxyService, ()>;

/// Counts connections, and passes them to pingora.
pub(super) struct ConnectionLimiter {
    shared: Arc<ServerContext>,
    open: Mutex<OpenConnections>,
}

/// The number of open connections: all, and those of each limited address.
#[derive(Default)]
struct OpenConnections {
    all: usize,
    of: HashMap<ClientNetwork, usize>,
    /// When the limit was last logged.
    warned_at: Option<Duration>,
}

/// One open connection.
struct OpenConnection<'a> {
    limiter: &'a ConnectionLimiter,
    origin: Option<ClientNetwork>,
    /// The response, if the connection exceeds a limit.
    refused: Option<Response>,
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.limiter.open.lock().unwrap_or_else(PoisonError::into_inner).remove(self.origin);
        self.limiter.shared.telemetry.metrics.connections.dec();
    }
}

impl OpenConnections {
    /// Counts a connection, if no limit is reached.
    fn admit(&mut self, origin: Option<ClientNetwork>, limits: &Connections) -> Result<(), RefusalReason> {
        let of_client = origin.map_or(0, |origin| self.of.get(&origin).copied().unwrap_or(0));
        if self.all >= limits.connections_max {
            return Err(RefusalReason::Connections);
        }
        if of_client >= limits.per_client_max {
            return Err(RefusalReason::ClientConnections);
        }
        self.add(origin);
        Ok(())
    }

    fn add(&mut self, origin: Option<ClientNetwork>) {
        self.all += 1;
        if let Some(origin) = origin {
            *self.of.entry(origin).or_default() += 1;
        }
    }

    fn remove(&mut self, origin: Option<ClientNetwork>) {
        self.all -= 1;
        let Some(origin) = origin else { return };
        if let Some(count) = self.of.get_mut(&origin) {
            *count -= 1;
            if *count == 0 {
                self.of.remove(&origin);
            }
        }
    }
}

/// The result of reading a header.
enum ReceivedHead {
    /// A complete header, with the bytes after it.
    Whole(BytesMut),
    /// The start of an HTTP/2 connection.
    Http2(BytesMut),
    /// The client sent nothing, or has left.
    Gone,
    /// The header is refused.
    Refused(RefusalReason, Response),
}

impl ConnectionLimiter {
    pub(super) fn new(shared: Arc<ServerContext>) -> Self {
        Self { shared, open: Mutex::default() }
    }

    /// Serves one connection to its end.
    pub(super) async fn serve(
        &self,
        proxy: Arc<Proxy>,
        socket: TcpStream,
        peer: SocketAddr,
        shutdown: ShutdownWatch,
    ) {
        let Some(mut entry) = self.admit(peer) else { return };
        let connection = Connection::new(socket, peer);
        let tls = self.shared.tls.as_ref().filter(|tls| tls.has_accepted(connection.local()));
        let stream: Stream = match tls {
            None => Box::new(VectoredStream::on_tcp(connection)),
            Some(tls) => {
                let Some(stream) = self.start_tls(tls, Box::new(connection.into_socket()), peer).await else {
                    return;
                };
                if entry.refused.is_none() && stream.selected_alpn_proto() == Some(ALPN::H2) {
                    return self.serve_http_2(proxy, stream, &shutdown).await;
                }
                Box::new(VectoredStream::on(stream))
            }
        };
        match entry.refused.take() {
            Some(page) => self.refuse(stream, page).await,
            None => self.serve_http_1(proxy, stream, peer, shutdown).await,
        }
    }

    async fn serve_http_1(
        &self,
        proxy: Arc<Proxy>,
        mut stream: Stream,
        peer: SocketAddr,
        mut shutdown: ShutdownWatch,
    ) {
        let mut settings = None;
        loop {
            let head = match self.read_head(&mut stream, &mut shutdown).await {
                ReceivedHead::Whole(head) => head,
                ReceivedHead::Http2(read) => return self.serve_h2c(proxy, stream, &read, &shutdown).await,
                ReceivedHead::Gone => {
                    // Over TLS, the client can then distinguish this end from an interruption.
                    let _ = timeout(CLOSE_WAIT_MAX, stream.shutdown()).await;
                    return;
                }
                ReceivedHead::Refused(reason, page) => {
                    self.shared.telemetry.refused(None, reason);
                    tracing::debug!(%peer, reason = reason.name(), "refused");
                    return self.refuse(stream, page).await;
                }
            };
            let mut session = ServerSession::new_http1(stream);
            match settings.take() {
                Some(settings) => HttpPersistentSettings::apply_to_session(settings, &mut session),
                // pingora follows the request; the duration is limited here.
                None => session.set_keepalive(Some(60)),
            }
            session.set_pipelined_prefix(head);
            let Some(reused) = proxy.process_new_http(session, &shutdown).await else { return };
            (stream, settings) = reused.consume();
        }
    }

    /// Counts a connection. `None`: it is closed without a response.
    fn admit(&self, peer: SocketAddr) -> Option<OpenConnection<'_>> {
        let now = self.shared.clients.current();
        let limits = &now.connections;
        let is_counted = !now.classes.is_local_or_trusted(peer.ip());
        let origin = is_counted.then(|| ClientNetwork::of(peer.ip()));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = open.admit(origin, limits);
        if let Err(reason) = admitted {
            self.shared.telemetry.refused(None, reason);
            let now = clock::uptime();
            if open.warned_at.is_none_or(|warned_at| now.saturating_sub(warned_at) >= WARNING_INTERVAL) {
                open.warned_at = Some(now);
                let (reason, connections) = (reason.name(), open.all);
                tracing::warn!(reason, connections, %peer, "too many connections; see [connections]");
            }
            // The number of refusals in progress is limited too.
            if open.all >= limits.connections_max.saturating_add(REFUSED_MAX) {
                return None;
            }
            open.add(origin);
        }
        let refused = admitted.err().map(|reason| match reason {
            RefusalReason::Connections => {
                Response::refused(CONNECTION_WAIT_SECS, "too many connections are open; retry later")
            }
            _ => Response::refused(
                CONNECTION_WAIT_SECS,
                "too many connections are open from your address; use one for many requests",
            ),
        });
        self.shared.telemetry.metrics.connections.inc();
        Some(OpenConnection { limiter: self, origin, refused })
    }

    /// Reads one complete header within the limits.
    async fn read_head(&self, stream: &mut Stream, shutdown: &mut ShutdownWatch) -> ReceivedHead {
        let now = self.shared.clients.current();
        let limits = &now.connections;
        let mut read = BytesMut::with_capacity(READ_BYTES);
        // Between two requests a connection may be closed at any time.
        let first_read = tokio::select! {
            first_read = timeout(limits.idle_timeout, stream.read_buf(&mut read)) => first_read,
            () = self.ending(shutdown) => return ReceivedHead::Gone,
        };
        if !matches!(first_read, Ok(Ok(1..))) {
            return ReceivedHead::Gone;
        }
        match timeout(limits.request_timeout, self.read_rest(stream, read)).await {
            Ok(head) => head,
            Err(_) => {
                let text = "the header was not received in time";
                ReceivedHead::Refused(RefusalReason::SlowHeader, Response::text(408, text))
            }
        }
    }

    /// Waits until this connection accepts no new request.
    async fn ending(&self, shutdown: &mut ShutdownWatch) {
        // The sender was dropped; ignore.
        let _ = shutdown.wait_for(|is_over| *is_over).await;
        // During a handover a last request is answered; the response asks the client to reconnect.
        let mut handover = self.shared.lifecycle.handover();
        let _ = handover.wait_for(|handover| *handover != HandoverState::SocketsHandedOver).await;
        // The head of a response that was sent before the handover did not ask the client to reconnect, so its next
        // request can be on its way. A closed connection would lose it.
        if *handover.borrow() == HandoverState::DataHandedOver {
            tokio::time::sleep(handover::LINGER).await;
        }
    }

    async fn read_rest(&self, stream: &mut Stream, mut read: BytesMut) -> ReceivedHead {
        let mut seen = 0;
        loop {
            // Empty lines before a request are skipped (RFC 9112, 2.2).
            let blank = read.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            read.advance(blank);
            if read.starts_with(HTTP_2_PREFACE) {
                return ReceivedHead::Http2(read);
            }
            if read.first().is_some_and(|byte| !byte.is_ascii_alphabetic()) {
                let text = "this is not HTTP; if it is TLS, use http:// instead of https://";
                return ReceivedHead::Refused(RefusalReason::NoHttp, Response::text(400, text));
            }
            if let Some(end) = end_of_head(&read, seen) {
                return match self.fault(&read[..end]) {
                    Some((reason, page)) => ReceivedHead::Refused(reason, page),
                    None => ReceivedHead::Whole(without_host(read, end)),
                };
            }
            if let Some((reason, page)) = self.too_long(&read) {
                return ReceivedHead::Refused(reason, page);
            }
            seen = read.len();
            read.reserve(READ_BYTES);
            if !matches!(stream.read_buf(&mut read).await, Ok(1..)) {
                return ReceivedHead::Gone;
            }
        }
    }

    /// The fault of a complete header that pingora would report less clearly, or not at all.
    fn fault(&self, head: &[u8]) -> Option<(RefusalReason, Response)> {
        if let Some(fault) = self.too_long(head) {
            return Some(fault);
        }
        if head.starts_with(b"CONNECT ") {
            let url = &self.shared.served.public_url;
            let text = format!(
                "CONNECT is not supported, because responses inside a tunnel cannot be repaired. To use oaimend \
                 as an HTTP proxy, set http_proxy and give the harvester http:// base URLs, even if the source \
                 uses https. Or request {url}/ without a proxy setting"
            );
            return Some((
                RefusalReason::Connect,
                Response::text(405, &text).with("Allow", "GET, HEAD, POST".to_owned()),
            ));
        }
        None
    }

    /// The limit that the received part of a header exceeds.
    fn too_long(&self, head: &[u8]) -> Option<(RefusalReason, Response)> {
        let now = self.shared.clients.current();
        let limits = &now.connections;
        let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        // The line also contains the method, spaces and the version.
        if line.len() > limits.uri_bytes_max + AROUND_TARGET_BYTES {
            return Some((RefusalReason::LongUri, Response::uri_too_long(limits.uri_bytes_max)));
        }
        let max = limits.header_bytes_max;
        let lines = head.iter().filter(|&&byte| byte == b'\n').count();
        if head.len() > max || lines > HEADERS_MAX + 2 {
            let text = format!(
                "the header is longer than {max} bytes or {HEADERS_MAX} fields, the most that is read"
            );
            return Some((RefusalReason::LongHeader, Response::text(431, &text)));
        }
        None
    }

    /// Starts TLS. `None`: the connection has ended.
    async fn start_tls(&self, tls: &TlsListener, stream: Stream, peer: SocketAddr) -> Option<Stream> {
        let time_max = self.shared.clients.current().connections.request_timeout;
        let reason = match tls.start(stream, time_max).await {
            Started::Tls(stream) => return Some(stream),
            Started::NoTls(stream) => {
                let text = "this port requires TLS; use https:// instead of http://";
                self.refuse(stream, Response::text(400, text)).await;
                RefusalReason::NoTls
            }
            Started::Failed(error) => {
                tracing::debug!(%peer, error, "no TLS connection");
                RefusalReason::TlsHandshake
            }
            // Without a byte of the client it is like an idle connection.
            Started::Gone => return None,
        };
        self.shared.telemetry.refused(None, reason);
        None
    }

    /// Serves HTTP/2 that was agreed on by TLS.
    async fn serve_http_2(&self, proxy: Arc<Proxy>, stream: Stream, shutdown: &ShutdownWatch) {
        let mut options = HttpServerOptions::default();
        options.h2_idle_timeout = Some(self.shared.clients.current().connections.idle_timeout);
        Arc::new(Http2 { proxy, options }).process_new(stream, shutdown).await;
    }

    /// Serves a connection without TLS that starts as HTTP/2.
    async fn serve_h2c(&self, proxy: Arc<Proxy>, stream: Stream, read: &[u8], shutdown: &ShutdownWatch) {
        let Ok(ours) = stream.into_any().downcast::<VectoredStream>() else { return };
        // It has TLS if a client uses HTTP/2 over TLS without asking for it.
        let Some(connection) = ours.into_tcp() else { return };
        let mut socket = Box::new(connection.into_socket());
        socket.rewind(read);
        let mut options = HttpServerOptions::default();
        options.h2c = true;
        options.h2_idle_timeout = Some(self.shared.clients.current().connections.idle_timeout);
        Arc::new(Http2 { proxy, options }).process_new(socket, shutdown).await;
    }

    /// Sends a response and closes the connection, so that the client can read the response.
    async fn refuse(&self, mut stream: Stream, page: Response) {
        let Some(answer) = on_the_wire(&page, &self.shared.instance) else { return };
        let response = async {
            stream.write_all(&answer).await?;
            stream.flush().await?;
            tokio::io::AsyncWriteExt::shutdown(&mut stream).await?;
            // Closing with unread bytes resets the connection, and the client loses the response.
            let mut unread = tokio::io::AsyncReadExt::take(&mut stream, CLOSE_READ_BYTES_MAX);
            tokio::io::copy(&mut unread, &mut tokio::io::sink()).await
        };
        let _ = timeout(CLOSE_WAIT_MAX, response).await;
    }
}

/// The complete HTTP/1.1 response, after which the connection is closed. `None` for a body of unknown length.
fn on_the_wire(page: &Response, instance: &str) -> Option<Vec<u8>> {
    let Body::Bytes(body) = &page.body else { return None };
    let status = http::StatusCode::from_u16(page.status).unwrap_or_default();
    let date = httpdate::fmt_http_date(clock::now());
    let mut head = format!("HTTP/1.1 {status}\r\nDate: {date}\r\nVia: 1.1 {instance}\r\n");
    for (name, value) in &page.headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    let _ = write!(head, "Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    Some([head.as_bytes(), body].concat())
}

/// pingora with HTTP/2, for connections that use it.
struct Http2 {
    proxy: Arc<Proxy>,
    options: HttpServerOptions,
}

#[async_trait]
impl HttpServerApp for Http2 {
    async fn process_new_http(
        self: &Arc<Self>,
        session: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        self.proxy.process_new_http(session, shutdown).await
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        Some(&self.options)
    }
}

/// The end of the header, including its empty line. `seen` bytes were searched before.
fn end_of_head(read: &[u8], seen: usize) -> Option<usize> {
    let start = seen.saturating_sub(3).min(read.len());
    memchr::memchr_iter(b'\n', &read[start..]).find_map(|at| {
        let after = &read[start + at + 1..];
        let blank = [&b"\n"[..], b"\r\n"].into_iter().find(|blank| after.starts_with(blank))?;
        Some(start + at + 1 + blank.len())
    })
}

/// A target in absolute form contains the host, and a differing `Host` must be ignored (RFC 9112, 3.2.2); pingora
/// would refuse it. Several `Host` fields stay, and are refused.
fn without_host(mut read: BytesMut, end: usize) -> BytesMut {
    let is_absolute = |line: &[u8]| {
        let target = line.splitn(3, |&byte| byte == b' ').nth(1).unwrap_or_default();
        [&b"http://"[..], b"https://"]
            .iter()
            .any(|scheme| target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
    };
    let mut lines = read[..end].split_inclusive(|&byte| byte == b'\n');
    let Some(first) = lines.next().filter(|line| is_absolute(line)) else { return read };
    let mut at = first.len();
    let mut found = Vec::new();
    for line in lines {
        let is_host = line.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"host:"));
        let is_folded = line.starts_with(b" ") || line.starts_with(b"\t");
        if is_folded {
            return read;
        }
        if is_host {
            found.push(at..at + line.len());
        }
        at += line.len();
    }
    if let [host] = found.as_slice() {
        let after = read.split_off(host.end);
        read.truncate(host.start);
        read.unsplit(after);
    }
    read
}

/// The start of HTTP/2 (RFC 9113, 3.4).
const HTTP_2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of one read.
const READ_BYTES: usize = 4096;
/// Maximum number of fields of a header; the limit of pingora.
const HEADERS_MAX: usize = 254;
/// Maximum number of bytes of a request line besides its target.
const AROUND_TARGET_BYTES: usize = 32;
/// Maximum number of connections beyond the limit that still receive a response.
const REFUSED_MAX: usize = 64;
/// `Retry-After` of a refused connection, in seconds.
const CONNECTION_WAIT_SECS: u64 = 10;
/// Shortest interval between two log lines about the limit.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);
/// Longest wait for a client to read the response that ends its connection.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(2);
/// Maximum number of bytes that are read from the client meanwhile.
const CLOSE_READ_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_take_all_connections() {
        let limits = Connections { connections_max: 5, per_client_max: 2, ..Connections::default() };
        let origin = |last: u8| Some(ClientNetwork::of([192, 0, 2, last].into()));
        let mut open = OpenConnections::default();
        assert_eq!(open.admit(origin(1), &limits), Ok(()));
        assert_eq!(open.admit(origin(1), &limits), Ok(()));
        assert_eq!(open.admit(origin(1), &limits), Err(RefusalReason::ClientConnections));
        assert_eq!(open.admit(origin(2), &limits), Ok(()));
        assert_eq!(open.admit(None, &limits), Ok(()));
        assert_eq!(open.admit(None, &limits), Ok(()), "exempt connections are not counted by address");
        assert_eq!(open.admit(origin(3), &limits), Err(RefusalReason::Connections));
        open.remove(origin(1));
        assert_eq!(open.admit(origin(3), &limits), Ok(()));
        for gone in [origin(1), origin(2), origin(3), None, None] {
            open.remove(gone);
        }
        assert_eq!((open.all, open.of.len()), (0, 0), "closed connections are not counted");
    }

    #[test]
    fn a_header_ends_with_its_first_empty_line_in_any_chunks() {
        for (text, end) in [
            ("GET / HTTP/1.1\r\nHost: x\r\n\r\nbody\r\n\r\n", Some(27)),
            ("GET / HTTP/1.0\n\n", Some(16)),
            ("GET / HTTP/1.0\r\n\n", Some(17)),
            ("GET / HTTP/1.0\r\nA: b\r\n", None),
            ("GET / HTTP/1.0\r\n\r", None),
            ("", None),
        ] {
            assert_eq!(end_of_head(text.as_bytes(), 0), end, "{text:?}");
            for seen in 0..end.unwrap_or(text.len()) {
                assert_eq!(end_of_head(text.as_bytes(), seen), end, "{text:?} after {seen}");
            }
        }
    }

    #[test]
    fn the_host_of_a_request_in_absolute_form_is_ignored() {
        let changed = |text: &str| {
            let end = end_of_head(text.as_bytes(), 0).expect("a whole header");
            String::from_utf8(without_host(BytesMut::from(text), end).to_vec()).expect("it was text")
        };
        let with = |target: &str, hosts: &str| {
            format!("GET {target} HTTP/1.1\r\nA: b\r\n{hosts}C: d\r\n\r\nHost: y\r\n")
        };
        for target in ["http://x/oai", "HTTP://x/oai", "https://x/oai?verb=Identify"] {
            assert_eq!(changed(&with(target, "hOST: y\r\n")), with(target, ""));
            assert_eq!(changed(&with(target, "")), with(target, ""));
            for kept in ["Host: y\r\nHost: z\r\n", "Host: y\r\n folded\r\n"] {
                assert_eq!(changed(&with(target, kept)), with(target, kept));
            }
        }
        for target in ["/oai", "*", "/http://x/"] {
            assert_eq!(changed(&with(target, "Host: y\r\n")), with(target, "Host: y\r\n"));
        }
    }
}
