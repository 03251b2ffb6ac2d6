//! The section about the repairs of a record.

use super::super::record::shown_size;
use super::byte_text::byte_text;
use maud::{Markup, html};

/// A repair of a record, as its page shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordRepair {
    /// The name of the repair, such as `bare-ampersand`.
    pub name: String,
    /// The URL of its description in the documentation.
    pub docs_url: String,
    /// The bytes of the source. They need not be UTF-8.
    pub before: Vec<u8>,
    /// The bytes in their place; empty if they were removed.
    pub after: Vec<u8>,
}

/// Most repairs that a page shows.
const SHOWN_REPAIRS_MAX: usize = 100;
/// Longest text before or after a repair that a page shows, in bytes.
const SHOWN_BYTES_MAX: usize = 400;

/// The section; `repairs` in the order of the record.
pub(super) fn repairs_section(repairs: &[RecordRepair]) -> Markup {
    let left_out = repairs.len().saturating_sub(SHOWN_REPAIRS_MAX);
    html! {
        section.repairs aria-labelledby="repairs" {
            h2 id="repairs" { "What oaimend repaired in it" }
            @if repairs.is_empty() {
                p { "Nothing. The record is as its source sent it." }
            } @else {
                ol {
                    @for repair in repairs.iter().take(SHOWN_REPAIRS_MAX) {
                        li {
                            a href=(repair.docs_url) { (repair.name) }
                            (before_and_after(&repair.before, &repair.after))
                        }
                    }
                }
                @if left_out > 0 { p.cut { "… and " (left_out) " more" } }
            }
        }
    }
}

/// The bytes before and after a repair.
pub(super) fn before_and_after(before: &[u8], after: &[u8]) -> Markup {
    html! {
        dl {
            div { dt { "before" } dd { (changed("del", before)) } }
            div { dt { "after" } dd { (changed("ins", after)) } }
        }
    }
}

/// The start of the bytes as text.
fn changed(class: &str, bytes: &[u8]) -> Markup {
    let shown = bytes.get(..SHOWN_BYTES_MAX).unwrap_or(bytes);
    html! {
        @if bytes.is_empty() {
            span.nothing { "nothing" }
        } @else {
            code class=(class) dir="auto" { (byte_text(shown)) }
            @if bytes.len() > shown.len() { span.cut { "… " (shown_size(bytes.len() - shown.len())) " not shown" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repair(before: &[u8], after: &[u8]) -> RecordRepair {
        RecordRepair {
            name: "x".into(),
            docs_url: "https://e.org/#x".into(),
            before: before.to_vec(),
            after: after.to_vec(),
        }
    }

    fn section(before: &[u8], after: &[u8]) -> String {
        repairs_section(&[repair(before, after)]).into_string()
    }

    #[test]
    fn bytes_and_invisible_characters_are_shown_by_number() {
        let section = section(b"Caf\xe9\x80!", "a\u{8}b\u{202e}\u{FFFD}".as_bytes());
        for part in [
            ">Caf<span class=\"byte\">E9</span><span class=\"byte\">80</span>!</code>",
            ">a<span class=\"byte\">U+0008</span>b<span class=\"byte\">U+202E</span><span class=\"byte\">U+FFFD</span></code>",
        ] {
            assert!(section.contains(part), "{section}");
        }
    }

    #[test]
    fn markup_is_escaped_and_removals_are_named() {
        let section = section(b"<script>&", b"");
        assert!(section.contains("&lt;script&gt;&amp;") && !section.contains("<script>"), "{section}");
        assert!(section.contains("<span class=\"nothing\">nothing</span>"), "{section}");
    }

    #[test]
    fn long_and_many_repairs_have_a_mark() {
        assert!(section(&[b'x'; 2_400], b"y").contains("… 2 kB not shown"));
        let many = repairs_section(&vec![repair(b"a", b"b"); SHOWN_REPAIRS_MAX + 3]).into_string();
        assert_eq!(many.matches("<li>").count(), SHOWN_REPAIRS_MAX);
        assert!(many.contains("… and 3 more"), "{many}");
    }

    #[test]
    fn a_record_without_repairs_says_so() {
        assert!(repairs_section(&[]).into_string().contains("Nothing. The record is as its source sent it."));
    }
}
