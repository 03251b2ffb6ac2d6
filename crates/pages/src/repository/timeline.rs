//! The windows of datestamps that the mirror has harvested completely.

use oaimend_oai::UnixSecs;

/// The windows of datestamps that the mirror has harvested completely, for each format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The start of the axis, `YYYY-MM-DD`.
    pub from: String,
    /// The end of the axis, `YYYY-MM-DD`.
    pub until: String,
    /// The formats.
    pub rows: Vec<TimelineRow>,
}

/// The windows of one format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineRow {
    /// The metadataPrefix.
    pub prefix: String,
    /// The windows as places on the axis, in thousandths of its length: the start and the end.
    pub spans: Vec<(u16, u16)>,
    /// The windows as texts, such as `until 2024-05-06T07:08:09Z`.
    pub windows: Vec<String>,
    /// The windows that are not in `windows`.
    pub left_out: usize,
}

/// The length of the axis in which spans are measured.
pub(crate) const AXIS_LEN: u16 = 1_000;
/// Maximum number of windows of a format that are shown.
const WINDOWS_MAX: usize = 20;

/// A window with its text. `None` is an open bound.
pub struct TimelineWindow {
    /// The first second.
    pub from_secs: Option<UnixSecs>,
    /// The last second.
    pub until_secs: Option<UnixSecs>,
    /// The text beside the bar.
    pub text: String,
}

impl TimelineRow {
    /// The windows of a format on an axis from and until these times.
    pub fn new(prefix: &str, windows: Vec<TimelineWindow>, axis_secs: (UnixSecs, UnixSecs)) -> Self {
        let (first, last) = axis_secs;
        let length = i128::from(last.since(first).max(1));
        let place = |secs: UnixSecs| {
            let place = i128::from(secs.clamp(first, last).since(first)) * i128::from(AXIS_LEN) / length;
            u16::try_from(place).unwrap_or(AXIS_LEN)
        };
        let mut spans: Vec<(u16, u16)> = Vec::new();
        for window in &windows {
            let start = place(window.from_secs.unwrap_or(first));
            // The last second belongs to the window.
            let end = place(window.until_secs.map_or(last, |until| until.plus(1)));
            match spans.last_mut() {
                // Windows that touch are one span.
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => spans.push((start, end)),
            }
        }
        let left_out = windows.len().saturating_sub(WINDOWS_MAX);
        let windows = windows.into_iter().take(WINDOWS_MAX).map(|window| window.text).collect();
        Self { prefix: prefix.to_owned(), spans, windows, left_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(windows: &[(Option<i64>, Option<i64>)]) -> TimelineRow {
        let window = |&(from_secs, until_secs): &(Option<i64>, Option<i64>)| TimelineWindow {
            from_secs: from_secs.map(UnixSecs),
            until_secs: until_secs.map(UnixSecs),
            text: String::new(),
        };
        TimelineRow::new("oai_dc", windows.iter().map(window).collect(), (UnixSecs(100), UnixSecs(300)))
    }

    #[test]
    fn windows_have_a_place_on_the_axis() {
        assert_eq!(row(&[(None, Some(200))]).spans, [(0, 505)]);
        assert_eq!(
            row(&[(None, Some(150)), (Some(151), Some(200)), (Some(250), None)]).spans,
            [(0, 505), (750, 1_000)]
        );
        assert_eq!(row(&[(Some(i64::MIN), Some(i64::MAX))]).spans, [(0, 1_000)]);
        let many = row(&vec![(None, None); 30]);
        assert_eq!((many.windows.len(), many.left_out), (20, 10));
        let point = TimelineRow::new("x", Vec::new(), (UnixSecs(5), UnixSecs(5)));
        assert!(point.spans.is_empty());
    }
}
