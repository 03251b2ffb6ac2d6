//! The wait after failures.

use core::time::Duration;

/// The wait after a number of failures: none without failures, `first` after one, and twice as long after each further
/// one, but at most `wait_max`.
pub fn backoff(first: Duration, failures: u32, wait_max: Duration) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(wait_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_a_limit() {
        let wait = |failures| backoff(Duration::from_secs(3), failures, Duration::from_secs(20)).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 40, u32::MAX].map(wait), [0, 3, 6, 12, 20, 20, 20]);
    }
}
