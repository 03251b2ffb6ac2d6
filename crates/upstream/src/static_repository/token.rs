//! The resumptionTokens of static repositories: the place in the file where the list continues.
//!
//! They contain all data, so they outlive a restart; and the version of the file, so that no page is made
//! from another one.

use super::index::Entry;
use std::fmt::Write as _;

/// The place where a list continues, and which list it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// The version of the file.
    pub(super) version: String,
    pub(super) metadata_prefix: String,
    /// The entry that the page begins at.
    pub(super) next: usize,
    /// The number of records on the pages before.
    pub(super) delivered: usize,
    /// First and last day, as numbers of eight digits.
    pub(super) from: Option<u32>,
    pub(super) until: Option<u32>,
}

impl Token {
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(6, '.');
        let mut part = || parts.next();
        let version = part()?.to_owned();
        let (next, delivered) = (part()?.parse().ok()?, part()?.parse().ok()?);
        let day = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
        let (from, until) = (day(part()?)?, day(part()?)?);
        Some(Self { version, metadata_prefix: part()?.to_owned(), next, delivered, from, until })
    }

    /// The token; a metadataPrefix needs hardly any escapes in XML or a URL.
    pub(super) fn write(&self) -> String {
        let Self { version, metadata_prefix, next, delivered, from, until } = self;
        let mut text = format!("{version}.{next}.{delivered}");
        for day in [from, until] {
            let _ = write!(text, ".{}", day.map(|day| day.to_string()).unwrap_or_default());
        }
        let _ = write!(text, ".{}", quick_xml::escape::escape(metadata_prefix));
        text
    }

    /// Whether the record can be delivered and is between the days.
    pub(super) fn matches(&self, entry: &Entry) -> bool {
        entry.is_good()
            && self.from.is_none_or(|from| from <= entry.day)
            && self.until.is_none_or(|until| entry.day <= until)
    }

    /// The records that match.
    pub(super) fn matching<'e>(&self, entries: &'e [Entry]) -> impl Iterator<Item = &'e Entry> {
        entries.iter().filter(|entry| self.matches(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_written_and_other_texts_are_refused() {
        let token = Token {
            version: "00ff".to_owned(),
            metadata_prefix: "a.b_c".to_owned(),
            next: 100,
            delivered: 99,
            from: Some(20_010_203),
            until: None,
        };
        assert_eq!(token.write(), "00ff.100.99.20010203..a.b_c");
        assert_eq!(Token::read(&token.write()), Some(token));
        for other in
            ["", "00ff", "00ff.100.99", "00ff.x.99...oai_dc", "00ff.1.2.3.y.oai_dc", "00ff.-1.2...oai_dc"]
        {
            assert_eq!(Token::read(other), None, "{other}");
        }
    }
}
