//! The page of a record.

use super::super::record::{RecordAddress, json_ld, meta_tags, script_text};
use super::fields_table::{fields_table, left_out, linked};
use super::repairs::repairs_section;
use super::xml_source::xml_source;
use maud::{Markup, PreEscaped, html};
use oaimend_html::{Crumb, Page, Site};
use oaimend_record::{Link, LinkKind, RecordDocument, Text, WorkDescription};
use oaimend_store::RecordRepairs;

/// The page of a record.
#[derive(Clone, Debug)]
pub struct RecordPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The name of the repository.
    pub repository_name: &'a str,
    /// The place of the record, in the format that is shown.
    pub address: RecordAddress<'a>,
    /// The record in the format that is shown.
    pub document: &'a RecordDocument,
    /// Its XML.
    pub xml: &'a str,
    /// The description of the work, from its record in `oai_dc` if there is one.
    pub work: &'a WorkDescription,
    /// The formats of the record, in the order of the tabs.
    pub formats: &'a [FormatTab],
    /// Where the record comes from.
    pub provenance: &'a Provenance,
    /// The repairs of the record.
    pub repairs: &'a RecordRepairs,
}

/// A format in which a record is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatTab {
    /// The metadataPrefix.
    pub prefix: String,
    /// Whether pages show this format if their URL names none.
    pub is_default: bool,
    /// Whether the page shows this format.
    pub is_current: bool,
}

/// Where a record comes from. Times are texts such as `2024-05-06T07:08:09Z`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The datestamp of the record at its source.
    pub source_datestamp: String,
    /// The stamp: the datestamp that the mirror serves. `None` for a record that is not mirrored.
    pub stamp: Option<String>,
}

/// Maximum number of creators that the head of a page shows. The table contains all.
const SHOWN_CREATORS_MAX: usize = 30;
/// Maximum number of values of another field that are shown outside the table.
const SHOWN_VALUES_MAX: usize = 30;

impl RecordPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let base = self.site.base_path();
        let title = self.title();
        let crumbs = [
            Crumb { name: self.repository_name, url: Some(self.address.repository(base)) },
            Crumb { name: &self.document.identifier, url: None },
        ];
        let main = html! {
            article.record {
                (self.heading(&title))
                div.columns {
                    (self.introduction())
                    div.side { (self.links()) (self.details()) (self.provenance()) }
                    div.rest {
                        (self.fields())
                        (repairs_section(self.repairs))
                    }
                }
            }
        };
        Page { site: self.site, title: &title.value, crumbs: &crumbs, head: self.head(), main }.render()
    }

    /// The first title, or the identifier.
    fn title(&self) -> Text {
        let untitled = || Text { value: self.document.identifier.clone(), ..Text::default() };
        self.work.core.titles.first().cloned().unwrap_or_else(untitled)
    }

    fn head(&self) -> Markup {
        let page_url = RecordAddress { format: None, ..self.address }.page(self.site.public_url());
        let canonical = self.work.links.landing_page().map_or(page_url.as_str(), |link| link.url.as_str());
        let public_url = self.site.public_url();
        html! {
            link rel="canonical" href=(canonical);
            link rel="alternate" type="application/xml" href=(self.address.xml(public_url));
            link rel="alternate" type="application/ld+json" href=(self.address.json(public_url));
            link rel="schema.DC" href="http://purl.org/dc/elements/1.1/";
            @for tag in meta_tags(self.work, &page_url) {
                meta name=(tag.name) content=(tag.content) lang=[tag.language];
            }
            script type="application/ld+json" { (PreEscaped(script_text(&json_ld(self.work, &page_url)))) }
        }
    }

    fn heading(&self, title: &Text) -> Markup {
        let core = &self.work.core;
        let more = core.creators.len().saturating_sub(SHOWN_CREATORS_MAX);
        html! {
            header {
                p.kind {
                    (self.work.work_type.label())
                    @if let Some(date) = self.work.published {
                        " · " time datetime=(date.in_iso_8601()) { (date.in_iso_8601()) }
                    } @else if let Some(date) = core.dates.first() {
                        " · " bdi { (date.value) }
                    }
                }
                @if core.titles.is_empty() {
                    h1.untitled { "Record " bdi { (title.value) } }
                } @else {
                    h1 lang=(title.lang()) dir=(title.direction().name()) { (title.value) (left_out(title)) }
                }
                @for title in core.titles.iter().skip(1).take(SHOWN_VALUES_MAX) {
                    p.subtitle lang=(title.lang()) dir=(title.direction().name()) { (title.value) (left_out(title)) }
                }
                @if !core.creators.is_empty() {
                    ul.creators aria-label="Creators" {
                        @for creator in core.creators.iter().take(SHOWN_CREATORS_MAX) {
                            li lang=(creator.lang()) { bdi { (creator.value) } }
                        }
                        @if more > 0 { li.cut { "and " (more) " more" } }
                    }
                }
            }
        }
    }

    fn introduction(&self) -> Markup {
        let core = &self.work.core;
        html! {
            @if !core.descriptions.is_empty() || !core.subjects.is_empty() {
                div.introduction {
                    @if !core.descriptions.is_empty() {
                        section aria-labelledby="abstract" {
                            h2 id="abstract" { "Abstract" }
                            @for text in core.descriptions.iter().take(SHOWN_VALUES_MAX) {
                                p.abstract lang=(text.lang()) dir=(text.direction().name()) {
                                    (text.value) (left_out(text))
                                }
                            }
                        }
                    }
                    @if !core.subjects.is_empty() {
                        ul.subjects aria-label="Subjects" {
                            @for text in core.subjects.iter().take(SHOWN_VALUES_MAX) {
                                li lang=(text.lang()) { bdi { (text.value) } }
                            }
                        }
                    }
                }
            }
        }
    }

    fn links(&self) -> Markup {
        let links = &self.work.links;
        let landing_page = links.landing_page();
        let others =
            || links.identifying.iter().filter(|link| landing_page.is_none_or(|page| page.url != link.url));
        html! {
            @if !links.identifying.is_empty() || !links.related.is_empty() {
                section aria-labelledby="links" {
                    h2 id="links" { "Links" }
                    @if let Some(link) = landing_page {
                        p { a.landing href=(link.url) { "Open at the source" } }
                    }
                    dl {
                        @for link in landing_page.into_iter().chain(others()) { (link_row(link)) }
                        @if !links.related.is_empty() {
                            div {
                                dt { "Related" }
                                @for link in &links.related { dd { (link_to(link)) } }
                            }
                        }
                    }
                }
            }
        }
    }

    fn details(&self) -> Markup {
        let core = &self.work.core;
        let facts = [
            ("Publisher", &core.publishers),
            ("Contributors", &core.contributors),
            ("Type", &core.types),
            ("Format", &core.formats),
            ("Language", &core.languages),
            ("Source", &core.sources),
            ("Rights", &core.rights),
        ];
        html! {
            @if facts.iter().any(|(_, texts)| !texts.is_empty()) {
                section aria-labelledby="details" {
                    h2 id="details" { "Details" }
                    dl {
                        @for (name, texts) in facts.iter().filter(|(_, texts)| !texts.is_empty()) {
                            div {
                                dt { (name) }
                                @for text in texts.iter().take(SHOWN_VALUES_MAX) {
                                    dd lang=(text.lang()) dir=(text.direction().name()) {
                                        (linked(&text.value)) (left_out(text))
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    fn provenance(&self) -> Markup {
        let provenance = self.provenance;
        html! {
            section aria-labelledby="provenance" {
                h2 id="provenance" { "Provenance" }
                dl {
                    div { dt { "Repository" } dd { a href=(self.address.repository(self.site.base_path())) {
                        bdi { (self.repository_name) } } } }
                    div { dt { "Identifier" } dd { bdi.identifier { (self.document.identifier) } } }
                    div { dt { "Changed at the source" } dd { (time(&provenance.source_datestamp)) } }
                    @if let Some(stamp) = &provenance.stamp {
                        div { dt { "Changed in the mirror" } dd { (time(stamp)) } }
                    }
                    @if !self.document.set_specs.is_empty() {
                        div {
                            dt { "Sets" }
                            @for set in self.document.set_specs.iter().take(SHOWN_VALUES_MAX) { dd { bdi { (set) } } }
                        }
                    }
                }
            }
        }
    }

    fn fields(&self) -> Markup {
        let base = self.site.base_path();
        let document = self.document;
        html! {
            section aria-labelledby="fields" {
                h2 id="fields" { "All fields" }
                nav.tabs aria-label="Formats" {
                    ul {
                        @for tab in self.formats {
                            @let format = (!tab.is_default).then_some(tab.prefix.as_str());
                            li {
                                a href={ (RecordAddress { format, ..self.address }.page(base)) "#fields" }
                                    aria-current=[tab.is_current.then_some("page")] { (tab.prefix) }
                            }
                        }
                    }
                }
                (fields_table("Metadata", &document.metadata))
                @if !document.about.is_empty() { (fields_table("About the metadata", &document.about)) }
                @if document.left_out_fields > 0 {
                    p.cut { "… " (document.left_out_fields) " more fields are in the XML only" }
                }
            }
            section aria-labelledby="xml" {
                h2 id="xml" { "XML" }
                p {
                    "Download: " a href=(self.address.xml(base)) { "XML" } " · "
                    a href=(RecordAddress { format: None, ..self.address }.json(base)) { "JSON-LD" }
                }
                details {
                    summary { "Show the XML" }
                    (xml_source(self.xml))
                }
            }
        }
    }
}

fn link_row(link: &Link) -> Markup {
    let name = match link.kind {
        LinkKind::Doi => "DOI",
        LinkKind::Handle => "Handle",
        LinkKind::Urn => "URN",
        LinkKind::Url => "URL",
    };
    html! { div { dt { (name) } dd { (link_to(link)) } } }
}

fn link_to(link: &Link) -> Markup {
    html! { a href=(link.url) { bdi { (link.name) } } }
}

fn time(text: &str) -> Markup {
    html! { time datetime=(text) { (text) } }
}
