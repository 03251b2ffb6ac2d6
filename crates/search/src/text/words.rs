//! Divides texts into words.

use super::fold::{fold, is_mark, lower};
use std::ops::Range;

/// Longest word, in bytes of its folded form. Of a longer one, its start counts.
const WORD_BYTES_MAX: usize = 64;

/// A unit of a text that a query can find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    /// The folded word, character or pair of characters.
    pub(crate) folded: String,
    /// Its place among the words of the text. A pair has the place of its first character.
    pub(crate) position: u32,
    /// The word as written, where it can have a stem.
    pub(crate) written: Option<&'t str>,
    /// Where its word is in the text, in bytes.
    pub(crate) place: Range<usize>,
}

/// The words of a text in order.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut position = 0;
    runs(text).flat_map(move |run| {
        let first = position;
        position += run.positions();
        run.into_tokens(first)
    })
}

/// A run of letters and digits of one kind.
struct Run<'t> {
    written: &'t str,
    place: Range<usize>,
    folded: String,
    /// The characters of a script without spaces between words; empty for a word.
    characters: Vec<Character>,
}

/// A character of a folded run.
struct Character {
    /// Its place in the folded run.
    folded: Range<usize>,
    /// Its place in the text. If folding has changed the number of characters, the whole run is its place.
    place: Range<usize>,
}

fn runs(text: &str) -> impl Iterator<Item = Run<'_>> {
    let mut rest = text.char_indices().peekable();
    let places = std::iter::from_fn(move || {
        while rest.next_if(|(_, character)| !is_of_word(*character)).is_some() {}
        let (start, first) = rest.next()?;
        let mut end = start + first.len_utf8();
        let is_unspaced_run = is_unspaced(first);
        // A mark continues any run.
        while let Some((place, character)) = rest.next_if(|(_, character)| {
            is_mark(*character) || (character.is_alphanumeric() && is_unspaced(*character) == is_unspaced_run)
        }) {
            end = place + character.len_utf8();
        }
        Some((start..end, is_unspaced_run))
    });
    places.filter_map(|(place, is_unspaced_run)| {
        let written = text.get(place.clone())?;
        let mut folded = fold(written);
        let mut characters = Vec::new();
        if is_unspaced_run {
            characters = characters_of(&folded, written, &place);
        } else {
            folded.truncate(folded.floor_char_boundary(WORD_BYTES_MAX));
        }
        if folded.is_empty() { None } else { Some(Run { written, place, folded, characters }) }
    })
}

fn characters_of(folded: &str, written: &str, run: &Range<usize>) -> Vec<Character> {
    let places = |text: &str| -> Vec<Range<usize>> {
        text.char_indices().map(|(start, character)| start..start + character.len_utf8()).collect()
    };
    let written = places(written);
    let folded = places(folded);
    let is_one_to_one = written.len() == folded.len();
    let place_of = |index: usize| match written.get(index) {
        Some(place) if is_one_to_one => run.start + place.start..run.start + place.end,
        _ => run.clone(),
    };
    folded
        .into_iter()
        .enumerate()
        .map(|(index, folded)| Character { folded, place: place_of(index) })
        .collect()
}

impl<'t> Run<'t> {
    fn positions(&self) -> u32 {
        u32::try_from(self.characters.len().max(1)).unwrap_or(u32::MAX)
    }

    /// What a query can find in this run.
    fn into_tokens(self, position: u32) -> impl Iterator<Item = Token<'t>> {
        let mut parts = Vec::with_capacity(2 * self.characters.len());
        for (position, index) in (position..).zip(0..self.characters.len()) {
            parts.extend(self.part(index..index + 1, position));
            parts.extend(self.part(index..index + 2, position));
        }
        let Self { written, place, folded, characters } = self;
        let word = Token { folded, position, written: Some(written), place };
        if characters.is_empty() { Some(word) } else { None }.into_iter().chain(parts)
    }

    /// What a text must have to contain this run. Pairs contain their characters.
    fn needed(self, position: u32) -> Vec<Token<'t>> {
        if self.characters.len() < 2 {
            return self.into_tokens(position).collect();
        }
        let positions = (position..).zip(0..self.characters.len());
        positions.filter_map(|(position, index)| self.part(index..index + 2, position)).collect()
    }

    fn part(&self, characters: Range<usize>, position: u32) -> Option<Token<'t>> {
        let characters = self.characters.get(characters)?;
        let (first, last) = (characters.first()?, characters.last()?);
        let folded = self.folded.get(first.folded.start..last.folded.end)?.to_owned();
        Some(Token { folded, position, written: None, place: first.place.start..last.place.end })
    }
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || is_mark(character)
}

/// Whether a letter is of a script that is written without spaces between words, or with spaces that do not separate
/// what people search for (Korean).
const fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{1100}'..='\u{11FF}' | '\u{3005}'..='\u{3007}' | '\u{3031}'..='\u{3035}' | '\u{3041}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{A960}'..='\u{A97F}' | '\u{AC00}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{FF66}'..='\u{FFDC}' | '\u{20000}'..='\u{3FFFF}')
}

/// The words of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueryWords {
    /// The tokens that a text must have, with their places relative to the first one.
    pub(crate) tokens: Vec<(u32, String)>,
    /// The word in lower case with its accents, if it is a single one that can have a stem.
    pub(crate) stemmable: Option<String>,
}

impl QueryWords {
    pub(crate) fn of(text: &str) -> Self {
        let mut needed = Vec::new();
        let mut position = 0;
        for run in runs(text) {
            let first = position;
            position += run.positions();
            needed.extend(run.needed(first));
        }
        let stemmable = match needed.as_slice() {
            [token] => token.written.map(lower),
            _ => None,
        };
        let tokens = needed.into_iter().map(|token| (token.position, token.folded)).collect();
        Self { tokens, stemmable }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> Vec<(u32, String)> {
        tokens(text).map(|token| (token.position, token.folded)).collect()
    }

    fn expected(tokens: &[(u32, &str)]) -> Vec<(u32, String)> {
        tokens.iter().map(|(position, token)| (*position, (*token).to_owned())).collect()
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        assert_eq!(
            folded("L'Été: C++, 10.5555/ab-1"),
            expected(&[(0, "l"), (1, "ete"), (2, "c"), (3, "10"), (4, "5555"), (5, "ab"), (6, "1")])
        );
        assert_eq!(folded(" -- \u{301} "), expected(&[]));
        assert_eq!(folded("हिन्दी"), expected(&[(0, "हिन्दी")]));
    }

    #[test]
    fn texts_without_spaces_are_characters_and_pairs() {
        assert_eq!(
            folded("東京大x学"),
            expected(&[(0, "東"), (0, "東京"), (1, "京"), (1, "京大"), (2, "大"), (3, "x"), (4, "学")])
        );
    }

    #[test]
    fn places_are_those_of_the_written_words() {
        let text = "Über 東京 ﾊﾟｽ";
        let places: Vec<&str> = tokens(text).filter_map(|token| text.get(token.place)).collect();
        assert_eq!(places, ["Über", "東", "東京", "京", "ﾊﾟｽ", "ﾊﾟｽ", "ﾊﾟｽ"]);
    }

    #[test]
    fn queries_need_pairs_instead_of_characters() {
        for (query, needed, stemmable) in [
            ("Häuser", vec![(0, "hauser")], Some("häuser")),
            ("e-mail", vec![(0, "e"), (1, "mail")], None),
            ("東京大 学", vec![(0, "東京"), (1, "京大"), (3, "学")], None),
            ("東", vec![(0, "東")], None),
            ("x東京", vec![(0, "x"), (1, "東京")], None),
            ("!", vec![], None),
        ] {
            let words = QueryWords::of(query);
            assert_eq!((words.tokens, words.stemmable.as_deref()), (expected(&needed), stemmable), "{query}");
        }
    }

    #[test]
    fn long_words_count_with_their_start() {
        let long = "é".repeat(100);
        assert_eq!(folded(&long), expected(&[(0, &"e".repeat(64))]));
    }
}
