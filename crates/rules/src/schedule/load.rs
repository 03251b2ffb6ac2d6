//! The input of a plan: the repositories, the wanted freshness and the bounds of intervals.

use std::fmt;

/// The highest number of records of a repository.
pub(super) const RECORDS_MAX: f64 = 1e12;
/// The highest number of records that a source may claim to have. No repository has as many, so a higher number is a
/// defect, and its stored records are counted.
pub const TOTAL_ELEMENTS_MAX: u64 = 10_000_000_000;
/// The highest rate of updates.
pub(super) const UPDATES_PER_SEC_MAX: f64 = 1e9;
/// The highest weight of a repository.
pub(super) const WEIGHT_MAX: f64 = 1e6;
/// The longest interval: a hundred years.
pub(super) const INTERVAL_SECS_MAX: f64 = 100.0 * 365.25 * 86_400.0;

/// The share of records that should be up to date (θ): at least 0.5, below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct FreshnessTarget(f64);

impl FreshnessTarget {
    /// `None` outside 0.5 to 1, for 1 itself, and for NaN.
    pub fn new(share: f64) -> Option<Self> {
        (0.5..1.0).contains(&share).then_some(Self(share))
    }

    /// The share, from 0.5 to 1.
    pub const fn share(self) -> f64 {
        self.0
    }
}

/// The shortest and the longest interval between two harvests of a repository.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalBounds {
    min_secs: f64,
    max_secs: f64,
}

impl IntervalBounds {
    /// `None` unless `0 < min_secs <= max_secs`, and `max_secs` is at most a hundred years.
    pub fn new(min_secs: f64, max_secs: f64) -> Option<Self> {
        let is_valid = min_secs > 0.0 && min_secs <= max_secs && max_secs <= INTERVAL_SECS_MAX;
        is_valid.then_some(Self { min_secs, max_secs })
    }

    /// The shortest interval, in seconds.
    pub const fn min_secs(self) -> f64 {
        self.min_secs
    }

    /// The longest interval, in seconds.
    pub const fn max_secs(self) -> f64 {
        self.max_secs
    }
}

/// The facts about one repository that determine its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RepositoryLoad {
    /// The number of records (N). A repository without records gets the longest interval.
    pub records: f64,
    /// The rate of updates of the whole repository (λ), in updates per second: new, changed and
    /// deleted records. A repository without updates gets the longest interval.
    pub updates_per_sec: f64,
    /// The importance of a stale record of this repository, relative to the others. 1 is usual; 0
    /// gives the longest interval.
    pub weight: f64,
    /// An interval that the operator has set. The plan keeps it and takes it into account.
    pub fixed_interval_secs: Option<f64>,
}

impl RepositoryLoad {
    /// A repository of weight 1 without a fixed interval.
    pub const fn new(records: f64, updates_per_sec: f64) -> Self {
        Self { records, updates_per_sec, weight: 1.0, fixed_interval_secs: None }
    }

    /// The mean number of updates of one record in `interval_secs`; 0 without records.
    pub(super) fn updates_per_record(&self, interval_secs: f64) -> f64 {
        if self.records > 0.0 { self.updates_per_sec / self.records * interval_secs } else { 0.0 }
    }

    fn defect(&self) -> Option<&'static str> {
        let is_valid = |value: f64, max: f64| (0.0..=max).contains(&value);
        if !is_valid(self.records, RECORDS_MAX) {
            return Some("records must be from 0 to 1e12");
        }
        if !is_valid(self.updates_per_sec, UPDATES_PER_SEC_MAX) {
            return Some("updates_per_sec must be from 0 to 1e9");
        }
        if !is_valid(self.weight, WEIGHT_MAX) {
            return Some("weight must be from 0 to 1e6");
        }
        let is_fixed_well = |secs: f64| secs > 0.0 && secs <= INTERVAL_SECS_MAX;
        match self.fixed_interval_secs {
            Some(secs) if !is_fixed_well(secs) => {
                Some("fixed_interval_secs must be above 0, up to 100 years")
            }
            _ => None,
        }
    }
}

/// A value of a [`RepositoryLoad`] that is negative, not a number, or too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The position of the repository in the list.
    pub index: usize,
    /// The condition that the value violates.
    pub expected: &'static str,
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "repository {}: {}", self.index, self.expected)
    }
}

impl std::error::Error for LoadError {}

/// Checks all repositories; returns the first defect.
pub(super) fn check(loads: &[RepositoryLoad]) -> Result<(), LoadError> {
    let first = loads.iter().enumerate().find_map(|(index, load)| Some((index, load.defect()?)));
    first.map_or(Ok(()), |(index, expected)| Err(LoadError { index, expected }))
}
