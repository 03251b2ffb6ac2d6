//! The section about the repairs of a record.

use super::byte_text::byte_text;
use crate::texts::{common, record as texts};
use maud::{Markup, html};
use oaimend_record::shown_size;
use oaimend_repair::RepairId;
use oaimend_store::{Excerpt, RecordRepairs};

/// The section.
pub(super) fn repairs_section(repairs: &RecordRepairs) -> Markup {
    let left_out = repairs.made.saturating_sub(repairs.first.len() as u64);
    html! {
        section.repairs aria-labelledby="repairs" {
            h2 id="repairs" { (texts::REPAIRS) }
            @if repairs.made == 0 {
                p { (texts::NO_REPAIRS) }
            } @else {
                ol {
                    @for repair in &repairs.first {
                        li {
                            b { (repair.name) }
                            @if let Some(meaning) = meaning(&repair.name) { p { (meaning) } }
                            (before_and_after(&repair.before, &repair.after))
                        }
                    }
                }
                @if left_out > 0 { p.cut { (common::and_more(left_out)) } }
            }
        }
    }
}

/// The bytes before and after a repair.
pub(super) fn before_and_after(before: &Excerpt, after: &Excerpt) -> Markup {
    html! {
        dl {
            div { dt { (texts::BEFORE) } dd { (changed("del", before)) } }
            div { dt { (texts::AFTER) } dd { (changed("ins", after)) } }
        }
    }
}

/// What a repair does, from the catalog.
pub(super) fn meaning(name: &str) -> Option<String> {
    RepairId::from_name(name).map(|id| id.entry().what.replace('`', ""))
}

/// The start of the bytes as text.
fn changed(class: &str, excerpt: &Excerpt) -> Markup {
    let left_out = excerpt.len.saturating_sub(excerpt.start.len() as u64);
    html! {
        @if excerpt.len == 0 {
            span.nothing { (texts::NOTHING) }
        } @else {
            code class=(class) dir="auto" { (byte_text(&excerpt.start)) }
            @if left_out > 0 { span.cut { (common::not_shown(&shown_size(left_out as usize))) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_store::{RECORD_REPAIRS_MAX, RecordRepair};

    fn repair(before: &[u8], after: &[u8]) -> RecordRepair {
        RecordRepair {
            name: "bare-ampersand".into(),
            before: Excerpt::new(before),
            after: Excerpt::new(after),
        }
    }

    fn section(before: &[u8], after: &[u8]) -> String {
        repairs_section(&RecordRepairs::new([repair(before, after)].into_iter())).into_string()
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
        let many = RecordRepairs::new(vec![repair(b"a", b"b"); RECORD_REPAIRS_MAX + 3].into_iter());
        let many = repairs_section(&many).into_string();
        assert_eq!(many.matches("<li>").count(), RECORD_REPAIRS_MAX);
        assert!(many.contains("… and 3 more"), "{many}");
    }

    #[test]
    fn a_record_without_repairs_says_so() {
        assert!(
            repairs_section(&RecordRepairs::default())
                .into_string()
                .contains("Nothing was repaired. The record is as its source sent it.")
        );
    }
}
