//! The XML of a record in colour.

use super::super::record::{XmlToken, XmlTokenKind, xml_tokens};
use crate::texts::{common, record as texts};
use maud::{Markup, html};
use oaimend_record::{shorten, shown_size};

/// Longest XML that a page shows, in bytes. The colours multiply it by up to twelve.
const SHOWN_BYTES_MAX: usize = 32 << 10;
/// Deepest level that is indented, in elements.
const INDENTED_LEVELS_MAX: usize = 20;

/// The XML in colour, up to 32 KiB, with line breaks between tags that touch.
pub(super) fn xml_source(xml: &str) -> Markup {
    let (shown, left_out_bytes) = shorten(xml, SHOWN_BYTES_MAX);
    html! {
        pre.xml dir="ltr" lang="" tabindex="0" role="region" aria-label=(texts::XML_OF_RECORD) {
            code { @for token in xml_tokens(shown) { (part(token)) } }
            @if left_out_bytes > 0 {
                span.cut lang="en" { "\n" (common::not_shown(&shown_size(left_out_bytes))) }
            }
        }
    }
}

fn part(token: XmlToken<'_>) -> Markup {
    let class = match token.kind {
        XmlTokenKind::Punctuation => return html! { (token.text) },
        XmlTokenKind::TagName => "n",
        XmlTokenKind::AttributeName => "a",
        XmlTokenKind::AttributeValue => "v",
        XmlTokenKind::CData => "d",
        XmlTokenKind::Comment => "c",
        XmlTokenKind::Text => "t",
        XmlTokenKind::Break => {
            return html! { "\n" (" ".repeat(2 * token.depth.min(INDENTED_LEVELS_MAX))) };
        }
    };
    html! { span class=(class) { (token.text) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_escaped() {
        let source = xml_source("<a b='<i>'>&lt;script><!-- <script> --></a>").into_string();
        assert!(!source.contains("<i>") && !source.contains("<script>"), "{source}");
        assert!(source.contains("<span class=\"n\">a</span>"), "{source}");
        assert!(source.contains("<span class=\"t\">&amp;lt;script&gt;</span>"), "{source}");
    }

    #[test]
    fn long_xml_is_shortened_with_a_mark() {
        let source = xml_source(&format!("<a>{}</a>", "<b/>".repeat(1_250_000))).into_string();
        assert!(source.len() < 12 * SHOWN_BYTES_MAX, "{}", source.len());
        assert!(source.contains("… 4.9 MB not shown"), "no mark");
    }
}
