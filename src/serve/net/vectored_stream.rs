//! A connection that sends short writes together with the bytes after them.
//!
//! pingora flushes the header of a response and each chunk of its body. Each flush takes a system call and wakes the
//! reader. This stream holds short writes, also flushed ones, until the next write, and sends both in one vectored
//! write.
//!
//! Invariant: flushed bytes are sent before the connection waits. The task of a response reads from the connection
//! whenever it waits for the next piece, to see whether the client has left, and after the response, to receive the
//! next request. Each read sends the held bytes first, and so does the end. Before a response is aborted, its task
//! reads once for this reason.

use async_trait::async_trait;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream,
    TimingDigest, UniqueID, UniqueIDType,
};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

/// Longest write that is held: the size of the buffer of pingora, which is one packet.
const HELD_BYTES_MAX: usize = 1460;

/// A connection of a harvester.
#[derive(Debug)]
pub(super) struct VectoredStream {
    stream: Stream,
    held: Vec<u8>,
    /// Whether held bytes were flushed. The wrapped connection has a buffer of its own.
    is_flush_due: bool,
}

impl VectoredStream {
    pub(super) fn on(stream: Stream) -> Self {
        Self { stream, held: Vec::new(), is_flush_due: false }
    }

    /// The wrapped connection. No bytes are held after a request was read.
    pub(super) fn into_stream(self) -> Stream {
        debug_assert!(self.held.is_empty(), "a request was read without sending the held bytes");
        self.stream
    }

    /// Writes the held bytes, and as much of `slices` as possible; returns that length.
    fn poll_held(&mut self, context: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let Self { stream, held, .. } = self;
        while !held.is_empty() {
            let mut all = Vec::with_capacity(1 + slices.len());
            all.push(IoSlice::new(held));
            all.extend_from_slice(slices);
            let written = ready!(Pin::new(&mut *stream).poll_write_vectored(context, &all))?;
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
        Pin::new(&mut self.stream).poll_flush(context)
    }
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
        Pin::new(&mut self.stream).poll_read(context, buffer)
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
        if self.held.len() + length < HELD_BYTES_MAX {
            slices.iter().for_each(|slice| self.held.extend_from_slice(slice));
            return Poll::Ready(Ok(length));
        }
        match ready!(self.poll_held(context, slices))? {
            0 => Pin::new(&mut self.stream).poll_write_vectored(context, slices),
            written => Poll::Ready(Ok(written)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_flush_due = !self.held.is_empty();
        if self.is_flush_due { Poll::Ready(Ok(())) } else { Pin::new(&mut self.stream).poll_flush(context) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_held(context, &[]))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
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
        self.stream.id()
    }
}

impl Ssl for VectoredStream {}

#[async_trait]
impl Peek for VectoredStream {
    async fn try_peek(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        self.stream.try_peek(buffer).await
    }
}

impl GetTimingDigest for VectoredStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_timing_digest()
    }
}

impl GetProxyDigest for VectoredStream {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.get_proxy_digest()
    }
}

impl GetSocketDigest for VectoredStream {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_socket_digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, duplex};

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
