//! A text of a record with its language.

use crate::language::{Direction, direction_of};
use crate::limits::shorten;

/// A text of a record with its language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// The text without surrounding blanks, at most 16 KiB.
    pub value: String,
    /// The language tag of the nearest `xml:lang`; `None` if there is none, or if it is no language tag.
    pub language: Option<String>,
    /// The number of bytes that `value` leaves out.
    pub left_out_bytes: usize,
}

impl Text {
    /// The direction in which the text is written.
    pub fn direction(&self) -> Direction {
        direction_of(&self.value)
    }

    /// The value of `lang` for the text. The empty one means that the language is unknown; without it the text would
    /// count as English, the language of the page.
    pub fn lang(&self) -> &str {
        self.language.as_deref().unwrap_or_default()
    }

    /// The same text with one space in place of each run of blanks.
    pub fn on_one_line(&self) -> Self {
        self.clone().into_one_line()
    }

    /// The same as [`Text::on_one_line`] of a text that is not needed any more.
    #[must_use]
    pub fn into_one_line(self) -> Self {
        if is_on_one_line(&self.value) { self } else { Self { value: on_one_line(&self.value), ..self } }
    }

    /// Adds characters, up to `bytes_max` bytes in all.
    pub fn push(&mut self, characters: &str, bytes_max: usize) {
        let space = if self.left_out_bytes > 0 { 0 } else { bytes_max.saturating_sub(self.value.len()) };
        let (kept, left_out_bytes) = shorten(characters, space);
        self.value.push_str(kept);
        self.left_out_bytes += left_out_bytes;
    }

    /// Removes surrounding blanks.
    pub fn trim(&mut self) {
        let trimmed = self.value.trim();
        if trimmed.len() < self.value.len() {
            self.value = trimmed.to_owned();
        }
    }
}

/// The words of a text with one space between them.
pub fn on_one_line(text: &str) -> String {
    if is_on_one_line(text) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Whether a text has only single spaces between its words. A text with a character of a block of Unicode that has blanks
/// may be on one line too. Most texts have none, and this is the fastest test.
fn is_on_one_line(text: &str) -> bool {
    let mut before = b' ';
    let mut is_single = |byte: u8| {
        let is_space_again = byte == b' ' && before == b' ';
        before = byte;
        // The blanks outside of ASCII begin with 0xC2, 0xE1, 0xE2 or 0xE3.
        let may_be_blank = byte.is_ascii_control() || matches!(byte, 0xC2 | 0xE1..=0xE3);
        !may_be_blank && !is_space_again
    };
    text.bytes().all(&mut is_single) && !text.ends_with(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_space_is_between_words() {
        for (text, line) in [
            ("", ""),
            (" ", ""),
            ("a", "a"),
            ("a b c", "a b c"),
            (" a", "a"),
            ("a ", "a"),
            ("a  b", "a b"),
            ("a\tb\nc\u{b}d", "a b c d"),
            ("\u{a0}é\u{2003}\u{2003}b", "é b"),
            ("a\u{1f}b", "a\u{1f}b"),
            ("é ü", "é ü"),
            ("é  ü ", "é ü"),
        ] {
            assert_eq!(on_one_line(text), line, "{text:?}");
            let text = Text { value: text.to_owned(), ..Text::default() };
            assert_eq!(text.into_one_line().value, line);
        }
    }

    #[test]
    fn every_blank_of_unicode_separates_words() {
        for blank in ('\0'..=char::MAX).filter(|character| character.is_whitespace()) {
            assert_eq!(on_one_line(&format!("a{blank}{blank}b{blank}")), "a b", "{blank:?}");
        }
    }
}
