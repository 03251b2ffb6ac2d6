//! The configuration of notifications, and the events that wait for their delivery.

use crate::config::NotificationPolicy;
use crate::notify::EventQueue;
use std::sync::{Arc, PoisonError, RwLock};

/// What requests of operators and the service of notifications share.
#[derive(Debug, Default)]
pub(crate) struct NoticeState {
    policy: RwLock<Arc<NotificationPolicy>>,
    /// The events for the webhook.
    pub(super) webhook: EventQueue,
    /// The events for mail.
    pub(super) mail: EventQueue,
}

impl NoticeState {
    /// Empty queues with this configuration.
    pub(crate) fn new(policy: NotificationPolicy) -> Self {
        Self { policy: RwLock::new(Arc::new(policy)), ..Self::default() }
    }

    /// The current configuration.
    pub(crate) fn policy(&self) -> Arc<NotificationPolicy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the configuration. The next attempt to deliver uses it.
    pub(crate) fn set_policy(&self, policy: NotificationPolicy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }
}
