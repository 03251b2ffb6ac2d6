//! References: what an `&` in text means.

use super::super::catalogue::RepairId;
use super::super::entities::html_entity;
use super::super::name::{REFERENCE_BYTES_MAX, Reference, is_legal_char, numeric_reference, reference};
use super::bytes::REPLACEMENT;
use super::{Entities, escape};

/// An `&` in text: how many bytes it is about, and what they become.
pub(super) fn mend_reference(rest: &[u8], entities: &Entities) -> (usize, Option<RepairId>, Vec<u8>) {
    if let Reference::Legal(len) = reference(rest) {
        return (len, None, Vec::new());
    }
    let bare = (1, Some(RepairId::BareAmpersand), b"&amp;".to_vec());
    let window = rest.get(1..rest.len().min(REFERENCE_BYTES_MAX)).unwrap_or_default();
    if window.first() == Some(&b'#') {
        return mend_numeric(rest, window).unwrap_or(bare);
    }
    let len = window
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-' | b'.'))
        .unwrap_or(0);
    let name = window.get(..len).unwrap_or_default();
    if len == 0 || window.get(len) != Some(&b';') {
        return bare;
    }
    if let Some((_, value)) = entities.iter().find(|(known, _)| known == name) {
        return (len + 2, Some(RepairId::Doctype), value.clone());
    }
    match html_entity(name) {
        Some(text) => (len + 2, Some(RepairId::UndefinedEntity), escape(text.as_bytes())),
        None => (1, Some(RepairId::UndefinedEntity), b"&amp;".to_vec()),
    }
}

/// `&#...`: illegal, unterminated or of the wrong case; `None` when it is no reference.
fn mend_numeric(rest: &[u8], window: &[u8]) -> Option<(usize, Option<RepairId>, Vec<u8>)> {
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
        let mut mended = b"&".to_vec();
        // The digits stay as they were typed; only XML's small x is demanded.
        let typed = window.get(radix_len..len).unwrap_or_default();
        mended.extend_from_slice(if hex { b"#x" } else { b"#" });
        mended.extend_from_slice(typed);
        mended.push(b';');
        let id = if terminated { RepairId::UndefinedEntity } else { RepairId::UnterminatedReference };
        return Some((total, Some(id), mended));
    }
    let Some(code) = code.filter(|&code| code < 0x11_0000) else {
        return Some((total, Some(RepairId::IllegalReference), REPLACEMENT.to_vec()));
    };
    if (0xD800..0xE000).contains(&code) {
        return Some(mend_surrogate(rest, total, code));
    }
    let replacement: &[u8] = if matches!(code, 0x0B | 0x0C) { b" " } else { b"" };
    Some((total, Some(RepairId::IllegalReference), replacement.to_vec()))
}

fn mend_surrogate(rest: &[u8], len: usize, high: u32) -> (usize, Option<RepairId>, Vec<u8>) {
    let id = Some(RepairId::SurrogateReference);
    let next = rest.get(len..).unwrap_or_default();
    let next_len = next.iter().take(REFERENCE_BYTES_MAX).position(|&byte| byte == b';');
    let low = next_len
        .and_then(|end| next.get(1..end))
        .filter(|_| next.first() == Some(&b'&'))
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
