//! The windows of a harvest: which time span to request next. Pure.
//!
//! A harvest covers all times. It requests one window after the other, from the oldest one on. A source that
//! answers everything gets one window without bounds. A window that fails is halved. After a window succeeds,
//! the next one is twice as long.

use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::Granularity;
use oaimend_store::TimeSpan;

/// The times of a source, for the division into windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceTimes {
    /// The earliestDatestamp, in seconds since 1970. A window before it is not divided.
    pub(crate) earliest_secs: UnixSecs,
    /// The current time, in seconds since 1970. A window after it is not divided.
    pub(crate) now_secs: UnixSecs,
    pub(crate) granularity: Granularity,
}

/// Shortest window that is halved, in seconds.
const HALVED_SECS_MIN: i64 = 2 * DAY_SECS;
const DAY_SECS: i64 = 86_400;

impl SourceTimes {
    /// The next window, at most `size_secs` long. `None` if the complete windows cover all times.
    ///
    /// `complete` are in order of time and do not overlap.
    pub(crate) fn next_window(&self, complete: &[TimeSpan], size_secs: Option<i64>) -> Option<TimeSpan> {
        let mut from_secs = None;
        let mut gap_until = None;
        for window in complete {
            let is_adjacent =
                window.from_secs.is_none() || from_secs.is_some_and(|from| window.from_secs <= Some(from));
            if !is_adjacent {
                gap_until = window.from_secs.map(|from| from.minus(1));
                break;
            }
            from_secs = Some(window.until_secs?.plus(1));
        }
        let start = from_secs.unwrap_or(self.earliest_secs).max(self.earliest_secs);
        let limit = size_secs.map(|size| self.end_of_day(start.plus(size - 1)));
        let until_secs = match limit.filter(|limit| *limit < self.now_secs) {
            Some(limit) => Some(gap_until.map_or(limit, |gap: UnixSecs| gap.min(limit))),
            None => gap_until,
        };
        Some(TimeSpan { from_secs, until_secs })
    }

    /// The size of the next attempt after a window failed, in seconds; `None` if it is not halved any more.
    pub(crate) fn halved_secs(&self, window: TimeSpan) -> Option<i64> {
        let from = window.from_secs.unwrap_or(self.earliest_secs).max(self.earliest_secs);
        let until = window.until_secs.unwrap_or(self.now_secs).min(self.now_secs);
        let length = until.since(from).saturating_add(1);
        (length >= HALVED_SECS_MIN).then_some(length / 2)
    }

    /// The bounds of a window as datestamps.
    pub(crate) fn to_datestamps(self, window: TimeSpan) -> (Option<String>, Option<String>) {
        let stamp = |secs: UnixSecs| oaimend_oai::datestamp::from_secs(secs, self.granularity);
        (window.from_secs.map(stamp), window.until_secs.map(stamp))
    }

    /// The first second that a harvest with this `from` requests.
    pub(crate) fn aligned(&self, from_secs: UnixSecs) -> UnixSecs {
        match self.granularity {
            Granularity::Day => from_secs.floor_to(DAY_SECS),
            Granularity::Second => from_secs,
        }
    }

    /// Windows end with a day, because some sources compare days only.
    fn end_of_day(&self, secs: UnixSecs) -> UnixSecs {
        secs.floor_to(DAY_SECS).plus(DAY_SECS - 1)
    }
}

/// Adds a complete window to others, and joins adjacent ones.
pub(crate) fn add_window(complete: &mut Vec<TimeSpan>, window: TimeSpan) {
    complete.push(window);
    complete.sort_by_key(|window| window.from_secs);
    let mut joined: Vec<TimeSpan> = Vec::with_capacity(complete.len());
    for window in complete.drain(..) {
        match joined.last_mut() {
            Some(last) if touches(last, &window) => {
                let ends = last.until_secs.zip(window.until_secs);
                last.until_secs = ends.map(|(one, other)| one.max(other));
            }
            _ => joined.push(window),
        }
    }
    *complete = joined;
}

/// Whether there is no time between two windows, of which the first begins first.
fn touches(first: &TimeSpan, second: &TimeSpan) -> bool {
    match (first.until_secs, second.from_secs) {
        (Some(until), Some(from)) => from <= until.plus(1),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: SourceTimes = SourceTimes {
        earliest_secs: UnixSecs(0),
        now_secs: UnixSecs(100 * DAY_SECS),
        granularity: Granularity::Day,
    };

    fn span(from_secs: Option<i64>, until_secs: Option<i64>) -> TimeSpan {
        TimeSpan { from_secs: from_secs.map(UnixSecs), until_secs: until_secs.map(UnixSecs) }
    }

    #[test]
    fn source_without_failures_gets_one_window() {
        assert_eq!(TIMES.next_window(&[], None), Some(span(None, None)));
        assert_eq!(TIMES.next_window(&[span(None, None)], None), None);
        assert_eq!(TIMES.next_window(&[span(None, Some(9))], None), Some(span(Some(10), None)));
    }

    #[test]
    fn windows_cover_all_times_once() {
        for size in [1, DAY_SECS, 3 * DAY_SECS + 7, 99 * DAY_SECS, 1_000 * DAY_SECS] {
            let (mut complete, mut next_from, mut count) = (Vec::new(), None, 0);
            while let Some(window) = TIMES.next_window(&complete, Some(size)) {
                assert_eq!(window.from_secs, next_from, "{size}");
                next_from = window.until_secs.map(|until| until.plus(1));
                add_window(&mut complete, window);
                assert_eq!(complete.len(), 1, "{size}");
                count += 1;
                assert!(count <= 101, "{size}");
            }
            assert_eq!((next_from, complete), (None, vec![span(None, None)]), "{size}");
        }
    }

    #[test]
    fn gap_between_complete_windows_is_requested_first() {
        let complete = [span(None, Some(DAY_SECS - 1)), span(Some(5 * DAY_SECS), None)];
        let gap = span(Some(DAY_SECS), Some(5 * DAY_SECS - 1));
        assert_eq!(TIMES.next_window(&complete, None), Some(gap));
        let half = TIMES.halved_secs(gap).map(|size| TIMES.next_window(&complete, Some(size)));
        assert_eq!(half, Some(Some(span(Some(DAY_SECS), Some(3 * DAY_SECS - 1)))));
    }

    #[test]
    fn short_window_is_not_halved() {
        assert_eq!(TIMES.halved_secs(span(Some(0), Some(DAY_SECS))), None);
        assert_eq!(TIMES.halved_secs(span(None, None)), Some(50 * DAY_SECS));
    }
}
