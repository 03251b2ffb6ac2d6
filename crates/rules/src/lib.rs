//! The rules of time for harvests, so that an incremental harvester misses no record.
//!
//! An incremental harvester derives the `from` of its next request from its last list. It misses a
//! record if the list did not contain a change, and the datestamp of this change is before `from`.
//! Harvesters derive `from` from the responseDate of a page, from the highest datestamp, or from
//! their own clock at the start or the end of the list. Three rules cover all of them:
//!
//! 1. **Stamps in commit order.** A record of a mirror becomes visible with a stamp after every
//!    responseDate that was served before. [`StampClock`] issues both.
//! 2. **Widened requests.** A list shows the repository as of a time S, and a harvester derives some
//!    `from` between S and the end E of the list from it. [`ServedSpans`] stores [S, E]. A later
//!    request with a `from` in this span is answered from S. S is early if the mirror answered in
//!    place of the source: the time of its last harvest. [`ListState`] determines it.
//! 3. **Overlapping harvests.** The harvest of a source begins before the responseDate of the
//!    harvest before. [`HarvestMark`] determines the start from the clocks of the source.
//!    [`KnownGaps`] are the items that a harvest could not store: S stops at them.
//!
//! A list of one set has one more condition: the mirror knows the members of the set. [`SetFacts`] decides it.
//! A view of chosen records has members: [`Member`], [`Followed`] and [`Redefinition`] decide what its lists contain.
//!
//! The harvester may receive some records twice. It misses none under these conditions: the clocks
//! of harvester and mirror differ by at most [`CLOCK_ERROR_MAX_SECS`], and the source shows a change
//! from the second of its datestamp on. `tests/rules/mirror_simulation` checks the rules, and that
//! records are missed without any one of them.
//!
//! All times are seconds since 1970. Pure: no I/O, no clock, no async.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod backoff;
mod harvest_mark;
mod known_gaps;
pub mod schedule;
mod served_spans;
mod set_members;
mod stamp_clock;
mod view_members;

pub use backoff::backoff;
pub use harvest_mark::{HarvestMark, ResponseClocks};
pub use known_gaps::{
    GAP_IDENTIFIER_BYTES_MAX, GAPS_MAX, Gap, GapsBeyond, KnownGaps, MissingItem, Sighting,
    UNREPAIRABLE_FETCHES_MAX, UNREPAIRABLE_HARVESTS,
};
pub use served_spans::{
    CLOCK_ERROR_MAX_SECS, ListState, SPAN_GRAIN_SECS, SPANS_MAX, ServedSpan, ServedSpans,
};
pub use set_members::{KnownMembers, SetFacts};
pub use stamp_clock::{ListTimes, PendingCommit, RESERVATION_SECS, StampClock};
pub use view_members::{CollectionState, Followed, Member, Redefinition, Switch, member_datestamp};
