//! Stems of words, by the Snowball algorithms.

use super::fold::{fold, lower};
use frostem::{Algorithm, Stemmer};
use std::collections::HashMap;

/// Longest word that has a stem, in bytes.
const STEMMED_BYTES_MAX: usize = 64;

/// A language with a stemmer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StemLanguage(Algorithm);

impl StemLanguage {
    /// The language of a tag such as `pt-BR`.
    pub(crate) fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next()?;
        let name = match primary {
            // Norwegian is written in two forms, which share a stemmer.
            "nb" | "nn" => "no",
            name => name,
        };
        // The names of the algorithms themselves are no tags.
        if (2..=3).contains(&name.len()) { Algorithm::from_name(name).ok().map(Self) } else { None }
    }

    /// The language with this code, as in [`StemLanguage::code`].
    pub(crate) fn of_code(code: &str) -> Option<Self> {
        Algorithm::from_name(code).ok().map(Self)
    }

    /// The name in the index.
    pub(crate) const fn code(self) -> &'static str {
        self.0.name()
    }

    /// The folded stem of a word in lower case with its accents. `None` if the word is too long for one.
    pub(crate) fn stem(self, word: &str) -> Option<String> {
        if word.len() > STEMMED_BYTES_MAX {
            return None;
        }
        Some(fold(&Stemmer::new(self.0).stem(word)))
    }
}

/// Maximum number of words with known stems, of all languages. A word needs about 100 bytes. Four times as many need 20 MiB
/// while their tables grow, and miss the caches of the processor more often than they save a stemmer.
const KNOWN_MAX: usize = 1 << 14;

/// The stems of words as written. Records have the same words again and again.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownStems {
    languages: Vec<(StemLanguage, StemsOfLanguage)>,
    count: usize,
}

/// By word. `None`: its stem is its folded form, or it has none. Most words are so, and take less memory then.
type StemsOfLanguage = HashMap<Box<str>, Option<Box<str>>>;

impl KnownStems {
    /// Reads the folded stem of a word as written: `None` if that is the folded word, or if the word is too long for one.
    pub(crate) fn read<T>(
        &mut self,
        language: StemLanguage,
        word: &str,
        folded: &str,
        read: impl FnOnce(Option<&str>) -> T,
    ) -> T {
        if word.len() > STEMMED_BYTES_MAX {
            // In lower case it may be short enough. Such words are rare, and long ones would take much memory.
            return read(language.stem(&lower(word)).filter(|stem| stem != folded).as_deref());
        }
        if self.count >= KNOWN_MAX {
            // Their tables keep their size.
            self.languages.iter_mut().for_each(|(_, known)| known.clear());
            self.count = 0;
        }
        let known = self.languages.iter().position(|(known, _)| *known == language).unwrap_or_else(|| {
            self.languages.push((language, StemsOfLanguage::default()));
            self.languages.len() - 1
        });
        let Some((_, known)) = self.languages.get_mut(known) else { return read(None) };
        if let Some(stem) = known.get(word) {
            return read(stem.as_deref());
        }
        let stem = language.stem(&lower(word)).filter(|stem| stem != folded).map(String::into_boxed_str);
        self.count += 1;
        read(known.entry(word.into()).or_insert(stem).as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stem(tag: &str, word: &str) -> Option<String> {
        StemLanguage::of_tag(tag)?.stem(word)
    }

    #[test]
    fn words_have_the_stem_of_their_language() {
        for (tag, word, expected) in [
            ("en", "harbours", Some("harbour")),
            ("de", "häuser", Some("haus")),
            ("de-AT", "hauses", Some("haus")),
            ("nb", "husene", Some("hus")),
            ("fr", "chevaux", Some("cheval")),
            ("ja", "harbours", None),
            ("porter", "harbours", None),
        ] {
            assert_eq!(stem(tag, word).as_deref(), expected, "{tag} {word}");
        }
        assert_eq!(stem("en", &"a".repeat(65)), None);
    }

    #[test]
    fn known_stems_are_bounded_and_those_of_the_stemmer() {
        let english = StemLanguage::of_tag("en").expect("a language with a stemmer");
        let mut known = KnownStems::default();
        let mut other_stem =
            |word: &str| known.read(english, word, &fold(word), |stem| stem.map(str::to_owned));
        for number in 0..2 * KNOWN_MAX {
            other_stem(&number.to_string());
        }
        for _ in 0..2 {
            assert_eq!(other_stem("Harbours").as_deref(), Some("harbour"));
            assert_eq!(other_stem("Harbour"), None);
            assert_eq!(other_stem(&"s".repeat(65)), None);
        }
        let bytes = |known: &KnownStems| -> usize {
            known.languages.iter().flat_map(|(_, known)| known.keys()).map(|word| word.len()).sum()
        };
        let before = bytes(&known);
        assert_eq!(known.read(english, &"s".repeat(10_000), "", |stem| stem.map(str::to_owned)), None);
        assert_eq!(bytes(&known), before, "a long word is not kept");
        let words: usize = known.languages.iter().map(|(_, known)| known.len()).sum();
        assert!(words == known.count && words <= KNOWN_MAX, "{words} words, {} counted", known.count);
    }

    #[test]
    fn codes_name_their_language() {
        for algorithm in Algorithm::all() {
            let language = StemLanguage(*algorithm);
            assert_eq!(StemLanguage::of_code(language.code()), Some(language));
        }
    }
}
