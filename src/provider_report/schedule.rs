//! When a weekly report is due. Pure: the time is an argument.

use oaimend_oai::UnixSecs;

const DAY_SECS: i64 = 86_400;
const WEEK_SECS: i64 = 7 * DAY_SECS;
/// The first Monday before 1970, in seconds since 1970. 1970-01-01 was a Thursday.
const MONDAY_SECS: UnixSecs = UnixSecs(-3 * DAY_SECS);
/// How long after its time a report is still sent, for example after a restart.
const LATE_SECS_MAX: i64 = DAY_SECS;
/// The shortest time between two reports to one provider.
const GAP_SECS_MIN: i64 = 6 * DAY_SECS;

/// A time of the week, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WeekTime {
    /// The day, from 0 for Monday to 6 for Sunday.
    pub(crate) weekday: u8,
    /// The hour, from 0 to 23.
    pub(crate) hour: u8,
}

/// The last time of a report, up to now, in seconds since 1970.
pub(crate) fn slot_secs(time: WeekTime, now_secs: UnixSecs) -> UnixSecs {
    let first_secs = MONDAY_SECS.plus(i64::from(time.weekday) * DAY_SECS + i64::from(time.hour) * 3_600);
    now_secs.minus(now_secs.since(first_secs).rem_euclid(WEEK_SECS))
}

/// Whether a report is due now. `sent_secs` is the time of the last one, also if it is in the future.
pub(crate) fn is_due(time: WeekTime, sent_secs: Option<UnixSecs>, now_secs: UnixSecs) -> bool {
    let is_in_time = now_secs.since(slot_secs(time, now_secs)) < LATE_SECS_MAX;
    is_in_time && sent_secs.is_none_or(|sent_secs| now_secs.since(sent_secs) >= GAP_SECS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_oai::datestamp::to_secs;

    const MONDAY_AT_6: WeekTime = WeekTime { weekday: 0, hour: 6 };

    fn secs(stamp: &str) -> UnixSecs {
        to_secs(stamp).expect("a literal datestamp")
    }

    #[test]
    fn slot_is_the_last_one_up_to_now() {
        for (weekday, now, slot) in [
            (0, "2026-03-02T06:00:00Z", "2026-03-02T06:00:00Z"),
            (0, "2026-03-02T05:59:59Z", "2026-02-23T06:00:00Z"),
            (0, "2026-03-08T23:00:00Z", "2026-03-02T06:00:00Z"),
            (6, "2026-03-08T07:00:00Z", "2026-03-08T06:00:00Z"),
            (3, "1970-01-01T07:00:00Z", "1970-01-01T06:00:00Z"),
        ] {
            assert_eq!(slot_secs(WeekTime { weekday, hour: 6 }, secs(now)), secs(slot), "{weekday} {now}");
        }
    }

    #[test]
    fn report_is_due_on_its_day_and_once_a_week() {
        let is_due = |sent: Option<&str>, now: &str| is_due(MONDAY_AT_6, sent.map(secs), secs(now));
        assert!(is_due(None, "2026-03-02T06:00:00Z") && is_due(None, "2026-03-03T05:59:59Z"));
        assert!(!is_due(None, "2026-03-02T05:59:59Z"), "too early");
        assert!(!is_due(None, "2026-03-03T06:00:00Z"), "too late");
        assert!(!is_due(Some("2026-03-02T06:00:00Z"), "2026-03-02T06:00:02Z"));
        assert!(is_due(Some("2026-03-02T06:00:00Z"), "2026-03-09T06:00:00Z"));
        assert!(is_due(Some("2026-03-03T05:00:00Z"), "2026-03-09T06:00:00Z"), "the last one was late");
        assert!(!is_due(Some("2026-03-07T06:00:00Z"), "2026-03-09T06:00:00Z"), "the day was changed");
        assert!(!is_due(Some("2026-04-01T00:00:00Z"), "2026-03-09T06:00:00Z"), "the clock was set back");
    }
}
