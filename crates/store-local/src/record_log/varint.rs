//! Numbers and texts of variable length, as blocks and rows contain them.

/// Appends a number as LEB128: seven bits a byte, the lowest first, the highest bit set on all bytes but the last.
pub(super) fn put(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Appends the length of a text and its bytes.
pub(super) fn put_text(to: &mut Vec<u8>, text: &str) {
    put_bytes(to, text.as_bytes());
}

/// Appends the number of some bytes, and the bytes.
pub(super) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Reads what [`put`] appended. `None` if it is cut or too large.
pub(super) fn take(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let [byte] = take_array(from)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Reads bytes; `None` if there are fewer.
pub(super) fn take_array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*array)
}

/// Reads what [`put_bytes`] appended.
pub(super) fn take_bytes(from: &mut &[u8]) -> Option<Vec<u8>> {
    let len = usize::try_from(take(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(bytes.to_vec())
}

/// Reads what [`put_text`] appended. `None` if it is not UTF-8.
pub(super) fn take_text(from: &mut &[u8]) -> Option<String> {
    String::from_utf8(take_bytes(from)?).ok()
}
