//! A TCP connection of a harvester.
//!
//! The streams of pingora hide their socket. This one can also send parts of files, which are not copied then.

use oaimend_base::clock;
use oaimend_files::FileSlice;
use pingora_core::protocols::l4::stream::Stream as Socket;
use pingora_core::protocols::{GetSocketDigest as _, SocketDigest, TimingDigest};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;
use tokio::net::TcpStream;

/// A connection without TLS.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: TcpStream,
    digest: Arc<SocketDigest>,
    accepted: SystemTime,
}

impl Connection {
    /// A connection that was just accepted from `peer`.
    pub(super) fn new(socket: TcpStream, peer: SocketAddr) -> Self {
        let digest = SocketDigest::from_raw_fd(socket.as_raw_fd());
        // The cell is new.
        let _ = digest.peer_addr.set(Some(peer.into()));
        Self { socket, digest: Arc::new(digest), accepted: clock::now() }
    }

    pub(super) fn digest(&self) -> &Arc<SocketDigest> {
        &self.digest
    }

    /// Its own address.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.digest.local_addr()?.as_inet().copied()
    }

    pub(super) fn timing(&self) -> TimingDigest {
        TimingDigest { established_ts: self.accepted, ..TimingDigest::default() }
    }

    /// The same connection as a stream of pingora.
    pub(super) fn into_socket(self) -> Socket {
        let digest = SocketDigest::from_raw_fd(self.socket.as_raw_fd());
        let _ = digest.peer_addr.set(self.digest.peer_addr().cloned());
        let mut socket = Socket::from(self.socket);
        socket.set_socket_digest(digest);
        socket
    }

    /// Sends the start of `bytes`, which more bytes follow at once. Returns how many bytes were sent.
    #[cfg(target_os = "linux")]
    pub(super) fn poll_send_before_more(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        use rustix::net::{SendFlags, send};
        self.poll_writing(context, |socket| send(socket, bytes, SendFlags::MORE | SendFlags::NOSIGNAL))
    }

    /// Sends the start of a part of a file. Returns how many bytes were sent; 0: the file is shorter.
    #[cfg(target_os = "linux")]
    pub(super) fn poll_send_file(
        &mut self,
        context: &mut Context<'_>,
        slice: &FileSlice,
    ) -> Poll<io::Result<usize>> {
        let (mut at, count) = (slice.at, usize::try_from(slice.bytes).unwrap_or(usize::MAX));
        self.poll_writing(context, |socket| rustix::fs::sendfile(socket, &slice.file, Some(&mut at), count))
    }

    #[cfg(target_os = "linux")]
    fn poll_writing(
        &mut self,
        context: &mut Context<'_>,
        mut write: impl FnMut(&TcpStream) -> rustix::io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            std::task::ready!(self.socket.poll_write_ready(context))?;
            let written = self.socket.try_io(tokio::io::Interest::WRITABLE, || Ok(write(&self.socket)?));
            match written {
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                written => return Poll::Ready(written),
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn poll_send_before_more(
        &mut self,
        _context: &mut Context<'_>,
        _bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn poll_send_file(
        &mut self,
        _context: &mut Context<'_>,
        _slice: &FileSlice,
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

/// Whether [`Connection::poll_send_file`] works on this system.
pub(super) const SENDS_FILES: bool = cfg!(target_os = "linux");
