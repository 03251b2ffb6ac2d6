//! A service that accepts on sockets which are bound already.

use super::handover::HandoverState;
use async_trait::async_trait;
use pingora_core::server::{ListenFds, ShutdownWatch};
use pingora_core::services::{ServiceReadyNotifier, ServiceWithDependents};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd;
use tokio::sync::watch;

/// A service on bound sockets.
pub(crate) struct BoundService<S> {
    pub(crate) service: S,
    pub(crate) sockets: Vec<(SocketAddr, TcpListener)>,
    /// The service stops accepting when another process has the sockets.
    pub(crate) handover: watch::Receiver<HandoverState>,
}

#[async_trait]
impl<S: pingora_core::services::Service + 'static> ServiceWithDependents for BoundService<S> {
    async fn start_service(
        &mut self,
        fds: Option<ListenFds>,
        shutdown: ShutdownWatch,
        listeners_per_fd: usize,
        ready: ServiceReadyNotifier,
    ) {
        if let Some(fds) = &fds {
            for (address, listener) in self.sockets.drain(..) {
                // pingora takes the socket over, and closes it.
                fds.lock().add(address.to_string(), listener.into_raw_fd());
            }
        }
        ready.notify_ready();
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(until_it_stops(shutdown, self.handover.clone(), stop));
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

/// Stops a service from accepting when the process ends or another process has its sockets.
pub(super) async fn until_it_stops(
    mut shutdown: ShutdownWatch,
    mut handover: watch::Receiver<HandoverState>,
    stop: watch::Sender<bool>,
) {
    // A dropped sender counts as stopped.
    tokio::select! {
        _ = shutdown.wait_for(|is_over| *is_over) => {}
        _ = handover.wait_for(|handover| *handover != HandoverState::Serving) => {}
    }
    stop.send_replace(true);
    // The service counts as running while it answers.
    stop.closed().await;
}
