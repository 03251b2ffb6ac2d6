//! Leaves a source alone that fails every time, and finds out when it is back.
//!
//! Pure: the time is an argument. Counts requests of harvesters, not attempts;
//! only failures that are the source's own.

use super::failure::{Failure, Reason};
use crate::repair::NotOai;
use std::time::{Duration, SystemTime};

/// Requests in a row that fail before the source is left alone.
const FAILURES_TO_OPEN: u32 = 5;
const FIRST_REST: Duration = Duration::from_secs(30);
/// A source that forbids us does not change its mind by the minute.
const FORBIDDEN_REST: Duration = Duration::from_secs(600);
const LONGEST_REST: Duration = Duration::from_secs(1800);

/// What is known of a source's last requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    rests: u32,
    open_until: Option<SystemTime>,
    /// When the one request went out that finds out.
    probing_since: Option<SystemTime>,
    /// What failed last, for those who are turned away.
    last: String,
}

/// The source is left alone for so long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resting {
    pub(super) secs: u64,
    pub(super) because: String,
}

impl Breaker {
    /// May a request go out now? When the rest is over, one may, and the others wait for it.
    pub(super) fn admit(&mut self, now: SystemTime) -> Result<(), Resting> {
        let Some(until) = self.open_until else { return Ok(()) };
        let probe_lost = |since: SystemTime| now.duration_since(since).unwrap_or_default() > FIRST_REST;
        let left = until.duration_since(now).unwrap_or_default();
        if left.is_zero() && self.probing_since.is_none_or(probe_lost) {
            self.probing_since = Some(now);
            return Ok(());
        }
        let secs = if left.is_zero() { 5 } else { left.as_secs().clamp(1, 3600) };
        Err(Resting { secs, because: self.last.clone() })
    }

    /// A request was answered.
    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// A request failed for good.
    pub(super) fn failed(&mut self, now: SystemTime, failure: &Failure) {
        if !is_the_sources(failure) {
            self.probing_since = None;
            return;
        }
        self.failures += 1;
        failure.details.clone_into(&mut self.last);
        let was_probe = self.probing_since.take().is_some();
        if self.failures < FAILURES_TO_OPEN && !was_probe {
            return;
        }
        let first = if failure.received_status == Some(403) { FORBIDDEN_REST } else { FIRST_REST };
        let asked = Duration::from_secs(failure.asked_to_wait_secs.unwrap_or(0).min(3600));
        let rest = LONGEST_REST.min(first * 2_u32.pow(self.rests.min(10))).max(asked);
        self.rests += 1;
        self.open_until = Some(now + rest);
    }

    /// Until when requests are turned away, in seconds from now.
    pub(super) fn rests_for_secs(&self, now: SystemTime) -> Option<u64> {
        self.open_until.map(|until| until.duration_since(now).unwrap_or_default().as_secs())
    }
}

/// Whether a failure says something of the source, and not of one page or of us.
fn is_the_sources(failure: &Failure) -> bool {
    match failure.reason {
        Reason::Dns
        | Reason::ConnectionRefused
        | Reason::ConnectionTimeout
        | Reason::ConnectionLost
        | Reason::TlsCertificate
        | Reason::TlsProtocol
        | Reason::HttpProtocol
        | Reason::ResponseTimeout
        | Reason::NotOai(NotOai::Html | NotOai::BotWall) => true,
        Reason::Status => matches!(failure.received_status, Some(403 | 429 | 500..=599)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(secs)
    }

    fn forbidden() -> Failure {
        Failure::new(Reason::Status, "no").after_status(403, None)
    }

    fn opened(failure: &Failure) -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..FAILURES_TO_OPEN {
            assert_eq!(breaker.admit(at(0)), Ok(()));
            breaker.failed(at(0), failure);
        }
        assert!(breaker.rests_for_secs(at(0)).is_some());
        breaker
    }

    #[test]
    fn five_failures_in_a_row_open_it_and_a_probe_closes_it() {
        let lost = Failure::new(Reason::ConnectionLost, "gone");
        let mut breaker = opened(&lost);
        assert_eq!(breaker.admit(at(10)), Err(Resting { secs: 20, because: "gone".into() }));
        assert_eq!(breaker.admit(at(30)), Ok(()), "the probe");
        assert!(breaker.admit(at(30)).is_err(), "one probe at a time");
        breaker.succeeded();
        assert_eq!(breaker.admit(at(30)), Ok(()));
    }

    #[test]
    fn a_probe_that_fails_makes_the_rest_longer_and_one_that_is_lost_is_replaced() {
        let lost = Failure::new(Reason::ConnectionLost, "gone");
        let mut breaker = opened(&lost);
        assert_eq!(breaker.admit(at(30)), Ok(()));
        breaker.failed(at(30), &lost);
        assert_eq!(breaker.admit(at(31)).expect_err("it rests").secs, 59);
        assert_eq!(breaker.admit(at(90)), Ok(()));
        assert_eq!(breaker.admit(at(90)).expect_err("a probe is out").secs, 5);
        assert_eq!(breaker.admit(at(121)), Ok(()), "the first probe never came back");
    }

    #[test]
    fn five_times_forbidden_rests_long_and_a_success_between_counts_anew() {
        let mut breaker = opened(&forbidden());
        assert_eq!(breaker.admit(at(1)).expect_err("it rests").secs, 599);
        let mut breaker = Breaker::default();
        for _ in 0..3 {
            for _ in 0..FAILURES_TO_OPEN - 1 {
                breaker.failed(at(0), &forbidden());
            }
            breaker.succeeded();
        }
        assert_eq!(breaker.rests_for_secs(at(0)), None);
    }

    #[test]
    fn what_is_not_the_sources_fault_opens_nothing() {
        let mut breaker = Breaker::default();
        for _ in 0..20 {
            breaker.failed(at(0), &Failure::new(Reason::Quarantine, ""));
            breaker.failed(at(0), &Failure::new(Reason::Status, "").after_status(404, None));
        }
        assert_eq!(breaker.rests_for_secs(at(0)), None);
    }
}
