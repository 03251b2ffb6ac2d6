//! Connections of harvesters, from the first byte to the first whole header.
//!
//! pingora reads requests without a deadline for the whole header, keeps idle
//! connections for ever and counts neither. So each connection comes here
//! first, as what pingora calls a custom session: it is counted, its header is
//! read within bounds, and then it goes to pingora as if it had just come.
//!
//! What must stay true: no more connections than allowed, in all and from one
//! address; nobody holds one for longer than the bounds say without asking;
//! what is read of a header is bounded; pingora always gets a whole header.

use super::clients::Origin;
use super::head_with_body::HeadWithBody;
use super::pages::Page;
use super::upgrade::Leaving;
use super::{Front, Shared};
use crate::clock;
use crate::config::Connections;
use async_trait::async_trait;
use bytes::{Buf as _, BytesMut};
use pingora_core::apps::{
    HttpPersistentSettings, HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp,
};
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::l4::stream::Stream as Socket;
use pingora_core::server::ShutdownWatch;
use pingora_proxy::{HttpProxy, ProcessCustomSession};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

/// pingora with our phases in it.
type Proxy = HttpProxy<Front, ()>;

/// What pingora calls with each new connection.
pub(super) fn doorkeeper(shared: Arc<Shared>) -> ProcessCustomSession<Front, ()> {
    let door = Arc::new(Door { shared, open: Mutex::default() });
    Arc::new(move |proxy, stream, shutdown| {
        let (door, shutdown) = (Arc::clone(&door), shutdown.clone());
        Box::pin(async move {
            door.serve(proxy, stream, shutdown).await;
            None
        })
    })
}

/// The options that make pingora call the [`doorkeeper`]; HTTP/2 is told apart there.
pub(super) fn options() -> HttpServerOptions {
    let mut options = HttpServerOptions::default();
    options.force_custom = true;
    options
}

struct Door {
    shared: Arc<Shared>,
    open: Mutex<Open>,
}

/// The open connections: all, and those of each address that is counted.
#[derive(Default)]
struct Open {
    all: usize,
    of: HashMap<Origin, usize>,
    /// When it was last said that there are too many.
    told: Option<Duration>,
}

/// One open connection.
struct Entry<'a> {
    door: &'a Door,
    origin: Option<Origin>,
    /// What becomes of it, if it is one too many.
    refused: Option<Page>,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.door.open.lock().unwrap_or_else(PoisonError::into_inner).remove(self.origin);
        self.door.shared.telemetry.connections.dec();
    }
}

impl Open {
    /// Counts one more, if it may come in.
    fn enter(&mut self, origin: Option<Origin>, bounds: &Connections) -> Result<(), &'static str> {
        let own = origin.map_or(0, |origin| self.of.get(&origin).copied().unwrap_or(0));
        if self.all >= bounds.connections_max {
            return Err(TOO_MANY);
        }
        if own >= bounds.per_client_max {
            return Err(TOO_MANY_OF_ONE);
        }
        self.add(origin);
        Ok(())
    }

    fn add(&mut self, origin: Option<Origin>) {
        self.all += 1;
        if let Some(origin) = origin {
            *self.of.entry(origin).or_default() += 1;
        }
    }

    fn remove(&mut self, origin: Option<Origin>) {
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

/// How a header came.
enum Head {
    /// Whole, with what came behind it.
    Whole(BytesMut),
    /// It is HTTP/2, of which this much came.
    Http2(BytesMut),
    /// The client said nothing, or is gone.
    Gone,
    /// It is not read further.
    Refused(&'static str, Page),
}

impl Door {
    async fn serve(&self, proxy: Arc<Proxy>, stream: Stream, mut shutdown: ShutdownWatch) {
        let digest = stream.get_socket_digest();
        let peer = digest.and_then(|digest| digest.peer_addr()?.as_inet().copied());
        let Some(mut entry) = self.enter(peer) else { return };
        if let Some(page) = entry.refused.take() {
            return self.send_away(stream, page).await;
        }
        let mut stream: Stream = Box::new(HeadWithBody::on(stream));
        let mut settings = None;
        loop {
            let head = match self.read_head(&mut stream, &mut shutdown).await {
                Head::Whole(head) => head,
                Head::Http2(read) => return self.serve_http_2(proxy, stream, &read, &shutdown).await,
                Head::Gone => return,
                Head::Refused(reason, page) => {
                    self.shared.telemetry.refused("any", reason);
                    tracing::debug!(peer = peer.map(tracing::field::display), reason, "refused");
                    return self.send_away(stream, page).await;
                }
            };
            let mut session = ServerSession::new_http1(stream);
            match settings.take() {
                Some(settings) => HttpPersistentSettings::apply_to_session(settings, &mut session),
                // pingora keeps to what the request says of it; how long is bounded here.
                None => session.set_keepalive(Some(60)),
            }
            session.set_pipelined_prefix(head);
            let Some(reused) = proxy.process_new_http(session, &shutdown).await else { return };
            (stream, settings) = reused.consume();
        }
    }

    /// Counts a connection; `None` is one that is not even told that there are too many.
    fn enter(&self, peer: Option<SocketAddr>) -> Option<Entry<'_>> {
        let now = self.shared.bounds();
        let bounds = &now.connections;
        let counted = peer.map(|peer| peer.ip()).filter(|ip| !now.classes.is_near(*ip));
        let origin = counted.map(Origin::of);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let entered = open.enter(origin, bounds);
        if let Err(reason) = entered {
            self.shared.telemetry.refused("any", reason);
            let now = clock::uptime();
            if open.told.is_none_or(|told| now.saturating_sub(told) >= TOLD_INTERVAL) {
                open.told = Some(now);
                let (all, peer) = (open.all, peer.map(tracing::field::display));
                tracing::warn!(reason, connections = all, peer, "too many connections; see [connections]");
            }
            // Somebody has to be told, but not at any price.
            if open.all >= bounds.connections_max.saturating_add(SENT_AWAY_MAX) {
                return None;
            }
            open.add(origin);
        }
        let refused = entered.err().map(|reason| match reason {
            TOO_MANY => Page::refused(CONNECTION_WAIT_SECS, "too many connections are open; come again"),
            _ => Page::refused(
                CONNECTION_WAIT_SECS,
                "too many connections are open from your address; use one for many requests",
            ),
        });
        self.shared.telemetry.connections.inc();
        Some(Entry { door: self, origin, refused })
    }

    /// Reads one header, whole and within the bounds.
    async fn read_head(&self, stream: &mut Stream, shutdown: &mut ShutdownWatch) -> Head {
        let now = self.shared.bounds();
        let bounds = &now.connections;
        let mut read = BytesMut::with_capacity(READ_BYTES);
        // Between two requests a connection may be closed at any time.
        let begun = tokio::select! {
            begun = timeout(bounds.idle_timeout, stream.read_buf(&mut read)) => begun,
            () = self.ending(shutdown) => return Head::Gone,
        };
        if !matches!(begun, Ok(Ok(1..))) {
            return Head::Gone;
        }
        match timeout(bounds.request_timeout, self.read_rest(stream, read)).await {
            Ok(head) => head,
            Err(_) => {
                let text = "the header of the request took too long to come";
                Head::Refused("slow-header", Page::text(408, text))
            }
        }
    }

    /// Until nothing new is answered on this connection.
    async fn ending(&self, shutdown: &mut ShutdownWatch) {
        // A sender that is gone has ended.
        let _ = shutdown.wait_for(|is_over| *is_over).await;
        // Who is about to ask while another process takes over is answered, and told to come anew.
        let mut leaving = self.shared.leaving.subscribe();
        let _ = leaving.wait_for(|leaving| *leaving != Leaving::Answering).await;
    }

    async fn read_rest(&self, stream: &mut Stream, mut read: BytesMut) -> Head {
        let mut seen = 0;
        loop {
            // Empty lines before a request are skipped (RFC 9112, 2.2).
            let blank = read.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            read.advance(blank);
            if read.starts_with(HTTP_2_PREFACE) {
                return Head::Http2(read);
            }
            if read.first().is_some_and(|byte| !byte.is_ascii_alphabetic()) {
                let text = "this is no HTTP; where it was TLS: write http:// and not https://";
                return Head::Refused("no-http", Page::text(400, text));
            }
            if let Some(end) = end_of_head(&read, seen) {
                return match self.fault(&read[..end]) {
                    Some((reason, page)) => Head::Refused(reason, page),
                    None => Head::Whole(without_host(read, end)),
                };
            }
            if let Some((reason, page)) = self.too_long(&read) {
                return Head::Refused(reason, page);
            }
            seen = read.len();
            read.reserve(READ_BYTES);
            if !matches!(stream.read_buf(&mut read).await, Ok(1..)) {
                return Head::Gone;
            }
        }
    }

    /// What is wrong with a whole header that pingora would not say, or not as well.
    fn fault(&self, head: &[u8]) -> Option<(&'static str, Page)> {
        if let Some(fault) = self.too_long(head) {
            return Some(fault);
        }
        if head.starts_with(b"CONNECT ") {
            let url = &self.shared.public_url;
            let text = format!(
                "CONNECT is not served: nothing can be mended inside of a tunnel. As HTTP proxy, ask for \
                 http:// base URLs here, also where the source speaks https: set http_proxy and write \
                 http:// in the harvester. Or ask without a proxy setting at {url}/"
            );
            return Some(("connect", Page::text(405, &text).with("Allow", "GET, HEAD, POST".to_owned())));
        }
        None
    }

    /// What is too long of the part of a header that came.
    fn too_long(&self, head: &[u8]) -> Option<(&'static str, Page)> {
        let now = self.shared.bounds();
        let bounds = &now.connections;
        let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        // Method, blanks and version stand around the target.
        if line.len() > bounds.uri_bytes_max + AROUND_TARGET_BYTES {
            return Some(("long-uri", uri_too_long(bounds.uri_bytes_max)));
        }
        let max = bounds.header_bytes_max;
        let lines = head.iter().filter(|&&byte| byte == b'\n').count();
        if head.len() > max || lines > HEADERS_MAX + 2 {
            let text = format!(
                "the header is longer than {max} bytes or {HEADERS_MAX} fields, the most that is read"
            );
            return Some(("long-header", Page::text(431, &text)));
        }
        None
    }

    /// Hands a connection over whose first bytes are HTTP/2's.
    async fn serve_http_2(&self, proxy: Arc<Proxy>, stream: Stream, read: &[u8], shutdown: &ShutdownWatch) {
        // It is ours around a socket always: there is no TLS here.
        let Ok(ours) = stream.into_any().downcast::<HeadWithBody>() else { return };
        let Ok(mut socket) = ours.into_stream().into_any().downcast::<Socket>() else { return };
        socket.rewind(read);
        let mut options = HttpServerOptions::default();
        options.h2c = true;
        options.h2_idle_timeout = Some(self.shared.bounds().connections.idle_timeout);
        Arc::new(Http2 { proxy, options }).process_new(socket, shutdown).await;
    }

    /// Answers and closes, so that the client can read the answer.
    async fn send_away(&self, mut stream: Stream, page: Page) {
        let answer = page.on_the_wire(&self.shared.instance);
        let said = async {
            stream.write_all(&answer).await?;
            stream.flush().await?;
            tokio::io::AsyncWriteExt::shutdown(&mut stream).await?;
            // Closing with bytes unread resets the connection, and the answer with it.
            let mut unread = tokio::io::AsyncReadExt::take(&mut stream, LINGER_BYTES_MAX);
            tokio::io::copy(&mut unread, &mut tokio::io::sink()).await
        };
        let _ = timeout(LINGER_MAX, said).await;
    }
}

/// The target is too long, whoever finds it.
pub(super) fn uri_too_long(max: usize) -> Page {
    Page::text(
        414,
        &format!("the request target is longer than {max} bytes, the longest that is read; send a POST"),
    )
}

/// pingora with HTTP/2 in it, for the connections that speak it.
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

/// Where the header ends, its empty line included. `seen` bytes were looked at before.
fn end_of_head(read: &[u8], seen: usize) -> Option<usize> {
    let start = seen.saturating_sub(3).min(read.len());
    memchr::memchr_iter(b'\n', &read[start..]).find_map(|at| {
        let behind = &read[start + at + 1..];
        let blank = [&b"\n"[..], b"\r\n"].into_iter().find(|blank| behind.starts_with(blank))?;
        Some(start + at + 1 + blank.len())
    })
}

/// In absolute form the target says the host, and a `Host` that says another
/// thing is to be ignored (RFC 9112, 3.2.2); pingora would refuse it. More than
/// one `Host` stays, and is refused.
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
        let behind = read.split_off(host.end);
        read.truncate(host.start);
        read.unsplit(behind);
    }
    read
}

/// Why a connection is refused: there are as many as may be.
const TOO_MANY: &str = "connections";
/// Why a connection is refused: its address has as many as it may have.
const TOO_MANY_OF_ONE: &str = "client-connections";
/// How HTTP/2 begins (RFC 9113, 3.4).
const HTTP_2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes that are read at once.
const READ_BYTES: usize = 4096;
/// Most fields of a header; pingora reads no more.
const HEADERS_MAX: usize = 254;
/// Most bytes of a request line beside its target.
const AROUND_TARGET_BYTES: usize = 32;
/// Connections beyond the most that are still told so.
const SENT_AWAY_MAX: usize = 64;
/// When a connection may be free, in seconds.
const CONNECTION_WAIT_SECS: u64 = 10;
/// Shortest time between two lines in the log that there are too many connections.
const TOLD_INTERVAL: Duration = Duration::from_secs(10);
/// Longest that a client is waited for to take an answer that ends its connection.
const LINGER_MAX: Duration = Duration::from_secs(2);
/// Most bytes that are read from it meanwhile.
const LINGER_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_take_all_connections() {
        let bounds = Connections { connections_max: 5, per_client_max: 2, ..Connections::default() };
        let origin = |last: u8| Some(Origin::of([192, 0, 2, last].into()));
        let mut open = Open::default();
        assert_eq!(open.enter(origin(1), &bounds), Ok(()));
        assert_eq!(open.enter(origin(1), &bounds), Ok(()));
        assert_eq!(open.enter(origin(1), &bounds), Err(TOO_MANY_OF_ONE));
        assert_eq!(open.enter(origin(2), &bounds), Ok(()));
        assert_eq!(open.enter(None, &bounds), Ok(()));
        assert_eq!(open.enter(None, &bounds), Ok(()), "the near ones are not counted by address");
        assert_eq!(open.enter(origin(3), &bounds), Err(TOO_MANY));
        open.remove(origin(1));
        assert_eq!(open.enter(origin(3), &bounds), Ok(()));
        for gone in [origin(1), origin(2), origin(3), None, None] {
            open.remove(gone);
        }
        assert_eq!((open.all, open.of.len()), (0, 0), "nothing is kept of who is gone");
    }

    #[test]
    fn a_header_ends_with_its_first_empty_line_however_it_is_cut() {
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
    fn the_host_of_a_request_in_absolute_form_is_not_heard() {
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
