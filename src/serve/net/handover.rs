//! Hands the sockets and the data folder over to another process without refusing a connection.
//!
//! The new process waits at a socket in the data folder ([`HandoverListener`]). At SIGQUIT the old process sends its
//! listening sockets there ([`hand_over`]). From then on no process accepts: new connections wait in the kernel. The
//! old process answers its open requests and releases the data folder, and closes the connection to signal that. The
//! new process opens the folder, confirms that, and accepts. Without this confirmation the old process starts again in
//! its place ([`restart_in_place`]). If the old process ends instead of handing over, the new one takes the folder.
//!
//! Invariants: until the new process confirms the sockets, the old process serves as before. The new process opens
//! the store only after the old process has released it. Both wait for a limited time only.

use crate::config::Config;
use listenfd::ListenFd;
use oaimend_base::error::Error;
use oaimend_files::DataDirLock;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::fs::{DirBuilder, Permissions};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

/// The state of a process during a handover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HandoverState {
    /// It serves.
    #[default]
    Serving,
    /// Another process has its sockets. Open connections get one last response.
    SocketsHandedOver,
    /// Another process has its data folder too. Only requests in flight are answered.
    DataHandedOver,
}

/// The listening sockets.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// For harvesters.
    pub(crate) public: (SocketAddr, TcpListener),
    /// For harvesters, with TLS.
    pub(crate) tls: Option<(SocketAddr, TcpListener)>,
    /// For operators.
    pub(crate) admin: Option<(SocketAddr, TcpListener)>,
}

impl Sockets {
    /// Binds the sockets of the configuration, except those that this process inherits: from the service manager (socket
    /// activation), or from itself ([`restart_in_place`]).
    pub(crate) fn bind(config: &Config) -> Result<Self, Error> {
        Self::bind_missing(config, inherited())
    }

    /// Binds the sockets of the configuration that were not handed over, and closes handed sockets that are not in
    /// it.
    fn bind_missing(config: &Config, mut handed: Vec<(SocketAddr, TcpListener)>) -> Result<Self, Error> {
        let mut bound = |address: SocketAddr, flag| {
            let fits = |socket: &SocketAddr| {
                socket.ip() == address.ip() && (address.port() == 0 || socket.port() == address.port())
            };
            match handed.iter().position(|(socket, _)| fits(socket)) {
                Some(at) => Ok(handed.remove(at)),
                None => bind(address, flag),
            }
        };
        let public = bound(config.listen, "--listen ADDR, or listen in oaimend.toml")?;
        let tls = config.listen_tls.as_ref();
        let tls = tls.map(|tls| bound(tls.address, "listen_tls.address in oaimend.toml")).transpose()?;
        let admin = config
            .admin
            .map(|address| bound(address, "--admin ADDR, --admin off, or admin.listen in oaimend.toml"));
        Ok(Self { public, tls, admin: admin.transpose()? })
    }

    /// Duplicates the sockets.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let duplicate_some = |socket: &Option<_>| socket.as_ref().map(duplicate).transpose();
        let (tls, admin) = (duplicate_some(&self.tls)?, duplicate_some(&self.admin)?);
        Ok(Self { public: duplicate(&self.public)?, tls, admin })
    }

    fn listeners(&self) -> impl Iterator<Item = &TcpListener> {
        let all = [Some(&self.public), self.tls.as_ref(), self.admin.as_ref()];
        all.into_iter().flatten().map(|(_, listener)| listener)
    }
}

/// The listening sockets that this process inherits.
fn inherited() -> Vec<(SocketAddr, TcpListener)> {
    let mut sockets = ListenFd::from_env();
    let listeners = (0..sockets.len()).filter_map(|at| sockets.take_tcp_listener(at).ok().flatten());
    let usable = listeners.filter_map(|listener| {
        listener.set_nonblocking(true).ok()?;
        Some((listener.local_addr().ok()?, listener))
    });
    usable.collect()
}

fn duplicate((address, listener): &(SocketAddr, TcpListener)) -> io::Result<(SocketAddr, TcpListener)> {
    Ok((*address, listener.try_clone()?))
}

fn bind(address: SocketAddr, flag: &str) -> Result<(SocketAddr, TcpListener), Error> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok((listener.local_addr()?, listener))
    });
    bound.map_err(|source| Error::Listen { address, source, remedy: format!("choose another one by {flag}") })
}

/// The sockets and the data folder of the running process. Waits for the handover.
///
/// # Errors
///
/// The process does not hand over in time, or another process uses an address.
pub(crate) fn take_over(config: &Config) -> Result<TakenOver, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(&config.data, &error.to_string()))?;
    runtime.block_on(async {
        let listener =
            HandoverListener::at(&config.data).map_err(|error| failed(&config.data, &error.to_string()))?;
        let ends = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::quit()];
        let mut ended = ends.map(|kind| signal(kind).ok());
        tracing::info!("waiting for the running oaimend; send it SIGQUIT");
        let [terminate, interrupt, quit] = &mut ended;
        let (mut stream, handed) = tokio::select! {
            received = listener.receive() => received?,
            lock = released(&config.data) => {
                let lock = lock?;
                tracing::info!("the running oaimend has ended without a handover; this process takes its place");
                return Ok(TakenOver { sockets: bind_when_free(config).await?, lock, predecessor: None });
            }
            () = received(terminate) => return Err(failed(&config.data, "a signal ended the wait")),
            () = received(interrupt) => return Err(failed(&config.data, "a signal ended the wait")),
            () = received(quit) => {
                let what = "SIGQUIT ended the wait; send it to the running oaimend, not to the one that waits";
                return Err(failed(&config.data, what));
            }
        };
        let sockets = Sockets::bind_missing(config, handed)?;
        let released = async {
            stream.write_all(TAKEN).await?;
            // The stream ends when the folder is free, even if the old process is killed.
            stream.read_to_end(&mut Vec::new()).await
        };
        match timeout(RELEASE_MAX, released).await {
            Ok(_) => {}
            Err(_) => return Err(failed(&config.data, "the running oaimend does not release it")),
        }
        let hold = DataDirLock::take(&config.data)?;
        let lock = hold.ok_or_else(|| failed(&config.data, "another oaimend has taken it"))?;
        Ok(TakenOver { sockets, lock, predecessor: Some(Predecessor(stream.into_std().map_err(|error| failed(&config.data, &error.to_string()))?)) })
    })
}

/// Waits until no process has the data folder, and locks it.
async fn released(data: &Path) -> Result<DataDirLock, Error> {
    loop {
        tokio::time::sleep(RELEASED_INTERVAL).await;
        if let Some(lock) = DataDirLock::take(data)? {
            return Ok(lock);
        }
    }
}

/// Binds the sockets of a process that has just ended: the kernel may close them after it has released the lock.
async fn bind_when_free(config: &Config) -> Result<Sockets, Error> {
    for _ in 1..BIND_ATTEMPTS_MAX {
        if let Ok(sockets) = Sockets::bind(config) {
            return Ok(sockets);
        }
        tokio::time::sleep(RELEASED_INTERVAL).await;
    }
    Sockets::bind(config)
}

/// Waits for a signal; for ever if it cannot be watched.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// The sockets and the data folder of another process.
pub(crate) struct TakenOver {
    pub(crate) sockets: Sockets,
    pub(crate) lock: DataDirLock,
    /// The process that waits for the confirmation.
    pub(crate) predecessor: Option<Predecessor>,
}

/// The connection to the process that has handed over.
pub(crate) struct Predecessor(std::os::unix::net::UnixStream);

impl Predecessor {
    /// Confirms that this process can serve.
    pub(crate) fn confirm(mut self) {
        // The stream is not blocking, and has room for a few bytes. Without the message the other process starts again,
        // and ends because the data folder is in use.
        let _ = self.0.write_all(READY);
    }
}

/// Waits for the sockets. Only processes of the same user can reach it.
struct HandoverListener {
    folder: PathBuf,
    listener: UnixListener,
}

impl HandoverListener {
    fn at(data: &Path) -> io::Result<Self> {
        let folder = data.join(FOLDER);
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // The folder protects the socket from the start.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let listener = UnixListener::bind(folder.join(SOCKET))?;
        std::fs::set_permissions(folder.join(SOCKET), Permissions::from_mode(0o600))?;
        Ok(Self { folder, listener })
    }

    async fn receive(&self) -> Result<(UnixStream, Vec<(SocketAddr, TcpListener)>), Error> {
        let received = async {
            let (stream, _) = self.listener.accept().await?;
            let sockets = stream.async_io(Interest::READABLE, || receive_sockets(&stream)).await?;
            let named = sockets.into_iter().map(|socket| {
                let listener = TcpListener::from(socket);
                Ok((listener.local_addr()?, listener))
            });
            Ok((stream, named.collect::<io::Result<Vec<_>>>()?))
        };
        match timeout(SIGNAL_MAX, received).await {
            Ok(received) => received.map_err(|error: io::Error| failed(&self.folder, &error.to_string())),
            Err(_) => {
                Err(failed(&self.folder, "the running oaimend has not handed over in time; send it SIGQUIT"))
            }
        }
    }
}

impl Drop for HandoverListener {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Tells the new process that the data folder is free, and waits until it serves. Returns false if it has ended instead.
pub(crate) async fn is_confirmed(mut stream: UnixStream) -> bool {
    let confirmed = async {
        stream.shutdown().await?;
        let mut reply = [0; READY.len()];
        stream.read_exact(&mut reply).await
    };
    match timeout(RELEASE_MAX, confirmed).await {
        Ok(confirmed) => confirmed.is_ok(),
        // It lives, and has the data folder.
        Err(_) => true,
    }
}

/// Replaces this process by a new one of the same program, with the same arguments and process id, that inherits the
/// sockets. `installed` is the path of the installed program, which the new process starts at SIGUSR2. Returns only if that
/// fails.
pub(crate) fn restart_in_place(installed: &Path, sockets: &Sockets) -> io::Error {
    let listeners: Vec<&TcpListener> = sockets.listeners().collect();
    let inherited = match consecutive_duplicates(&listeners) {
        Ok(inherited) => inherited,
        Err(error) => return error,
    };
    let first = inherited.first().map_or(0, AsRawFd::as_raw_fd);
    std::process::Command::new(RUNNING_PROGRAM)
        .arg0(installed)
        .args(std::env::args_os().skip(1))
        .env("LISTEN_PID", std::process::id().to_string())
        .env("LISTEN_FDS", inherited.len().to_string())
        .env("LISTEN_FDS_FIRST_FD", first.to_string())
        .exec()
}

/// Duplicates sockets to consecutive descriptors that stay open when the program is replaced.
fn consecutive_duplicates(listeners: &[&TcpListener]) -> io::Result<Vec<OwnedFd>> {
    for start in (DESCRIPTOR_MIN..DESCRIPTOR_MAX).step_by(SOCKETS_MAX) {
        let mut duplicates = Vec::new();
        for (listener, wanted) in listeners.iter().zip(start..) {
            let duplicate = fcntl_dupfd_cloexec(listener, wanted)?;
            if duplicate.as_raw_fd() != wanted {
                break;
            }
            fcntl_setfd(&duplicate, FdFlags::empty())?;
            duplicates.push(duplicate);
        }
        if duplicates.len() == listeners.len() {
            return Ok(duplicates);
        }
    }
    Err(io::Error::other("no free file descriptors"))
}

/// Sends the sockets to the waiting process.
pub(crate) async fn hand_over(data: &Path, sockets: &Sockets) -> io::Result<UnixStream> {
    let handed = async {
        let mut stream = UnixStream::connect(data.join(FOLDER).join(SOCKET)).await?;
        stream.async_io(Interest::WRITABLE, || send_sockets(&stream, sockets)).await?;
        let mut reply = [0; TAKEN.len()];
        stream.read_exact(&mut reply).await?;
        Ok(stream)
    };
    timeout(TAKE_MAX, handed).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

fn send_sockets(stream: &UnixStream, sockets: &Sockets) -> io::Result<()> {
    let all: Vec<_> = sockets.listeners().map(|listener| listener.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&all)) {
        return Err(io::Error::other("more sockets than can be sent"));
    }
    sendmsg(stream, &[IoSlice::new(SENT)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive_sockets(stream: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut received = [0; SENT.len()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(stream, &mut [IoSliceMut::new(&mut received)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut sockets = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(sent) = message {
            sockets.extend(sent);
        }
    }
    if received != *SENT || sockets.is_empty() {
        return Err(io::Error::other(
            "the message does not contain the sockets of an oaimend of this version",
        ));
    }
    Ok(sockets)
}

fn failed(path: &Path, what: &str) -> Error {
    let message = format!("cannot be taken over: {what}; see docs/how-to/operations.md");
    Error::State { path: path.to_owned(), message }
}

/// The folder in the data folder, while a process waits.
const FOLDER: &str = "upgrade";
const SOCKET: &str = "socket";
/// The message with the sockets.
const SENT: &[u8; 17] = b"oaimend sockets 1";
/// The confirmation that the sockets were received.
const TAKEN: &[u8; 5] = b"taken";
/// The confirmation that the new process serves.
const READY: &[u8; 5] = b"ready";
/// The file of the running program, also if it was replaced or removed.
pub(crate) const RUNNING_PROGRAM: &str = "/proc/self/exe";
/// Two for harvesters, with and without TLS, and one for operators.
const SOCKETS_MAX: usize = 3;
/// Interval at which a waiting process checks whether the data folder is free.
const RELEASED_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of attempts to bind the addresses of a process that has just ended.
const BIND_ATTEMPTS_MAX: u32 = 20;
/// The descriptors of inherited sockets.
const DESCRIPTOR_MIN: i32 = 10;
const DESCRIPTOR_MAX: i32 = 1_000;
/// Longest wait of a new process for SIGQUIT to the old one.
const SIGNAL_MAX: Duration = Duration::from_secs(60);
/// Longest wait of the old process for the new one to take its sockets.
const TAKE_MAX: Duration = Duration::from_secs(5);
/// Longest wait of the new process for the data folder: longer than the old one answers.
const RELEASE_MAX: Duration = Duration::from_secs(30);
/// How long the old process answers with the data folder, while new connections wait.
pub(crate) const ANSWERING_MAX: Duration = Duration::from_secs(2);
/// How long it reads from a connection after the last response, when it has no data folder any more.
pub(crate) const LINGER: Duration = Duration::from_secs(1);
/// How long it waits for a request on idle connections.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(1);
