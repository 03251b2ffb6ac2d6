//! Lists: formats, sets, records and identifiers.

use super::super::super::oai_page::{ItemList, ListToken, MetadataFormat, RecordItem, SetItem};
use super::super::fields_table::{left_out, linked};
use super::links::RequestLinks;
use crate::texts::{common, response as texts};
use maud::{Markup, html};
use oaimend_oai::{Argument, Request};
use oaimend_record::Text;

/// Longest token that becomes a link, in bytes. It triples when it is percent-encoded.
const LINKED_TOKEN_BYTES_MAX: usize = 5_000;

pub(super) fn formats(links: RequestLinks<'_>, formats: &[MetadataFormat]) -> Markup {
    let of_item = links.request.and_then(|request| request.argument(Argument::Identifier));
    html! {
        table.fields {
            caption { @if of_item.is_some() { (texts::FORMATS_OF_RECORD) } @else { (texts::FORMATS_OF_REPOSITORY) } }
            thead { tr { th scope="col" { (texts::FORMAT) } th scope="col" { (texts::FORMAT_CONTENT) } } }
            tbody {
                @for format in formats {
                    tr {
                        th scope="row" { bdi { (format.prefix.value) } (left_out(&format.prefix)) }
                        td {
                            div { bdi { (linked(&format.namespace.value)) } }
                            div { bdi { (linked(&format.schema.value)) } }
                            @if format.prefix.left_out_bytes == 0 && !format.prefix.value.is_empty() {
                                (links_of_format(links, &format.prefix.value, of_item))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn links_of_format(links: RequestLinks<'_>, prefix: &str, of_item: Option<&str>) -> Markup {
    let records = Request::list_records(prefix, None, None, None);
    html! {
        p.actions {
            @match of_item {
                Some(identifier) => a href=(links.url_of(&Request::get_record(identifier, prefix))) { (common::RECORD) },
                None => {
                    a href=(links.url_of(&records)) { (common::RECORDS) } " · "
                    a href=(links.url_of(&records.to_list_identifiers())) { (common::IDENTIFIERS) }
                },
            }
        }
    }
}

pub(super) fn sets(links: RequestLinks<'_>, list: &ItemList<SetItem>, is_whole: bool) -> Markup {
    html! {
        table.fields {
            caption { (texts::SETS_OF_REPOSITORY) }
            thead { tr { th scope="col" { (texts::SET) } th scope="col" { (texts::SET_CONTENT) } } }
            tbody {
                @for set in &list.items {
                    tr {
                        th scope="row" { bdi { (set.spec.value) } (left_out(&set.spec)) }
                        td {
                            (text(&set.name))
                            @if !set.description.value.is_empty() { div.about { (text(&set.description)) } }
                            @if let Some(url) = links.set_url(&set.spec) {
                                p.actions {
                                    a href=(url) { (common::RECORDS) } " · "
                                    a href=(links.url_of(&identifiers_of(links.format(), &set.spec.value))) {
                                        (common::IDENTIFIERS)
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        (end_of_list(links, list.left_out_items, list.token.as_ref(), list.items.len(), is_whole))
    }
}

pub(super) fn records(links: RequestLinks<'_>, list: &ItemList<RecordItem>, is_whole: bool) -> Markup {
    html! {
        ol.items { @for item in &list.items { (list_item(links, item)) } }
        (end_of_list(links, list.left_out_items, list.token.as_ref(), list.items.len(), is_whole))
    }
}

fn list_item(links: RequestLinks<'_>, item: &RecordItem) -> Markup {
    let name = item.title.as_ref().unwrap_or(&item.identifier);
    let class = if item.title.is_none() { "identifier" } else { "title" };
    let name = html! { bdi class=(class) lang=(name.lang()) { (name.value) (left_out(name)) } };
    html! {
        li {
            @match links.record_url(&item.identifier) {
                Some(url) => a href=(url) { (name) },
                None => (name),
            }
            @if !item.creators.is_empty() {
                div.by {
                    @for (index, creator) in item.creators.iter().enumerate() {
                        @if index > 0 { "; " }
                        bdi lang=(creator.lang()) { (creator.value) }
                    }
                }
            }
            div.facts {
                @if item.is_deleted { strong.deleted { (texts::DELETED) } " " }
                @if item.title.is_some() { bdi.identifier { (item.identifier.value) } " " }
                time datetime=(item.datestamp.value) { (item.datestamp.value) }
                @for spec in &item.set_specs {
                    " "
                    @match links.set_url(spec) {
                        Some(url) => a.set href=(url) { bdi { (spec.value) } },
                        None => span.set { bdi { (spec.value) } },
                    }
                }
            }
        }
    }
}

/// The place of the page in its list, and the link to the next page.
fn end_of_list(
    links: RequestLinks<'_>,
    left_out_items: usize,
    token: Option<&ListToken>,
    shown: usize,
    is_whole: bool,
) -> Markup {
    // Of a response that was broken off, neither its count nor its token shows the place in the list.
    let next = token.filter(|token| is_whole && !token.value.value.is_empty());
    let place = token.and_then(|token| Some((token.cursor?, token.complete_list_size)));
    let count = (shown + left_out_items) as u64;
    html! {
        @if left_out_items > 0 { p.cut { (texts::more_items(left_out_items)) } }
        @if is_whole {
            nav.pages aria-label=(common::PAGES) {
                p {
                    @match place {
                        Some((cursor, Some(size))) => (texts::items_of(cursor.saturating_add(1), cursor.saturating_add(count), size)),
                        Some((cursor, None)) => { (cursor.saturating_add(1)) "–" (cursor.saturating_add(count)) },
                        None => { (texts::number_of_items(count)) @if next.is_some() { (texts::ON_THIS_PAGE) } },
                    }
                }
                @if let Some(token) = next { (next_page(links, token)) } @else { p { (texts::END_OF_LIST) } }
            }
        }
    }
}

fn next_page(links: RequestLinks<'_>, token: &ListToken) -> Markup {
    let value = &token.value;
    let is_short = value.left_out_bytes == 0 && value.value.len() <= LINKED_TOKEN_BYTES_MAX;
    html! {
        @match links.request {
            Some(request) if is_short => {
                a.landing rel="next" href=(links.url_of(&request.with_token(value.value.clone()))) { (common::NEXT_PAGE) }
            },
            _ => p.cut { (texts::LONG_TOKEN) },
        }
    }
}

fn identifiers_of(format: &str, set: &str) -> Request {
    Request::list_records(format, Some(set), None, None).to_list_identifiers()
}

/// A text with its language and direction.
fn text(text: &Text) -> Markup {
    html! { div lang=(text.lang()) dir=(text.direction().name()) { (text.value) (left_out(text)) } }
}
