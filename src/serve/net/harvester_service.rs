//! Accepts the connections of harvesters.
//!
//! pingora would accept them too, but its connections cannot send files, and each of them costs more.

use super::connection_limiter::{ConnectionLimiter, Proxy};
use super::freed_memory::give_back_freed_memory;
use super::handover::HandoverState;
use super::listener::until_it_stops;
use crate::serve::context::ServerContext;
use crate::serve::oai::ProxyService;
use async_trait::async_trait;
use pingora_core::apps::HttpServerApp as _;
use pingora_core::server::configuration::ServerConf;
use pingora_core::server::{ListenFds, ShutdownWatch};
use pingora_core::services::{ServiceReadyNotifier, ServiceWithDependents};
use pingora_proxy::http_proxy;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Accepts connections on bound sockets.
pub(crate) struct HarvesterService {
    proxy: Arc<Proxy>,
    limiter: Arc<ConnectionLimiter>,
    sockets: Vec<(SocketAddr, std::net::TcpListener)>,
    /// The service stops accepting when another process has the sockets.
    handover: watch::Receiver<HandoverState>,
}

impl HarvesterService {
    pub(crate) fn new(
        shared: &Arc<ServerContext>,
        conf: &Arc<ServerConf>,
        sockets: Vec<(SocketAddr, std::net::TcpListener)>,
    ) -> Self {
        let proxy = Arc::new(http_proxy(conf, ProxyService(Arc::clone(shared))));
        let limiter = Arc::new(ConnectionLimiter::new(Arc::clone(shared)));
        Self { proxy, limiter, sockets, handover: shared.lifecycle.handover() }
    }

    /// Accepts on one socket until the service stops.
    async fn accept(&self, listener: TcpListener, mut stopped: ShutdownWatch) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stopped.wait_for(|is_over| *is_over) => return,
            };
            match accepted {
                Ok((socket, peer)) => self.start(socket, peer, &stopped),
                Err(error) => {
                    tracing::error!(%error, "a connection was not accepted");
                    if !is_of_one_connection(&error) {
                        tokio::time::sleep(RETRY_INTERVAL).await;
                    }
                }
            }
        }
    }

    fn start(&self, socket: TcpStream, peer: SocketAddr, stopped: &ShutdownWatch) {
        // A connection that has just ended refuses; its first read notices that.
        let _ = socket.set_nodelay(true);
        let (limiter, proxy, stopped) = (Arc::clone(&self.limiter), Arc::clone(&self.proxy), stopped.clone());
        tokio::spawn(async move { limiter.serve(proxy, socket, peer, stopped).await });
    }
}

#[async_trait]
impl ServiceWithDependents for HarvesterService {
    async fn start_service(
        &mut self,
        _fds: Option<ListenFds>,
        shutdown: ShutdownWatch,
        _listeners_per_fd: usize,
        ready: ServiceReadyNotifier,
    ) {
        let listeners =
            self.sockets.drain(..).map(|(_, socket)| listener(socket).expect("the socket is bound"));
        let listeners: Vec<TcpListener> = listeners.collect();
        ready.notify_ready();
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(until_it_stops(shutdown, self.handover.clone(), stop));
        tokio::spawn(give_back_freed_memory(stopped.clone()));
        let accepting = listeners.into_iter().map(|listener| self.accept(listener, stopped.clone()));
        futures::future::join_all(accepting).await;
        drop(stopped);
        self.proxy.http_cleanup().await;
    }

    fn name(&self) -> &str {
        "harvesters"
    }

    fn threads(&self) -> Option<usize> {
        None
    }
}

/// A bound socket with a queue for more connections than the system's default.
fn listener(socket: std::net::TcpListener) -> io::Result<TcpListener> {
    rustix::net::listen(&socket, QUEUED_MAX)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}

/// Whether an error concerns one connection, and the next one may be accepted at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Maximum number of connections that wait to be accepted; the kernel may have a lower limit.
const QUEUED_MAX: i32 = 65_535;
/// How long nothing is accepted after an error, such as too many open files.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
