//! The table of all elements of a record.

use crate::texts::{common, record as texts};
use maud::{Markup, html};
use oaimend_record::{Field, FieldAttribute, Link, Text, shown_size};
use std::collections::BTreeSet;

/// Deepest level that has its own indentation in the style sheet.
const LEVELS_MAX: usize = 6;

/// Maximum number of rows of the table.
const ROWS_MAX: usize = 2_000;

/// The table of elements, with the namespaces of their prefixes. It says how many rows it leaves out.
pub(super) fn fields_table(caption: &str, fields: &[Field]) -> Markup {
    let shown = || fields.iter().filter(|field| !is_bare_container(field));
    let prefixes: BTreeSet<(&str, &str)> = shown().map(|field| (&*field.prefix, &*field.namespace)).collect();
    html! {
        table.fields {
            caption { (caption) }
            thead { tr { th scope="col" { (common::FIELD) } th scope="col" { (common::VALUE) } } }
            tbody {
                @for field in shown().take(ROWS_MAX) { (row(field)) }
            }
        }
        @let left_out = shown().count().saturating_sub(ROWS_MAX);
        @if left_out > 0 { p.cut { (common::more_fields(left_out)) } }
        @if prefixes.iter().any(|(_, namespace)| !namespace.is_empty()) {
            dl.namespaces {
                @for (prefix, namespace) in prefixes.iter().filter(|(_, namespace)| !namespace.is_empty()) {
                    div {
                        dt { @if prefix.is_empty() { (texts::NO_PREFIX) } @else { (prefix) ":" } }
                        dd { bdi { (namespace) } }
                    }
                }
            }
        }
    }
}

/// Whether the element is the outermost one and only contains others.
fn is_bare_container(field: &Field) -> bool {
    field.depth == 0 && field.text.value.is_empty() && shown_attributes(field).next().is_none()
}

/// The attributes without the places of schemas, which say nothing about the record.
fn shown_attributes(field: &Field) -> impl Iterator<Item = &FieldAttribute> {
    field.attributes.iter().filter(|attribute| !attribute.name.ends_with(":schemaLocation"))
}

fn row(field: &Field) -> Markup {
    let level = field.depth.saturating_sub(1).min(LEVELS_MAX);
    let is_empty = field.text.value.is_empty() && shown_attributes(field).next().is_none();
    html! {
        tr {
            th.{ "level-" (level) } scope="row" {
                @if !field.prefix.is_empty() { span.prefix { (field.prefix) ":" } }
                bdi { (field.name) }
            }
            td {
                @if !field.text.value.is_empty() {
                    div.value lang=(field.text.lang()) dir=(field.text.direction().name()) {
                        (linked(&field.text.value))
                        (left_out(&field.text))
                    }
                }
                @if is_empty { span.nothing { "–" } }
                @for attribute in shown_attributes(field) {
                    div.attribute {
                        span.name { (attribute.name) }
                        " "
                        bdi { (linked(&attribute.value)) @if attribute.left_out_bytes > 0 { "…" } }
                    }
                }
            }
        }
    }
}

/// A text, as a link if it is one.
pub(super) fn linked(text: &str) -> Markup {
    html! {
        @match Link::read(text) {
            Some(link) => a href=(link.url) { (text) },
            None => (text),
        }
    }
}

/// The mark of a shortened text.
pub(super) fn left_out(text: &Text) -> Markup {
    html! {
        @if text.left_out_bytes > 0 {
            span.cut lang="en" dir="ltr" { (common::not_shown(&shown_size(text.left_out_bytes))) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_record::RecordDocument;

    fn table(payload: &str) -> String {
        let xml = format!("<record><metadata>{payload}</metadata></record>");
        let document = RecordDocument::read(&xml).expect("the record is well-formed");
        fields_table("All fields", &document.metadata).into_string()
    }

    #[test]
    fn elements_and_attributes_are_escaped() {
        let table = table(
            "<a xmlns='urn:\"&gt;&lt;i>' b='&lt;i onclick=\"x\"&gt;'>&lt;script&gt;alert(1)&lt;/script&gt;<c/></a>",
        );
        assert!(!table.contains("<i") && !table.contains("<script"), "{table}");
        assert!(table.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{table}");
        assert!(table.contains("&lt;i onclick=&quot;x&quot;&gt;"), "{table}");
    }

    #[test]
    fn only_http_becomes_a_link() {
        let table = table(
            "<a b='javascript:alert(1)' c='http://e.org/c'><d>JAVASCRIPT:alert(1)</d><d> java&#9;script:alert(1)</d>\
             <d>data:text/html,x</d><d>https://e.org/\"onclick=</d></a>",
        );
        let links: Vec<&str> =
            table.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(links, ["http://e.org/c", "https://e.org/%22onclick="]);
    }

    #[test]
    fn texts_have_their_language_and_direction() {
        let table = table("<a><b xml:lang='ar'>أغاني الميناء</b><b>Songs</b></a>");
        assert!(table.contains("<div class=\"value\" lang=\"ar\" dir=\"rtl\">أغاني"), "{table}");
        assert!(table.contains("<div class=\"value\" lang=\"\" dir=\"ltr\">Songs"), "{table}");
    }

    #[test]
    fn long_texts_have_a_mark() {
        let table = table(&format!("<a>{}</a>", "x".repeat(5_000_000)));
        assert!(table.len() < 20_000, "{}", table.len());
        assert!(table.contains("… 4.9 MB not shown"), "no mark");
    }

    #[test]
    fn a_long_table_says_what_it_leaves_out() {
        let table = table(&format!("<a>{}</a>", "<b>x</b>".repeat(ROWS_MAX + 3)));
        assert_eq!(table.matches("<tr").count(), ROWS_MAX + 1);
        assert!(table.contains("… 3 more fields are in the XML only"), "no mark");
    }

    #[test]
    fn a_bare_container_has_no_row() {
        let with = |attribute: &str| table(&format!("<a{attribute}><b>x</b></a>"));
        assert_eq!(with(" xmlns:x='urn:x' x:schemaLocation='y'").matches("<tr").count(), 2);
        assert_eq!(with(" version='1'").matches("<tr").count(), 3);
    }
}
