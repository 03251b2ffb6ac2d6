//! Decides whether a failed request is retried, and after which wait.
//!
//! Pure: the remaining time, the failure and a random number are arguments.

use oaimend_repair::NotOai;
use oaimend_repository::{Failure, Reason};
use oaimend_rules::backoff;
use std::time::Duration;

/// Attempts at one page without progress, the first included. After this many failures no request
/// is sent to the source for some time.
pub(crate) const ATTEMPTS_MAX: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// How long to wait before the next attempt; `None` if there is none.
///
/// `attempts` is the number of attempts since the last progress, `left` is the remaining time, `random` is
/// between 0 and 1. Without `Retry-After` the wait is random up to a bound that doubles ("full jitter"), so
/// that requests that failed together are not repeated together. The wait in `Retry-After` is respected, or
/// there is no further attempt.
pub(crate) fn next_wait(failure: &Failure, attempts: u32, left: Duration, random: f64) -> Option<Duration> {
    if attempts >= ATTEMPTS_MAX || !passes(failure) {
        return None;
    }
    let bound = backoff(FIRST_WAIT, attempts.max(1), LONGEST_WAIT);
    let jitter = bound.mul_f64(random.clamp(0.0, 1.0));
    let wait = match failure.requested_wait_secs {
        // A Retry-After of 0 or of the past asks for nothing.
        None | Some(0) => jitter,
        Some(seconds) => {
            Duration::from_secs(seconds).checked_add(FIRST_WAIT.mul_f64(random.clamp(0.0, 1.0)))?
        }
    };
    (wait < left).then_some(wait)
}

/// Whether a failure may be caused by this one request, while the source answers all others.
pub(crate) fn may_depend_on_request(failure: &Failure) -> bool {
    match failure.reason {
        Reason::ConnectionLost
        | Reason::HttpProtocol
        | Reason::ResponseTimeout
        | Reason::Incomplete
        | Reason::ContentCoding
        | Reason::TooLarge => true,
        Reason::NotOai(why) => why != NotOai::BotWall,
        Reason::Status => matches!(failure.received_status, Some(400 | 404 | 410 | 500 | 502 | 504..=599)),
        Reason::Dns
        | Reason::AddressRefused
        | Reason::ConnectionRefused
        | Reason::ConnectionTimeout
        | Reason::TlsCertificate
        | Reason::TlsProtocol
        | Reason::NotResumable
        | Reason::Busy
        | Reason::CircuitOpen
        | Reason::Redirect
        | Reason::Unrepairable
        | Reason::Quarantine
        | Reason::Ledger
        | Reason::TakenOver
        | Reason::SpoolFull
        | Reason::StaticFile
        | Reason::TapeFile
        | Reason::Configuration
        | Reason::MirrorIncomplete
        | Reason::Mirror
        | Reason::SearchBusy
        | Reason::Search => false,
    }
}

/// Whether a failure may pass by itself within seconds.
fn passes(failure: &Failure) -> bool {
    match failure.reason {
        Reason::Dns
        | Reason::ConnectionRefused
        | Reason::ConnectionTimeout
        | Reason::ConnectionLost
        | Reason::HttpProtocol
        | Reason::ResponseTimeout
        | Reason::Incomplete
        | Reason::ContentCoding
        | Reason::NotResumable
        | Reason::NotOai(NotOai::Empty | NotOai::Html | NotOai::Json | NotOai::Foreign) => true,
        Reason::Status => {
            matches!(failure.received_status, Some(408 | 425 | 429 | 500 | 502..=599))
        }
        Reason::AddressRefused
        | Reason::TlsCertificate
        | Reason::TlsProtocol
        | Reason::Busy
        | Reason::CircuitOpen
        | Reason::TooLarge
        | Reason::Redirect
        | Reason::Unrepairable
        | Reason::Quarantine
        | Reason::Ledger
        | Reason::TakenOver
        | Reason::SpoolFull
        | Reason::StaticFile
        | Reason::TapeFile
        | Reason::Configuration
        | Reason::MirrorIncomplete
        | Reason::Mirror
        | Reason::SearchBusy
        | Reason::Search
        | Reason::NotOai(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, retry_after_secs: Option<u64>) -> Failure {
        Failure::new(Reason::Status, "").after_status(code, retry_after_secs)
    }

    const LEFT: Duration = Duration::from_secs(30);

    #[test]
    fn waits_double_up_to_a_limit() {
        let failure = Failure::new(Reason::ConnectionLost, "");
        let waits: Vec<u128> = (1..ATTEMPTS_MAX)
            .filter_map(|n| next_wait(&failure, n, LEFT, 1.0))
            .map(|w| w.as_millis())
            .collect();
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 8000, 10_000]);
        assert_eq!(next_wait(&failure, ATTEMPTS_MAX, LEFT, 1.0), None);
        assert_eq!(next_wait(&failure, 3, LEFT, 0.0), Some(Duration::ZERO));
        assert_eq!(next_wait(&failure, 5, Duration::from_secs(4), 1.0), None);
    }

    #[test]
    fn retry_after_is_respected_or_there_is_no_retry() {
        assert_eq!(next_wait(&status(503, Some(2)), 1, LEFT, 0.0), Some(Duration::from_secs(2)));
        assert_eq!(next_wait(&status(429, Some(0)), 1, LEFT, 1.0), Some(FIRST_WAIT));
        assert_eq!(next_wait(&status(503, Some(60)), 1, LEFT, 0.0), None);
        assert_eq!(next_wait(&status(503, Some(u64::MAX)), 1, LEFT, 0.5), None);
    }

    #[test]
    fn only_temporary_failures_are_retried() {
        let is_retried = |code| next_wait(&status(code, None), 1, LEFT, 0.0).is_some();
        assert!([408, 425, 429, 500, 502, 503, 504, 521].into_iter().all(is_retried));
        assert!(![400, 401, 403, 404, 410, 422, 501].into_iter().any(is_retried));
        for reason in [
            Reason::TlsCertificate,
            Reason::AddressRefused,
            Reason::NotOai(NotOai::BotWall),
            Reason::NotOai(NotOai::NothingKept),
            Reason::Configuration,
        ] {
            assert_eq!(next_wait(&Failure::new(reason, ""), 1, LEFT, 0.0), None, "{reason:?}");
        }
    }
}
