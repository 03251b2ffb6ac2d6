//! Rereads the configuration when a file changes, and logs the start.

use super::mappings_watch::MappingsWatch;
use crate::config::{MappingChanges, MappingsReload, Settings, SettingsReload};
use crate::serve::context::ServerContext;
use crate::serve::net::service_manager;
use crate::serve::net::tls_listener::TlsListener;
use crate::serve::pages::state::GatewayState;
use crate::serve::served::ServedRepositories;
use async_trait::async_trait;
use oaimend_base::error::Error;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Interval between checks of `oaimend.toml`, the mappings folder and the certificate.
const CONFIG_INTERVAL: Duration = Duration::from_secs(2);

/// Rereads the configuration when a file has changed, and at SIGHUP.
pub(crate) struct ConfigWatch {
    pub(crate) shared: Arc<ServerContext>,
    pub(crate) settings: Mutex<Option<Settings>>,
    /// The start message. It is logged after the signal handlers are set, since its reader may send a signal.
    pub(crate) announcement: Option<Announcement>,
}

/// The addresses of the server.
#[derive(Clone)]
pub(crate) struct Announcement {
    pub(crate) listen: SocketAddr,
    pub(crate) listen_tls: Option<SocketAddr>,
    pub(crate) admin: Option<SocketAddr>,
    /// Whether the signal handlers are set.
    pub(crate) are_handlers_set: watch::Receiver<bool>,
}

impl Announcement {
    /// Logs the addresses of the server and its repositories.
    async fn log(mut self, served: &ServedRepositories) {
        // The sender was dropped; ignore.
        let _ = self.are_handlers_set.wait_for(|are_handlers_set| *are_handlers_set).await;
        let repositories = served.repositories.all();
        tracing::info!(
            url = served.public_url,
            listen = %self.listen,
            listen_tls = self.listen_tls.map(tracing::field::display),
            admin = self.admin.map(tracing::field::display),
            repositories = repositories.len(),
            "serving"
        );
        let mut listeners = [Some(self.listen), self.listen_tls].into_iter().flatten();
        let is_unusable = |address: SocketAddr| {
            address.ip().is_unspecified() && served.public_url.contains(&address.to_string())
        };
        if listeners.any(is_unusable) {
            tracing::warn!(
                "responses contain the URL {}, which harvesters cannot use; set --public-url",
                served.public_url
            );
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
        let mut watchdog = None;
        if let Some(announcement) = self.announcement.clone() {
            announcement.log(&self.shared.served).await;
            service_manager::notify_serving();
            watchdog = service_manager::watchdog_timeout();
        }
        let mut watched = self.shared.tls.as_ref().map(TlsListener::watch);
        if let Some(watched) = &mut watched {
            watched.report_expiry(&self.shared.telemetry);
        }
        let interval = watchdog.map_or(CONFIG_INTERVAL, |timeout| CONFIG_INTERVAL.min(timeout / 2));
        let mut mappings = MappingsWatch::new(self.shared.served.repositories.folder());
        let mut unreadable = ReportedErrors::default();
        loop {
            // A loop that hangs, for example on a disk that does not respond, ends the messages.
            if watchdog.is_some() {
                service_manager::notify_alive();
            }
            let is_hangup = tokio::select! {
                () = tokio::time::sleep(interval) => false,
                _ = hung_up() => true,
                _ = shutdown.changed() => return,
            };
            if is_hangup {
                // A person waits for an answer.
                unreadable = ReportedErrors::default();
            }
            let is_same_certificate =
                watched.as_mut().is_none_or(|watched| watched.refresh(&self.shared.telemetry));
            let are_same_settings = self.reread_settings(&mut unreadable);
            // New limits change the mappings too.
            let is_due = mappings.is_due() || is_hangup || !are_same_settings;
            let are_same_mappings = !is_due || self.reread_mappings(&mut unreadable);
            self.reread_definitions();
            let is_unchanged = [are_same_settings, are_same_mappings, is_same_certificate] == [true; 3];
            if is_hangup && is_unchanged {
                tracing::info!("configuration read again; nothing has changed");
            }
        }
    }
}

/// The errors of files that cannot be read. Each is logged once, and not every two seconds.
#[derive(Default)]
struct ReportedErrors {
    settings: Option<String>,
    mappings: Option<String>,
}

/// Logs an error, unless it was the last one.
fn report_once(reported: &mut Option<String>, error: &Error, effect: &str) {
    let text = format!("{error}; {effect}");
    if reported.as_ref() != Some(&text) {
        tracing::error!("{text}");
        *reported = Some(text);
    }
}

impl ConfigWatch {
    /// Rereads `oaimend.toml`; returns whether it is unchanged.
    fn reread_settings(&self, unreadable: &mut ReportedErrors) -> bool {
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        let read = settings.as_mut().map_or(Ok(SettingsReload::Unchanged), Settings::reload);
        if read.is_ok() {
            unreadable.settings = None;
        }
        match read {
            Ok(SettingsReload::Unchanged) => return true,
            Ok(SettingsReload::Changed(change)) => {
                self.shared.served.repositories.set_limits(change.limits);
                self.shared.served.mirror.set_policy(change.mirror);
                self.shared.served.broker.set(change.services);
                self.shared.served.federations.set_tables(change.federations);
                self.shared.notices.set(change.notifications, change.reports);
                self.shared.gateway.set(GatewayState::new(change.gateway, &self.shared.served.public_url));
                self.shared.clients.change(change.clients, change.connections);
                match change.restart_required.as_slice() {
                    [] => tracing::info!("oaimend.toml read again"),
                    keys => tracing::warn!(
                        "oaimend.toml read again; {} takes effect after a restart",
                        keys.join(", ")
                    ),
                }
            }
            Ok(SettingsReload::Faults(faults)) => {
                for fault in faults {
                    tracing::error!("{fault}; the previous settings stay in effect");
                }
            }
            Err(error) => {
                report_once(&mut unreadable.settings, &error, "the previous settings stay in effect");
            }
        }
        false
    }

    /// Rereads the views and federations.
    fn reread_definitions(&self) {
        let mappings = self.shared.served.repositories.all();
        for fault in self.shared.served.views.reload(&mappings) {
            tracing::error!("{fault}; the view is unchanged");
        }
        for fault in self.shared.served.federations.reload(&mappings) {
            tracing::error!("{fault}; the federation is unchanged");
        }
    }

    /// Rereads the mappings; returns whether they are unchanged.
    fn reread_mappings(&self, unreadable: &mut ReportedErrors) -> bool {
        let read = self.shared.served.repositories.reload();
        if read.is_ok() && unreadable.mappings.take().is_some() {
            tracing::info!("the mappings folder can be read again");
        }
        match read {
            Ok(MappingsReload::Unchanged) => return true,
            Ok(MappingsReload::Changed { changes, faults }) => {
                for fault in &faults {
                    tracing::error!("{fault}; the repository is unchanged");
                }
                if !changes.removed.is_empty()
                    && let Some(cache) = self.shared.served.cache.clone()
                {
                    let kept = self.shared.served.repositories.all();
                    tokio::task::spawn_blocking(move || cache.purge_others(|id| kept.contains_key(id)));
                }
                if faults.is_empty() || changes != MappingChanges::default() {
                    let listed = |ids: Vec<String>| (!ids.is_empty()).then(|| ids.join(", "));
                    tracing::info!(
                        repositories = self.shared.served.repositories.all().len(),
                        added = listed(changes.added),
                        changed = listed(changes.changed),
                        removed = listed(changes.removed),
                        "mappings read again"
                    );
                }
            }
            Err(error) => report_once(&mut unreadable.mappings, &error, "the repositories are unchanged"),
        }
        false
    }
}
