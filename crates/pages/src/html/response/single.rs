//! Responses about one thing: `Identify` and `GetRecord`.

use super::super::super::oai_page::IdentifyFacts;
use super::super::fields_table::{fields_table, left_out, linked};
use super::super::xml_source::xml_source;
use super::links::RequestLinks;
use crate::texts::{common, response as texts};
use maud::{Markup, html};
use oaimend_record::{RecordDocument, Text, WorkDescription};

/// Maximum number of setSpecs that are shown.
const SHOWN_SETS_MAX: usize = 30;

/// The elements of `Identify` by their labels.
const LABELS: [(&str, &str); 8] = [
    ("repositoryName", common::NAME),
    ("baseURL", common::BASE_URL),
    ("protocolVersion", texts::PROTOCOL_VERSION),
    ("adminEmail", common::CONTACT),
    ("earliestDatestamp", common::EARLIEST_DATESTAMP),
    ("deletedRecord", common::DELETED_RECORDS),
    ("granularity", texts::GRANULARITY),
    ("compression", texts::COMPRESSION),
];

/// The description of a repository.
pub(super) fn identify(facts: &IdentifyFacts) -> Markup {
    let label = |name: &str| LABELS.iter().find(|(element, _)| *element == name).map(|(_, label)| *label);
    html! {
        table.fields {
            caption { (common::REPOSITORY) }
            thead { tr { th scope="col" { (common::FIELD) } th scope="col" { (common::VALUE) } } }
            tbody {
                @for (name, text) in &facts.facts {
                    tr {
                        th scope="row" { (label(name).unwrap_or(name)) }
                        td { div.value lang=(text.lang()) dir=(text.direction().name()) {
                            (linked(&text.value)) (left_out(text))
                        } }
                    }
                }
            }
        }
        @if !facts.descriptions.is_empty() {
            section aria-labelledby="descriptions" {
                h2 id="descriptions" { (texts::DESCRIPTIONS) }
                (fields_table(texts::DESCRIPTIONS_CAPTION, &facts.descriptions))
            }
        }
    }
}

/// The title of a record: its first title, or its identifier.
pub(super) fn title(document: &RecordDocument) -> Option<Text> {
    let title = WorkDescription::of(document).core.titles.into_iter().next();
    title.or_else(|| {
        Some(Text { value: document.identifier.clone(), ..Text::default() })
            .filter(|text| !text.value.is_empty())
    })
}

pub(super) fn record(links: RequestLinks<'_>, xml: &str, document: Option<&RecordDocument>) -> Markup {
    html! {
        @match document {
            Some(document) => (header_and_fields(links, document)),
            None => p { (texts::UNREADABLE_FIELDS) },
        }
        section aria-labelledby="xml" {
            h2 id="xml" { (common::XML) }
            details { summary { (texts::SHOW_XML_OF_RECORD) } (xml_source(xml)) }
        }
    }
}

fn header_and_fields(links: RequestLinks<'_>, document: &RecordDocument) -> Markup {
    let identifier = Text { value: document.identifier.clone(), ..Text::default() };
    let page = if links.has_record_pages { links.record_url(&identifier) } else { None };
    html! {
        @if document.is_deleted { p { strong.deleted { (texts::DELETED) } (texts::IS_DELETED) } }
        table.fields {
            caption { (texts::HEADER) }
            thead { tr { th scope="col" { (common::FIELD) } th scope="col" { (common::VALUE) } } }
            tbody {
                tr { th scope="row" { (common::IDENTIFIER) } td { bdi.identifier { (document.identifier) } } }
                tr { th scope="row" { (texts::DATESTAMP) } td { time datetime=(document.datestamp) { (document.datestamp) } } }
                @if !document.set_specs.is_empty() {
                    tr {
                        th scope="row" { (common::SETS) }
                        td {
                            @for spec in document.set_specs.iter().take(SHOWN_SETS_MAX) {
                                @let text = Text { value: spec.clone(), ..Text::default() };
                                @match links.set_url(&text) {
                                    Some(url) => a.set href=(url) { bdi { (spec) } },
                                    None => bdi { (spec) },
                                }
                                " "
                            }
                        }
                    }
                }
                @if let Some(url) = page {
                    tr { th scope="row" { (texts::PAGE) } td { a href=(url) { (texts::RECORD_PAGE) } } }
                }
            }
        }
        @if !document.metadata.is_empty() { (fields_table(common::METADATA, &document.metadata)) }
        @if !document.about.is_empty() { (fields_table(common::ABOUT_METADATA, &document.about)) }
        @if document.left_out_fields > 0 {
            p.cut { (common::more_fields(document.left_out_fields)) }
        }
    }
}
