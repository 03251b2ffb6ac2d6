//! The spans of time between the state that a list shows and the end of this list.

use oaimend_oai::UnixSecs;

/// The largest expected difference between the clocks of a harvester and of this machine.
///
/// It covers clocks that are wrong by an hour of summer time, on both sides. A longer time costs more
/// records that harvesters receive twice.
pub const CLOCK_ERROR_MAX_SECS: i64 = 7_200;

/// The grain of the ends of spans. The lists of five minutes share one span, which is stored once.
pub const SPAN_GRAIN_SECS: i64 = 300;

/// Maximum number of spans of a repository. Beyond it, neighbouring spans are joined.
pub const SPANS_MAX: usize = 64;

/// The state of the repository that a list shows: all changes before it are in the list.
///
/// Its times are those of the datestamps: the clock of the source, or that of the stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListState {
    secs: UnixSecs,
}

impl ListState {
    /// A list that begins with a response of this state. For a source this is
    /// [`HarvestMark::from_secs`](super::HarvestMark::from_secs) of its first response; for a mirror
    /// it is that of the last complete harvest, or the responseDate of [`StampClock`](super::StampClock).
    pub const fn new(secs: UnixSecs) -> Self {
        Self { secs }
    }

    /// The list after another response continued it, such as one of the mirror after the source
    /// failed. The list as a whole is as old as its oldest part.
    pub fn continued_with(self, other: Self) -> Self {
        Self { secs: self.secs.min(other.secs) }
    }

    /// The state in seconds. This is also the responseDate of pages that the mirror serves in place
    /// of the source.
    pub const fn secs(self) -> UnixSecs {
        self.secs
    }

    /// The span of a page that is served now. `latest_secs` is the latest time in this page: its
    /// responseDate or a datestamp. Some harvesters continue from the highest datestamp.
    ///
    /// Record it before the page is sent: the page can be the last one that the harvester receives.
    pub fn span(self, latest_secs: UnixSecs, now_secs: UnixSecs) -> ServedSpan {
        let end_secs = now_secs.plus(CLOCK_ERROR_MAX_SECS).max(latest_secs).max(self.secs);
        let rest_secs = end_secs.0.rem_euclid(SPAN_GRAIN_SECS);
        let until_secs = end_secs.plus((SPAN_GRAIN_SECS - rest_secs) % SPAN_GRAIN_SECS);
        ServedSpan { state_secs: self.secs, until_secs }
    }
}

/// The times that a harvester can derive from a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedSpan {
    /// The state that the list shows (S).
    pub state_secs: UnixSecs,
    /// The end of the list (E), with the error of the clocks and rounded up.
    pub until_secs: UnixSecs,
}

/// The spans of the lists of one repository.
///
/// Keep one for requests that are answered with the datestamps of the source, and another one for those
/// with the stamps of the mirror. Record the pages of the source as well as those of the mirror:
/// harvesters that use their own clock miss changes during long lists otherwise. A harvester then
/// receives the records of about two hours again with each list.
///
/// Invariant: a `from` in any recorded span is widened to the state of this span or an earlier time.
/// The number of spans is limited by [`SPANS_MAX`]. Both ends of the spans increase strictly. To store
/// the spans, write the values of [`Self::iter`]; collect them to restore the spans.
///
/// ```
/// use oaimend_oai::UnixSecs;
/// use oaimend_rules::{ServedSpan, ServedSpans};
///
/// let mut spans = ServedSpans::default();
/// // From 1,500 to 2,000 the mirror answered with its state of 1,000.
/// spans.record(ServedSpan { state_secs: UnixSecs(1_000), until_secs: UnixSecs(2_000) });
/// assert_eq!(spans.widen(UnixSecs(1_800)), UnixSecs(1_000), "the harvester may have missed records since 1,000");
/// assert_eq!(spans.widen(UnixSecs(2_500)), UnixSecs(2_500));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedSpans {
    spans: Vec<ServedSpan>,
}

impl ServedSpans {
    /// Records a span. Returns whether the spans changed and need to be stored. A span that ends before
    /// it begins contains no time and changes nothing.
    ///
    /// A span replaces all spans with a later state, and extends to their end: a harvester can derive
    /// its next `from` from a date of an earlier page or list, although this list is older.
    pub fn record(&mut self, span: ServedSpan) -> bool {
        if span.until_secs < span.state_secs {
            return false;
        }
        let at = self.spans.partition_point(|known| known.state_secs < span.state_secs);
        let (earlier, later) = self.spans.split_at(at);
        let end_secs = later.last().map_or(span.until_secs, |last| last.until_secs.max(span.until_secs));
        let span = ServedSpan { until_secs: end_secs, ..span };
        let is_covered = earlier.last().is_some_and(|known| known.until_secs >= end_secs);
        if is_covered || later == [span] {
            return false;
        }
        self.spans.truncate(at);
        self.spans.push(span);
        while self.spans.len() > SPANS_MAX {
            self.join_cheapest();
        }
        true
    }

    /// Widens the `from` of a request: returns the earliest state of the spans that contain it, or
    /// `from` itself.
    pub fn widen(&self, from_secs: UnixSecs) -> UnixSecs {
        let at = self.spans.partition_point(|span| span.until_secs < from_secs);
        self.spans.get(at).map_or(from_secs, |span| span.state_secs.min(from_secs))
    }

    /// Widens the `from` of a request for a window, however short it is: a harvester can proceed in steps of minutes.
    ///
    /// A window whose first second is its last one stays. It is a request for the records with one datestamp, as
    /// validators send it, and no step of a harvest: the next `from` of a harvester that continues from `until` is the
    /// same second, so it is in the same spans.
    pub fn widen_window(&self, from_secs: UnixSecs, until_secs: Option<UnixSecs>) -> UnixSecs {
        if until_secs == Some(from_secs) { from_secs } else { self.widen(from_secs) }
    }

    /// The spans in the order of time.
    pub fn iter(&self) -> impl Iterator<Item = ServedSpan> + '_ {
        self.spans.iter().copied()
    }

    /// Joins two neighbours. A later request with a `from` in the second one is widened further, by
    /// the distance of the states. Old times are requested rarely, so the distance may grow with the
    /// age of a span.
    fn join_cheapest(&mut self) {
        let Some(newest_secs) = self.spans.last().map(|span| span.state_secs) else { return };
        let cost = |pair: &[ServedSpan]| match pair {
            [first, second] => {
                let distance = second.state_secs.0.abs_diff(first.state_secs.0) as f64;
                distance / (newest_secs.0.abs_diff(second.state_secs.0) as f64 + 1.0)
            }
            _ => f64::INFINITY,
        };
        let costs = self.spans.windows(2).map(cost).enumerate();
        let Some((at, _)) = costs.min_by(|one, other| one.1.total_cmp(&other.1)) else { return };
        let first = self.spans.remove(at);
        if let Some(second) = self.spans.get_mut(at) {
            second.state_secs = first.state_secs;
        }
    }
}

impl Extend<ServedSpan> for ServedSpans {
    fn extend<T: IntoIterator<Item = ServedSpan>>(&mut self, spans: T) {
        for span in spans {
            self.record(span);
        }
    }
}

impl FromIterator<ServedSpan> for ServedSpans {
    fn from_iter<T: IntoIterator<Item = ServedSpan>>(spans: T) -> Self {
        let mut all = Self::default();
        all.extend(spans);
        all
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test may panic")]

    use super::*;

    fn span(state_secs: i64, until_secs: i64) -> ServedSpan {
        ServedSpan { state_secs: UnixSecs(state_secs), until_secs: UnixSecs(until_secs) }
    }

    fn widen(spans: &ServedSpans, from_secs: i64) -> i64 {
        spans.widen(UnixSecs(from_secs)).0
    }

    #[test]
    fn a_from_inside_a_span_is_widened_to_its_state() {
        let spans: ServedSpans = [span(100, 200), span(300, 400)].into_iter().collect();
        let widened = [99, 100, 150, 200, 201, 299, 300, 400, 401].map(|from_secs| widen(&spans, from_secs));
        assert_eq!(widened, [99, 100, 100, 100, 201, 299, 300, 300, 401]);
        assert_eq!(widen(&ServedSpans::default(), 7), 7);
    }

    #[test]
    fn every_window_but_that_of_one_datestamp_is_widened() {
        let spans: ServedSpans = [span(100, 9_000)].into_iter().collect();
        let until = [None, Some(8_000), Some(1_300), Some(1_001), Some(1_000)];
        let widened = until.map(|until_secs| spans.widen_window(UnixSecs(1_000), until_secs.map(UnixSecs)).0);
        assert_eq!(widened, [100, 100, 100, 100, 1_000]);
    }

    #[test]
    fn overlapping_spans_widen_to_the_earliest_state_that_contains_the_from() {
        let spans: ServedSpans = [span(100, 200), span(150, 300)].into_iter().collect();
        assert_eq!([180, 200, 201, 300].map(|from_secs| widen(&spans, from_secs)), [100, 100, 150, 150]);
    }

    #[test]
    fn a_span_inside_another_one_is_not_stored() {
        let mut spans = ServedSpans::default();
        assert!(spans.record(span(100, 200)));
        assert!(!spans.record(span(100, 200)));
        assert!(!spans.record(span(120, 180)));
        assert!(spans.record(span(100, 250)));
        assert!(!spans.record(span(9, 8)));
        assert_eq!(spans.iter().collect::<Vec<_>>(), [span(100, 250)]);
        assert!(spans.record(span(50, 300)));
        assert_eq!(spans.iter().count(), 1);
    }

    #[test]
    fn a_span_of_an_older_state_extends_to_the_end_of_all_later_ones() {
        let mut spans: ServedSpans = [span(100, 200), span(300, 900), span(500, 950)].into_iter().collect();
        assert!(spans.record(span(250, 400)));
        assert_eq!(spans.iter().collect::<Vec<_>>(), [span(100, 200), span(250, 950)]);
        assert!(!spans.record(span(250, 400)));
    }

    #[test]
    fn a_list_is_as_old_as_its_oldest_part() {
        let live = ListState::new(UnixSecs(1_000));
        assert_eq!(live.continued_with(ListState::new(UnixSecs(400))).secs(), UnixSecs(400));
        assert_eq!(live.continued_with(ListState::new(UnixSecs(2_000))).secs(), UnixSecs(1_000));
    }

    #[test]
    fn a_span_includes_the_error_of_the_clocks_and_the_date_of_the_page() {
        let state = ListState::new(UnixSecs(1_000));
        assert_eq!(state.span(UnixSecs(1_000), UnixSecs(6_000)), span(1_000, 6_000 + CLOCK_ERROR_MAX_SECS));
        assert_eq!(state.span(UnixSecs(99_000), UnixSecs(6_000)), span(1_000, 99_000));
        assert_eq!(ListState::new(UnixSecs(99_000)).span(UnixSecs(0), UnixSecs(0)), span(99_000, 99_000));
        assert_eq!(state.span(UnixSecs(0), UnixSecs::MAX), span(1_000, i64::MAX));
    }

    #[test]
    fn the_lists_of_some_minutes_share_one_span() {
        let mut spans = ServedSpans::default();
        let changes = (6_001..6_301)
            .map(UnixSecs)
            .filter(|&now| spans.record(ListState::new(now).span(now, now)))
            .count();
        assert_eq!((changes, spans.iter().count()), (1, 1));
        assert!(spans.record(ListState::new(UnixSecs(6_301)).span(UnixSecs(6_301), UnixSecs(6_301))));
        let end_secs = 6_000 + CLOCK_ERROR_MAX_SECS;
        assert_eq!(widen(&spans, end_secs + SPAN_GRAIN_SECS), 6_001);
        assert_eq!(widen(&spans, end_secs + SPAN_GRAIN_SECS + 1), 6_301);
    }

    #[test]
    fn every_recorded_span_stays_covered_within_the_limit() {
        for seed in 1..=200_u64 {
            let mut state = seed;
            let mut random = |bound: i64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                i64::try_from(state >> 33).unwrap_or(0) % bound
            };
            let (mut spans, mut recorded) = (ServedSpans::default(), Vec::new());
            for step in 0..300 {
                let state_secs = step * 10 + random(4_000) - 2_000;
                let new = span(state_secs, state_secs + random(300));
                spans.record(new);
                recorded.push(new);
            }
            assert!(spans.iter().count() <= SPANS_MAX, "seed {seed}");
            let all: Vec<ServedSpan> = spans.iter().collect();
            let increases = |pair: &[ServedSpan]| {
                pair[0].state_secs < pair[1].state_secs && pair[0].until_secs < pair[1].until_secs
            };
            assert!(all.windows(2).all(increases), "seed {seed}: {all:?}");
            for old in recorded {
                for from_secs in [old.state_secs, old.until_secs] {
                    assert!(spans.widen(from_secs) <= old.state_secs, "seed {seed}: {old:?}");
                }
            }
            let restored: ServedSpans = spans.iter().collect();
            assert_eq!(restored, spans, "seed {seed}");
        }
    }

    #[test]
    fn joined_spans_are_old_ones() {
        let hourly = (0..10_000).map(|hour| span(hour * 3_600, hour * 3_600 + 600));
        let spans: ServedSpans = hourly.collect();
        assert!(spans.iter().count() <= SPANS_MAX);
        let extra = |hour: i64| hour * 3_600 - widen(&spans, hour * 3_600 + 600);
        assert_eq!(extra(9_999), 0);
        for hour in [9_990, 9_900, 9_000, 5_000, 100] {
            let age_secs = (10_000 - hour) * 3_600;
            assert!(extra(hour) <= age_secs / 2, "hour {hour}: {} s more", extra(hour));
        }
    }
}
