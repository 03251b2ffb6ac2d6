//! Starting and stopping: sockets, services, signals.
//!
//! The sockets are bound here and handed to pingora, which would panic on an
//! address that is in use; so a fault is ours to explain, and port 0 works.

use super::admin::Admin;
use super::cache::Cache;
use super::clients::Classes;
use super::quotas::{Quotas, Uptime};
use super::upstream::SourceConnector;
use super::{Front, Shared, connections};
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, Reread};
use crate::error::Error;
use crate::source::Clients;
use crate::state::State;
use crate::telemetry::Telemetry;
use async_trait::async_trait;
use pingora_core::server::configuration::ServerConf;
use pingora_core::server::{ListenFds, RunArgs, ShutdownSignal, ShutdownSignalWatch, ShutdownWatch};
use pingora_core::services::background::{BackgroundService, background_service};
use pingora_core::services::listening::Service;
use pingora_core::services::{ServiceReadyNotifier, ServiceWithDependents};
use pingora_proxy::ProxyServiceBuilder;
use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// A proxy whose sockets are bound and whose state is open, ready to run.
pub struct Server {
    shared: Arc<Shared>,
    public: (SocketAddr, TcpListener),
    admin: Option<(SocketAddr, TcpListener)>,
    upgrade_sock: String,
}

/// A proxy that runs in a thread of its own.
pub struct Running {
    /// Where harvesters are answered.
    pub public_addr: SocketAddr,
    /// Where operators are answered.
    pub admin_addr: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// Binds the sockets and opens the state.
    ///
    /// # Errors
    ///
    /// An address is in use or not ours, or the data folder cannot be written to.
    pub fn bind(config: Config) -> Result<Self, Error> {
        Self::bind_with(config, Arc::new(SystemClock))
    }

    /// The same with another time for the conversations with sources.
    ///
    /// # Errors
    ///
    /// As [`Server::bind`].
    pub fn bind_with(config: Config, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let public = bind(config.listen, "--listen ADDR, or listen in oaimend.toml")?;
        let admin = match config.admin {
            Some(address) => {
                Some(bind(address, "--admin ADDR, --admin off, or admin.listen in oaimend.toml")?)
            }
            None => None,
        };
        let state = State::open(&config.data)?;
        let cache = Cache::open(&config.data, config.cache)?;
        let public_url = config.public_url.unwrap_or_else(|| format!("http://{}", public.0));
        let shared = Shared {
            public_url,
            listens_on: public.0,
            instance: format!("oaimend-{:016x}", RandomState::new().hash_one(std::process::id())),
            repositories: config.repositories,
            clients: Clients::default(),
            classes: Classes::new(&config.clients),
            quotas: Quotas::new(&config.clients, Uptime),
            connections: config.connections,
            cache,
            state,
            telemetry: Telemetry::new(),
            clock,
            draining: AtomicBool::new(false),
        };
        let upgrade_sock = config.data.join("upgrade.sock").to_string_lossy().into_owned();
        Ok(Self { shared: Arc::new(shared), public, admin, upgrade_sock })
    }

    /// Where harvesters are answered.
    pub fn public_addr(&self) -> SocketAddr {
        self.public.0
    }

    /// Where operators are answered.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|(address, _)| *address)
    }

    /// The public URL, without a slash at the end.
    pub fn public_url(&self) -> &str {
        &self.shared.public_url
    }

    /// Runs until SIGTERM (what is in flight is answered first) or SIGINT (at once).
    pub fn run_until_signal(self) {
        let shutdown = Signals(Arc::clone(&self.shared));
        let announcement = Announcement { listen: self.public_addr(), admin: self.admin_addr() };
        self.run(Box::new(shutdown), Some(announcement));
    }

    /// Runs in a thread of its own until it is stopped.
    pub fn in_background(self) -> Running {
        let (stop, stopped) = oneshot::channel();
        let (public_addr, admin_addr) = (self.public_addr(), self.admin_addr());
        let thread = std::thread::spawn(move || self.run(Box::new(Stopped(Mutex::new(Some(stopped)))), None));
        Running { public_addr, admin_addr, stop: Some(stop), thread: Some(thread) }
    }

    fn run(self, shutdown_signal: Box<dyn ShutdownSignalWatch>, announcement: Option<Announcement>) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let conf = ServerConf {
            threads,
            // `Signals` has waited already for what is in flight.
            grace_period_seconds: Some(0),
            graceful_shutdown_timeout_seconds: Some(1),
            upgrade_sock: self.upgrade_sock,
            ..ServerConf::default()
        };
        let mut server = pingora_core::server::Server::new_with_opt_and_conf(None, conf);
        server.bootstrap();
        let front = Front(Arc::clone(&self.shared));
        let mut public = ProxyServiceBuilder::new(&server.configuration, front)
            .name("harvesters")
            .server_options(connections::options())
            .custom(SourceConnector, connections::doorkeeper(Arc::clone(&self.shared)))
            .build();
        public.add_tcp(&self.public.0.to_string());
        server.add_service(Bound { service: public, socket: Some(self.public) });
        if let Some((address, listener)) = self.admin {
            let app = Admin { shared: Arc::clone(&self.shared), listens_on: address };
            let mut admin = Service::new("operators".to_owned(), app);
            admin.threads = Some(1);
            admin.add_tcp(&address.to_string());
            server.add_service(Bound { service: admin, socket: Some((address, listener)) });
        }
        if let Some(cache) = self.shared.cache.clone() {
            server.add_service(background_service("cache", CacheCare(cache)));
        }
        server
            .add_service(background_service("mappings", MappingsWatch { shared: self.shared, announcement }));
        server.run(RunArgs { shutdown_signal });
    }
}

impl Running {
    /// Binds and runs.
    ///
    /// # Errors
    ///
    /// As [`Server::bind`].
    pub fn start(config: Config) -> Result<Self, Error> {
        Ok(Server::bind(config)?.in_background())
    }

    /// The same with another time for the conversations with sources.
    ///
    /// # Errors
    ///
    /// As [`Server::bind`].
    pub fn start_with(config: Config, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Ok(Server::bind_with(config, clock)?.in_background())
    }

    /// Stops at once and waits until all sockets are closed.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            // A thread that is gone has stopped.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn bind(address: SocketAddr, flag: &str) -> Result<(SocketAddr, TcpListener), Error> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok((listener.local_addr()?, listener))
    });
    bound.map_err(|source| Error::Listen { address, source, remedy: format!("choose another one by {flag}") })
}

/// A service on a socket that is bound already.
struct Bound<S> {
    service: S,
    socket: Option<(SocketAddr, TcpListener)>,
}

#[async_trait]
impl<S: pingora_core::services::Service + 'static> ServiceWithDependents for Bound<S> {
    async fn start_service(
        &mut self,
        fds: Option<ListenFds>,
        shutdown: ShutdownWatch,
        listeners_per_fd: usize,
        ready: ServiceReadyNotifier,
    ) {
        if let (Some(fds), Some((address, listener))) = (&fds, self.socket.take()) {
            // pingora takes the socket over, and closes it.
            fds.lock().add(address.to_string(), listener.into_raw_fd());
        }
        ready.notify_ready();
        self.service.start_service(fds, shutdown, listeners_per_fd).await;
    }

    fn name(&self) -> &str {
        self.service.name()
    }

    fn threads(&self) -> Option<usize> {
        self.service.threads()
    }

    fn listen_addresses(&self) -> Option<Vec<String>> {
        self.service.listen_addresses()
    }
}

/// Finds what was kept before the start, and clears away what is of no use any more.
struct CacheCare(Cache);

#[async_trait]
impl BackgroundService for CacheCare {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let cache = self.0.clone();
        let mut work = tokio::task::spawn_blocking(move || cache.scan());
        loop {
            // What is begun is ended: it is short, and has no place to stop at.
            if let Err(error) = work.await {
                tracing::error!(%error, "the care of the cache stopped; what is too old stays on the disk");
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(SWEEP_INTERVAL) => {}
                _ = shutdown.changed() => return,
            }
            let cache = self.0.clone();
            work = tokio::task::spawn_blocking(move || cache.sweep());
        }
    }
}

/// Reads the mappings again when a file has changed, and at SIGHUP.
struct MappingsWatch {
    shared: Arc<Shared>,
    /// What to say once signals are heard.
    announcement: Option<Announcement>,
}

/// Where we can be reached.
#[derive(Clone, Copy)]
struct Announcement {
    listen: SocketAddr,
    admin: Option<SocketAddr>,
}

impl Announcement {
    /// Logs where we can be reached, and what is served.
    fn log(self, shared: &Shared) {
        let repositories = shared.repositories.all();
        tracing::info!(
            url = shared.public_url,
            listen = %self.listen,
            admin = self.admin.map(tracing::field::display),
            repositories = repositories.len(),
            "serving"
        );
        if shared.public_url.contains(&self.listen.to_string()) && self.listen.ip().is_unspecified() {
            tracing::warn!("answers call themselves {}; set --public-url", shared.public_url);
        }
        if repositories.is_empty() {
            tracing::warn!(
                "no repositories; put a file into the mappings folder, or start with --map ID=URL"
            );
        }
    }
}

#[async_trait]
impl BackgroundService for MappingsWatch {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let mut hangup = signal(SignalKind::hangup()).ok();
        let mut hung_up = async || match &mut hangup {
            Some(hangup) => hangup.recv().await,
            None => std::future::pending().await,
        };
        if let Some(announcement) = self.announcement {
            announcement.log(&self.shared);
        }
        loop {
            let asked = tokio::select! {
                () = tokio::time::sleep(MAPPINGS_INTERVAL) => false,
                _ = hung_up() => true,
                _ = shutdown.changed() => return,
            };
            match self.shared.repositories.reread() {
                Ok(Reread::Same) if asked => {
                    tracing::info!(
                        "mappings read again, none has changed; oaimend.toml is read at the start only"
                    );
                }
                Ok(Reread::Same) => {}
                Ok(Reread::Changed) => {
                    tracing::info!(
                        repositories = self.shared.repositories.all().len(),
                        "mappings read again"
                    );
                }
                Ok(Reread::Faults(faults)) => {
                    for fault in faults {
                        tracing::error!("{fault}; the repository stays as it was");
                    }
                }
                Err(error) => tracing::error!("{error}; the repositories stay as they were"),
            }
        }
    }
}

/// Stops when the other end says so, or is gone.
struct Stopped(Mutex<Option<oneshot::Receiver<()>>>);

#[async_trait]
impl ShutdownSignalWatch for Stopped {
    async fn recv(&self) -> ShutdownSignal {
        let stopped = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(stopped) = stopped {
            let _ = stopped.await;
        }
        // The fast one does not wait until the sockets are closed.
        ShutdownSignal::GracefulTerminate
    }
}

/// Stops at SIGINT at once, at SIGTERM when what is in flight is answered.
struct Signals(Arc<Shared>);

#[async_trait]
impl ShutdownSignalWatch for Signals {
    async fn recv(&self) -> ShutdownSignal {
        let (Ok(mut terminate), Ok(mut interrupt)) =
            (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
        else {
            tracing::error!("signals cannot be watched; only SIGKILL ends this process");
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => return ShutdownSignal::FastShutdown,
            _ = terminate.recv() => {}
        }
        self.0.draining.store(true, Ordering::Relaxed);
        let answered = async {
            while self.0.telemetry.in_flight.get() > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            () = answered => {}
            () = tokio::time::sleep(self.0.connections.stop_timeout) => {}
            _ = interrupt.recv() => return ShutdownSignal::FastShutdown,
        }
        ShutdownSignal::GracefulTerminate
    }
}

/// How often pages of no use any more are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// How often the mappings folder is looked at.
const MAPPINGS_INTERVAL: Duration = Duration::from_secs(2);
