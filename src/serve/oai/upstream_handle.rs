//! The result of a session with the source, for the log line of the request that started it.

use oaimend_repository::{Failure, ResponseSummary};
use std::sync::{Arc, Mutex, PoisonError};

/// The result of a session, shared with the request that logs it.
#[derive(Clone, Debug, Default)]
pub(super) struct UpstreamHandle(Arc<Mutex<Option<UpstreamResult>>>);

/// The result of a session.
#[derive(Clone, Debug)]
pub(super) struct UpstreamResult {
    pub(super) summary: ResponseSummary,
    pub(super) failure: Option<Failure>,
}

impl UpstreamHandle {
    /// The result, if the session has ended.
    pub(super) fn ended(&self) -> Option<UpstreamResult> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn end(&self, summary: ResponseSummary, failure: Option<Failure>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(UpstreamResult { summary, failure });
    }
}
