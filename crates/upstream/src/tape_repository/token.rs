//! The resumptionTokens of tapes: which list, and how many of its records the pages before had.
//!
//! Records of a tape never change, so a number is a place. The token contains the state of the tape, so that no page is
//! made from another one.

use std::fmt::Write as _;

/// The place where a list continues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Token {
    /// The state of the tape.
    pub(super) version: String,
    /// The number of records on the pages before.
    pub(super) skipped: u64,
    /// The first and the last second.
    pub(super) from_secs: Option<i64>,
    pub(super) until_secs: Option<i64>,
    /// The number of the set.
    pub(super) set: Option<usize>,
    /// The metadataPrefix; empty in a list of sets.
    pub(super) prefix: String,
}

impl Token {
    pub(super) fn read(text: &str) -> Option<Self> {
        fn number<T: std::str::FromStr>(text: &str) -> Option<Option<T>> {
            if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
        }
        let mut parts = text.splitn(6, '.');
        let mut part = || parts.next();
        Some(Self {
            version: part()?.to_owned(),
            skipped: part()?.parse().ok()?,
            from_secs: number(part()?)?,
            until_secs: number(part()?)?,
            set: number(part()?)?,
            prefix: part()?.to_owned(),
        })
    }

    pub(super) fn write(&self) -> String {
        let Self { version, skipped, from_secs, until_secs, set, prefix } = self;
        let mut text = format!("{version}.{skipped}");
        for secs in [from_secs, until_secs] {
            let _ = write!(text, ".{}", secs.map(|secs| secs.to_string()).unwrap_or_default());
        }
        let _ = write!(text, ".{}.{prefix}", set.map(|set| set.to_string()).unwrap_or_default());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_written_and_other_texts_are_refused() {
        let token = Token {
            version: "00ff".to_owned(),
            skipped: 100,
            from_secs: Some(-5),
            until_secs: None,
            set: Some(3),
            prefix: "a.b_c".to_owned(),
        };
        assert_eq!(token.write(), "00ff.100.-5..3.a.b_c");
        assert_eq!(Token::read(&token.write()), Some(token));
        let sets = Token { version: "00ff".into(), skipped: 7, ..Token::default() };
        assert_eq!(Token::read(&sets.write()), Some(sets));
        for other in ["", "00ff", "00ff.1...", "00ff.x....p", "00ff.-1....p", "00ff.1.y...p", "00ff.1...-2.p"]
        {
            assert_eq!(Token::read(other), None, "{other}");
        }
    }
}
