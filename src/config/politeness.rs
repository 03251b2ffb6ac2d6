//! The `politeness` table of a mapping: the limits on our requests to a source.

use super::keys::{Keys, declare, millis, requests, whole};
use oaimend_upstream::settings::Politeness;

/// The keys of the table.
pub(super) fn declare(politeness: &mut Politeness, keys: &mut Keys<'_, '_>) {
    declare! { keys:
        /// Maximum number of list requests in flight at the source.
        list_requests_max: whole(1..=1000) => politeness.list_requests_max,
        /// The shortest time between the starts of two requests.
        gap_millis: millis(0..=3_600_000) => politeness.gap,
        /// Maximum number of requests per minute.
        requests_per_minute_max: requests(1..=1_000_000) => politeness.requests_per_minute_max,
    }
}
