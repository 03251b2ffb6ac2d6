//! The time of the next request to a source: its next harvest, or a probe after failures.

use crate::backoff::backoff;
use core::time::Duration;
use oaimend_oai::UnixSecs;

/// The wait after the first failed harvest.
pub const BACKOFF_FIRST_SECS: i64 = 60;
/// The longest wait after repeated failures: a day.
pub(super) const BACKOFF_MAX_SECS: i64 = 86_400;

/// The request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A harvest.
    Harvest,
    /// One cheap request, such as Identify. The source failed before, and a whole harvest would
    /// burden it.
    Probe,
}

/// A request and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The time of the request, in seconds since 1970. A time in the past means now.
    pub at_secs: UnixSecs,
    /// The request.
    pub action: Action,
}

/// The past of one source, as far as the schedule depends on it. Times are seconds since 1970.
///
/// ```
/// use oaimend_oai::UnixSecs;
/// use oaimend_rules::schedule::{Action, Due, History, next_due};
///
/// let history = History { harvested_at_secs: Some(UnixSecs(1_000)), ..History::default() };
/// assert_eq!(next_due(&history, 3_600.0, UnixSecs(1_500)), Due { at_secs: UnixSecs(4_600), action: Action::Harvest });
/// let failing = History { failed_at_secs: Some(UnixSecs(4_600)), failures: 1, ..history };
/// assert_eq!(next_due(&failing, 3_600.0, UnixSecs(4_600)), Due { at_secs: UnixSecs(4_660), action: Action::Probe });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The start of the last complete harvest.
    pub harvested_at_secs: Option<UnixSecs>,
    /// The last failed harvest or probe.
    pub failed_at_secs: Option<UnixSecs>,
    /// The failures since the last success.
    pub failures: u32,
}

/// The wait after a number of failures: it doubles from [`BACKOFF_FIRST_SECS`] up to
/// `BACKOFF_MAX_SECS`; 0 without failures.
pub fn backoff_secs(failures: u32) -> i64 {
    let secs = |secs: i64| Duration::from_secs(secs.unsigned_abs());
    backoff(secs(BACKOFF_FIRST_SECS), failures, secs(BACKOFF_MAX_SECS)).as_secs().cast_signed()
}

/// Determines the next request to a source.
///
/// `interval_secs` comes from the plan. Intervals run from start to start of harvests, so that a long
/// harvest does not delay the next one. The result is never later than one interval after `now_secs`:
/// a clock that was set back does not stop the harvests.
pub fn next_due(history: &History, interval_secs: f64, now_secs: UnixSecs) -> Due {
    // The conversion saturates, and gives 0 for NaN.
    let interval_secs = (interval_secs.round() as i64).max(0);
    let after = |at_secs: Option<UnixSecs>, wait_secs: i64| {
        at_secs.map_or(now_secs, |at_secs| at_secs.min(now_secs).plus(wait_secs))
    };
    if history.failures > 0 {
        let at_secs = after(history.failed_at_secs, backoff_secs(history.failures));
        return Due { at_secs, action: Action::Probe };
    }
    Due { at_secs: after(history.harvested_at_secs, interval_secs), action: Action::Harvest }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test may panic")]

    use super::*;

    const HARVEST: Action = Action::Harvest;
    const PROBE: Action = Action::Probe;

    fn harvested_at(secs: i64) -> History {
        History { harvested_at_secs: Some(UnixSecs(secs)), ..History::default() }
    }

    #[test]
    fn a_new_source_is_harvested_at_once() {
        assert_eq!(
            next_due(&History::default(), 3600.0, UnixSecs(50)),
            Due { at_secs: UnixSecs(50), action: HARVEST }
        );
    }

    #[test]
    fn a_harvest_is_due_one_interval_after_the_start_of_the_last_one() {
        let history = harvested_at(1_000);
        assert_eq!(
            next_due(&history, 3600.4, UnixSecs(1_500)),
            Due { at_secs: UnixSecs(4_600), action: HARVEST }
        );
        assert_eq!(
            next_due(&history, 3600.0, UnixSecs(9_999)),
            Due { at_secs: UnixSecs(4_600), action: HARVEST }
        );
    }

    #[test]
    fn a_failing_source_is_probed_ever_less_often_up_to_once_a_day() {
        let mut waits = Vec::new();
        for failures in 1..=40_u32 {
            let at_secs = i64::from(failures) * 200_000;
            let failing = History { failed_at_secs: Some(UnixSecs(at_secs)), failures, ..harvested_at(0) };
            let due = next_due(&failing, 3600.0, UnixSecs(at_secs));
            assert_eq!(due.action, PROBE);
            waits.push(due.at_secs.0 - at_secs);
        }
        assert_eq!(waits[..4], [60, 120, 240, 480]);
        assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]), "{waits:?}");
        assert_eq!(waits.last(), Some(&BACKOFF_MAX_SECS));
        assert_eq!(backoff_secs(0), 0);
        assert_eq!(backoff_secs(u32::MAX), BACKOFF_MAX_SECS);
    }

    #[test]
    fn an_answered_probe_makes_the_failed_harvest_due() {
        let answered = History { failed_at_secs: Some(UnixSecs(3_600)), failures: 0, ..harvested_at(0) };
        let due = next_due(&answered, 3600.0, UnixSecs(3_700));
        assert_eq!(due.action, HARVEST);
        assert!(due.at_secs.0 <= 3_700);
    }

    #[test]
    fn a_clock_that_was_set_back_delays_by_one_interval_at_most() {
        let history = harvested_at(1_000_000);
        assert_eq!(next_due(&history, 3600.0, UnixSecs(500)).at_secs.0, 4_100);
        let failing = History { failed_at_secs: Some(UnixSecs(1_000_000)), failures: 1, ..history };
        assert_eq!(next_due(&failing, 3600.0, UnixSecs(500)).at_secs.0, 560);
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let history = harvested_at(i64::MAX);
        for interval_secs in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -5.0] {
            let due = next_due(&history, interval_secs, UnixSecs::MAX);
            assert_eq!(due.action, HARVEST);
        }
        assert_eq!(next_due(&history, f64::NAN, UnixSecs(7)).at_secs.0, 7);
    }
}
