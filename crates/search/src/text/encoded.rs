//! The words of a text in one string, as the index stores them.

/// Precedes a word at the next position.
const NEXT: char = '\u{2}';
/// Precedes a word at the position of the word before it.
const SAME: char = '\u{1}';

/// The words of a text in order, each after a mark that says its position. No word contains a mark.
#[derive(Clone, Debug, Default)]
pub(crate) struct EncodedWords {
    encoded: String,
    /// The position of the last word.
    last: Option<u32>,
}

impl EncodedWords {
    /// Adds a word at the position of the last one, or at the next one.
    pub(crate) fn push(&mut self, position: u32, word: &str) {
        self.encoded.push(if self.last == Some(position) { SAME } else { NEXT });
        self.encoded.push_str(word);
        self.last = Some(position);
    }

    /// The words with their marks. [`WordReader::new`] reads them.
    pub(crate) fn as_str(&self) -> &str {
        &self.encoded
    }

    pub(crate) fn iter(&self) -> WordReader<'_> {
        WordReader { rest: &self.encoded, next: 0 }
    }
}

/// Reads encoded words with their positions.
#[derive(Clone, Debug)]
pub(crate) struct WordReader<'w> {
    rest: &'w str,
    /// The next position.
    next: u32,
}

impl<'w> WordReader<'w> {
    /// Divides a text into what precedes its encoded words, and these.
    pub(crate) fn after_start(text: &'w str) -> (&'w str, Self) {
        let (start, rest) = text.split_at(end_of_word(text));
        (start, Self { rest, next: 0 })
    }
}

impl<'w> Iterator for WordReader<'w> {
    type Item = (u32, &'w str);

    fn next(&mut self) -> Option<(u32, &'w str)> {
        let mark = self.rest.chars().next()?;
        let rest = self.rest.get(mark.len_utf8()..)?;
        let (word, rest) = rest.split_at(end_of_word(rest));
        self.rest = rest;
        if mark == NEXT {
            self.next = self.next.wrapping_add(1);
        }
        Some((self.next.wrapping_sub(1), word))
    }
}

fn end_of_word(text: &str) -> usize {
    // The marks are ASCII, so comparing bytes suffices.
    text.bytes().position(|byte| byte == NEXT as u8 || byte == SAME as u8).unwrap_or(text.len())
}
