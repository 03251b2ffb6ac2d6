//! The estimator of the rate of updates (λ) of a repository.

/// The share of a new observation in the estimate (g in the paper).
const GAIN: f64 = 0.25;

/// The result of one complete harvest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The records before the harvest (N).
    pub records: u64,
    /// The known records that had changed or were deleted (U). Records with the same bytes as before
    /// do not count: some sources send all records again every night.
    pub changed: u64,
    /// The records that were not known before.
    pub added: u64,
    /// The time since the start of the harvest before, in seconds.
    pub interval_secs: u64,
}

impl Observation {
    /// The updates of the whole repository per second, in an estimate without the bias of `U/I`.
    ///
    /// A record is unchanged after the interval I with the probability `e^(-λI/N)`, so `λI` is
    /// `-N ln(1 - U/N)` if U of N records changed. That is infinite if all changed; half a record
    /// added to both counts makes it finite and removes most of the bias (Cho and Garcia-Molina,
    /// "Estimating frequency of change", section 4.2). A new record counts as one update: its later
    /// changes in the same interval cannot be observed. `None` if the interval is 0.
    pub fn updates_per_sec(&self) -> Option<f64> {
        if self.interval_secs == 0 {
            return None;
        }
        let records = self.records as f64;
        let unchanged = self.records.saturating_sub(self.changed) as f64;
        let updates = records * ((records + 0.5) / (unchanged + 0.5)).ln();
        // More changes than records are impossible; the surplus counts as added.
        let surplus = self.changed.saturating_sub(self.records);
        Some((updates + surplus as f64 + self.added as f64) / self.interval_secs as f64)
    }
}

/// The rate of updates of one repository, learned from its harvests:
/// `λ = (1-g) λ_old + g λ_observed`.
///
/// ```
/// use oaimend_rules::schedule::{Observation, RateEstimator};
///
/// let mut estimator = RateEstimator::default();
/// estimator.observe(&Observation { records: 1_000, changed: 0, added: 60, interval_secs: 3_600 });
/// let updates_per_minute = estimator.updates_per_sec().expect("one observation") * 60.0;
/// assert!((updates_per_minute - 1.0).abs() < 0.01);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateEstimator {
    updates_per_sec: Option<f64>,
}

impl RateEstimator {
    /// An estimator that continues from a stored rate. A rate that is negative or not finite is unknown.
    pub fn from_rate(updates_per_sec: Option<f64>) -> Self {
        let is_rate = |rate: &f64| rate.is_finite() && *rate >= 0.0;
        Self { updates_per_sec: updates_per_sec.filter(is_rate) }
    }

    /// The estimate; `None` before the first observation.
    pub const fn updates_per_sec(&self) -> Option<f64> {
        self.updates_per_sec
    }

    /// Takes an observation into account. The first one is the estimate itself.
    ///
    /// The datestamps of a first, full harvest are an observation too: `changed` is the number of
    /// records with a datestamp in the last `interval_secs`.
    pub fn observe(&mut self, observation: &Observation) {
        let Some(observed) = observation.updates_per_sec() else { return };
        let mixed = |old: f64| (1.0 - GAIN) * old + GAIN * observed;
        self.updates_per_sec = Some(self.updates_per_sec.map_or(observed, mixed));
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, clippy::expect_used, reason = "a test may panic")]

    use super::*;

    fn observe(records: u64, changed: u64, added: u64) -> f64 {
        let observation = Observation { records, changed, added, interval_secs: 100 };
        observation.updates_per_sec().expect("the interval is not 0")
    }

    /// The mean of the estimate over `rounds` intervals with `updates` updates of random records,
    /// and the mean of `U/I`.
    fn mean_estimates(records: usize, updates: usize, rounds: usize) -> (f64, f64) {
        let mut state = 20_261_123_u64;
        let mut random = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap_or(0) % bound
        };
        let (mut ours, mut naive) = (0.0, 0.0);
        for _ in 0..rounds {
            // A binomial number of updates has nearly the distribution of Poisson arrivals.
            let arrivals = (0..updates * 10).map(|_| random(10)).filter(|drawn| *drawn == 0).count();
            let mut is_changed = vec![false; records];
            (0..arrivals).for_each(|_| is_changed[random(records)] = true);
            let changed = is_changed.iter().filter(|&&is_changed| is_changed).count() as u64;
            ours += observe(records as u64, changed, 0) * 100.0;
            naive += changed as f64;
        }
        (ours / rounds as f64, naive / rounds as f64)
    }

    #[test]
    fn repeated_updates_of_a_record_do_not_bias_the_estimate() {
        for (records, updates) in [(1_000, 100), (1_000, 1_000), (1_000, 2_000), (40, 60)] {
            let (ours, naive) = mean_estimates(records, updates, 400);
            let truth = updates as f64;
            assert!((ours / truth - 1.0).abs() < 0.03, "{updates} of {records}: {ours}");
            if updates >= records {
                assert!(naive < 0.7 * truth, "{updates} of {records}: U/I is unbiased: {naive}");
            }
        }
    }

    #[test]
    fn few_updates_are_counted_as_they_are() {
        assert!((observe(1_000_000, 10, 0) * 100.0 - 10.0).abs() < 0.01);
        assert_eq!(observe(1_000_000, 0, 0), 0.0);
    }

    #[test]
    fn every_count_gives_a_finite_rate() {
        assert!((observe(10, 10, 0) * 100.0 - 10.0 * 21.0_f64.ln()).abs() < 1e-9);
        assert_eq!(observe(0, 0, 0), 0.0);
        assert!((observe(0, 0, 7) * 100.0 - 7.0).abs() < 1e-9);
        assert!((observe(0, 5, 7) * 100.0 - 12.0).abs() < 1e-9);
        assert!(observe(u64::MAX, u64::MAX, u64::MAX).is_finite());
        let none = Observation { records: 5, changed: 5, added: 0, interval_secs: 0 };
        assert_eq!(none.updates_per_sec(), None);
    }

    #[test]
    fn the_estimate_follows_a_change_of_the_rate() {
        let mut estimator = RateEstimator::default();
        assert_eq!(estimator.updates_per_sec(), None);
        let observation = |changed| Observation { records: 1_000_000, changed, added: 0, interval_secs: 100 };
        estimator.observe(&observation(100));
        assert!((estimator.updates_per_sec().unwrap_or(0.0) - 1.0).abs() < 1e-3);
        estimator.observe(&observation(500));
        assert!((estimator.updates_per_sec().unwrap_or(0.0) - 2.0).abs() < 1e-3, "{estimator:?}");
        (0..40).for_each(|_| estimator.observe(&observation(500)));
        assert!((estimator.updates_per_sec().unwrap_or(0.0) - 5.0).abs() < 1e-2, "{estimator:?}");
    }

    #[test]
    fn a_damaged_stored_rate_is_unknown() {
        for rate in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(RateEstimator::from_rate(Some(rate)).updates_per_sec(), None);
        }
        assert_eq!(RateEstimator::from_rate(Some(0.5)).updates_per_sec(), Some(0.5));
    }
}
