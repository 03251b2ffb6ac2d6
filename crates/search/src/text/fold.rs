//! Folds the differences that a search ignores: case, accents, width and compatibility forms.

use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

const CLASSES: CanonicalCombiningClassMapBorrowed<'static> = CanonicalCombiningClassMapBorrowed::new();

/// The folded form of a text.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::new();
    fold_into(text, &mut folded);
    folded
}

/// Writes the folded form of a text over a buffer.
pub(super) fn fold_into(text: &str, folded: &mut String) {
    folded.clear();
    if text.is_ascii() {
        folded.push_str(text);
        folded.make_ascii_lowercase();
        return;
    }
    let decomposed = DecomposingNormalizerBorrowed::new_nfkd().normalize_iter(text.chars());
    let kept = decomposed.flat_map(char::to_lowercase).filter(|character| !is_accent(*character));
    for character in kept {
        match replacement(character) {
            Some(letters) => folded.push_str(letters),
            None => folded.push(character),
        }
    }
    if let std::borrow::Cow::Owned(composed) = ComposingNormalizerBorrowed::new_nfc().normalize(folded) {
        *folded = composed;
    }
}

/// A text in lower case with its accents: the input of stemmers.
pub(crate) fn lower(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    ComposingNormalizerBorrowed::new_nfkc().normalize(text).to_lowercase()
}

/// The folded form of a whole text, by which values are compared and ordered: on one line, with its punctuation.
pub fn fold_value(text: &str) -> String {
    oaimend_record::on_one_line(&fold(text))
}

/// Whether a character belongs to the letter before it: accents, vowel signs and the like.
pub(super) fn is_mark(character: char) -> bool {
    character >= FIRST_MARK && CLASSES.get_u8(character) != 0
}

/// The first character that belongs to the letter before it.
const FIRST_MARK: char = '\u{300}';

/// Whether a mark can be left out. Points of Hebrew and Arabic and the accents above and below letters can; signs that
/// other scripts need to spell a word (classes 7 to 9 and 84 to 132) cannot.
fn is_accent(character: char) -> bool {
    matches!(CLASSES.get_u8(character), 10..=36 | 200..)
}

/// What replaces a letter that Unicode does not decompose.
const fn replacement(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'ł' => "l",
        'ħ' => "h",
        'ı' => "i",
        'þ' => "th",
        'ς' => "σ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_accents_width_and_compatibility_forms_are_folded() {
        for (text, folded) in [
            ("Harbour", "harbour"),
            ("Ärzte über Öl", "arzte uber ol"),
            ("A\u{308}rzte", "arzte"),
            ("STRASSE Straße", "strasse strasse"),
            ("Łódź Øresund Æther", "lodz oresund aether"),
            ("İstanbul ISPARTA ılık", "istanbul isparta ilik"),
            ("ΟΔΟΣ οδός", "οδοσ οδοσ"),
            ("Ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
            ("ｶﾞｷﾞ", "ガギ"),
            ("がぎ", "がぎ"),
            ("한국어", "한국어"),
            ("שָׁלוֹם", "שלום"),
            ("مُحَمَّد", "محمد"),
            ("ที่นี่", "ที่นี่"),
            ("ﬁne №", "fine no"),
        ] {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn folding_again_changes_nothing() {
        for character in (0..=0x2_FFFF).filter_map(char::from_u32) {
            let folded = fold(&character.to_string());
            assert_eq!(fold(&folded), folded, "U+{:04X}", u32::from(character));
        }
    }

    #[test]
    fn no_mark_is_before_the_first_one() {
        assert!(('\0'..FIRST_MARK).all(|character| CLASSES.get_u8(character) == 0));
    }

    #[test]
    fn values_are_on_one_line_with_their_punctuation() {
        assert_eq!(fold_value(" Müller,\n J. "), "muller, j.");
    }
}
