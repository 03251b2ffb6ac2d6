//! The limits on our requests to a source.

use std::num::NonZeroU32;
use std::time::Duration;

/// Limits on our requests to a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Politeness {
    /// List requests in flight.
    pub list_requests_max: usize,
    /// The shortest time between the starts of two requests.
    pub gap: Duration,
    /// Requests per minute; `None`: only the other limits apply.
    pub requests_per_minute_max: Option<NonZeroU32>,
}

impl Default for Politeness {
    fn default() -> Self {
        Self { list_requests_max: 1, gap: Duration::ZERO, requests_per_minute_max: None }
    }
}
