//! Time that does not run backwards when the clock is set back.

use std::time::{Duration, SystemTime};

/// Converts the time of the clock to one that never decreases. Pure: the time is an argument.
///
/// Waits are stored in the converted time. A clock that is set back by an hour does not make them an hour longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SteadyTime {
    /// The last time of the clock.
    seen_at: SystemTime,
    /// The sum of all steps back.
    ahead: Duration,
}

impl Default for SteadyTime {
    fn default() -> Self {
        Self { seen_at: SystemTime::UNIX_EPOCH, ahead: Duration::ZERO }
    }
}

impl SteadyTime {
    /// Converts the time, and remembers it.
    pub(super) fn advance(&mut self, now: SystemTime) -> SystemTime {
        self.ahead += self.step_back(now);
        self.seen_at = now;
        now + self.ahead
    }

    /// Converts the time.
    pub(super) fn at(&self, now: SystemTime) -> SystemTime {
        now + self.ahead + self.step_back(now)
    }

    fn step_back(&self, now: SystemTime) -> Duration {
        self.seen_at.duration_since(now).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stands_still_at_a_step_back_and_goes_on_after_it() {
        let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        let mut time = SteadyTime::default();
        let converted = [(5_000, 5_000), (1_000, 5_000), (1_010, 5_010), (10, 5_010), (20, 5_020)];
        for (secs, steady_secs) in converted {
            assert_eq!(time.at(at(secs)), at(steady_secs), "{secs}");
            assert_eq!(time.advance(at(secs)), at(steady_secs), "{secs}");
        }
    }
}
