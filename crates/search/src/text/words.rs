//! Divides texts into words.

use super::fold::{fold_into, is_mark, lower};
use std::ops::Range;

/// Longest word, in bytes of its folded form. Of a longer one, its start counts.
const WORD_BYTES_MAX: usize = 64;

/// A unit of a text that a query can find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    /// The folded word, character or pair of characters.
    pub(crate) folded: &'t str,
    /// Its place among the words of the text. A pair has the place of its first character.
    pub(crate) position: u32,
    /// The word as written, where it can have a stem.
    pub(crate) written: Option<&'t str>,
    /// Where its word is in the text, in bytes.
    pub(crate) place: Range<usize>,
}

/// Reads the words of a text in order. It folds each of them into the same buffer.
#[derive(Debug, Default)]
pub(crate) struct TokenReader<'t> {
    text: &'t str,
    run: Run,
    /// The number of positions up to the end of the run.
    positions: u32,
    /// The parts of the run that are not read yet, by their numbers: its characters are even, its pairs are odd.
    parts: Range<usize>,
}

/// A run of letters and digits of one kind.
#[derive(Debug, Default)]
struct Run {
    place: Range<usize>,
    folded: String,
    /// The characters of a script without spaces between words; empty for a word.
    characters: Vec<Character>,
    /// The position of its first token.
    position: u32,
}

/// A character of a folded run.
#[derive(Debug)]
struct Character {
    /// Its place in the folded run.
    folded: Range<usize>,
    /// Its place in the text. If folding has changed the number of characters, the whole run is its place.
    place: Range<usize>,
}

impl<'t> TokenReader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, ..Self::default() }
    }

    /// The next token.
    pub(crate) fn read(&mut self) -> Option<Token<'_>> {
        loop {
            if let Some(part) = self.parts.next() {
                return self.run.part(part);
            }
            self.read_run()?;
            if self.run.characters.is_empty() {
                return Some(self.run.word(self.text));
            }
            // The last character begins no pair.
            self.parts = 0..2 * self.run.characters.len() - 1;
        }
    }

    /// Reads the next run that is not empty after folding.
    fn read_run(&mut self) -> Option<()> {
        loop {
            let (place, is_unspaced_run) = run_after(self.text, self.run.place.end)?;
            self.run.place = place.clone();
            let written = self.text.get(place.clone())?;
            let Run { folded, characters, .. } = &mut self.run;
            characters.clear();
            fold_into(written, folded);
            if is_unspaced_run {
                characters.extend(characters_of(folded, written, &place));
            } else {
                folded.truncate(folded.floor_char_boundary(WORD_BYTES_MAX));
            }
            if !folded.is_empty() {
                self.run.position = self.positions;
                self.positions += self.run.positions();
                return Some(());
            }
        }
    }
}

/// The place of the first run after a place, and whether its script has no spaces between words.
fn run_after(text: &str, place: usize) -> Option<(Range<usize>, bool)> {
    let mut rest = text.get(place..)?.char_indices().skip_while(|(_, character)| !is_of_word(*character));
    let (start, first) = rest.next()?;
    let is_unspaced_run = is_unspaced(first);
    // A mark continues any run.
    let is_of_run = |character: char| {
        (character.is_alphanumeric() && is_unspaced(character) == is_unspaced_run) || is_mark(character)
    };
    let end = rest.find(|(_, character)| !is_of_run(*character)).map_or(text.len(), |(end, _)| place + end);
    Some((place + start..end, is_unspaced_run))
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

impl Run {
    fn positions(&self) -> u32 {
        u32::try_from(self.characters.len().max(1)).unwrap_or(u32::MAX)
    }

    /// The word that this run is.
    fn word<'t>(&'t self, text: &'t str) -> Token<'t> {
        Token {
            folded: &self.folded,
            position: self.position,
            written: text.get(self.place.clone()),
            place: self.place.clone(),
        }
    }

    /// What a text must have to contain this run. Pairs contain their characters.
    fn needed<'t>(&'t self, text: &'t str) -> Vec<Token<'t>> {
        match self.characters.len() {
            0 => vec![self.word(text)],
            1 => self.part(0).into_iter().collect(),
            count => (0..count - 1).filter_map(|index| self.part(2 * index + 1)).collect(),
        }
    }

    /// A character, or a pair of characters.
    fn part(&self, number: usize) -> Option<Token<'_>> {
        let index = number / 2;
        let characters = self.characters.get(index..=index + number % 2)?;
        let (first, last) = (characters.first()?, characters.last()?);
        Some(Token {
            folded: self.folded.get(first.folded.start..last.folded.end)?,
            position: self.position + u32::try_from(index).ok()?,
            written: None,
            place: first.place.start..last.place.end,
        })
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
        let mut words = Self::default();
        let mut reader = TokenReader::new(text);
        while reader.read_run().is_some() {
            for token in reader.run.needed(text) {
                words.stemmable = if words.is_empty() { token.written.map(lower) } else { None };
                words.tokens.push((token.position, token.folded.to_owned()));
            }
        }
        words
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> Vec<(u32, String)> {
        let mut reader = TokenReader::new(text);
        let read = || reader.read().map(|token| (token.position, token.folded.to_owned()));
        std::iter::from_fn(read).collect()
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
        let mut reader = TokenReader::new(text);
        let read = || text.get(reader.read()?.place);
        let places: Vec<&str> = std::iter::from_fn(read).collect();
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
