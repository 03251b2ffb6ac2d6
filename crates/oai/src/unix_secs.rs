//! Points in time, as everything that compares or adds times uses them.

/// A point in time, in whole seconds since 1970. A number of seconds is a duration, so neither can take the other's
/// place.
///
/// Arithmetic saturates. With the feature `serde` it is stored as the number alone.
///
/// ```
/// use oaimend_oai::UnixSecs;
///
/// let start = UnixSecs(1_000);
/// assert_eq!(start.plus(60), UnixSecs(1_060));
/// assert_eq!(start.plus(60).since(start), 60);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct UnixSecs(pub i64);

impl UnixSecs {
    /// Before or at every other point in time.
    pub const MIN: Self = Self(i64::MIN);
    /// After or at every other point in time.
    pub const MAX: Self = Self(i64::MAX);

    /// The time this number of seconds later.
    #[must_use]
    pub const fn plus(self, secs: i64) -> Self {
        Self(self.0.saturating_add(secs))
    }

    /// The time this number of seconds earlier.
    #[must_use]
    pub const fn minus(self, secs: i64) -> Self {
        Self(self.0.saturating_sub(secs))
    }

    /// The last multiple of `grain_secs` that is not after this time: its hour, its day.
    #[must_use]
    pub const fn floor_to(self, grain_secs: i64) -> Self {
        self.minus(self.0.rem_euclid(grain_secs))
    }

    /// The number of seconds since another point in time; negative if that is later.
    pub const fn since(self, other: Self) -> i64 {
        self.0.saturating_sub(other.0)
    }
}

/// The number alone: entity tags are hashes of what a page depends on, written with `Debug`.
impl std::fmt::Debug for UnixSecs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::fmt::Display for UnixSecs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_and_multiples_are_before_a_time() {
        assert_eq!((UnixSecs::MAX.plus(1), UnixSecs::MIN.minus(1)), (UnixSecs::MAX, UnixSecs::MIN));
        assert_eq!((UnixSecs(5).since(UnixSecs(8)), UnixSecs::MIN.since(UnixSecs(1))), (-3, i64::MIN));
        assert_eq!([-1, 0, 59, 60].map(|secs| UnixSecs(secs).floor_to(60)), [-60, 0, 0, 60].map(UnixSecs));
    }

    #[test]
    fn a_time_is_written_as_its_number() {
        assert_eq!(format!("{:?} {}", Some(UnixSecs(-7)), UnixSecs(7)), "Some(-7) 7");
    }
}
