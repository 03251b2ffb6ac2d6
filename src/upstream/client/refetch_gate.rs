//! Decides whether a source is asked for single records that are broken in its lists.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Whether a source is worth such a question. Pure: the time is an argument.
#[derive(Debug, Default)]
pub(crate) struct RefetchGate(Mutex<Outcomes>);

#[derive(Debug, Default)]
struct Outcomes {
    failures_in_a_row: u32,
    rests_until: Option<SystemTime>,
}

/// Questions in a row that brought nothing before the source is spared them.
const FAILURES_MAX: u32 = 3;
/// For how long it is then.
const REST: Duration = Duration::from_secs(600);

impl RefetchGate {
    pub(crate) fn is_open(&self, now: SystemTime) -> bool {
        let outcomes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.rests_until.is_none_or(|until| until <= now)
    }

    pub(crate) fn note(&self, now: SystemTime, was_had: bool) {
        let mut outcomes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.failures_in_a_row = if was_had { 0 } else { outcomes.failures_in_a_row + 1 };
        if outcomes.failures_in_a_row >= FAILURES_MAX {
            outcomes.rests_until = Some(now + REST);
            outcomes.failures_in_a_row = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_has_nothing_better_is_spared_for_a_while() {
        let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        let recalls = RefetchGate::default();
        for had in [false, false, true, false, false] {
            recalls.note(at(0), had);
            assert!(recalls.is_open(at(0)));
        }
        recalls.note(at(0), false);
        assert!(!recalls.is_open(at(599)) && recalls.is_open(at(600)));
        recalls.note(at(600), false);
        assert!(recalls.is_open(at(600)), "counted anew");
    }
}
