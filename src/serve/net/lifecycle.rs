//! Whether the process serves, stops, or hands over to another one.

use super::handover::HandoverState;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// The part of its life in which the process is.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    /// Set when the process ends: requests in flight are answered, new ones are refused.
    is_draining: AtomicBool,
    /// Set when another process takes over.
    handover: watch::Sender<HandoverState>,
}

impl Lifecycle {
    /// Whether new requests are refused.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Refuses new requests from now on.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// The handover to another process, and its changes.
    pub(crate) fn handover(&self) -> watch::Receiver<HandoverState> {
        self.handover.subscribe()
    }

    /// Notes a step of the handover.
    pub(crate) fn set_handover(&self, state: HandoverState) {
        self.handover.send_replace(state);
    }

    /// Whether the process stops, or another process takes over.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_draining() || *self.handover().borrow() != HandoverState::Serving
    }
}
