//! The limits of a selective harvest (OAI-PMH 2.0, section 2.7.1), kept to the second while the
//! source is asked for whole days.

use super::{Argument, Request};

/// A range of datestamps, both ends included; `None` is no limit.
///
/// ```
/// use oaimend_oai::{Request, Window};
///
/// let query = b"verb=ListRecords&metadataPrefix=oai_dc&from=2024-01-01T00:00:00Z";
/// let request = Request::parse(query).expect("a legal request");
/// let window = Window::from_request(&request).expect("its dates have seconds");
/// assert!(window.contains("2024-06-01") && !window.contains("2023-12-31"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The lowest datestamp, `YYYY-MM-DDThh:mm:ssZ`.
    pub from: Option<String>,
    /// The highest datestamp, in the same form.
    pub until: Option<String>,
}

impl Window {
    /// Returns the range of a request whose dates have seconds.
    pub fn from_request(request: &Request) -> Option<Self> {
        request.has_seconds().then(|| Self::of_dates(request))
    }

    /// Returns the range of a request, whatever the granularity of its dates is.
    pub fn of_dates(request: &Request) -> Self {
        let date = |argument| request.argument(argument).map(str::to_owned);
        Self { from: date(Argument::From), until: date(Argument::Until) }
    }

    /// Whether the range contains a datestamp, compared in the coarser granularity.
    pub fn contains(&self, datestamp: &str) -> bool {
        // Texts of one length have the same order as their dates.
        let cut = |bound: &String| {
            let chars = bound.len().min(datestamp.len());
            (datestamp.get(..chars).map(str::to_owned), bound.get(..chars).map(str::to_owned))
        };
        let is_after = self.from.as_ref().map(cut).is_none_or(|(datestamp, from)| datestamp >= from);
        let is_before = self.until.as_ref().map(cut).is_none_or(|(datestamp, until)| datestamp <= until);
        is_after && is_before
    }

    /// The smallest range that contains this one and another.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
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
    fn both_ends_are_included_and_days_are_compared_as_days() {
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
            assert_eq!(bounds.contains(datestamp), holds, "{datestamp}");
        }
    }

    #[test]
    fn the_union_contains_both_ranges() {
        let (early, late) = (Some("2020-01-01T00:00:00Z"), Some("2020-01-02T00:00:00Z"));
        assert_eq!(window(early, early).union(window(late, late)), window(early, late));
        assert_eq!(window(late, late).union(window(early, early)), window(early, late));
        assert_eq!(window(late, None).union(window(early, late)), window(early, None));
        assert_eq!(window(None, early).union(window(early, late)), window(None, late));
    }
}
