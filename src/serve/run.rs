//! Starts and stops the server: sockets and services.
//!
//! The sockets are bound before pingora starts, because pingora panics on an address in use. Therefore faults have
//! clear messages, and port 0 works. The handover of pingora is not used: both processes accept for five seconds, and
//! the old one cannot close its ledger in between; see `handover`.

use crate::config::{Config, Settings};
use crate::serve::admin::{Admin, AllowedHosts};
use crate::serve::background::config_watch::{Announcement, ConfigWatch};
use crate::serve::background::folders::FolderService;
use crate::serve::background::full_texts::FullTextService;
use crate::serve::background::harvests::schedule::HarvestSchedule;
use crate::serve::background::hub::HubService;
use crate::serve::background::maintenance::{
    ActivityMaintenance, CacheMaintenance, QuarantineMaintenance, StoreRecovery,
};
use crate::serve::background::notifications::reports::ReportService;
use crate::serve::background::notifications::service::NoticeService;
use crate::serve::background::source_walks::SourceWalks;
use crate::serve::context::{Opened, ServerContext};
use crate::serve::net::handover::{self, Sockets, TakenOver};
use crate::serve::net::harvester_service::HarvesterService;
use crate::serve::net::installed_program;
use crate::serve::net::listener::BoundService;
use crate::serve::net::signals::{Signals, StopSignal};
use crate::serve::net::tls_listener::TlsListener;
use crate::serve::oai::cache::Cache;
use crate::serve::resolver::ResolverFollowing;
use crate::serve::search::SearchIndexing;
#[cfg(test)]
use crate::serve::served::ServedRepositories;
use oaimend_base::clock::{Clock, SystemClock};
use oaimend_base::error::Error;
use oaimend_files::DataDirLock;
use oaimend_files::data_dir::WRITABLE;
use oaimend_store::Store;
use pingora_core::server::configuration::ServerConf;
use pingora_core::server::{RunArgs, ShutdownSignalWatch};
use pingora_core::services::background::background_service;
use pingora_core::services::listening::Service;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{oneshot, watch};

/// Maximum number of threads of each service for work that blocks, such as that of the databases. Each has a heap of
/// its own.
const BLOCKING_THREADS_MAX: usize = 16;

/// A server with bound sockets and an open store, ready to run.
pub struct Server {
    shared: Arc<ServerContext>,
    sockets: Sockets,
    admin_hosts: Vec<String>,
    data: PathBuf,
    settings: Option<Settings>,
}

/// A server that runs in a thread of its own.
pub struct Running {
    /// The address for harvesters.
    pub public_addr: SocketAddr,
    /// The address for harvesters with TLS.
    pub tls_addr: Option<SocketAddr>,
    /// The address for operators.
    pub admin_addr: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// Binds the sockets and opens the store.
    ///
    /// # Errors
    ///
    /// An address is in use or not local, or the data folder cannot be written to.
    pub fn bind(config: Config) -> Result<Self, Error> {
        Self::bind_with(config, Arc::new(SystemClock))
    }

    /// [`Server::bind`] with another clock for sessions with sources.
    ///
    /// # Errors
    ///
    /// As [`Server::bind`].
    pub(crate) fn bind_with(config: Config, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let sockets = Sockets::bind(&config)?;
        let store = oaimend_store_local::open(&config.data)?;
        Self::with(config, clock, sockets, store)
    }

    /// Takes the sockets and the store over from the running process, once that process receives SIGQUIT. Without such
    /// a process it is [`Server::bind`].
    ///
    /// # Errors
    ///
    /// As [`Server::bind`], or the running process does not hand over in time.
    pub fn take_over(config: Config) -> Result<Self, Error> {
        let TakenOver { sockets, lock, predecessor } = match DataDirLock::take(&config.data)? {
            Some(lock) => TakenOver { sockets: Sockets::bind(&config)?, lock, predecessor: None },
            None => handover::take_over(&config)?,
        };
        let server =
            Self::with(config, Arc::new(SystemClock), sockets, oaimend_store_local::open_locked(lock)?)?;
        if let Some(predecessor) = predecessor {
            predecessor.confirm();
        }
        Ok(server)
    }

    fn with(
        mut config: Config,
        clock: Arc<dyn Clock>,
        sockets: Sockets,
        store: Store,
    ) -> Result<Self, Error> {
        let cache = Cache::open(&config.data, config.cache.clone())?;
        let tls = match (&config.listen_tls, &sockets.tls) {
            (Some(settings), Some((address, _))) => Some(TlsListener::new(*address, &settings.files)?),
            _ => None,
        };
        if let Some(lock) = &*store.lock.lock().unwrap_or_else(PoisonError::into_inner) {
            let address = sockets.admin.as_ref().map(|(address, _)| *address);
            lock.name_admin_listener(address)
                .map_err(|error| Error::writing(lock.path(), error, WRITABLE))?;
        }
        let instance = format!("oaimend-{:016x}", RandomState::new().hash_one(std::process::id()));
        let (admin_hosts, data, settings) =
            (std::mem::take(&mut config.admin_hosts), config.data.clone(), config.settings.take());
        let opened = Opened { store, cache, tls, listens_on: sockets.public.0, clock, instance };
        let shared = Arc::new(ServerContext::new(config, opened));
        Ok(Self { shared, sockets, admin_hosts, data, settings })
    }

    /// What it serves.
    #[cfg(test)]
    pub(crate) fn served(&self) -> Arc<ServedRepositories> {
        Arc::clone(&self.shared.served)
    }

    /// The address for harvesters.
    pub fn public_addr(&self) -> SocketAddr {
        self.sockets.public.0
    }

    /// The address for harvesters with TLS.
    pub fn tls_addr(&self) -> Option<SocketAddr> {
        self.sockets.tls.as_ref().map(|(address, _)| *address)
    }

    /// The address for operators.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.sockets.admin.as_ref().map(|(address, _)| *address)
    }

    /// The public URL, without a trailing slash.
    pub fn public_url(&self) -> &str {
        &self.shared.served.public_url
    }

    /// Runs until SIGTERM (answers requests in flight first), SIGINT (stops at once), or SIGQUIT (if another process
    /// takes over).
    pub fn run_until_signal(self) {
        let sockets = self.sockets.try_clone();
        if let Err(error) = &sockets {
            tracing::warn!(%error, "SIGQUIT will be ignored; raise the limit of open files");
        }
        let (shared, data) = (Arc::clone(&self.shared), self.data.clone());
        let (handlers_set, are_handlers_set) = watch::channel(false);
        let program = installed_program();
        let shutdown = Signals { shared, data, program, sockets: Mutex::new(sockets.ok()), handlers_set };
        let (listen, listen_tls, admin) = (self.public_addr(), self.tls_addr(), self.admin_addr());
        let announcement = Announcement { listen, listen_tls, admin, are_handlers_set };
        self.run(Box::new(shutdown), Some(announcement));
    }

    /// Runs in a thread of its own until it is stopped.
    pub fn in_background(self) -> Running {
        let (stop, stopped) = oneshot::channel();
        let (public_addr, tls_addr, admin_addr) = (self.public_addr(), self.tls_addr(), self.admin_addr());
        let thread =
            std::thread::spawn(move || self.run(Box::new(StopSignal(Mutex::new(Some(stopped)))), None));
        Running { public_addr, tls_addr, admin_addr, stop: Some(stop), thread: Some(thread) }
    }

    fn run(self, shutdown_signal: Box<dyn ShutdownSignalWatch>, announcement: Option<Announcement>) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let conf = ServerConf {
            threads,
            max_blocking_threads: Some(BLOCKING_THREADS_MAX),
            // `Signals` has already waited for requests in flight.
            grace_period_seconds: Some(0),
            graceful_shutdown_timeout_seconds: Some(1),
            ..ServerConf::default()
        };
        let mut server = pingora_core::server::Server::new_with_opt_and_conf(None, conf);
        server.bootstrap();
        let mut sockets = vec![self.sockets.public];
        // TLS begins in the connection limiter.
        sockets.extend(self.sockets.tls);
        server.add_service(HarvesterService::new(&self.shared, &server.configuration, sockets));
        if let Some((address, listener)) = self.sockets.admin {
            let app = Admin { shared: Arc::clone(&self.shared), hosts: AllowedHosts(self.admin_hosts) };
            let mut admin = Service::new("operators".to_owned(), app);
            admin.threads = Some(1);
            admin.add_tcp(&address.to_string());
            let sockets = vec![(address, listener)];
            server.add_service(BoundService {
                service: admin,
                sockets,
                handover: self.shared.lifecycle.handover(),
            });
        }
        let served = &self.shared.served;
        let cache = served.cache.clone();
        if let Some(cache) = cache.clone() {
            let maintenance = CacheMaintenance { cache, served: Arc::clone(served) };
            server.add_service(background_service("cache", maintenance));
        }
        let activity = served.store.activity.clone();
        server.add_service(background_service("activity", ActivityMaintenance(activity.clone())));
        let recovery = StoreRecovery(served.store.databases.clone());
        server.add_service(background_service("stores", recovery));
        let quarantine = QuarantineMaintenance(Arc::clone(served));
        server.add_service(background_service("quarantine", quarantine));
        let (served_by_schedule, telemetry) = (Arc::clone(served), Arc::clone(&self.shared.telemetry));
        let schedule = HarvestSchedule { served: served_by_schedule, telemetry, only_requested: false };
        server.add_service(background_service("mirror", schedule));
        server.add_service(background_service("lists", SourceWalks(Arc::clone(served))));
        let following = ResolverFollowing(Arc::clone(served));
        server.add_service(background_service("resolver", following));
        let full_texts = FullTextService::new(Arc::clone(served), Arc::clone(&self.shared.telemetry));
        server.add_service(background_service("full-texts", full_texts));
        let search = served.search_service.clone();
        if let Some(search) = search.clone() {
            let indexing = SearchIndexing { served: Arc::clone(served), search };
            server.add_service(background_service("search", indexing));
        }
        let folders = FolderService { context: Arc::clone(&self.shared), data: self.data.clone() };
        server.add_service(background_service("folders", folders));
        server.add_service(background_service("hub", HubService(Arc::clone(&self.shared))));
        let notices = NoticeService(Arc::clone(&self.shared));
        server.add_service(background_service("notifications", notices));
        let reports = ReportService(Arc::clone(&self.shared));
        server.add_service(background_service("reports", reports));
        let settings = Mutex::new(self.settings);
        let watch = ConfigWatch { shared: self.shared, settings, announcement };
        server.add_service(background_service("configuration", watch));
        server.run(RunArgs { shutdown_signal });
        if let Some(search) = search {
            search.close();
        }
        if let Some(cache) = cache {
            cache.close();
        }
        activity.save_changed();
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

    /// [`Running::start`] with another clock for sessions with sources.
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
            // The thread has ended; ignore.
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
