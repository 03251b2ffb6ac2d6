//! The page of a record.

use super::super::record::{RecordAddress, Related, RepositoryAddress, meta_tags, open_graph, script_text};
use super::super::record_form::RecordForm;
use super::super::search::SearchAddress;
use super::fields_table::{fields_table, left_out, linked};
use super::related_section::related_section;
use super::repairs::repairs_section;
use super::xml_source::xml_source;
use crate::texts::{common, record as texts};
use maud::{Markup, PreEscaped, html};
use oaimend_html::{Crumb, Page, Site};
use oaimend_record::{
    Agent, Link, LinkKind, RecordDocument, Text, WorkDescription, json_ld_same_as, shorten,
};
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
    /// The description of the work, from its record in the richest format.
    pub work: &'a WorkDescription,
    /// The canonical URL; `None` for the page itself.
    pub canonical: Option<&'a str>,
    /// The formats of the record, in the order of the tabs.
    pub formats: &'a [FormatTab],
    /// Where the record comes from.
    pub provenance: &'a Provenance,
    /// The repairs of the record.
    pub repairs: &'a RecordRepairs,
    /// The records that it is linked with.
    pub related: &'a Related,
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
/// Longest title in the `title` element, in bytes. Browsers and search engines show less.
const TITLE_BYTES_MAX: usize = 300;

/// The citations, with their names on the page.
const EXPORTS: [(RecordForm, &str); 3] =
    [(RecordForm::BibTeX, "BibTeX"), (RecordForm::Ris, "RIS"), (RecordForm::CslJson, "CSL-JSON")];

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
                    div.side { (self.links()) (self.exports()) (self.details()) (self.provenance()) }
                    div.rest {
                        (related_section(self.related, self.address, base))
                        (self.fields())
                        (repairs_section(self.repairs))
                    }
                }
            }
        };
        let (start, left_out) = shorten(&title.value, TITLE_BYTES_MAX);
        let title = format!("{start}{}", if left_out > 0 { "…" } else { "" });
        Page { site: self.site, title: &title, crumbs: &crumbs, head: self.head(), main }.render()
    }

    /// The first title, or the identifier.
    fn title(&self) -> Text {
        let untitled = || Text { value: self.document.identifier.clone(), ..Text::default() };
        self.work.core.titles.first().cloned().unwrap_or_else(untitled)
    }

    fn head(&self) -> Markup {
        let public_url = self.site.public_url();
        let address = RecordAddress { format: None, ..self.address };
        let page_url = address.page(public_url);
        let exports = EXPORTS.map(|(form, _)| form);
        html! {
            link rel="canonical" href=(self.canonical.unwrap_or(&page_url));
            link rel="alternate" type="application/xml" href=(self.address.in_form(public_url, RecordForm::Xml));
            @for form in [RecordForm::JsonLd].into_iter().chain(exports) {
                link rel="alternate" type=(form.content_type()) href=(address.in_form(public_url, form));
            }
            link rel="schema.DC" href="http://purl.org/dc/elements/1.1/";
            @for tag in meta_tags(self.work, &page_url) {
                meta name=(tag.name) content=(tag.content) lang=[tag.language];
            }
            @for tag in open_graph(self.work, &page_url) {
                meta property=(tag.name) content=(tag.content);
            }
            script type="application/ld+json" { (PreEscaped(script_text(&self.json_ld(&page_url)))) }
        }
    }

    fn json_ld(&self, page_url: &str) -> serde_json::Value {
        json_ld_same_as(self.work, Some(page_url), &self.related.same_as(self.site.public_url()))
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
                    @if self.work.is_open_access { " " span.badge { (common::OPEN_ACCESS) } }
                }
                @if core.titles.is_empty() {
                    h1.untitled { (texts::untitled(&title.value)) }
                } @else {
                    h1 lang=(title.lang()) dir=(title.direction().name()) { (title.value) (left_out(title)) }
                }
                @for title in core.titles.iter().skip(1).take(SHOWN_VALUES_MAX) {
                    p.subtitle lang=(title.lang()) dir=(title.direction().name()) { (title.value) (left_out(title)) }
                }
                @if !core.creators.is_empty() {
                    ul.creators aria-label=(common::CREATORS) {
                        @for creator in self.work.creators.iter().take(SHOWN_CREATORS_MAX) { (self.creator(creator)) }
                        @if more > 0 { li.cut { (texts::and_more_values(more)) } }
                    }
                }
            }
        }
    }

    fn creator(&self, creator: &Agent) -> Markup {
        html! {
            li lang=(creator.name.lang()) {
                (self.search_link("creator", &creator.name.value))
                @if let Some(orcid) = &creator.orcid {
                    " "
                    a.orcid href=(orcid.url()) aria-label=(texts::orcid_of(&creator.name.value)) { (texts::ORCID) }
                }
            }
        }
    }

    /// A value as a link to all records with it, if there is a search.
    fn search_link(&self, field: &str, value: &str) -> Markup {
        html! {
            @if self.site.has_search() {
                a href=(SearchAddress::of_value(field, value).url(self.site.base_path(), "")) { bdi { (value) } }
            } @else {
                bdi { (value) }
            }
        }
    }

    fn introduction(&self) -> Markup {
        let core = &self.work.core;
        let more = core.subjects.len().saturating_sub(SHOWN_VALUES_MAX);
        html! {
            @if !core.descriptions.is_empty() || !core.subjects.is_empty() {
                div.introduction {
                    @if !core.descriptions.is_empty() {
                        section aria-labelledby="abstract" {
                            h2 id="abstract" { (texts::ABSTRACT) }
                            @for text in core.descriptions.iter().take(SHOWN_VALUES_MAX) {
                                p.abstract lang=(text.lang()) dir=(text.direction().name()) {
                                    (text.value) (left_out(text))
                                }
                            }
                        }
                    }
                    @if !core.subjects.is_empty() {
                        ul.subjects aria-label=(texts::SUBJECTS) {
                            @for text in core.subjects.iter().take(SHOWN_VALUES_MAX) {
                                li lang=(text.lang()) { (self.search_link("subject", &text.value)) }
                            }
                            @if more > 0 { li.cut { (texts::and_more_values(more)) } }
                        }
                    }
                }
            }
        }
    }

    fn links(&self) -> Markup {
        let links = &self.work.links;
        let landing_page = links.landing_page();
        let is_shown = |link: &&Link| {
            links.full_texts.iter().all(|other| other.url != link.url)
                && landing_page.is_none_or(|page| page.url != link.url)
        };
        let others = || links.identifying.iter().filter(is_shown);
        let related: Vec<&Link> = links.related.iter().filter(is_shown).collect();
        html! {
            @if !links.identifying.is_empty() || !links.related.is_empty() || !links.full_texts.is_empty() {
                section aria-labelledby="links" {
                    h2 id="links" { (texts::LINKS) }
                    @if let Some(link) = landing_page {
                        p { a.landing href=(link.url) { (texts::OPEN_AT_SOURCE) } }
                    }
                    dl {
                        @if !links.full_texts.is_empty() {
                            div {
                                dt { (texts::FULL_TEXT) }
                                @for link in &links.full_texts { dd { (link_to(link)) } }
                            }
                        }
                        @for link in landing_page.into_iter().chain(others()) { (link_row(link)) }
                        @if !related.is_empty() {
                            div {
                                dt { (texts::RELATED) }
                                @for link in related { dd { (link_to(link)) } }
                            }
                        }
                    }
                }
            }
        }
    }

    fn exports(&self) -> Markup {
        let address = RecordAddress { format: None, ..self.address };
        html! {
            section aria-labelledby="cite" {
                h2 id="cite" { (texts::CITE) }
                p {
                    @for (place, (form, name)) in EXPORTS.into_iter().enumerate() {
                        @if place > 0 { " · " }
                        a href=(address.in_form(self.site.base_path(), form)) { (name) }
                    }
                }
            }
        }
    }

    /// The journal or book of the work, such as `Journal of X, volume 12, issue 3, pages 45–67`.
    fn published_in(&self) -> Option<Text> {
        let container = &self.work.container;
        let pages = container.pages("–");
        let [title, volume, issue, pages] =
            [&container.title, &container.volume, &container.issue, &pages].map(Option::as_deref);
        let value = texts::published_in(title, volume, issue, pages);
        (!value.is_empty()).then(|| Text { value, ..Text::default() })
    }

    fn details(&self) -> Markup {
        let core = &self.work.core;
        let numbers = |numbers: &[String]| -> Vec<Text> {
            numbers.iter().map(|value| Text { value: value.clone(), ..Text::default() }).collect()
        };
        let published_in: Vec<Text> = self.published_in().into_iter().collect();
        let (issns, isbns) = (numbers(&self.work.container.issns), numbers(&self.work.isbns));
        let facts = [
            (texts::PUBLISHED_IN, &published_in),
            (texts::ISSN, &issns),
            (texts::ISBN, &isbns),
            (texts::PUBLISHER, &core.publishers),
            (texts::CONTRIBUTORS, &core.contributors),
            (texts::TYPE, &core.types),
            (texts::FORMAT, &core.formats),
            (texts::LANGUAGE, &core.languages),
            (texts::SOURCE, &core.sources),
            (texts::COVERAGE, &core.coverages),
            (texts::RIGHTS, &core.rights),
        ];
        html! {
            @if facts.iter().any(|(_, texts)| !texts.is_empty()) {
                section aria-labelledby="details" {
                    h2 id="details" { (texts::DETAILS) }
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
        let repository = RepositoryAddress { repository: self.address.repository };
        let base = self.site.base_path();
        html! {
            section aria-labelledby="provenance" {
                h2 id="provenance" { (texts::PROVENANCE) }
                dl {
                    div { dt { (common::REPOSITORY) } dd { a href=(self.address.repository(self.site.base_path())) {
                        bdi { (self.repository_name) } } } }
                    div { dt { (common::IDENTIFIER) } dd { bdi.identifier { (self.document.identifier) } } }
                    div { dt { (texts::CHANGED_AT_SOURCE) } dd { (time(&provenance.source_datestamp)) } }
                    @if let Some(stamp) = &provenance.stamp {
                        div { dt { (texts::CHANGED_IN_MIRROR) } dd { (time(stamp)) } }
                    }
                    @if !self.document.set_specs.is_empty() {
                        div {
                            dt { (common::SETS) }
                            @for set in self.document.set_specs.iter().take(SHOWN_VALUES_MAX) {
                                dd {
                                    // Only the mirror has lists of sets.
                                    @if provenance.stamp.is_some() {
                                        a href=(repository.set(base, set)) { bdi { (set) } }
                                    } @else {
                                        bdi { (set) }
                                    }
                                }
                            }
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
                h2 id="fields" { (texts::ALL_FIELDS) }
                nav.tabs aria-label=(common::FORMATS) {
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
                (fields_table(common::METADATA, &document.metadata))
                @if !document.about.is_empty() { (fields_table(common::ABOUT_METADATA, &document.about)) }
                @if document.left_out_fields > 0 {
                    p.cut { (common::more_fields(document.left_out_fields)) }
                }
            }
            section aria-labelledby="xml" {
                h2 id="xml" { (common::XML) }
                p {
                    (texts::DOWNLOAD) a href=(self.address.in_form(base, RecordForm::Xml)) { (common::XML) }
                    @for tab in self.formats.iter().filter(|tab| tab.is_current) {
                        " · " a href=(self.address.raw_metadata(base, &tab.prefix)) { (texts::METADATA_ONLY) }
                    }
                    " · "
                    a href=(RecordAddress { format: None, ..self.address }.in_form(base, RecordForm::JsonLd)) { (texts::JSON_LD) }
                }
                details {
                    summary { (texts::SHOW_XML) }
                    (xml_source(self.xml))
                }
            }
        }
    }
}

fn link_row(link: &Link) -> Markup {
    let name = match link.kind {
        LinkKind::Doi => texts::DOI,
        LinkKind::Handle => texts::HANDLE,
        LinkKind::Urn => texts::URN,
        LinkKind::Url => texts::URL,
    };
    html! { div { dt { (name) } dd { (link_to(link)) } } }
}

fn link_to(link: &Link) -> Markup {
    html! { a href=(link.url) { bdi { (link.name) } } }
}

/// A time of the record, which is not that of the work. Zotero takes the first `datetime` of a page without a date of
/// publication for that date.
fn time(text: &str) -> Markup {
    html! { time { (text) } }
}
