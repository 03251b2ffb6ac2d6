//! Responses about one thing: `Identify` and `GetRecord`.

use super::super::super::oai_page::IdentifyFacts;
use super::super::fields_table::{fields_table, left_out, linked};
use super::super::xml_source::xml_source;
use super::links::RequestLinks;
use maud::{Markup, html};
use oaimend_record::{RecordDocument, Text, WorkDescription};

/// Maximum number of setSpecs that are shown.
const SHOWN_SETS_MAX: usize = 30;

/// The elements of `Identify` by their labels.
const LABELS: [(&str, &str); 8] = [
    ("repositoryName", "Name"),
    ("baseURL", "Base URL"),
    ("protocolVersion", "Protocol version"),
    ("adminEmail", "Contact"),
    ("earliestDatestamp", "Earliest datestamp"),
    ("deletedRecord", "Deleted records"),
    ("granularity", "Granularity of datestamps"),
    ("compression", "Compression"),
];

/// The description of a repository.
pub(super) fn identify(facts: &IdentifyFacts) -> Markup {
    let label = |name: &str| LABELS.iter().find(|(element, _)| *element == name).map(|(_, label)| *label);
    html! {
        table.fields {
            caption { "Repository" }
            thead { tr { th scope="col" { "Field" } th scope="col" { "Value" } } }
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
                h2 id="descriptions" { "Descriptions" }
                (fields_table("Descriptions of the repository", &facts.descriptions))
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
            None => p { "This server cannot read the fields of the record." },
        }
        section aria-labelledby="xml" {
            h2 id="xml" { "XML" }
            details { summary { "Show the XML of the record" } (xml_source(xml)) }
        }
    }
}

fn header_and_fields(links: RequestLinks<'_>, document: &RecordDocument) -> Markup {
    let identifier = Text { value: document.identifier.clone(), ..Text::default() };
    let page = if links.has_record_pages { links.record_url(&identifier) } else { None };
    html! {
        @if document.is_deleted { p { strong.deleted { "deleted" } " The repository no longer has this record." } }
        table.fields {
            caption { "Header" }
            thead { tr { th scope="col" { "Field" } th scope="col" { "Value" } } }
            tbody {
                tr { th scope="row" { "Identifier" } td { bdi.identifier { (document.identifier) } } }
                tr { th scope="row" { "Datestamp" } td { time datetime=(document.datestamp) { (document.datestamp) } } }
                @if !document.set_specs.is_empty() {
                    tr {
                        th scope="row" { "Sets" }
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
                    tr { th scope="row" { "Page" } td { a href=(url) { "The page of the record, from the mirror" } } }
                }
            }
        }
        @if !document.metadata.is_empty() { (fields_table("Metadata", &document.metadata)) }
        @if !document.about.is_empty() { (fields_table("About the metadata", &document.about)) }
        @if document.left_out_fields > 0 {
            p.cut { "… " (document.left_out_fields) " more fields are in the XML only" }
        }
    }
}
