//! A connection that sends short writes together with the bytes after them.
//!
//! pingora flushes the header of a response and each chunk of its body. Each flush takes a system call and wakes the
//! reader. This stream holds short writes, also flushed ones, until the next write, and sends both in one vectored
//! write.
//!
//! A part of a file is sent by the kernel and not copied. pingora writes a place of the same length, so that it counts and
//! limits the response as usual, and this stream sends the part of the file instead. The place itself never leaves.
//!
//! Invariant: flushed bytes are sent before the connection waits. The task of a response reads from the connection
//! whenever it waits for the next piece, to see whether the client has left, and after the response, to receive the
//! next request. Each read sends the held bytes first, and so does the end. Before a response is aborted, its task
//! reads once for this reason.

use super::connection::{Connection, SENDS_FILES};
use async_trait::async_trait;
use bytes::Bytes;
use oaimend_files::FileSlice;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream,
    TimingDigest, UniqueID, UniqueIDType,
};
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

/// Longest write that is held: the size of the buffer of pingora, which is one packet.
const HELD_BYTES_MAX: usize = 1460;
/// Longest place of a file, in bytes. The client must receive it within `connections.write_timeout_secs`.
const PLACE_BYTES_MAX: usize = 128 << 10;
/// The place of a file in a response. Only its address and the length of a write matter: these bytes are never read.
static PLACE: [u8; PLACE_BYTES_MAX] = [0; PLACE_BYTES_MAX];

/// A connection of a harvester.
#[derive(Debug)]
pub(crate) struct VectoredStream {
    under: Under,
    held: Vec<u8>,
    /// Whether held bytes were flushed. The wrapped connection has a buffer of its own.
    is_flush_due: bool,
    file: Mutex<FilePart>,
}

/// The part of a file that the kernel sends when pingora writes [`PLACE`].
#[derive(Debug, Default)]
struct FilePart {
    /// The rest of the part; `None` after its last byte.
    slice: Option<FileSlice>,
    /// How many bytes were sent before their place was written. The kernel sends a long part with fewer interruptions of
    /// the client than several short ones.
    ahead: usize,
}

/// The wrapped connection.
#[derive(Debug)]
enum Under {
    Tcp(Connection),
    Other(Stream),
}

impl VectoredStream {
    /// A connection without TLS.
    pub(super) fn on_tcp(connection: Connection) -> Self {
        Self::new(Under::Tcp(connection))
    }

    pub(super) fn on(stream: Stream) -> Self {
        Self::new(Under::Other(stream))
    }

    fn new(under: Under) -> Self {
        Self { under, held: Vec::new(), is_flush_due: false, file: Mutex::default() }
    }

    /// The wrapped connection, if it has no TLS. No bytes are held after a request was read.
    pub(super) fn into_tcp(self) -> Option<Connection> {
        debug_assert!(self.held.is_empty(), "a request was read without sending the held bytes");
        match self.under {
            Under::Tcp(connection) => Some(connection),
            Under::Other(_) => None,
        }
    }

    /// Whether it can send parts of files.
    pub(crate) fn sends_files(&self) -> bool {
        SENDS_FILES && matches!(self.under, Under::Tcp(_))
    }

    /// Sends a part of a file in place of the next writes. The caller writes [`VectoredStream::place`] until it is sent.
    pub(crate) fn send_file(&self, slice: FileSlice) {
        *self.file_part() = FilePart { slice: Some(slice), ahead: 0 };
    }

    /// The bytes to be written next, as they are, for this many bytes of the file.
    pub(crate) fn place(left: u64) -> Bytes {
        let length = usize::try_from(left).map_or(PLACE_BYTES_MAX, |left| left.min(PLACE_BYTES_MAX));
        Bytes::from_static(&PLACE[..length])
    }

    /// Whether nothing is left of the part of a file.
    pub(crate) fn has_sent_file(&self) -> bool {
        let part = self.file_part();
        part.slice.is_none() && part.ahead == 0
    }

    fn file_part(&self) -> MutexGuard<'_, FilePart> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the held bytes, and as much of `slices` as possible; returns that length.
    fn poll_held(&mut self, context: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let Self { under, held, .. } = self;
        while !held.is_empty() {
            let mut all = Vec::with_capacity(1 + slices.len());
            all.push(IoSlice::new(held));
            all.extend_from_slice(slices);
            let written = ready!(under.pinned().poll_write_vectored(context, &all))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let held_written = written.min(held.len());
            held.drain(..held_written);
            if written > held_written {
                return Poll::Ready(Ok(written - held_written));
            }
        }
        Poll::Ready(Ok(0))
    }

    /// Sends the held bytes.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_held(context, &[]))?;
        self.under.pinned().poll_flush(context)
    }

    /// Sends the held bytes and the part of a file. Returns how many bytes were sent in place of `count` bytes.
    fn poll_file(&mut self, context: &mut Context<'_>, count: usize) -> Poll<io::Result<usize>> {
        let Self { under, held, file, .. } = self;
        let part = file.get_mut().unwrap_or_else(PoisonError::into_inner);
        if part.ahead == 0 {
            let (Under::Tcp(connection), Some(slice)) = (under, &mut part.slice) else {
                // The place must not be sent itself.
                return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
            };
            while !held.is_empty() {
                let sent = ready!(connection.poll_send_before_more(context, held))?;
                held.drain(..sent);
            }
            let sent = ready!(connection.poll_send_file(context, slice))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            slice.at += sent as u64;
            slice.bytes -= sent as u64;
            if slice.bytes == 0 {
                part.slice = None;
            }
            part.ahead = sent;
        }
        let placed = part.ahead.min(count);
        part.ahead -= placed;
        Poll::Ready(Ok(placed))
    }
}

impl Under {
    fn pinned(&mut self) -> Pin<&mut (dyn Bytestream + '_)> {
        match self {
            Self::Tcp(connection) => Pin::new(&mut connection.socket),
            Self::Other(stream) => Pin::new(stream),
        }
    }
}

/// A connection in both directions.
trait Bytestream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Bytestream for T {}

/// Whether a write is one of [`PLACE`].
fn is_place(slices: &[IoSlice<'_>]) -> bool {
    matches!(slices, [slice] if PLACE.as_ptr_range().contains(&slice.as_ptr()))
}

impl AsyncRead for VectoredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // A client that does not read may still write, so this does not wait until the held bytes are sent.
        if self.is_flush_due
            && let Poll::Ready(sent) = self.poll_send(context)
        {
            sent?;
            self.is_flush_due = false;
        }
        self.under.pinned().poll_read(context, buffer)
    }
}

impl AsyncWrite for VectoredStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length: usize = slices.iter().map(|slice| slice.len()).sum();
        if is_place(slices) {
            return self.poll_file(context, length);
        }
        if self.held.len() + length < HELD_BYTES_MAX {
            slices.iter().for_each(|slice| self.held.extend_from_slice(slice));
            return Poll::Ready(Ok(length));
        }
        match ready!(self.poll_held(context, slices))? {
            0 => self.under.pinned().poll_write_vectored(context, slices),
            written => Poll::Ready(Ok(written)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_flush_due = !self.held.is_empty();
        if self.is_flush_due { Poll::Ready(Ok(())) } else { self.under.pinned().poll_flush(context) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_held(context, &[]))?;
        self.under.pinned().poll_shutdown(context)
    }
}

#[async_trait]
impl Shutdown for VectoredStream {
    async fn shutdown(&mut self) {
        // The connection ends; ignore.
        let _ = AsyncWriteExt::shutdown(self).await;
    }
}

impl UniqueID for VectoredStream {
    fn id(&self) -> UniqueIDType {
        match &self.under {
            Under::Tcp(connection) => connection.socket.as_raw_fd(),
            Under::Other(stream) => stream.id(),
        }
    }
}

impl Ssl for VectoredStream {}

impl Peek for VectoredStream {}

impl GetTimingDigest for VectoredStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        match &self.under {
            Under::Tcp(connection) => vec![Some(connection.timing())],
            Under::Other(stream) => stream.get_timing_digest(),
        }
    }
}

impl GetProxyDigest for VectoredStream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        match &self.under {
            Under::Tcp(_) => None,
            Under::Other(stream) => stream.get_proxy_digest(),
        }
    }
}

impl GetSocketDigest for VectoredStream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        match &self.under {
            Under::Tcp(connection) => Some(Arc::clone(connection.digest())),
            Under::Other(stream) => stream.get_socket_digest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use tokio::io::{AsyncReadExt, duplex};
    use tokio::net::{TcpListener, TcpStream};

    /// A connection that takes `room` bytes before they are read, and its other end.
    fn connection(room: usize) -> (VectoredStream, tokio::io::DuplexStream) {
        let (stream, peer) = duplex(room);
        (VectoredStream::on(Box::new(stream)), peer)
    }

    #[tokio::test]
    async fn short_writes_are_held_until_the_next_write_or_read() {
        let (mut stream, mut peer) = connection(64 << 10);
        let mut read = vec![0; 64 << 10];
        stream.write_all(b"head").await.expect("it is held");
        stream.flush().await.expect("it is held");
        let nothing = futures::poll!(std::pin::pin!(peer.read(&mut read)));
        assert!(nothing.is_pending(), "{nothing:?}");
        stream.write_all(&[b'b'; 10_000]).await.expect("there is room");
        let count = peer.read(&mut read).await.expect("something");
        assert_eq!((&read[..5], count), (&b"headb"[..], 10_004));
        stream.write_all(b"end").await.expect("it is held");
        stream.flush().await.expect("it is held");
        let mut request = [0; 8];
        assert!(futures::poll!(std::pin::pin!(stream.read(&mut request))).is_pending());
        let count = peer.read(&mut read).await.expect("something");
        assert_eq!(&read[..count], b"end");
        stream.write_all(b"last").await.expect("it is held");
        Shutdown::shutdown(&mut stream).await;
        let mut rest = Vec::new();
        peer.read_to_end(&mut rest).await.expect("the end");
        assert_eq!(rest, b"last");
    }

    /// A connection over TCP, and its other end.
    async fn tcp_connection() -> (VectoredStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (peer, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (socket, from) = accepted.expect("a connection");
        (VectoredStream::on_tcp(Connection::new(socket, from)), peer.expect("a connection"))
    }

    /// A part of a file with these bytes, without its first 100.
    fn slice_of(bytes: &[u8]) -> FileSlice {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(bytes).expect("it can be written to");
        FileSlice { file: Arc::new(file), at: 100, bytes: bytes.len() as u64 - 100 }
    }

    /// Sends a part of a file as pingora writes it.
    async fn send(stream: &mut VectoredStream, slice: FileSlice) -> io::Result<()> {
        let mut left = slice.bytes;
        stream.send_file(slice);
        while left > 0 {
            let place = VectoredStream::place(left);
            left -= place.len() as u64;
            stream.write_all(&place).await?;
        }
        Ok(())
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_part_of_a_file_is_sent_between_other_bytes() {
        let (mut stream, mut peer) = tcp_connection().await;
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            peer.read_to_end(&mut read).await.expect("the end");
            read
        });
        let mut expected = Vec::new();
        for length in [101, 5000, 100 + PLACE_BYTES_MAX, 100_000, 10 * PLACE_BYTES_MAX] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            stream.write_all(b"head").await.expect("it is held");
            send(&mut stream, slice_of(&bytes)).await.expect("it is read");
            assert!(stream.has_sent_file());
            stream.write_all(b"end").await.expect("it is held");
            expected.extend([b"head", &bytes[100..], b"end"].concat());
        }
        Shutdown::shutdown(&mut stream).await;
        drop(stream);
        assert!(reading.await.expect("no panic") == expected);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_file_that_becomes_shorter_is_an_error() {
        let (mut stream, _peer) = tcp_connection().await;
        let slice = slice_of(&[b'a'; 5000]);
        slice.file.set_len(3000).expect("it can be written to");
        let sent = send(&mut stream, slice).await;
        assert_eq!(sent.map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
        assert!(!stream.has_sent_file());
    }

    #[tokio::test]
    async fn the_place_of_a_file_never_leaves() {
        let invalid = Err(io::ErrorKind::InvalidInput);
        let (mut stream, _peer) = tcp_connection().await;
        let sent = stream.write_all(&VectoredStream::place(200)).await;
        assert_eq!(sent.map_err(|error| error.kind()), invalid);
        let (mut stream, _peer) = connection(64 << 10);
        assert!(!stream.sends_files());
        let sent = send(&mut stream, slice_of(&[b'a'; 200])).await;
        assert_eq!(sent.map_err(|error| error.kind()), invalid);
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_read_from() {
        let (mut stream, mut peer) = connection(2);
        stream.write_all(b"response").await.expect("it is held");
        stream.flush().await.expect("it is held");
        peer.write_all(b"q").await.expect("there is room");
        let mut request = [0; 1];
        let read = futures::poll!(std::pin::pin!(stream.read(&mut request)));
        assert!(matches!(read, Poll::Ready(Ok(1))), "{read:?}");
    }

    #[tokio::test]
    async fn all_bytes_arrive_in_order_over_short_writes() {
        for room in [1, 3, 7, 1000, 5000] {
            let (mut stream, mut peer) = connection(room);
            let lengths = [300, 1160, 1, 5000, 0, 40, 1461, 1460, 2];
            let bytes: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|at| (at % 251) as u8).collect();
            let sent = bytes.clone();
            let sending = tokio::spawn(async move {
                let mut rest = sent.as_slice();
                for length in lengths {
                    let (piece, after) = rest.split_at(length);
                    stream.write_all(piece).await.expect("it is read");
                    rest = after;
                }
                Shutdown::shutdown(&mut stream).await;
            });
            let mut read = vec![0; bytes.len()];
            peer.read_exact(&mut read).await.expect("all of it");
            sending.await.expect("it was sent");
            assert!(read == bytes, "{room}");
        }
    }
}
