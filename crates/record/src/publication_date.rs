//! The date of publication, from the dates of a record.

use crate::text::Text;

/// A date of publication: a year, with month and day where they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationDate {
    year: u16,
    month: Option<u8>,
    day: Option<u8>,
}

impl PublicationDate {
    /// The date of publication among the dates of a record: the first one without a time of day, else the first one.
    ///
    /// Repositories list the times of deposit beside the date of publication. Texts such as `ca. 1900` are no dates.
    pub fn among(dates: &[Text]) -> Option<Self> {
        let values = || dates.iter().map(|date| date.value.as_str());
        let mut without_time = values().filter(|date| !date.contains('T'));
        without_time.find_map(Self::read).or_else(|| values().find_map(Self::read))
    }

    /// Reads `YYYY`, `YYYY-MM` or `YYYY-MM-DD`, and the date of a time such as `YYYY-MM-DDThh:mm:ssZ`. Catalogues write a
    /// year as `[2001]`, `c2001` or `©2001.` too.
    pub fn read(text: &str) -> Option<Self> {
        let text = without_marks(text);
        let date = match text.split_once(['T', ' ']) {
            Some((date, time)) if time.starts_with(|first: char| first.is_ascii_digit()) => date,
            Some(_) => return None,
            None => text,
        };
        let mut parts = date.split('-');
        let mut part = |length: usize| match parts.next() {
            None => Some(None),
            Some(digits) if digits.len() == length && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse::<u16>().ok().map(Some)
            }
            Some(_) => None,
        };
        let (year, month, day) = (part(4)??, part(2)?, part(2)?);
        if parts.next().is_some() || year < 1_000 {
            return None;
        }
        let bounded = |value: Option<u16>, max: u16| match value {
            Some(value) if (1..=max).contains(&value) => u8::try_from(value).ok().map(Some),
            Some(_) => None,
            None => Some(None),
        };
        Some(Self { year, month: bounded(month, 12)?, day: bounded(day, 31)? })
    }

    /// The year.
    pub const fn year(self) -> u16 {
        self.year
    }

    /// The month and the day, as far as they are known.
    pub const fn month_and_day(self) -> (Option<u8>, Option<u8>) {
        (self.month, self.day)
    }

    /// `YYYY/MM/DD`, or the year alone: the forms that Google Scholar reads.
    pub fn in_citation(self) -> String {
        match (self.month, self.day) {
            (Some(month), Some(day)) => format!("{}/{month:02}/{day:02}", self.year),
            _ => self.year.to_string(),
        }
    }

    /// `YYYY-MM-DD`, `YYYY-MM` or `YYYY`, as in ISO 8601.
    pub fn in_iso_8601(self) -> String {
        match (self.month, self.day) {
            (Some(month), Some(day)) => format!("{}-{month:02}-{day:02}", self.year),
            (Some(month), None) => format!("{}-{month:02}", self.year),
            (None, _) => self.year.to_string(),
        }
    }
}

/// A date without what catalogues write around a year: the brackets of a year that is not in the work itself, and the
/// mark of a copyright.
fn without_marks(text: &str) -> &str {
    let text = text.trim().trim_end_matches(['.', ',', ';']);
    let text = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(text);
    let year = text.strip_prefix(['c', 'C', '©', '℗']).map(str::trim_start);
    year.filter(|year| year.starts_with(|first: char| first.is_ascii_digit())).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_two_forms() {
        for (text, citation, iso) in [
            ("2014", "2014", "2014"),
            ("2014-05", "2014", "2014-05"),
            (" 2014-05-06 ", "2014/05/06", "2014-05-06"),
            ("2014-05-06T07:08:09Z", "2014/05/06", "2014-05-06"),
            ("2014-05-06 07:08:09", "2014/05/06", "2014-05-06"),
            ("[2001]", "2001", "2001"),
            ("c2001.", "2001", "2001"),
            ("© 2001", "2001", "2001"),
            ("[c2001]", "2001", "2001"),
        ] {
            let date = PublicationDate::read(text).expect(text);
            assert_eq!((date.in_citation().as_str(), date.in_iso_8601().as_str()), (citation, iso));
        }
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            "",
            "ca. 1900",
            "1900?",
            "[1900?]",
            "[1900",
            "circa 2001",
            "c",
            "14",
            "0014",
            "2014-13",
            "2014-05-32",
            "2014-5-6",
            "2014-05-06-07",
            "2014 to 2015",
            "20é4",
        ] {
            assert_eq!(PublicationDate::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_date_without_a_time_of_day_is_preferred() {
        let texts = |dates: &[&str]| -> Vec<Text> {
            dates.iter().map(|date| Text { value: (*date).to_owned(), ..Text::default() }).collect()
        };
        let among = |dates: &[&str]| PublicationDate::among(&texts(dates)).map(PublicationDate::in_iso_8601);
        assert_eq!(
            among(&["2020-01-02T03:04:05Z", "undated", "2014-05", "2013"]).as_deref(),
            Some("2014-05")
        );
        assert_eq!(among(&["x", "2020-01-02T03:04:05Z"]).as_deref(), Some("2020-01-02"));
        assert_eq!(among(&["info:eu-repo/date/embargoEnd/2015-01-01"]), None);
    }
}
