//! Datestamps: the two legal forms of OAI-PMH 2.0 (section 3.3), and the other forms that providers
//! write.

use crate::{UnixSecs, named_enum};
use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Utc};

/// The defect of a datestamp that could be parsed nevertheless.
///
/// ```
/// use oaimend_oai::datestamp;
///
/// let (stamp, _) = datestamp::normalise("2024-01-31 12:00:00").expect("it can be read");
/// assert_eq!(stamp, "2024-01-31T12:00:00Z");
/// assert!(datestamp::is_legal(stamp.as_bytes()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Oddity {
    /// Blanks or line breaks in or around it (failure class E6).
    Blank,
    /// Fractions of a second (E1).
    Fraction,
    /// A numeric offset instead of `Z` (E2).
    Offset,
    /// No zone, or a blank instead of `T` (E3).
    Zone,
    /// Another form of date (E4).
    Form,
}

named_enum! {
    /// The granularity of a repository's datestamps (OAI-PMH 2.0, section 3.3.2).
    ///
    /// ```
    /// use oaimend_oai::UnixSecs;
    /// use oaimend_oai::datestamp::{self, Granularity};
    ///
    /// assert_eq!(Granularity::from_name("YYYY-MM-DD"), Some(Granularity::Day));
    /// assert_eq!(Granularity::Day.fitted("2024-01-31T12:00:00Z"), "2024-01-31");
    /// assert_eq!(datestamp::from_secs(UnixSecs(0), Granularity::Second), "1970-01-01T00:00:00Z");
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Granularity {
        /// `YYYY-MM-DD`
        Day = "YYYY-MM-DD",
        /// `YYYY-MM-DDThh:mm:ssZ`
        Second = "YYYY-MM-DDThh:mm:ssZ",
    }
}

impl Granularity {
    /// The length of its datestamps, in bytes.
    pub const fn len_bytes(self) -> usize {
        match self {
            Self::Day => 10,
            Self::Second => 20,
        }
    }

    /// Converts a legal datestamp to this granularity: a second becomes its day, a day its first
    /// second. The result is never later than `stamp`.
    pub fn fitted(self, stamp: &str) -> String {
        let day = stamp.get(..Self::Day.len_bytes()).unwrap_or(stamp);
        match self {
            Self::Second if stamp.len() == day.len() => format!("{day}T00:00:00Z"),
            Self::Second => stamp.to_owned(),
            Self::Day => day.to_owned(),
        }
    }
}

/// Converts a legal datestamp to seconds since 1970; a day becomes its first second. `None` for any other text.
pub fn to_secs(stamp: &str) -> Option<UnixSecs> {
    if !is_legal(stamp.as_bytes()) {
        return None;
    }
    let number = |at, len| parse_number(stamp.as_bytes(), at, len);
    let year = i32::try_from(number(0, 4)?).ok()?;
    let day = NaiveDate::from_ymd_opt(year, number(5, 2)?, number(8, 2)?)?;
    let time = if stamp.len() > Granularity::Day.len_bytes() {
        NaiveTime::from_hms_opt(number(11, 2)?, number(14, 2)?, number(17, 2)?)?
    } else {
        NaiveTime::MIN
    };
    Some(UnixSecs(day.and_time(time).and_utc().timestamp()))
}

/// Converts a legal datestamp to seconds since 1970; a day becomes its last second. `None` for any other text.
pub fn to_last_second(stamp: &str) -> Option<UnixSecs> {
    const DAY_SECS: i64 = 86_400;
    let secs = to_secs(stamp)?;
    Some(if stamp.len() == Granularity::Day.name().len() { secs.plus(DAY_SECS - 1) } else { secs })
}

/// Writes seconds since 1970 as a datestamp. Times before the year 1 and after the year 9999 become the first and
/// the last second that a datestamp can express.
pub fn from_secs(secs: UnixSecs, granularity: Granularity) -> String {
    let at = DateTime::from_timestamp(secs.0.clamp(SECS_MIN, SECS_MAX), 0).unwrap_or_default();
    let (year, month, day) = (at.year(), at.month(), at.day());
    match granularity {
        Granularity::Day => format!("{year:04}-{month:02}-{day:02}"),
        Granularity::Second => {
            let (hour, minute, second) = (at.hour(), at.minute(), at.second());
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
        }
    }
}

/// `0001-01-01T00:00:00Z` in seconds since 1970.
const SECS_MIN: i64 = -62_135_596_800;
/// `9999-12-31T23:59:59Z` in seconds since 1970.
const SECS_MAX: i64 = 253_402_300_799;

/// Whether a legal datestamp means "never" or "unknown": a year that no record can have (E7).
pub fn is_sentinel(stamp: &[u8]) -> bool {
    stamp.starts_with(b"9999-")
}

/// Whether `text` is `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ssZ`, and its day and second exist.
pub fn is_legal(text: &[u8]) -> bool {
    match text.len() {
        10 => is_day(text),
        20 => {
            is_day(text.get(..10).unwrap_or_default())
                && text.get(10) == Some(&b'T')
                && text.get(13) == Some(&b':')
                && text.get(16) == Some(&b':')
                && text.get(19) == Some(&b'Z')
                && parse_number(text, 11, 2).is_some_and(|hour| hour < 24)
                && parse_number(text, 14, 2).is_some_and(|minute| minute < 60)
                && parse_number(text, 17, 2).is_some_and(|second| second < 60)
        }
        _ => false,
    }
}

fn is_day(text: &[u8]) -> bool {
    if text.get(4) != Some(&b'-') || text.get(7) != Some(&b'-') {
        return false;
    }
    let (Some(year), Some(month), Some(day)) =
        (parse_number(text, 0, 4), parse_number(text, 5, 2), parse_number(text, 8, 2))
    else {
        return false;
    };
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => return false,
    };
    year > 0 && (1..=days).contains(&day)
}

fn parse_number(text: &[u8], at: usize, len: usize) -> Option<u32> {
    let mut value = 0;
    for &byte in text.get(at..at + len)? {
        value = value * 10 + u32::from(byte.checked_sub(b'0').filter(|&digit| digit < 10)?);
    }
    Some(value)
}

/// Parses the forms that data providers write; returns the legal form and the defect.
///
/// `None` for texts that name no day, or may name two (`12/01/2015`). The result is never later
/// than the original: fractions are cut off, a year or month becomes its first day.
pub fn normalise(text: &str) -> Option<(String, Oddity)> {
    let trimmed: &str = text.trim_matches([' ', '\t', '\r', '\n', '\u{a0}']);
    let dense: String = trimmed.chars().filter(|c| !matches!(c, '\t' | '\r' | '\n')).collect();
    if dense.is_empty() || !dense.is_ascii() || dense.len() > 64 {
        return None;
    }
    if is_legal(dense.as_bytes()) {
        return Some((dense, Oddity::Blank));
    }
    let joined: String = dense.chars().filter(|c| *c != ' ').collect();
    if is_legal(joined.as_bytes()) {
        return Some((joined, Oddity::Blank));
    }
    let read = match pad_date(&dense) {
        Some(padded) if is_legal(padded.as_bytes()) => Some((padded, Oddity::Form)),
        Some(padded) => parse_timestamp(&padded).map(|(stamp, _)| (stamp, Oddity::Form)),
        None => parse_timestamp(&dense).or_else(|| parse_date(&dense)),
    };
    read.filter(|(stamp, _)| is_legal(stamp.as_bytes()))
}

/// Pads a date with the year first, whose parts are short or separated by `/` or `.`, to
/// `YYYY-MM-DD`; the rest of the text stays. `None` for any other text.
fn pad_date(text: &str) -> Option<String> {
    let (year, rest) = text.split_at_checked(4)?;
    let separator = rest.chars().next().filter(|c| matches!(c, '-' | '/' | '.'))?;
    let (month, rest) = rest.get(1..)?.split_once(separator)?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (day, rest) = rest.split_at(digits);
    let is_short = |part: &str| matches!(part.len(), 1 | 2) && is_number(part);
    let is_plain = separator == '-' && month.len() == 2 && day.len() == 2;
    (is_number(year) && is_short(month) && is_short(day) && !is_plain)
        .then(|| format!("{year}-{month:0>2}-{day:0>2}{rest}"))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `date T time [fraction] [zone]`.
fn parse_timestamp(text: &str) -> Option<(String, Oddity)> {
    let day = NaiveDate::parse_from_str(text.get(..10)?, "%Y-%m-%d").ok()?;
    let rest = text.get(10..)?;
    if let Some(zone) = parse_date_zone(rest) {
        let at = day.and_time(NaiveTime::MIN).and_local_timezone(zone).single()?;
        let oddity = if rest == "Z" || rest == "z" { Oddity::Form } else { Oddity::Offset };
        return Some((at.with_timezone(&Utc).format("%Y-%m-%d").to_string(), oddity));
    }
    let mut oddity = Oddity::Form;
    let rest = match rest.strip_prefix(['T', 't']) {
        Some(rest) => rest,
        None => {
            oddity = Oddity::Zone;
            rest.strip_prefix(' ')?
        }
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(rest.len());
    let (time, zone) = rest.split_at(digits);
    let time = NaiveTime::parse_from_str(time, "%H:%M:%S")
        .or_else(|_| NaiveTime::parse_from_str(time, "%H:%M"))
        .ok()?;
    let mut zone = zone.trim_start();
    if let Some(fraction) = zone.strip_prefix(['.', ',']) {
        zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        oddity = Oddity::Fraction;
    }
    let at = NaiveDateTime::new(day, time);
    let at = match zone {
        "Z" | "z" => at.and_utc(),
        "ZZ" | "zz" => {
            oddity = Oddity::Form;
            at.and_utc()
        }
        "" => {
            oddity = Oddity::Zone;
            at.and_utc()
        }
        "UTC" | "GMT" => at.and_utc(),
        _ => {
            oddity = Oddity::Offset;
            at.and_local_timezone(parse_offset(zone)?).single()?.with_timezone(&Utc)
        }
    };
    Some((at.format("%Y-%m-%dT%H:%M:%SZ").to_string(), oddity))
}

/// The zone after a date without time, as `xs:date` allows it.
fn parse_date_zone(text: &str) -> Option<FixedOffset> {
    if matches!(text, "Z" | "z") { FixedOffset::east_opt(0) } else { parse_offset(text) }
}

/// `+0200`, `+02:00`, `+02`, `+2`, `+2:00`.
fn parse_offset(text: &str) -> Option<FixedOffset> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (1, text.get(1..)?),
        b'-' => (-1, text.get(1..)?),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() <= 2 => (digits, "00"),
        None => digits.split_at_checked(digits.len() - 2)?,
    };
    let is_number = |text: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !is_number(hours, 1..=2) || !is_number(minutes, 2..=2) {
        return None;
    }
    let (hours, minutes) = (hours.parse::<i32>().ok()?, minutes.parse::<i32>().ok()?);
    if hours > 14 || minutes > 59 {
        return None;
    }
    FixedOffset::east_opt(sign * (hours * 3600 + minutes * 60))
}

/// Parses dates whose parts are not separated by dashes.
fn parse_date(text: &str) -> Option<(String, Oddity)> {
    let form = |stamp: String| Some((stamp, Oddity::Form));
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return match text.len() {
            4 => form(format!("{text}-01-01")),
            8 => form(NaiveDate::parse_from_str(text, "%Y%m%d").ok()?.format("%Y-%m-%d").to_string()),
            9 | 10 => parse_epoch(text.parse().ok()?),
            13 => parse_epoch(text.parse::<i64>().ok()? / 1000),
            14 => form(
                NaiveDateTime::parse_from_str(text, "%Y%m%d%H%M%S")
                    .ok()?
                    .format("%Y-%m-%dT%H:%M:%SZ")
                    .to_string(),
            ),
            _ => None,
        };
    }
    if text.len() == 7 && text.as_bytes().get(4) == Some(&b'-') {
        return form(format!("{text}-01"));
    }
    if let Some(stamp) = parse_day_last(text).or_else(|| parse_named_month(text)) {
        return form(stamp);
    }
    if text.len() == 16 && text.ends_with('Z') {
        let at = NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%SZ").ok()?;
        return form(at.format("%Y-%m-%dT%H:%M:%SZ").to_string());
    }
    let at = DateTime::parse_from_rfc2822(text).ok()?;
    form(at.with_timezone(&Utc).format("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Parses a day, a month and a year, the first two in either order. Only one of the two may be a
/// possible day, or both are the same: `25/01/2015`, `01/25/2015`.
fn parse_day_last(text: &str) -> Option<String> {
    let mut parts = text.split(['/', '.', '-']);
    let (first, second, year) = (parts.next()?, parts.next()?, parts.next()?);
    let short = |part: &str| matches!(part.len(), 1 | 2) && is_number(part);
    if parts.next().is_some() || !short(first) || !short(second) || year.len() != 4 || !is_number(year) {
        return None;
    }
    let (first, second) = (first.parse::<u32>().ok()?, second.parse::<u32>().ok()?);
    let year = year.parse().ok()?;
    let readings =
        [(first, second), (second, first)].map(|(day, month)| NaiveDate::from_ymd_opt(year, month, day));
    match readings {
        [Some(one), Some(other)] if one != other => None,
        [one, other] => Some(one.or(other)?.format("%Y-%m-%d").to_string()),
    }
}

/// Parses a day, an English month name and a year of four digits: `Jan 12, 2015`, `12-Jan-2015`,
/// `Monday, January 12th 2015 1:39:50 PM`, `Mon Jan 12 13:39:50 UTC 2015`. The only allowed zone is
/// UTC: the specification requires it, and other zone names are ambiguous.
fn parse_named_month(text: &str) -> Option<String> {
    let mut words: Vec<&str> =
        text.split([' ', ',', '-', '/', '.']).filter(|word| !word.is_empty()).collect();
    if words.first().is_some_and(|word| find_name(word, WEEKDAYS).is_some()) {
        words.remove(0);
    }
    let (first, second) = (*words.first()?, *words.get(1)?);
    let (month, day) = match find_name(first, MONTHS) {
        Some(month) => (month, second),
        None => (find_name(second, MONTHS)?, first),
    };
    let mut rest = words.split_off(2);
    let is_year = |word: &&str| word.len() == 4 && is_number(word);
    let year = if rest.first().is_some_and(is_year) { rest.remove(0) } else { rest.pop().filter(is_year)? };
    let day = ["st", "nd", "rd", "th"].into_iter().find_map(|end| day.strip_suffix(end)).unwrap_or(day);
    let date = NaiveDate::from_ymd_opt(year.parse().ok()?, month, day.parse().ok()?)?.format("%Y-%m-%d");
    let is_utc = |word: &&str| matches!(*word, "UTC" | "GMT" | "Z");
    if rest.last().is_some_and(is_utc) {
        rest.pop();
    }
    let time = match rest[..] {
        [] => return Some(date.to_string()),
        [time] => {
            NaiveTime::parse_from_str(time, "%H:%M:%S").or_else(|_| NaiveTime::parse_from_str(time, "%H:%M"))
        }
        [time, half] => {
            let text = format!("{time} {half}");
            NaiveTime::parse_from_str(&text, "%I:%M:%S %p")
                .or_else(|_| NaiveTime::parse_from_str(&text, "%I:%M %p"))
        }
        _ => return None,
    };
    Some(format!("{date}T{}Z", time.ok()?.format("%H:%M:%S")))
}

const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: &[&str] = &["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Finds a word in `names`, counted from 1; the word may be shortened to three letters or more.
fn find_name(word: &str, names: &[&str]) -> Option<u32> {
    let word = word.to_ascii_lowercase();
    let at = names.iter().position(|name| word.len() >= 3 && name.starts_with(&word))?;
    u32::try_from(at + 1).ok()
}

/// Parses seconds since 1970, for times from 1973 to 2100.
fn parse_epoch(seconds: i64) -> Option<(String, Oddity)> {
    if !(100_000_000..4_102_444_800).contains(&seconds) {
        return None;
    }
    let at = DateTime::from_timestamp(seconds, 0)?;
    Some((at.format("%Y-%m-%dT%H:%M:%SZ").to_string(), Oddity::Form))
}

#[cfg(test)]
mod tests {
    use super::{Oddity, is_legal, normalise};

    #[test]
    fn only_the_two_forms_are_legal() {
        for legal in ["2024-02-29", "1000-12-31T23:59:59Z"] {
            assert!(is_legal(legal.as_bytes()), "{legal}");
        }
        for illegal in [
            "2023-02-29",
            "0000-00-00",
            "2024-01-01T24:00:00Z",
            "2024-1-1",
            "2024-01-01T00:00:00",
            "2024-01-01Z",
            "",
        ] {
            assert!(!is_legal(illegal.as_bytes()), "{illegal}");
        }
    }

    #[test]
    fn common_forms_are_parsed() {
        for (text, expected, oddity) in [
            ("2017-01\n-17T00:26:07Z", "2017-01-17T00:26:07Z", Oddity::Blank),
            (" 2017-01-17 ", "2017-01-17", Oddity::Blank),
            ("2017-11-09T12:50:22.485Z", "2017-11-09T12:50:22Z", Oddity::Fraction),
            ("2015-05-04T22:55:30+0000", "2015-05-04T22:55:30Z", Oddity::Offset),
            ("2015-05-04T22:55:30-04:00", "2015-05-05T02:55:30Z", Oddity::Offset),
            ("2015-01-12T13:39:50", "2015-01-12T13:39:50Z", Oddity::Zone),
            ("2015-01-12 13:39:50", "2015-01-12T13:39:50Z", Oddity::Zone),
            ("20170214", "2017-02-14", Oddity::Form),
            ("2015", "2015-01-01", Oddity::Form),
            ("2015-06", "2015-06-01", Oddity::Form),
            ("Tue, 15 Nov 1994 08:12:31 GMT", "1994-11-15T08:12:31Z", Oddity::Form),
            ("1420070400", "2015-01-01T00:00:00Z", Oddity::Form),
            ("2015-01-01+02:00", "2014-12-31", Oddity::Offset),
            ("2015-05-04T22:55:30+2", "2015-05-04T20:55:30Z", Oddity::Offset),
            ("2015-05-04T22:55:30+2:30", "2015-05-04T20:25:30Z", Oddity::Offset),
            ("2015-05-04T22:55:30-0130", "2015-05-05T00:25:30Z", Oddity::Offset),
            ("2015-05-04T22:55:30.5+01", "2015-05-04T21:55:30Z", Oddity::Offset),
            ("2015-05-04t22:55:30z", "2015-05-04T22:55:30Z", Oddity::Form),
            ("2015-05-04 9:05", "2015-05-04T09:05:00Z", Oddity::Zone),
            ("25/01/2015", "2015-01-25", Oddity::Form),
            ("01/25/2015", "2015-01-25", Oddity::Form),
            ("5.5.2015", "2015-05-05", Oddity::Form),
            ("2015/01/25", "2015-01-25", Oddity::Form),
            ("2015-05-04T22:55:30\n.485Z ", "2015-05-04T22:55:30Z", Oddity::Fraction),
            ("2015-1-2", "2015-01-02", Oddity::Form),
            ("2015-1-12", "2015-01-12", Oddity::Form),
            ("2015-12-1T3:04:05Z", "2015-12-01T03:04:05Z", Oddity::Form),
            ("2015/1/2 03:04", "2015-01-02T03:04:00Z", Oddity::Form),
            ("2015.01.25 03:04:05+01:00", "2015-01-25T02:04:05Z", Oddity::Form),
            ("Jan 12, 2015", "2015-01-12", Oddity::Form),
            ("January 12th, 2015", "2015-01-12", Oddity::Form),
            ("12-Jan-2015", "2015-01-12", Oddity::Form),
            ("12-JAN-2015 13:39:50", "2015-01-12T13:39:50Z", Oddity::Form),
            ("12. Sept. 2015", "2015-09-12", Oddity::Form),
            ("Jan 12, 2015 1:39:50 PM", "2015-01-12T13:39:50Z", Oddity::Form),
            ("Jan 12, 2015 12:05 AM", "2015-01-12T00:05:00Z", Oddity::Form),
            ("Mon Jan 12 13:39:50 2015", "2015-01-12T13:39:50Z", Oddity::Form),
            ("Mon Jan 12 13:39:50 UTC 2015", "2015-01-12T13:39:50Z", Oddity::Form),
            ("Monday, 12 January 2015", "2015-01-12", Oddity::Form),
            ("2015-01-12T13:39:50ZZ", "2015-01-12T13:39:50Z", Oddity::Form),
            ("2015-01-12\u{a0}", "2015-01-12", Oddity::Blank),
        ] {
            assert_eq!(normalise(text), Some((expected.to_owned(), oddity)), "{text}");
        }
        for refused in [
            "12/01/2015",
            "25/25/2015",
            "1/2/15",
            "1/2/3/2015",
            "2015-02-30",
            "2015-05-04T22:55:30+25",
            "2015-05-04T22:55:30+2:5",
            "0000-00-00",
            "12345",
            "99",
            "",
            "yesterday",
            "2015-13",
            "01/02/2015",
            "12-01-2015",
            "12-Jan-15",
            "Jan 2015",
            "12 janvier 2015",
            "Mon Jan 12 13:39:50 CET 2015",
            "Jan 32, 2015",
            "Jan 12, 2015 13:39:50 PM",
            "Ja 12, 2015",
            "2015-13-1",
            "2015-1/2",
            "2015-0-1",
        ] {
            assert_eq!(normalise(refused), None, "{refused}");
        }
    }

    #[test]
    fn datestamps_and_seconds_convert_into_each_other() {
        use super::{Granularity, SECS_MAX, SECS_MIN, UnixSecs, from_secs, to_secs};
        for (stamp, secs) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2001-09-09T01:46:40Z", 1_000_000_000),
            ("1969-12-31T23:59:59Z", -1),
            ("0001-01-01T00:00:00Z", SECS_MIN),
            ("9999-12-31T23:59:59Z", SECS_MAX),
        ] {
            assert_eq!(to_secs(stamp), Some(UnixSecs(secs)), "{stamp}");
            assert_eq!(from_secs(UnixSecs(secs), Granularity::Second), stamp);
        }
        assert_eq!(to_secs("2001-09-09"), Some(UnixSecs(999_993_600)));
        assert_eq!(from_secs(UnixSecs(1_000_000_000), Granularity::Day), "2001-09-09");
        assert_eq!(to_secs("2001-09-09T01:46Z"), None);
        assert_eq!(from_secs(UnixSecs::MAX, Granularity::Second), "9999-12-31T23:59:59Z");
        assert_eq!(from_secs(UnixSecs::MIN, Granularity::Day), "0001-01-01");
    }

    #[test]
    fn conversion_never_gives_a_later_datestamp() {
        use super::{Granularity, is_sentinel};
        for (granularity, stamp, expected) in [
            (Granularity::Day, "2015-01-02T03:04:05Z", "2015-01-02"),
            (Granularity::Day, "2015-01-02", "2015-01-02"),
            (Granularity::Second, "2015-01-02", "2015-01-02T00:00:00Z"),
            (Granularity::Second, "2015-01-02T03:04:05Z", "2015-01-02T03:04:05Z"),
        ] {
            assert_eq!(granularity.fitted(stamp), expected);
            assert_eq!(expected.len(), granularity.len_bytes());
            assert_eq!(Granularity::from_name(granularity.name()), Some(granularity));
        }
        assert_eq!(Granularity::from_name("YYYY-MM-DDTHH:MM:SSZ"), None);
        assert!(is_sentinel(b"9999-12-31") && !is_sentinel(b"2999-12-31"));
    }
}
