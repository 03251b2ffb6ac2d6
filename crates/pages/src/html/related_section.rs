//! The part of the page of a record with what it cites, what cites it, and its duplicates.

use super::super::record::{
    RecordAddress, Related, RelatedRecord, RelatedRecords, RelatedWork, SAME_DESCRIPTION,
};
use super::super::record_form::RecordForm;
use crate::texts::{related as texts, resolver};
use maud::{Markup, html};

/// The section; nothing if the record has no links. `base` is the path of the site, without a slash at its end.
pub(super) fn related_section(related: &Related, address: RecordAddress<'_>, base: &str) -> Markup {
    if related.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="related" {
            h2 id="related" { (texts::TITLE) }
            @match related {
                Related::Known(related) => (lists(related, address, base)),
                Related::None | Related::NotReady => p { (texts::NOT_READY) },
            }
        }
    }
}

fn lists(related: &RelatedRecords, address: RecordAddress<'_>, base: &str) -> Markup {
    let address = RecordAddress { format: None, ..address };
    html! {
        dl {
            (works(texts::CITES, &related.cites, base))
            (works(texts::CITED_BY, &related.cited_by, base))
            @if !related.same_as.is_empty() {
                div {
                    dt { (texts::SAME_WORK) }
                    @for same in &related.same_as {
                        dd {
                            (link(&same.record, base))
                            @if same.same_by == SAME_DESCRIPTION { (texts::SAME_DESCRIPTION) } @else {
                                (texts::same_identifier(resolver::meaning(same.same_by)))
                            }
                        }
                    }
                }
            }
        }
        @if related.next.is_some() || related.has_more { p.cut { (texts::HAS_MORE) } }
        @if !related.incomplete.is_empty() { p.cut { (resolver::incomplete(&related.incomplete)) } }
        p { a href=(address.in_form(base, RecordForm::LinksJson)) { (texts::ALL_AS_JSON) } }
    }
}

fn works(name: &str, works: &[RelatedWork], base: &str) -> Markup {
    html! {
        @if !works.is_empty() {
            div {
                dt { (name) }
                @for work in works {
                    dd {
                        @for (place, record) in work.records.iter().enumerate() {
                            @if place > 0 { ", " }
                            (link(record, base))
                        }
                        @if let (true, Some((_, value))) = (work.records.is_empty(), &work.identifier) {
                            bdi { (value) } (texts::NOT_HERE)
                        }
                        (texts::field(work.field))
                    }
                }
            }
        }
    }
}

fn link(record: &RelatedRecord, base: &str) -> Markup {
    html! {
        a href=(record.page(base)) { bdi { (record.name()) } }
        " (" bdi { (record.repository) } ")"
    }
}
