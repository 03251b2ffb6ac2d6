//! Bytes as text, with marks in place of characters that nobody sees.

use maud::{Markup, html};

/// The bytes as text. Bytes that are not UTF-8 and invisible characters are shown by their number.
pub(super) fn byte_text(bytes: &[u8]) -> Markup {
    html! {
        @for chunk in bytes.utf8_chunks() {
            @for (visible, hidden) in runs(chunk.valid()) {
                (visible)
                @if let Some(hidden) = hidden { span.byte { (format!("U+{:04X}", u32::from(hidden))) } }
            }
            @for byte in chunk.invalid() { span.byte { (format!("{byte:02X}")) } }
        }
    }
}

/// The text in runs of visible characters, each with the invisible character after it.
fn runs(text: &str) -> impl Iterator<Item = (&str, Option<char>)> {
    text.split_inclusive(is_invisible).map(|run| match run.char_indices().next_back() {
        Some((at, last)) if is_invisible(last) => (run.get(..at).unwrap_or_default(), Some(last)),
        _ => (run, None),
    })
}

/// Control characters, formatting characters that change the direction or have no width, and U+FFFD.
fn is_invisible(character: char) -> bool {
    let is_line = matches!(character, '\n' | '\t');
    (character.is_control() && !is_line)
        || matches!(character, '\u{A0}' | '\u{AD}' | '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202F}'
            | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFF}')
}
