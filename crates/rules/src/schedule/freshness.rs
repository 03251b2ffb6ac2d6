//! The freshness of a copy between two harvests, for updates that arrive as a Poisson process.
//!
//! All functions take `x = λI/N`: the mean number of updates of one record in one interval.

/// Below this argument the closed forms cancel, and the first terms of their series are exact.
const SERIES_ARGUMENT_MAX: f64 = 1e-3;

/// The share of records that are up to date, as a mean over the interval: `(1 - e^-x)/x`.
///
/// A record is up to date at the time t after a harvest with the probability `e^(-λt/N)`.
pub(super) fn mean_freshness(updates_per_record: f64) -> f64 {
    1.0 - mean_staleness(updates_per_record)
}

/// The share of records that are out of date, as a mean over the interval.
pub(super) fn mean_staleness(updates_per_record: f64) -> f64 {
    let x = updates_per_record;
    if x < SERIES_ARGUMENT_MAX { x * (0.5 - x * (1.0 / 6.0 - x / 24.0)) } else { 1.0 + (-x).exp_m1() / x }
}

/// The benefit of a harvest, as a share of the largest possible one: `1 - e^-x (1 + x)`.
///
/// This is `x²` times the derivative of the staleness. It grows with `x`, from 0 to 1.
pub(super) fn harvest_benefit(updates_per_record: f64) -> f64 {
    let x = updates_per_record;
    if x < SERIES_ARGUMENT_MAX {
        x * x * (0.5 - x * (1.0 / 3.0 - x / 8.0))
    } else {
        1.0 - (-x).exp() * (1.0 + x)
    }
}

/// Maximum number of steps of the search in [`updates_of_benefit`]. Ten suffice in practice.
const STEPS_MAX: usize = 60;

/// The inverse of [`harvest_benefit`]: infinite for a benefit of 1 or more.
pub(super) fn updates_of_benefit(benefit: f64) -> f64 {
    if benefit >= 1.0 {
        return f64::INFINITY;
    }
    let start = (2.0 * benefit.max(0.0)).sqrt();
    if start < SERIES_ARGUMENT_MAX {
        return start + start * start / 3.0;
    }
    // Newton's method for ln(1+x) - x = ln(1-benefit). The left side is concave and decreasing, so
    // that the first step ends to the right of the root, and all others approach it from there.
    let wanted = (-benefit).ln_1p();
    let mut x = start;
    for _ in 0..STEPS_MAX {
        let step = (x.ln_1p() - x - wanted) * (1.0 + x) / x;
        x += step;
        if step.abs() <= 1e-12 * x {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGUMENTS: [f64; 9] = [1e-9, 1e-6, 9.99e-4, 1.01e-3, 0.04, 0.5, 2.0, 10.0, 300.0];

    /// The mean of `e^-xt` over `t` from 0 to 1, by the midpoint rule.
    fn integrated(x: f64) -> f64 {
        let steps = 200_000;
        let at = |step: i32| (-x * (f64::from(step) + 0.5) / f64::from(steps)).exp();
        (0..steps).map(at).sum::<f64>() / f64::from(steps)
    }

    #[test]
    fn freshness_is_the_mean_probability_of_no_update() {
        for x in ARGUMENTS {
            let (exact, integral) = (mean_freshness(x), integrated(x));
            assert!((exact - integral).abs() < 1e-7, "x = {x}: {exact} and {integral}");
        }
        assert_eq!(mean_freshness(0.0), 1.0);
        assert_eq!(mean_freshness(f64::INFINITY), 0.0);
    }

    #[test]
    fn the_paper_underestimates_freshness_and_falls_below_zero() {
        for x in ARGUMENTS {
            assert!(mean_freshness(x) >= 1.0 - x / 2.0, "x = {x}");
            assert!((0.0..=1.0).contains(&mean_freshness(x)), "x = {x}");
        }
        assert!(1.0 - 10.0 / 2.0 < 0.0 && mean_freshness(10.0) > 0.09);
    }

    #[test]
    fn benefit_is_the_derivative_of_staleness() {
        for x in [0.04, 0.5, 2.0, 10.0] {
            let width = 1e-5 * x;
            let slope = (mean_staleness(x + width) - mean_staleness(x - width)) / (2.0 * width);
            let benefit = harvest_benefit(x);
            assert!((slope * x * x / benefit - 1.0).abs() < 1e-5, "x = {x}: {slope} and {benefit}");
        }
    }

    #[test]
    fn updates_of_benefit_inverts_the_benefit() {
        for x in [1e-9, 1e-6, 9.99e-4, 1.5e-3, 0.04, 0.5, 2.0, 10.0, 25.0] {
            let found = updates_of_benefit(harvest_benefit(x));
            assert!((found / x - 1.0).abs() < 1e-5, "x = {x}, found {found}");
        }
        assert_eq!(updates_of_benefit(0.0), 0.0);
        assert_eq!(updates_of_benefit(1.0), f64::INFINITY);
    }
}
