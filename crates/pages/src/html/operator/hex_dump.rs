//! A hexadecimal dump.

use std::fmt::Write as _;

/// Bytes in one line.
const LINE_BYTES: usize = 16;

/// The bytes in lines of an offset, 16 bytes as hexadecimal digits, and the same bytes as ASCII with a dot for all others.
pub(super) fn hex_dump(bytes: &[u8]) -> String {
    let mut dump = String::new();
    for (number, line) in bytes.chunks(LINE_BYTES).enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(dump, "{:08x} ", number * LINE_BYTES);
        for at in 0..LINE_BYTES {
            let _ = match line.get(at) {
                Some(byte) => write!(dump, " {byte:02x}"),
                None => write!(dump, "   "),
            };
        }
        dump.push_str("  ");
        let shown = |&byte: &u8| if byte == b' ' || byte.is_ascii_graphic() { char::from(byte) } else { '.' };
        dump.extend(line.iter().map(shown));
        dump.push('\n');
    }
    dump
}

#[cfg(test)]
mod tests {
    use super::hex_dump;

    #[test]
    fn lines_have_offset_digits_and_text() {
        let expected = "00000000  3c 61 3e 20 e9 00 62 63 64 65 66 67 68 69 6a 6b  <a> ..bcdefghijk\n\
                        00000010  6c                                               l\n";
        assert_eq!(hex_dump(b"<a> \xe9\0bcdefghijkl"), expected);
        assert_eq!(hex_dump(b""), "");
    }
}
