//! The bounds of a selective harvest to the second (OAI-PMH 2.0, section 2.7.1), where its source was asked for
//! the days that hold it.

use super::{Argument, Request};

/// What lies from one datestamp to another, both of them in it. What is not said is no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Lowest datestamp, `YYYY-MM-DDThh:mm:ssZ`.
    pub from: Option<String>,
    /// Highest datestamp, likewise.
    pub until: Option<String>,
}

impl Window {
    /// That of a request whose dates say seconds.
    pub fn of(request: &Request) -> Option<Self> {
        let date = |argument| request.argument(argument).map(str::to_owned);
        let window = Self { from: date(Argument::From), until: date(Argument::Until) };
        request.is_in_seconds().then_some(window)
    }

    /// Whether a datestamp lies within, as far as its granularity can say.
    pub fn holds(&self, datestamp: &str) -> bool {
        // Of one length, their order as text is their order in time.
        let cut = |bound: &String| {
            let chars = bound.len().min(datestamp.len());
            (datestamp.get(..chars).map(str::to_owned), bound.get(..chars).map(str::to_owned))
        };
        let is_after = self.from.as_ref().map(cut).is_none_or(|(datestamp, from)| datestamp >= from);
        let is_before = self.until.as_ref().map(cut).is_none_or(|(datestamp, until)| datestamp <= until);
        is_after && is_before
    }

    /// The narrowest that holds this one and another.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            from: self.from.zip(other.from).map(|(one, other)| one.min(other)),
            until: self.until.zip(other.until).map(|(one, other)| one.max(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(from: Option<&str>, until: Option<&str>) -> Window {
        Window { from: from.map(str::to_owned), until: until.map(str::to_owned) }
    }

    #[test]
    fn both_bounds_lie_within_and_a_day_cannot_say() {
        let bounds = window(Some("2020-01-01T00:00:05Z"), Some("2020-01-02T00:00:01Z"));
        for (datestamp, holds) in [
            ("2020-01-01T00:00:04Z", false),
            ("2020-01-01T00:00:05Z", true),
            ("2020-01-02T00:00:01Z", true),
            ("2020-01-02T00:00:02Z", false),
            ("2019-12-31", false),
            ("2020-01-01", true),
            ("2020-01-02", true),
            ("2020-01-03", false),
        ] {
            assert_eq!(bounds.holds(datestamp), holds, "{datestamp}");
        }
    }

    #[test]
    fn two_together_hold_what_either_holds() {
        let (early, late) = (Some("2020-01-01T00:00:00Z"), Some("2020-01-02T00:00:00Z"));
        assert_eq!(window(early, early).with(window(late, late)), window(early, late));
        assert_eq!(window(late, late).with(window(early, early)), window(early, late));
        assert_eq!(window(late, None).with(window(early, late)), window(early, None));
        assert_eq!(window(None, early).with(window(early, late)), window(None, late));
    }
}
