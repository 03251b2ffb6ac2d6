//! Finds the words of a query in a text, for the pages that show it.

use super::{KnownStems, QueryWords, StemLanguage, TokenReader};
use crate::query::{FieldName, Query};
use std::ops::{ControlFlow, Range};

/// Longest snippet, in characters.
const SNIPPET_CHARS_MAX: usize = 300;
/// The number of characters of a snippet before its first word of the query.
const CHARS_BEFORE: usize = 60;

/// The words of a query that pages highlight. Excluded words are not among them.
#[derive(Clone, Debug, Default)]
pub struct Highlighter {
    words: Vec<Highlighted>,
    /// Stems of the shown texts.
    stems: KnownStems,
}

#[derive(Clone, Debug)]
struct Highlighted {
    field: Option<FieldName>,
    words: QueryWords,
    is_start: bool,
}

/// A part of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The text, at most 300 characters.
    pub text: String,
    /// The places of the words of the query in it, in bytes.
    pub places: Vec<Range<usize>>,
    /// Whether the text begins before the snippet.
    pub is_cut_before: bool,
    /// Whether the text continues after the snippet.
    pub is_cut_after: bool,
}

impl Highlighter {
    /// The words of a query.
    pub fn of(query: &Query) -> Self {
        let mut highlighter = Self::default();
        highlighter.add(query);
        highlighter
    }

    fn add(&mut self, query: &Query) {
        let (field, text, is_start, can_stem) = match query {
            Query::Word { field, word } => (field, word, false, true),
            Query::Phrase { field, words } => (field, words, false, false),
            Query::Prefix { field, start } => (field, start, true, false),
            Query::Boolean { required, optional, .. } => {
                required.iter().chain(optional).for_each(|query| self.add(query));
                return;
            }
            _ => return,
        };
        let mut words = QueryWords::of(text);
        if !can_stem {
            words.stemmable = None;
        }
        if !words.is_empty() {
            self.words.push(Highlighted { field: field.clone(), words, is_start });
        }
    }

    /// The places of the words in a text of a field, in bytes, in order and apart from each other. `language` is the tag
    /// of its language, or of its record.
    pub fn places(&mut self, field: &str, text: &str, language: Option<&str>) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        self.find(field, text, language, |place| {
            add(place, &mut places);
            ControlFlow::Continue(())
        });
        places
    }

    /// The part of a text that shows the words, from the first one on; the start of the text if it has none.
    pub fn snippet(&mut self, field: &str, text: &str, language: Option<&str>) -> Snippet {
        let mut places = Vec::new();
        let mut shown = shown_part(text, 0);
        self.find(field, text, language, |place| {
            if places.is_empty() {
                shown = shown_part(text, place.start);
            }
            if place.start >= shown.end {
                return ControlFlow::Break(());
            }
            add(place, &mut places);
            ControlFlow::Continue(())
        });
        let Range { start, end } = shown;
        let places = places.into_iter().filter(|place| place.start >= start && place.end <= end);
        Snippet {
            text: text.get(start..end).unwrap_or_default().to_owned(),
            places: places.map(|place| place.start - start..place.end - start).collect(),
            is_cut_before: start > 0,
            is_cut_after: end < text.len(),
        }
    }

    /// Visits the places of the words in order, until `visit` breaks. They can overlap.
    fn find(
        &mut self,
        field: &str,
        text: &str,
        language: Option<&str>,
        mut visit: impl FnMut(Range<usize>) -> ControlFlow<()>,
    ) {
        let Self { words, stems } = self;
        let words = words.iter().filter(|word| word.field.as_ref().is_none_or(|name| name.0 == field));
        let words: Vec<&Highlighted> = words.collect();
        if words.is_empty() {
            return;
        }
        let language = language.and_then(StemLanguage::of_tag);
        let stem_of = |word: &Highlighted| language?.stem(word.words.stemmable.as_deref()?);
        let stems_of_words: Vec<String> = words.iter().copied().filter_map(stem_of).collect();
        let tokens = ShownToken::all(text);
        for (index, token) in tokens.iter().enumerate() {
            // The stem of each word of a long text costs more than everything else here.
            if !stems_of_words.is_empty()
                && let Some((language, written)) = language.zip(token.written)
            {
                let is_found = stems.read(language, written, &token.folded, |stem| {
                    let stem = stem.unwrap_or(&token.folded);
                    stems_of_words.iter().any(|known| known == stem)
                });
                if is_found && visit(token.place.clone()).is_break() {
                    return;
                }
            }
            for end in words.iter().filter_map(|word| word.end_at(tokens.get(index..)?)) {
                if visit(token.place.start..end).is_break() {
                    return;
                }
            }
        }
    }
}

/// The part of a text that is shown if its first word of the query begins at this place.
fn shown_part(text: &str, word_start: usize) -> Range<usize> {
    if text.char_indices().nth(SNIPPET_CHARS_MAX).is_none() {
        return 0..text.len();
    }
    let chars_before = text.get(..word_start).unwrap_or_default().char_indices().rev();
    let mut start = chars_before.take(CHARS_BEFORE).last().map_or(word_start, |(place, _)| place);
    if start > 0 {
        // The snippet begins with a whole word.
        let between = text.get(start..word_start).unwrap_or_default();
        let blank = between.char_indices().find(|(_, char)| char.is_whitespace());
        start += blank.map_or(0, |(place, blank)| place + blank.len_utf8());
    }
    let rest = text.get(start..).unwrap_or_default();
    let length = rest.char_indices().nth(SNIPPET_CHARS_MAX).map_or(rest.len(), |(place, _)| place);
    start..start + length
}

/// A token of a text.
struct ShownToken<'t> {
    folded: String,
    position: u32,
    /// The word as written, where it can have a stem.
    written: Option<&'t str>,
    place: Range<usize>,
}

impl<'t> ShownToken<'t> {
    fn all(text: &'t str) -> Vec<Self> {
        let mut reader = TokenReader::new(text);
        let read = || {
            let token = reader.read()?;
            let written = if token.written.is_some() { text.get(token.place.clone()) } else { None };
            Some(Self {
                folded: token.folded.to_owned(),
                position: token.position,
                written,
                place: token.place,
            })
        };
        std::iter::from_fn(read).collect()
    }
}

/// Adds a place after the others, or to the last one if they overlap.
fn add(place: Range<usize>, places: &mut Vec<Range<usize>>) {
    match places.last_mut() {
        Some(last) if place.start < last.end => last.end = last.end.max(place.end),
        _ => places.push(place),
    }
}

impl Highlighted {
    /// The end of the words, if these tokens begin with them.
    fn end_at(&self, tokens: &[ShownToken<'_>]) -> Option<usize> {
        let first = tokens.first()?.position;
        let mut end = 0;
        for (index, (position, word)) in self.words.tokens.iter().enumerate() {
            let is_last = index + 1 == self.words.tokens.len();
            // A character and a pair have one position.
            let mut at_position =
                tokens.iter().take(2 * index + 2).filter(|token| token.position == first + position);
            let found = at_position.find(|token| {
                token.folded == *word || (self.is_start && is_last && token.folded.starts_with(word.as_str()))
            });
            end = end.max(found?.place.end);
        }
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{QueryLanguage, parse};

    fn highlighter(query: &str) -> Highlighter {
        Highlighter::of(&parse(QueryLanguage::Odl, query).expect("a query"))
    }

    fn shown<'t>(query: &str, text: &'t str) -> Vec<&'t str> {
        let places = highlighter(query).places("title", text, Some("en"));
        places.into_iter().filter_map(|place| text.get(place)).collect()
    }

    #[test]
    fn words_stems_and_phrases_are_found_at_their_places() {
        for (query, text, expected) in [
            ("river", "Rivers and RIVER-banks", vec!["Rivers", "RIVER"]),
            ("hauser", "Die Häuser", vec!["Häuser"]),
            ("\"of the\" sea", "Songs of the Sea, of a", vec!["of the", "Sea"]),
            ("title:songs creator:sea", "Songs of the sea", vec!["Songs"]),
            ("-songs sea", "Songs of the sea", vec!["sea"]),
            ("京大学", "東京大学の", vec!["京大学"]),
            ("\"a a\"", "a a a", vec!["a a a"]),
            ("x", "none", vec![]),
        ] {
            assert_eq!(shown(query, text), expected, "{query}");
        }
    }

    #[test]
    fn snippets_begin_near_the_first_word() {
        let text = format!("{}river {}", "before ".repeat(50), "after ".repeat(100));
        let snippet = highlighter("river").snippet("title", &text, None);
        assert_eq!(
            (snippet.text.chars().count(), snippet.is_cut_before, snippet.is_cut_after),
            (300, true, true)
        );
        assert!(snippet.text.starts_with("before before"), "{}", snippet.text);
        let places: Vec<&str> =
            snippet.places.iter().filter_map(|place| snippet.text.get(place.clone())).collect();
        assert_eq!(places, ["river"]);
        let wide = format!("{}river {}", "before\u{3000}".repeat(50), "after ".repeat(100));
        let snippet = highlighter("river").snippet("title", &wide, None);
        assert!(snippet.text.starts_with("before\u{3000}before"), "{}", snippet.text);
        let fitting = format!("{}river", "before ".repeat(42));
        let snippet = highlighter("river").snippet("title", &fitting, None);
        assert_eq!((snippet.text.as_str(), snippet.is_cut_before), (fitting.as_str(), false));
        let short = highlighter("sea").snippet("title", "A title", None);
        let whole = Snippet { text: "A title".into(), ..Snippet::default() };
        assert_eq!(short, whole);
    }
}
