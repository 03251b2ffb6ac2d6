//! Starting and stopping: sockets, services, signals.
//!
//! The sockets are bound before pingora, which would panic on an address that
//! is in use; so a fault is ours to explain, and port 0 works. pingora's own way
//! to hand them to another process is not used: it accepts on both sides for five
//! seconds and lets nobody close the ledger in between; see `upgrade`.

use super::admin::Admin;
use super::cache::Cache;
use super::upgrade::{self, Leaving, Sockets};
use super::{Bounds, Front, Shared, connections};
use crate::clock::{self, Clock, SystemClock};
use crate::config::{Config, Reread, Resettled, Settings};
use crate::error::Error;
use crate::store::{DataDirLock, Store};
use crate::telemetry::Telemetry;
use crate::upstream::SourceClients;
use async_trait::async_trait;
use http::HeaderValue;
use pingora_core::server::configuration::ServerConf;
use pingora_core::server::{ListenFds, RunArgs, ShutdownSignal, ShutdownSignalWatch, ShutdownWatch};
use pingora_core::services::background::{BackgroundService, background_service};
use pingora_core::services::listening::Service;
use pingora_core::services::{ServiceReadyNotifier, ServiceWithDependents};
use pingora_proxy::ProxyServiceBuilder;
use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};

/// A proxy whose sockets are bound and whose store is open, ready to run.
pub struct Server {
    shared: Arc<Shared>,
    sockets: Sockets,
    data: PathBuf,
    settings: Option<Settings>,
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
        let sockets = Sockets::bind(&config)?;
        let store = Store::open(&config.data)?;
        Self::with(config, clock, sockets, store)
    }

    /// Takes the sockets and the store over from the process that has them, once it
    /// is told to hand them over. Without such a process it is [`Server::bind`].
    ///
    /// # Errors
    ///
    /// As [`Server::bind`], and when the other process does not hand over in time.
    pub fn take_over(config: Config) -> Result<Self, Error> {
        let (sockets, hold) = match DataDirLock::take(&config.data)? {
            Some(hold) => (Sockets::bind(&config)?, hold),
            None => upgrade::take_over(&config)?,
        };
        Self::with(config, Arc::new(SystemClock), sockets, Store::open_locked(hold)?)
    }

    fn with(config: Config, clock: Arc<dyn Clock>, sockets: Sockets, store: Store) -> Result<Self, Error> {
        let cache = Cache::open(&config.data, config.cache)?;
        let public_url = config.public_url.unwrap_or_else(|| format!("http://{}", sockets.public.0));
        let instance = format!("oaimend-{:016x}", RandomState::new().hash_one(std::process::id()));
        let via = HeaderValue::try_from(format!("1.1 {instance}")).expect("letters and digits");
        let shared = Shared {
            public_url,
            listens_on: sockets.public.0,
            instance,
            via,
            repositories: config.repositories,
            clients: SourceClients::new(store.static_files.clone()),
            bounds: RwLock::new(Arc::new(Bounds::new(config.clients, config.connections))),
            cache,
            store,
            telemetry: Telemetry::new(),
            clock,
            draining: AtomicBool::new(false),
            leaving: watch::Sender::default(),
        };
        Ok(Self { shared: Arc::new(shared), sockets, data: config.data, settings: config.settings })
    }

    /// Where harvesters are answered.
    pub fn public_addr(&self) -> SocketAddr {
        self.sockets.public.0
    }

    /// Where operators are answered.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.sockets.admin.as_ref().map(|(address, _)| *address)
    }

    /// The public URL, without a slash at the end.
    pub fn public_url(&self) -> &str {
        &self.shared.public_url
    }

    /// Runs until SIGTERM (what is in flight is answered first), SIGINT (at once), or
    /// SIGQUIT, if there is a process that takes over.
    pub fn run_until_signal(self) {
        let sockets = self.sockets.try_clone();
        if let Err(error) = &sockets {
            tracing::warn!(%error, "SIGQUIT will not be obeyed; raise the limit of open files");
        }
        let (shared, data) = (Arc::clone(&self.shared), self.data.clone());
        let (heard, is_heard) = watch::channel(false);
        let shutdown = Signals { shared, data, sockets: Mutex::new(sockets.ok()), heard };
        let (listen, admin) = (self.public_addr(), self.admin_addr());
        let announcement = Announcement { listen, admin, is_heard };
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
            ..ServerConf::default()
        };
        let mut server = pingora_core::server::Server::new_with_opt_and_conf(None, conf);
        server.bootstrap();
        let front = Front(Arc::clone(&self.shared));
        let mut public = ProxyServiceBuilder::new(&server.configuration, front)
            .name("harvesters")
            .server_options(connections::options())
            .custom((), connections::doorkeeper(Arc::clone(&self.shared)))
            .build();
        let leaving = || self.shared.leaving.subscribe();
        public.add_tcp(&self.sockets.public.0.to_string());
        let socket = Some(self.sockets.public);
        server.add_service(Bound { service: public, socket, leaving: leaving() });
        if let Some((address, listener)) = self.sockets.admin {
            let app = Admin { shared: Arc::clone(&self.shared), listens_on: address };
            let mut admin = Service::new("operators".to_owned(), app);
            admin.threads = Some(1);
            admin.add_tcp(&address.to_string());
            let socket = Some((address, listener));
            server.add_service(Bound { service: admin, socket, leaving: leaving() });
        }
        if let Some(cache) = self.shared.cache.clone() {
            server.add_service(background_service("cache", CacheCare(cache)));
        }
        let settings = Mutex::new(self.settings);
        let watch = ConfigWatch { shared: self.shared, settings, announcement };
        server.add_service(background_service("configuration", watch));
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

/// A service on a socket that is bound already.
struct Bound<S> {
    service: S,
    socket: Option<(SocketAddr, TcpListener)>,
    /// It accepts nothing any more when its socket is another's.
    leaving: watch::Receiver<Leaving>,
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
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(until_it_stops(shutdown, self.leaving.clone(), stop));
        self.service.start_service(fds, stopped, listeners_per_fd).await;
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

/// Tells a service to accept nothing any more, when the program ends or its socket is another's.
async fn until_it_stops(
    mut shutdown: ShutdownWatch,
    mut leaving: watch::Receiver<Leaving>,
    stop: watch::Sender<bool>,
) {
    // A sender that is gone has stopped.
    tokio::select! {
        _ = shutdown.wait_for(|is_over| *is_over) => {}
        _ = leaving.wait_for(|leaving| *leaving != Leaving::No) => {}
    }
    stop.send_replace(true);
    // Nobody must take the service for lost as long as it answers.
    stop.closed().await;
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

/// Reads the configuration again when a file has changed, and at SIGHUP.
struct ConfigWatch {
    shared: Arc<Shared>,
    settings: Mutex<Option<Settings>>,
    /// What to say once signals are heard: who reads it may send one.
    announcement: Option<Announcement>,
}

/// Where we can be reached.
#[derive(Clone)]
struct Announcement {
    listen: SocketAddr,
    admin: Option<SocketAddr>,
    /// Whether signals are heard.
    is_heard: watch::Receiver<bool>,
}

impl Announcement {
    /// Logs where we can be reached, and what is served.
    async fn log(mut self, shared: &Shared) {
        // A sender that is gone hears nothing any more.
        let _ = self.is_heard.wait_for(|is_heard| *is_heard).await;
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
impl BackgroundService for ConfigWatch {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let mut hangup = signal(SignalKind::hangup()).ok();
        let mut hung_up = async || match &mut hangup {
            Some(hangup) => hangup.recv().await,
            None => std::future::pending().await,
        };
        if let Some(announcement) = self.announcement.clone() {
            announcement.log(&self.shared).await;
        }
        loop {
            let asked = tokio::select! {
                () = tokio::time::sleep(CONFIG_INTERVAL) => false,
                _ = hung_up() => true,
                _ = shutdown.changed() => return,
            };
            let same = [self.reread_settings(), self.reread_mappings()] == [true, true];
            if asked && same {
                tracing::info!("configuration read again, nothing has changed");
            }
        }
    }
}

impl ConfigWatch {
    /// Reads `oaimend.toml` again; says whether it is as it was.
    fn reread_settings(&self) -> bool {
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        match settings.as_mut().map_or(Ok(Resettled::Same), Settings::reread) {
            Ok(Resettled::Same) => return true,
            Ok(Resettled::Changed(change)) => {
                self.shared.repositories.set_limits(change.limits);
                let mut bounds = self.shared.bounds.write().unwrap_or_else(PoisonError::into_inner);
                *bounds = Arc::new(bounds.changed(change.clients, change.connections));
                match change.at_next_start.as_slice() {
                    [] => tracing::info!("oaimend.toml read again"),
                    keys => tracing::warn!(
                        "oaimend.toml read again; {} counts from the next start on",
                        keys.join(", ")
                    ),
                }
            }
            Ok(Resettled::Faults(faults)) => {
                for fault in faults {
                    tracing::error!("{fault}; what was read before stays in force");
                }
            }
            Err(error) => tracing::error!("{error}; what was read before stays in force"),
        }
        false
    }

    /// Reads the mappings again; says whether they are as they were.
    fn reread_mappings(&self) -> bool {
        match self.shared.repositories.reread() {
            Ok(Reread::Same) => return true,
            Ok(Reread::Changed) => {
                tracing::info!(repositories = self.shared.repositories.all().len(), "mappings read again");
            }
            Ok(Reread::Faults(faults)) => {
                for fault in faults {
                    tracing::error!("{fault}; the repository stays as it was");
                }
            }
            Err(error) => tracing::error!("{error}; the repositories stay as they were"),
        }
        false
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

/// Stops at SIGINT at once, at SIGTERM when what is in flight is answered, at
/// SIGQUIT when another process has taken over.
struct Signals {
    shared: Arc<Shared>,
    data: PathBuf,
    /// The sockets to hand over.
    sockets: Mutex<Option<Sockets>>,
    heard: watch::Sender<bool>,
}

#[async_trait]
impl ShutdownSignalWatch for Signals {
    async fn recv(&self) -> ShutdownSignal {
        let (Ok(mut terminate), Ok(mut interrupt), Ok(mut quit)) =
            (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::quit()))
        else {
            tracing::error!("signals cannot be watched; only SIGKILL ends this process");
            self.heard.send_replace(true);
            return std::future::pending().await;
        };
        self.heard.send_replace(true);
        loop {
            let ended = async {
                tokio::select! {
                    _ = terminate.recv() => {
                        self.shared.draining.store(true, Ordering::Relaxed);
                        true
                    }
                    _ = quit.recv() => self.hand_over().await,
                }
            };
            tokio::select! {
                _ = interrupt.recv() => return ShutdownSignal::FastShutdown,
                ended = ended => if ended { break },
            }
        }
        let answered = async {
            while self.shared.telemetry.in_flight.get() > 0 {
                tokio::time::sleep(ANSWERED_INTERVAL).await;
            }
        };
        tokio::select! {
            () = answered => {}
            () = tokio::time::sleep(self.shared.bounds().connections.stop_timeout) => {}
            _ = interrupt.recv() => return ShutdownSignal::FastShutdown,
        }
        ShutdownSignal::GracefulTerminate
    }
}

impl Signals {
    /// Hands sockets and data folder to the process that waits for them; says whether there was one.
    async fn hand_over(&self) -> bool {
        let sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(sockets) = sockets else { return false };
        let connection = match upgrade::hand_over(&self.data, &sockets).await {
            Ok(connection) => connection,
            Err(error) => {
                tracing::error!(
                    %error,
                    "SIGQUIT, and no process takes over; start one with --upgrade first. This one goes on"
                );
                *self.sockets.lock().unwrap_or_else(PoisonError::into_inner) = Some(sockets);
                return false;
            }
        };
        drop(sockets);
        tracing::info!("another process takes over; what is in flight is answered");
        self.shared.leaving.send_replace(Leaving::Answering);
        self.answer_who_is_there().await;
        let shared = Arc::clone(&self.shared);
        let closed = tokio::task::spawn_blocking(move || {
            if let Some(cache) = &shared.cache {
                cache.close();
            }
            shared.store.close();
        });
        if let Err(error) = closed.await {
            tracing::error!(%error, "the data folder was not closed as it should be");
        }
        self.shared.leaving.send_replace(Leaving::Unrecorded);
        drop(connection);
        true
    }

    /// Waits, bounded, for what is in flight, and for those who are connected to ask once more:
    /// they are told to connect anew then.
    async fn answer_who_is_there(&self) {
        let telemetry = &self.shared.telemetry;
        let began = clock::uptime();
        loop {
            let waited = clock::uptime().saturating_sub(began);
            let max = match telemetry.in_flight.get() {
                0 => upgrade::SILENCE_MAX,
                _ => upgrade::ANSWERING_MAX,
            };
            if telemetry.connections.get() == 0 || waited >= max {
                return;
            }
            tokio::time::sleep(ANSWERED_INTERVAL).await;
        }
    }
}

/// How often it is looked whether all is answered.
const ANSWERED_INTERVAL: Duration = Duration::from_millis(20);
/// How often pages of no use any more are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// How often `oaimend.toml` and the mappings folder are looked at.
const CONFIG_INTERVAL: Duration = Duration::from_secs(2);
