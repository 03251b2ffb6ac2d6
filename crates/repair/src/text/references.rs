//! The meaning of an `&` in text.
//!
//! The pass over characters uses it for text nodes and attribute values.

use crate::catalog::RepairId;
use crate::lex::entities::html_entity;
use crate::lex::names::{
    REFERENCE_BYTES_MAX, Reference, is_blank, is_legal_char, numeric_reference, reference,
};
use crate::text::bytes::{REPLACEMENT, c1_character};
use crate::text::controls::{Control, Controls, read_control};
use crate::text::escape::escape;

/// Decides on an `&` in text: its length in bytes, the repair and the replacement. `before` is the text
/// before it. `declared` returns the text of an entity that a document type declaration defines.
pub(crate) fn repair_reference(
    before: &[u8],
    rest: &[u8],
    declared: impl Fn(&[u8]) -> Option<Vec<u8>>,
    controls: Controls,
) -> (usize, Option<RepairId>, Vec<u8>) {
    if let Reference::Legal(len) = reference(rest) {
        return (len, None, Vec::new());
    }
    let bare = (1, Some(RepairId::BareAmpersand), b"&amp;".to_vec());
    let window = rest.get(1..rest.len().min(REFERENCE_BYTES_MAX)).unwrap_or_default();
    if window.first() == Some(&b'#') {
        return repair_numeric(before, rest, window, controls).unwrap_or(bare);
    }
    let len = window
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'.'))
        .unwrap_or(0);
    let name = window.get(..len).unwrap_or_default();
    if len == 0 || window.get(len) != Some(&b';') {
        return repair_name(before, window).unwrap_or(bare);
    }
    if let Some(text) = declared(name) {
        return (len + 2, Some(RepairId::Doctype), text);
    }
    match html_entity(name) {
        Some(text) => (len + 2, Some(RepairId::UndefinedEntity), escape(text.as_bytes())),
        None => (1, Some(RepairId::UndefinedEntity), b"&amp;".to_vec()),
    }
}

/// Decides on `&#...` that is illegal, unterminated or in the wrong case. `None` if it is not a reference.
fn repair_numeric(
    before: &[u8],
    rest: &[u8],
    window: &[u8],
    controls: Controls,
) -> Option<(usize, Option<RepairId>, Vec<u8>)> {
    let (radix_len, hex) = match window.get(1) {
        Some(b'x' | b'X') => (2, true),
        _ => (1, false),
    };
    let digits = window
        .iter()
        .skip(radix_len)
        .take_while(|byte| if hex { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() });
    let len = radix_len + digits.count();
    if len == radix_len {
        return None;
    }
    let body = window.get(..len)?.to_ascii_lowercase();
    let code = numeric_reference(&body)?;
    let terminated = window.get(len) == Some(&b';');
    let total = 1 + len + usize::from(terminated);
    if let Some(code) = code.filter(|&code| is_legal_char(code)) {
        let _ = code;
        let mut repaired = b"&".to_vec();
        // The digits stay as typed. XML requires only the small x.
        let typed = window.get(radix_len..len).unwrap_or_default();
        repaired.extend_from_slice(if hex { b"#x" } else { b"#" });
        repaired.extend_from_slice(typed);
        repaired.push(b';');
        let id = if terminated { RepairId::UndefinedEntity } else { RepairId::UnterminatedReference };
        return Some((total, Some(id), repaired));
    }
    let Some(code) = code.filter(|&code| code < 0x11_0000) else {
        return Some((total, Some(RepairId::IllegalReference), REPLACEMENT.to_vec()));
    };
    if (0xD800..0xE000).contains(&code) {
        return Some(repair_surrogate(rest, total, code));
    }
    let after = rest.get(total..).unwrap_or_default();
    let (id, replacement) = match read_control(code, before, after, controls) {
        Control::Noise => (RepairId::IllegalReference, ""),
        Control::Space => (RepairId::IllegalReference, " "),
        Control::Mark(mark) => (RepairId::LostHighByte, mark),
    };
    Some((total, Some(id), replacement.into()))
}

/// The length of a reference to a C1 control, and the windows-1252 character that was meant.
pub(crate) fn c1_reference(rest: &[u8]) -> Option<(usize, String)> {
    let Reference::Legal(len) = reference(rest) else { return None };
    let code = numeric_reference(rest.get(1..len - 1)?)?.and_then(char::from_u32)?;
    let mut buffer = [0; 4];
    Some((len, c1_character(code.encode_utf8(&mut buffer).as_bytes())?))
}

/// Decides on `&name` without a semicolon. It is a reference in these cases:
///
/// - HTML knows the name without a semicolon, and neither a letter or digit nor `=` or `_` follows.
/// - It is the name of an accented letter inside a word, such as `g&eacuten&eacuterale`.
/// - It is another name of HTML 4 that is not a word, before white space or at the end of the text.
///
/// In the query of a URL an ampersand stays an ampersand.
fn repair_name(before: &[u8], window: &[u8]) -> Option<(usize, Option<RepairId>, Vec<u8>)> {
    let len = window.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(window.len());
    let (name, after) = window.split_at_checked(len)?;
    let next = after.first().copied();
    let meant = match next {
        Some(b'=' | b'_') => None,
        _ if is_short(name) => Some(name),
        _ if next.is_none_or(is_blank) && is_long(name) => Some(name),
        _ => accented(name),
    }?;
    if in_query(before) {
        return None;
    }
    let text = html_entity(meant)?.as_bytes();
    Some((1 + meant.len(), Some(RepairId::UnterminatedReference), escape(text)))
}

/// Whether the text ends in the query of a URL, or in a similar text.
fn in_query(before: &[u8]) -> bool {
    const WORD_BYTES: usize = 256;
    let near = before.get(before.len().saturating_sub(WORD_BYTES)..).unwrap_or_default();
    let start =
        near.iter().rposition(|&byte| is_blank(byte) || b"<>\"'".contains(&byte)).map_or(0, |at| at + 1);
    let word = near.get(start..).unwrap_or_default();
    let is_question = |pair: &[u8]| matches!(*pair, [b'?', byte] if byte.is_ascii_alphanumeric());
    word.contains(&b'=')
        || word.windows(2).any(is_question)
        || crate::lex::search::memmem::find(word, b"://").is_some()
}

/// The name of an accented letter that `run` begins with. At least one more letter must follow it.
fn accented(run: &[u8]) -> Option<&[u8]> {
    const MARKS: [&[u8]; 7] = [b"acute", b"grave", b"circ", b"uml", b"tilde", b"cedil", b"slash"];
    let mark = MARKS.into_iter().find(|mark| run.get(1..).is_some_and(|rest| rest.starts_with(mark)))?;
    let (name, more) = run.split_at_checked(1 + mark.len())?;
    (more.first()?.is_ascii_alphabetic() && is_short(name)).then_some(name)
}

/// Names that HTML knows without a semicolon (HTML standard, section 13.5).
fn is_short(name: &[u8]) -> bool {
    const NAMES: &str = "AElig AMP Aacute Acirc Agrave Aring Atilde Auml COPY Ccedil ETH Eacute Ecirc Egrave Euml GT \
        Iacute Icirc Igrave Iuml LT Ntilde Oacute Ocirc Ograve Oslash Otilde Ouml QUOT REG THORN Uacute Ucirc Ugrave \
        Uuml Yacute aacute acirc acute aelig agrave amp aring atilde auml brvbar ccedil cedil cent copy curren deg \
        divide eacute ecirc egrave eth euml frac12 frac14 frac34 gt iacute icirc iexcl igrave iquest iuml laquo lt \
        macr micro middot nbsp not ntilde oacute ocirc ograve ordf ordm oslash otilde ouml para plusmn pound quot \
        raquo reg sect shy sup1 sup2 sup3 szlig thorn times uacute ucirc ugrave uml uuml yacute yen yuml";
    NAMES.split_ascii_whitespace().any(|known| known.as_bytes() == name)
}

/// The other names of HTML 4, except words and names of URL arguments.
fn is_long(name: &[u8]) -> bool {
    const NAMES: &str = "Alpha Beta Dagger Delta Epsilon Gamma Kappa Lambda OElig Omega Omicron Scaron Sigma Theta \
        Upsilon Yuml alpha asymp bdquo beta bull dagger delta emsp ensp epsilon equiv euro fnof gamma hellip infin \
        kappa lambda larr ldquo lsaquo lsquo mdash minus nabla ndash oelig omega omicron oplus otimes permil rarr \
        rdquo rsaquo rsquo sbquo scaron sigma sigmaf theta thinsp tilde trade uarr upsilon zwj zwnj";
    NAMES.split_ascii_whitespace().any(|known| known.as_bytes() == name)
}

fn repair_surrogate(rest: &[u8], len: usize, high: u32) -> (usize, Option<RepairId>, Vec<u8>) {
    let id = Some(RepairId::SurrogateReference);
    let next = rest.get(len..).unwrap_or_default();
    let next_len = next.iter().take(REFERENCE_BYTES_MAX).position(|&byte| byte == b';');
    let low = next_len
        .and_then(|end| next.strip_prefix(b"&")?.get(..end - 1))
        .and_then(|body| numeric_reference(&body.to_ascii_lowercase()).flatten())
        .and_then(|low| u16::try_from(low).ok());
    let pair = low
        .zip(u16::try_from(high).ok())
        .and_then(|(low, high)| char::decode_utf16([high, low]).next()?.ok());
    match (pair, next_len) {
        (Some(c), Some(end)) => (len + end + 1, id, c.to_string().into_bytes()),
        _ => (len, id, REPLACEMENT.to_vec()),
    }
}
