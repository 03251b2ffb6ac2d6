//! Months of stamps, in UTC.

use crate::texts::lists::MONTHS;
use chrono::{DateTime, Datelike as _, NaiveDate};
use oaimend_oai::UnixSecs;
use std::fmt;

/// A month in the years 0 to 9999, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    /// Months since January of the year 0.
    number: i32,
}

/// The first month after the last one.
const END: i32 = 10_000 * 12;

impl Month {
    /// The month of a time. Times outside the years 0 to 9999 are in the first or last month.
    pub fn of_secs(secs: UnixSecs) -> Self {
        let date = DateTime::from_timestamp(secs.0, 0).map(|time| time.date_naive());
        let number = date.map_or(if secs.0 < 0 { 0 } else { END - 1 }, |date| {
            date.year().saturating_mul(12).saturating_add(date.month0().cast_signed())
        });
        Self { number: number.clamp(0, END - 1) }
    }

    /// Reads a month such as `2026-11`.
    pub fn read(text: &str) -> Option<Self> {
        let (year, month) = text.split_once('-')?;
        let is_number = |text: &str, len| text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(year, 4) || !is_number(month, 2) {
            return None;
        }
        let (year, month): (i32, i32) = (year.parse().ok()?, month.parse().ok()?);
        (1..=12).contains(&month).then(|| Self { number: year * 12 + month - 1 })
    }

    /// The first and the last second.
    pub fn seconds(self) -> (UnixSecs, UnixSecs) {
        (first_second(self.number), first_second(self.number + 1).minus(1))
    }

    /// The month before; `None` for the first one.
    pub fn previous(self) -> Option<Self> {
        (self.number > 0).then(|| Self { number: self.number - 1 })
    }

    /// The month after; `None` for the last one.
    pub fn next(self) -> Option<Self> {
        (self.number + 1 < END).then(|| Self { number: self.number + 1 })
    }

    /// The name for people, such as `November 2026`.
    pub fn name(self) -> String {
        let name = usize::try_from(self.number % 12).ok().and_then(|month| MONTHS.get(month));
        format!("{} {}", name.copied().unwrap_or_default(), self.number / 12)
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.number / 12, self.number % 12 + 1)
    }
}

fn first_second(number: i32) -> UnixSecs {
    let date = NaiveDate::from_ymd_opt(number / 12, (number % 12).cast_unsigned() + 1, 1);
    UnixSecs(date.unwrap_or_default().and_time(chrono::NaiveTime::MIN).and_utc().timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_is_in_one_month() {
        for (secs, month, name) in [
            (0, "1970-01", "January 1970"),
            (-1, "1969-12", "December 1969"),
            (1_709_251_199, "2024-02", "February 2024"),
            (1_709_251_200, "2024-03", "March 2024"),
            (i64::MIN, "0000-01", "January 0"),
            (i64::MAX, "9999-12", "December 9999"),
        ] {
            let found = Month::of_secs(UnixSecs(secs));
            assert_eq!((found.to_string().as_str(), found.name().as_str()), (month, name));
            assert_eq!(Month::read(month), Some(found));
        }
        let leap = Month::read("2024-02").expect("a month");
        assert_eq!(leap.seconds(), (UnixSecs(1_706_745_600), UnixSecs(1_709_251_199)));
        let next = leap.next().expect("there is one");
        assert_eq!((next.seconds().0, next.previous()), (leap.seconds().1.plus(1), Some(leap)));
        assert_eq!(
            (Month::of_secs(UnixSecs::MIN).previous(), Month::of_secs(UnixSecs::MAX).next()),
            (None, None)
        );
    }

    #[test]
    fn other_texts_are_no_months() {
        for text in ["", "2024", "2024-2", "2024-00", "2024-13", "24-01", "+024-01", "2024-1a", "2024-01-01"]
        {
            assert_eq!(Month::read(text), None, "{text}");
        }
    }
}
