//! Messages to the service manager: ready, reloading, stopping, alive (`sd_notify` of systemd).
//!
//! Without a service manager, which sets `NOTIFY_SOCKET`, these functions do nothing. A message that cannot be sent is
//! logged: the service manager notices its absence by its own timeouts.

use sd_notify::NotifyState;
use std::time::Duration;

/// This process serves. After a handover it is the main process of the service.
pub(crate) fn notify_serving() {
    notify(&[NotifyState::MainPid(std::process::id()), NotifyState::Ready]);
}

/// The server prepares a handover. [`notify_serving`] must follow, from this process or from the next one.
pub(crate) fn notify_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "the service manager does not know of the upgrade"),
    }
}

/// The server finishes its requests and ends.
pub(crate) fn notify_stopping() {
    notify(&[NotifyState::Stopping]);
}

/// The server is alive. The interval between two calls must be shorter than [`watchdog_timeout`].
pub(crate) fn notify_alive() {
    notify(&[NotifyState::Watchdog]);
}

/// The time without a message after which the service manager restarts the server, if it does.
pub(crate) fn watchdog_timeout() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be notified; see NotifyAccess in the unit");
    }
}
