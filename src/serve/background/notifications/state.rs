//! The configuration of notifications and reports, and the events that wait for their delivery.

use crate::config::{NotificationPolicy, ReportPolicy};
use crate::notify::EventQueue;
use std::sync::{Arc, PoisonError, RwLock};

/// What requests of operators and the service of notifications share.
#[derive(Debug, Default)]
pub(crate) struct NoticeState {
    policy: RwLock<Arc<NotificationPolicy>>,
    reports: RwLock<Arc<ReportPolicy>>,
    /// The events for the webhook.
    pub(super) webhook: EventQueue,
    /// The events for mail.
    pub(super) mail: EventQueue,
}

impl NoticeState {
    /// Empty queues with this configuration.
    pub(crate) fn new(policy: NotificationPolicy, reports: ReportPolicy) -> Self {
        let (policy, reports) = (RwLock::new(Arc::new(policy)), RwLock::new(Arc::new(reports)));
        Self { policy, reports, ..Self::default() }
    }

    /// The current configuration.
    pub(crate) fn policy(&self) -> Arc<NotificationPolicy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The current configuration of reports to providers.
    pub(crate) fn reports(&self) -> Arc<ReportPolicy> {
        Arc::clone(&self.reports.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the configuration. The next attempt to deliver uses it.
    pub(crate) fn set(&self, policy: NotificationPolicy, reports: ReportPolicy) {
        *self.reports.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(reports);
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }
}
