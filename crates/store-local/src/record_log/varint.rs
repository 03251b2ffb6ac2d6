//! Numbers and texts of variable length, as blocks and rows contain them.

/// Appends a number as LEB128: seven bits a byte, the lowest first, the highest bit set on all bytes but the last.
pub(super) fn put(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Appends the difference of a number to the one before it, which it replaces: a varint of a zigzag number.
pub(super) fn put_difference(to: &mut Vec<u8>, before: &mut i64, value: i64) {
    let difference = value.wrapping_sub(*before);
    *before = value;
    put(to, (difference << 1 ^ difference >> 63).cast_unsigned());
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

/// Reads what [`put_difference`] appended.
pub(super) fn take_difference(from: &mut &[u8], value: &mut i64) -> Option<()> {
    let zigzag = take(from)?;
    let difference = (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
    *value = value.wrapping_add(difference);
    Some(())
}

/// Reads bytes; `None` if there are fewer.
pub(super) fn take_array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*array)
}

/// Reads what [`put_bytes`] appended.
pub(super) fn take_bytes(from: &mut &[u8]) -> Option<Vec<u8>> {
    take_slice(from).map(<[u8]>::to_vec)
}

fn take_slice<'f>(from: &mut &'f [u8]) -> Option<&'f [u8]> {
    let len = usize::try_from(take(from)?).ok()?;
    let (bytes, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(bytes)
}

/// Reads what [`put_text`] appended. `None` if it is not UTF-8.
pub(super) fn take_text(from: &mut &[u8]) -> Option<String> {
    take_str(from).map(str::to_owned)
}

/// The same without a copy.
pub(super) fn take_str<'f>(from: &mut &'f [u8]) -> Option<&'f str> {
    std::str::from_utf8(take_slice(from)?).ok()
}
