//! The limits of what is read of a record, each with its unit in its name.

/// Maximum number of elements of a record that are read. Further ones are counted. An article of a large experiment has
/// 3,000 authors, with two or three elements for each in MARCXML.
pub(crate) const FIELDS_MAX: usize = 10_000;
/// Longest text of an element that is kept, in bytes.
pub(crate) const VALUE_BYTES_MAX: usize = 16 << 10;
/// Longest sum of all texts and attributes of a record that is kept, in bytes.
pub(crate) const FIELDS_BYTES_MAX: usize = 512 << 10;
/// Maximum number of elements of a record that becomes a record in another format. A text that is cut would be a wrong claim
/// there, so this limit and the next ones are far above the records of catalogues.
pub(crate) const CONVERTED_FIELDS_MAX: usize = 50_000;
/// Longest text of an element of such a record, in bytes.
pub(crate) const CONVERTED_VALUE_BYTES_MAX: usize = 1 << 20;
/// Longest sum of all texts and attributes of such a record, in bytes.
pub(crate) const CONVERTED_BYTES_MAX: usize = 4 << 20;
/// Maximum number of attributes of an element that are kept.
pub(crate) const ATTRIBUTES_MAX: usize = 32;
/// Longest value of an attribute that is kept, in bytes.
pub(crate) const ATTRIBUTE_BYTES_MAX: usize = 1 << 10;
/// Longest text that becomes a link, in bytes.
pub(crate) const LINK_BYTES_MAX: usize = 2_048;
/// Maximum number of links of a record.
pub(crate) const LINKS_MAX: usize = 50;
/// Maximum number of ISBNs of a work, and of ISSNs.
pub(crate) const NUMBERS_MAX: usize = 50;
/// The start of a text, at most `bytes_max` bytes, and the number of bytes that follow. No character is divided.
pub fn shorten(text: &str, bytes_max: usize) -> (&str, usize) {
    let end = text.floor_char_boundary(bytes_max);
    (text.get(..end).unwrap_or_default(), text.len() - end)
}

/// A number of bytes for people, such as `950 bytes`, `12 kB` or `4.9 MB`.
pub fn shown_size(bytes: usize) -> String {
    const KB: usize = 1_000;
    match bytes {
        1 => "1 byte".to_owned(),
        0..KB => format!("{bytes} bytes"),
        KB..1_000_000 => format!("{} kB", bytes / KB),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_texts_end_at_a_character() {
        for (text, bytes_max, expected) in [
            ("abc", 3, ("abc", 0)),
            ("abc", 2, ("ab", 1)),
            ("aé", 2, ("a", 2)),
            ("é", 1, ("", 2)),
            ("", 0, ("", 0)),
        ] {
            assert_eq!(shorten(text, bytes_max), expected, "{text} {bytes_max}");
        }
    }

    #[test]
    fn sizes_have_a_unit() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1_000, "1 kB"),
            (999_999, "999 kB"),
            (4_950_000, "4.9 MB"),
        ] {
            assert_eq!(shown_size(bytes), shown);
        }
    }
}
