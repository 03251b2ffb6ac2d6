//! Decides whether requests are sent that may be useless: for single broken records, and in another form.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Closes if such requests are often useless. Pure: the time is an argument.
#[derive(Debug, Default)]
pub(crate) struct TrialGate(Mutex<Outcomes>);

#[derive(Debug, Default)]
struct Outcomes {
    failures_in_a_row: u32,
    rests_until: Option<SystemTime>,
}

/// The gates of the trials of other request forms.
#[derive(Debug, Default)]
pub(crate) struct FormGates {
    /// Tokens with the format of their list.
    pub(crate) prefix_with_token: TrialGate,
    /// Literal colons and slashes in identifiers of harvesters.
    pub(crate) literal_identifiers: TrialGate,
    /// The same in identifiers that the source has listed.
    pub(crate) listed_identifiers: TrialGate,
    /// Lists without early dates.
    pub(crate) no_early_dates: TrialGate,
}

/// Consecutive useless requests that close the gate.
const FAILURES_MAX: u32 = 3;
/// How long the gate stays closed.
const REST: Duration = Duration::from_secs(600);

impl TrialGate {
    pub(crate) fn is_open(&self, now: SystemTime) -> bool {
        let outcomes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.rests_until.is_none_or(|until| until <= now)
    }

    pub(crate) fn note(&self, now: SystemTime, is_useful: bool) {
        let mut outcomes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.failures_in_a_row = if is_useful { 0 } else { outcomes.failures_in_a_row + 1 };
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
    fn the_gate_closes_for_a_while_after_useless_requests() {
        let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        let gate = TrialGate::default();
        for is_useful in [false, false, true, false, false] {
            gate.note(at(0), is_useful);
            assert!(gate.is_open(at(0)));
        }
        gate.note(at(0), false);
        assert!(!gate.is_open(at(599)) && gate.is_open(at(600)));
        gate.note(at(600), false);
        assert!(gate.is_open(at(600)), "counted again");
    }
}
