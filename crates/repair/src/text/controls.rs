//! Control characters that XML does not allow, and their original characters.
//!
//! The neighbours of some controls show their meaning:
//!
//! - VT and FF separate words, as do FS, GS, RS and US (0x1C to 0x1F) between two visible characters. They
//!   become a space.
//! - Software that cuts UTF-16 down to bytes turns U+2018 into the control 0x18. The same happens to
//!   U+2013, U+2014, U+2019, U+201C and U+201D. Such a control is the mark if both neighbours fit it. A
//!   double quotation mark also needs its partner in the same node, because MARC ends a record with 0x1D. A
//!   dash needs a node without 0x15, because word processors mark fields with 0x13 to 0x15.
//!
//! U+201E and U+201A are not restored: 0x1E ends a field of MARC, and 0x1A replaces characters that could
//! not be converted. Every other control is removed.

use crate::lex::names::numeric_reference;
use crate::lex::search::memchr_iter;

/// The meaning of a control character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// No meaning.
    Noise,
    Space,
    /// A quotation mark or dash that lost its high byte.
    Mark(&'static str),
}

/// The control characters in a node, raw or as references, one bit for each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Controls(u32);

impl Controls {
    pub(crate) fn in_node(node: &[u8]) -> Self {
        // A loop without an early exit becomes vector instructions. Most nodes end here.
        let is_control = |byte: u8| byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
        let has_control = node.iter().fold(false, |found, &byte| found | is_control(byte));
        let has_reference = || memchr_iter(b'&', node).any(|at| node.get(at + 1) == Some(&b'#'));
        if !has_control && !has_reference() {
            return Self::default();
        }
        let mut seen = 0;
        for (at, &byte) in node.iter().enumerate() {
            let code = match byte {
                b'&' => referenced(node.get(at + 1..).unwrap_or_default()),
                _ => Some(u32::from(byte)),
            };
            if let Some(code @ 0..=0x1F) = code {
                seen |= 1 << code;
            }
        }
        Self(seen)
    }

    fn has(self, control: u8) -> bool {
        self.0 >> control & 1 == 1
    }
}

/// The number of the short reference whose `&` is before `body`.
fn referenced(body: &[u8]) -> Option<u32> {
    const LONGEST: usize = "#x001f;".len();
    let body = body.get(..body.len().min(LONGEST))?;
    let end = body.iter().position(|&byte| byte == b';')?;
    numeric_reference(&body.get(..end)?.to_ascii_lowercase()).flatten()
}

/// Decides on the control character `code` between `before` and `after`.
pub(crate) fn read_control(code: u32, before: &[u8], after: &[u8], node: Controls) -> Control {
    let (previous, next) = (before.last().copied(), after.first().copied());
    let between = |fits: fn(Option<u8>) -> bool| fits(previous) && fits(next);
    match code {
        0x0B | 0x0C => Control::Space,
        0x13 | 0x14 if !node.has(0x15) && (between(is_word) || between(is_space)) => {
            Control::Mark(if code == 0x13 { "–" } else { "—" })
        }
        0x18 if node.has(0x19) && may_open(previous) && is_word(next) => Control::Mark("‘"),
        0x19 if is_apostrophe(before, next, node) => Control::Mark("’"),
        0x1C if node.has(0x1D) && may_open(previous) && may_begin(next) => Control::Mark("“"),
        0x1D if node.has(0x1C) && may_end(previous) && may_close(next) => Control::Mark("”"),
        // In a run of controls the first one becomes the space.
        0x1C..=0x1F
            if is_visible(previous) && is_visible(after.iter().copied().find(|&byte| byte > 0x1F)) =>
        {
            Control::Space
        }
        _ => Control::Noise,
    }
}

/// Whether 0x19 is an apostrophe or a closing single quotation mark.
fn is_apostrophe(before: &[u8], next: Option<u8>, node: Controls) -> bool {
    let previous = before.last().copied();
    let is_letter = |byte: Option<u8>| is_word(byte) && !byte.is_some_and(|byte| byte.is_ascii_digit());
    if is_letter(previous) && is_letter(next) {
        return true;
    }
    // For example "the students' work".
    let is_plural = matches!(previous, Some(b's' | b'S')) && before.len() > 1;
    if may_end(previous) && may_close(next) {
        return is_plural || node.has(0x18);
    }
    // For example "the '90s".
    may_open(previous) && next.is_some_and(|byte| byte.is_ascii_digit())
}

/// Whether a byte is a letter, a digit, or part of another character or reference.
fn is_word(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte >= 0x80 || byte == b'&')
}

/// Whether a byte belongs to a visible character, and not to a blank, a tag or the quote of an attribute.
fn is_visible(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte > b' ' && !b"<>\"'".contains(&byte))
}

fn is_space(byte: Option<u8>) -> bool {
    byte.is_some_and(crate::lex::names::is_blank)
}

/// Whether a quotation may begin after this byte.
fn may_open(byte: Option<u8>) -> bool {
    byte.is_none_or(|byte| b" \t\r\n>\"'([-/\x18\x1C;".contains(&byte))
}

/// Whether a quotation may begin with this byte.
fn may_begin(byte: Option<u8>) -> bool {
    is_word(byte) || byte.is_some_and(|byte| b"([.\x18\x19".contains(&byte))
}

/// Whether a quotation may end with this byte.
fn may_end(byte: Option<u8>) -> bool {
    is_word(byte) || byte.is_some_and(|byte| b".,:;!?)]%'\x19".contains(&byte))
}

/// Whether a quotation may end before this byte.
fn may_close(byte: Option<u8>) -> bool {
    byte.is_none_or(|byte| b" \t\r\n<\"'.,:;!?)]-/\x19\x1D&".contains(&byte))
}
