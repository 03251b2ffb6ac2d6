//! Decides whether broken records of lists are requested again, one by one.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Closes if refetches often return no record. Pure: the time is an argument.
#[derive(Debug, Default)]
pub(crate) struct RefetchGate(Mutex<Outcomes>);

#[derive(Debug, Default)]
struct Outcomes {
    failures_in_a_row: u32,
    rests_until: Option<SystemTime>,
}

/// Consecutive refetches without a record that close the gate.
const FAILURES_MAX: u32 = 3;
/// How long the gate stays closed.
const REST: Duration = Duration::from_secs(600);

impl RefetchGate {
    pub(crate) fn is_open(&self, now: SystemTime) -> bool {
        let outcomes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.rests_until.is_none_or(|until| until <= now)
    }

    pub(crate) fn note(&self, now: SystemTime, has_record: bool) {
        let mut outcomes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.failures_in_a_row = if has_record { 0 } else { outcomes.failures_in_a_row + 1 };
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
    fn the_gate_closes_for_a_while_after_useless_refetches() {
        let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        let gate = RefetchGate::default();
        for has_record in [false, false, true, false, false] {
            gate.note(at(0), has_record);
            assert!(gate.is_open(at(0)));
        }
        gate.note(at(0), false);
        assert!(!gate.is_open(at(599)) && gate.is_open(at(600)));
        gate.note(at(600), false);
        assert!(gate.is_open(at(600)), "counted again");
    }
}
