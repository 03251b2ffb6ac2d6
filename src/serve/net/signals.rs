//! Stops the server: at a signal, or when the owner of a background server stops it.

use super::handover::{self, HandoverState, Sockets};
use super::service_manager;
use super::successor::Successor;
use crate::serve::context::ServerContext;
use async_trait::async_trait;
use oaimend_base::clock;
use pingora_core::server::{ShutdownSignal, ShutdownSignalWatch};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

/// Interval between checks for requests in flight.
const ANSWERED_INTERVAL: Duration = Duration::from_millis(20);

/// Stops when the owner says so, or is dropped.
pub(crate) struct StopSignal(pub(crate) Mutex<Option<oneshot::Receiver<()>>>);

#[async_trait]
impl ShutdownSignalWatch for StopSignal {
    async fn recv(&self) -> ShutdownSignal {
        let stopped = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(stopped) = stopped {
            let _ = stopped.await;
        }
        // The fast shutdown does not wait until the sockets are closed.
        ShutdownSignal::GracefulTerminate
    }
}

/// The signals for a server before it handles them: SIGHUP and SIGUSR2 have no effect, and SIGQUIT can be observed.
/// Without this they would end the process without a word, SIGQUIT with a core dump.
pub struct EarlySignals {
    runtime: Runtime,
    quit: Signal,
}

impl EarlySignals {
    /// Sets the handlers, which stay for the life of the process. `None` if signals cannot be watched.
    pub fn watch() -> Option<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let entered = runtime.enter();
        let [quit, _, _] =
            [SignalKind::quit(), SignalKind::hangup(), SignalKind::user_defined2()].map(signal);
        drop(entered);
        Some(Self { runtime, quit: quit.ok()? })
    }

    /// Whether SIGQUIT arrived since the call of [`watch`](Self::watch).
    pub fn is_quit(&mut self) -> bool {
        self.runtime.block_on(async {
            // The runtime delivers signals when its tasks yield.
            tokio::task::yield_now().await;
            tokio::select! {
                biased;
                _ = self.quit.recv() => true,
                () = tokio::task::yield_now() => false,
            }
        })
    }
}

/// Stops at SIGINT at once, at SIGTERM after requests in flight are answered, and at SIGQUIT and SIGUSR2 after a
/// handover.
pub(crate) struct Signals {
    pub(crate) shared: Arc<ServerContext>,
    pub(crate) data: PathBuf,
    /// The path of the installed program, which takes over at SIGUSR2.
    pub(crate) program: PathBuf,
    /// The sockets to hand over.
    pub(crate) sockets: Mutex<Option<Sockets>>,
    pub(crate) handlers_set: watch::Sender<bool>,
}

#[async_trait]
impl ShutdownSignalWatch for Signals {
    async fn recv(&self) -> ShutdownSignal {
        let [Ok(mut terminate), Ok(mut interrupt), Ok(mut quit), Ok(mut upgrade)] = [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::quit(),
            SignalKind::user_defined2(),
        ]
        .map(signal) else {
            tracing::error!("signals cannot be watched; only SIGKILL ends this process");
            self.handlers_set.send_replace(true);
            return std::future::pending().await;
        };
        self.handlers_set.send_replace(true);
        loop {
            let ended = async {
                tokio::select! {
                    _ = terminate.recv() => {
                        service_manager::notify_stopping();
                        self.shared.lifecycle.drain();
                        true
                    }
                    _ = quit.recv() => self.hand_over(false).await,
                    _ = upgrade.recv() => self.upgrade().await,
                }
            };
            tokio::select! {
                _ = interrupt.recv() => return ShutdownSignal::FastShutdown,
                ended = ended => if ended { break },
            }
        }
        let answered = async {
            let telemetry = &self.shared.telemetry;
            // After a handover, connections stay open a moment longer than the last response.
            let is_handed_over = *self.shared.lifecycle.handover().borrow() == HandoverState::DataHandedOver;
            let mut idle_since = None;
            loop {
                let now = clock::uptime();
                let is_over = |since: Duration| now.saturating_sub(since) > handover::LINGER;
                match telemetry.metrics.in_flight.get() {
                    0 if !is_handed_over || telemetry.metrics.connections.get() == 0 => return,
                    0 if is_over(*idle_since.get_or_insert(now)) => return,
                    0 => {}
                    _ => idle_since = None,
                }
                tokio::time::sleep(ANSWERED_INTERVAL).await;
            }
        };
        tokio::select! {
            () = answered => {}
            () = tokio::time::sleep(self.shared.clients.current().connections.stop_timeout) => {}
            _ = interrupt.recv() => return ShutdownSignal::FastShutdown,
        }
        ShutdownSignal::GracefulTerminate
    }
}

impl Signals {
    /// Starts the installed program and hands over to it; returns whether that succeeded.
    async fn upgrade(&self) -> bool {
        service_manager::notify_reloading();
        let is_replaced = self.hand_over(true).await;
        if !is_replaced {
            service_manager::notify_serving();
        }
        is_replaced
    }

    /// Hands the sockets and the data folder over to another process, which is started here or waits already; returns
    /// whether there was one.
    async fn hand_over(&self, starts_successor: bool) -> bool {
        let sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(sockets) = sockets else { return false };
        let handed = if starts_successor {
            Successor::start_and_hand_over(&self.program, &self.data, &sockets).await
        } else {
            handover::hand_over(&self.data, &sockets).await.inspect_err(|_| {
                tracing::error!(
                    "SIGQUIT is ignored, because no process takes over; start one with --upgrade first"
                );
            })
        };
        let connection = match handed {
            Ok(connection) => connection,
            Err(error) => {
                tracing::error!(%error, "there is no handover; this process continues to serve");
                *self.sockets.lock().unwrap_or_else(PoisonError::into_inner) = Some(sockets);
                return false;
            }
        };
        tracing::info!("another process takes over; requests in flight are answered");
        self.shared.lifecycle.set_handover(HandoverState::SocketsHandedOver);
        self.answer_open_connections().await;
        let served = Arc::clone(&self.shared.served);
        let closed = tokio::task::spawn_blocking(move || {
            if let Some(cache) = &served.cache {
                cache.close();
            }
            if let Some(search) = &served.search_service {
                search.close();
            }
            served.store.close();
        });
        if let Err(error) = closed.await {
            tracing::error!(%error, "the data folder was not closed properly");
        }
        self.shared.lifecycle.set_handover(HandoverState::DataHandedOver);
        if !handover::is_confirmed(connection).await {
            tracing::error!("the new process has ended before it could serve; this process starts again");
            let error = handover::restart_in_place(&self.program, &sockets);
            tracing::error!(%error, "this process cannot start again; start oaimend now");
        }
        true
    }

    /// Waits, for a limited time, for requests in flight, and for one last request on open connections. Its response
    /// asks the client to reconnect.
    async fn answer_open_connections(&self) {
        let telemetry = &self.shared.telemetry;
        let began = clock::uptime();
        loop {
            let waited = clock::uptime().saturating_sub(began);
            let max = match telemetry.metrics.in_flight.get() {
                0 => handover::SILENCE_MAX,
                _ => handover::ANSWERING_MAX,
            };
            if telemetry.metrics.connections.get() == 0 || waited >= max {
                return;
            }
            tokio::time::sleep(ANSWERED_INTERVAL).await;
        }
    }
}
