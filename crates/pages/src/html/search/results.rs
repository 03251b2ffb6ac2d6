//! The results of a page.

use crate::record::RepositoryAddress;
use crate::search::{MarkedText, ResultList, SearchAddress, SearchItem, context_object};
use crate::texts::{common, search as texts};
use maud::{Markup, html};
use oaimend_html::Site;
use oaimend_record::{WorkType, shorten};

/// Maximum number of creators of a result.
const CREATORS_MAX: usize = 5;
/// Longest title of a result, in bytes.
const TITLE_BYTES_MAX: usize = 400;
/// Longest name of a repository or of a creator, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// The list of results.
pub(in crate::html) fn results(items: &[SearchItem], address: &SearchAddress, site: &Site) -> Markup {
    html! {
        ol.results start=(address.offset() + 1) {
            @for item in items { li { (result(item, address.list, site)) } }
        }
    }
}

fn result(item: &SearchItem, list: ResultList, site: &Site) -> Markup {
    let base = site.base_path();
    let repository = RepositoryAddress { repository: &item.repository };
    let date = item.work.published;
    let title = item.title.as_ref().map(|title| title.start(TITLE_BYTES_MAX));
    html! {
        h3 {
            a href=(item.url(base)) {
                @match &title {
                    Some(title) => span lang=(title.text.lang()) dir=(title.text.direction().name()) {
                        (marked(title)) @if title.text.left_out_bytes > 0 { "…" }
                    },
                    None => bdi.identifier { (item.work.identifier) },
                }
            }
        }
        p.facts {
            @if !item.work.core.creators.is_empty() { span { (creators(item)) } }
            @if let Some(date) = date { time datetime=(date.in_iso_8601()) { (item.year().unwrap_or_default()) } }
            @if item.work.work_type != WorkType::Other { span { (item.work.work_type.label()) } }
            @if item.work.is_open_access { span.state.good { (common::OPEN_ACCESS) } }
            a href=(repository.page(base)) { bdi { (shorten(&item.repository_name, NAME_BYTES_MAX).0) } }
            @if list == ResultList::Recent { span { (texts::CHANGED) " " time datetime=(item.changed) { (item.changed) } } }
        }
        @if let Some(snippet) = &item.snippet {
            p.snippet lang=(snippet.text.lang()) dir=(snippet.text.direction().name()) { (marked(snippet)) }
        }
        span.Z3988 title=(context_object(item, site.public_url())) {}
    }
}

fn creators(item: &SearchItem) -> Markup {
    let creators = &item.work.core.creators;
    html! {
        @for (number, creator) in creators.iter().take(CREATORS_MAX).enumerate() {
            @if number > 0 { "; " }
            bdi lang=(creator.lang()) { (shorten(&creator.value, NAME_BYTES_MAX).0) }
        }
        @if creators.len() > CREATORS_MAX { " " (texts::MORE_CREATORS) }
    }
}

fn marked(marked: &MarkedText) -> Markup {
    html! {
        @for (is_marked, part) in marked.parts() {
            @if is_marked { mark { (part) } } @else { (part) }
        }
    }
}
