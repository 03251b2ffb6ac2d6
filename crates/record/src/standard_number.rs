//! ISBN and ISSN.

/// The ISBN that a text is, as digits without hyphens: `ISBN 978-3-16-148410-0`, `urn:isbn:…`, or the number alone. Its
/// checksum must be right.
pub fn read_isbn(text: &str) -> Option<String> {
    let number = without_label(text, "isbn");
    let mut marks = number.chars().skip_while(|mark| is_separator(*mark));
    if !marks.next().is_some_and(|first| first.is_ascii_digit()) {
        return None;
    }
    let digits: String = number.chars().filter(|mark| !is_separator(*mark)).take(14).collect();
    let digits = digits.to_ascii_uppercase();
    let is_valid = match digits.len() {
        13 => {
            let is_book = digits.starts_with("978") || digits.starts_with("979");
            is_book && weighted(&digits, |place| if place % 2 == 0 { 1 } else { 3 })? % 10 == 0
        }
        10 => weighted(&digits, |place| 10 - place)? % 11 == 0,
        _ => false,
    };
    // Ten digits alone can be any number.
    let is_certain = digits.len() == 13 || number.len() < text.trim().len() || number.contains('-');
    (is_valid && is_certain).then_some(digits)
}

/// Whether a character separates the groups of an ISBN.
const fn is_separator(mark: char) -> bool {
    matches!(mark, '-' | ' ' | '\u{2010}')
}

/// The ISSN that a text is, such as `1234-5679`: `ISSN 1234-5679`, `urn:issn:…`, or the number alone. Its checksum must
/// be right.
pub(crate) fn read_issn(text: &str) -> Option<String> {
    let number = without_label(text, "issn");
    let (first, last) = number.split_once('-')?;
    let digits = format!("{first}{last}").to_ascii_uppercase();
    let is_valid = first.len() == 4 && digits.len() == 8 && weighted(&digits, |place| 8 - place)? % 11 == 0;
    is_valid.then(|| format!("{first}-{}", last.to_ascii_uppercase()))
}

/// A text without `isbn:`, `urn:ISBN:`, `ISBN-13 (print)` and the like before its number.
fn without_label<'t>(text: &'t str, label: &str) -> &'t str {
    let text = text.trim();
    let start = text.get(..4).filter(|start| start.eq_ignore_ascii_case("urn:")).map_or(0, str::len);
    let rest = text.get(start..).unwrap_or_default();
    match rest.split_at_checked(label.len()) {
        Some((before, number)) if before.eq_ignore_ascii_case(label) => {
            let number = number.strip_prefix("-13").or_else(|| number.strip_prefix("-10")).unwrap_or(number);
            number.trim_start_matches([':', ' ', '=', '.'])
        }
        _ => text,
    }
}

/// The sum of the digits times their weights; the last one may be `X` for 10. `None` if there are other characters.
fn weighted(digits: &str, weight: impl Fn(u32) -> u32) -> Option<u32> {
    let last = digits.len() - 1;
    let mut sum = 0;
    for (place, character) in digits.chars().enumerate() {
        let digit = match character {
            'X' if place == last => 10,
            _ => character.to_digit(10)?,
        };
        sum += digit * weight(u32::try_from(place).ok()?);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_their_checksum() {
        for (text, isbn) in [
            ("978-3-16-148410-0", Some("9783161484100")),
            ("ISBN: 978 3 16 148410 0", Some("9783161484100")),
            ("urn:isbn:316148410X", Some("316148410X")),
            ("ISBN-10 3-16-148410-x", Some("316148410X")),
            ("316148410X", None),
            ("978-3-16-148410-1", None),
            ("1234567890123", None),
            ("ISBN", None),
            ("", None),
        ] {
            assert_eq!(read_isbn(text).as_deref(), isbn, "{text}");
        }
        for (text, issn) in [
            ("0378-5955", Some("0378-5955")),
            ("issn:2434-561x", Some("2434-561X")),
            ("URN:ISSN:0378-5955", Some("0378-5955")),
            ("0378-5956", None),
            ("2000-2001", None),
            ("03785955", None),
            ("é378-595", None),
        ] {
            assert_eq!(read_issn(text).as_deref(), issn, "{text}");
        }
    }
}
