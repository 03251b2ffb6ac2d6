//! Characters that the end of a node cuts.
//!
//! Some providers cut text after a number of bytes. If the cut is inside a multi-byte character, the first
//! bytes of the character are the last bytes of the node. Each of them is a letter in windows-1252 too.
//! These rules decide:
//!
//! 1. A node with whole multi-byte characters is UTF-8. The incomplete character at its end is cut in three
//!    cases: it has at least two bytes, another character of the node begins with the same byte, or the
//!    last letter before it is not Latin.
//! 2. A node with other bytes that are not UTF-8, and without whole multi-byte characters, is windows-1252
//!    to its end.
//! 3. Otherwise the context decides. `é` after `caf` is plausible. A capital after a small letter, a lone
//!    capital and `â` are not. Only closing punctuation may follow the letter.

use crate::lex::names::trailing_blanks;
use crate::text::bytes::{NodeEncoding, Utf8Sequence, classify};

/// The start of the character that the end of `node` cuts. `None` if there is none, or if its bytes are
/// plausible as windows-1252.
pub(crate) fn cut_character(node: &[u8], encoding: NodeEncoding) -> Option<usize> {
    let node = node.get(..node.len() - trailing_blanks(node))?;
    let node = node.strip_suffix(b"...").unwrap_or(node);
    let continued = node.iter().rev().take(3).take_while(|&byte| byte & 0xC0 == 0x80).count();
    let at = node.len().checked_sub(continued + 1)?;
    let (before, rest) = node.split_at_checked(at)?;
    let (&lead, tail) = rest.split_first()?;
    let is_cut = match classify(rest) {
        (Utf8Sequence::Cut, width) => width == rest.len(),
        (Utf8Sequence::Lone, _) => tail.is_empty() && matches!(lead, 0xC2..=0xF4),
        _ => false,
    };
    if !is_cut {
        return None;
    }
    let previous = before.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty());
    let previous = previous.map_or("", |chunk| chunk.valid());
    let is_plausible = match encoding {
        NodeEncoding::Valid => return None,
        NodeEncoding::EightBit if !before.is_ascii() => true,
        NodeEncoding::Utf8
            if !tail.is_empty() || begins_another(before, lead) || !follows_latin(previous) =>
        {
            false
        }
        NodeEncoding::Utf8 | NodeEncoding::EightBit => {
            ends_a_word(previous, lead) && tail.iter().all(|&byte| closes(byte))
        }
    };
    (!is_plausible).then_some(at)
}

/// Whether a whole character begins with `lead`.
fn begins_another(text: &[u8], lead: u8) -> bool {
    crate::lex::search::memchr_iter(lead, text)
        .any(|at| matches!(classify(text.get(at..).unwrap_or_default()), (Utf8Sequence::Valid, _)))
}

/// Whether the last letter of `text` is Latin. True also if there is no letter.
fn follows_latin(text: &str) -> bool {
    let letter = text.chars().rev().find(|c| c.is_alphabetic());
    letter.is_none_or(|c| matches!(c, '\0'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}'))
}

/// Whether the windows-1252 letter is plausible after `previous`, as the last letter of a word.
fn ends_a_word(previous: &str, letter: u8) -> bool {
    let last = previous.chars().next_back();
    let last_is = |is: fn(char) -> bool| last.is_some_and(is);
    match letter {
        // ß
        0xDF => last_is(char::is_lowercase),
        // × and ð follow no complete word. No language in windows-1252 has words that end with â.
        0xD7 | 0xE2 => false,
        0xF0 => last_is(char::is_alphabetic),
        // Å is also a unit.
        0xC5 if previous.trim_end().ends_with(|c: char| c.is_ascii_digit()) => true,
        0xC0..=0xDE => last.is_none() || last_is(char::is_uppercase),
        _ => true,
    }
}

/// Whether a windows-1252 byte is punctuation that follows a word: a closing quotation mark, a dash, an
/// ellipsis or a no-break space.
fn closes(byte: u8) -> bool {
    matches!(byte, 0x85 | 0x92 | 0x94 | 0x96 | 0x97 | 0xA0 | 0xBB)
}

#[cfg(test)]
mod tests {
    use super::{NodeEncoding, cut_character};

    fn cut(node: &[u8]) -> Option<usize> {
        cut_character(node, NodeEncoding::detect(node))
    }

    #[test]
    fn a_letter_that_can_end_a_word_is_windows_1252() {
        for node in [
            &b"caf\xe9"[..],
            b"citt\xe0",
            b"CAF\xc9",
            b"Gru\xdf",
            b"5 \xc5",
            b"\xe9",
            b"Universit\xe9 de Montr\xe9al \xe0",
            b"\x93caf\xe9\x94",
            b"le caf\xe9\xbb",
            b"M\xc3\xbcller, caf\xe9",
            b"borgarafundur um fr\xe6\xf0",
        ] {
            assert_eq!(cut(node), None, "{}", node.escape_ascii());
        }
    }

    #[test]
    fn a_character_that_can_end_no_word_is_cut() {
        for (node, at) in [
            (&b"Mills\xc3"[..], 5),
            (b"Mills\xc3\n  ", 5),
            (b"Mills\xc3...", 5),
            (b"quoted \xe2\x80", 7),
            (b"don\xe2", 3),
            (b"\xd0\x9c\xd0\xb8\xd1\x80 \xd0", 7),
            (b"M\xc3\xbcller, J\xc3", 10),
            (b"smile \xf0\x9f\x98", 6),
        ] {
            let expected = (at < node.len()).then_some(at);
            assert_eq!(cut(node), expected, "{}", node.escape_ascii());
        }
    }
}
