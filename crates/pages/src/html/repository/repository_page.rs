//! The page of a repository.

use super::super::super::record::{QuarantineAddress, RepositoryAddress};
use super::super::super::repository::{Identification, OperatorDetails, RepositoryDetails};
use super::super::list::browse_page::browse_links;
use super::activity::activity_section;
use super::state::{circuit, state_of, time};
use super::{NAME_BYTES_MAX, TEXT_BYTES_MAX, sections, start_of};
use crate::search::{FacetKind, ResultList, SearchAddress, SearchForm};
use crate::texts::numbers::grouped;
use crate::texts::search::RECENT;
use crate::texts::{common, repository as texts};
use maud::{Markup, html};
use oaimend_html::{Crumb, Page, Site};

/// The page of a repository.
#[derive(Clone, Debug)]
pub struct RepositoryPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The repository.
    pub details: &'a RepositoryDetails,
    /// What only operators may know. Without it, the page is for everyone, and leaves out the details of failures.
    pub operator: Option<&'a OperatorDetails>,
}

/// Maximum number of mail addresses that are shown.
const EMAILS_MAX: usize = 5;

impl RepositoryPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let Self { site, details, operator } = self;
        let summary = &details.summary;
        let title = start_of(summary.title(), NAME_BYTES_MAX);
        let crumbs = [Crumb { name: &title, url: None }];
        let is_operator = operator.is_some();
        let main = html! {
            header {
                p.kind { (texts::kind(&summary.id)) }
                h1 { bdi { (title) } }
                p { (state_of(summary)) }
                @if let Some(sentence) = texts::sentence(summary.state) { p { (sentence) } }
            }
            div.columns {
                div.introduction { (self.how_to_harvest()) }
                div.side {
                    (identification(&details.identification))
                    (self.mirror())
                    @if let Some(operator) = operator {
                        (source(operator, &QuarantineAddress { repository: &summary.id }.list(site.base_path())))
                    }
                }
                div.rest {
                    (activity_section(summary))
                    @if let Some(timeline) = details.mirror.as_ref().and_then(|mirror| mirror.timeline.as_ref()) {
                        (sections::timeline(timeline))
                    }
                    (sections::formats(details))
                    (sections::sets(details, site.public_base()))
                    (sections::repairs(details, site.public_base(), is_operator))
                    (sections::failures(details, is_operator))
                    (sections::check(details, is_operator))
                }
            }
        };
        Page { site, title: &title, crumbs: &crumbs, head: self.head(), main }.render()
    }

    /// Whether the search has records of it that have pages.
    fn has_indexed_records(&self) -> bool {
        self.site.has_search() && self.details.summary.has_record_pages && self.details.mirror.is_some()
    }

    /// The feed of its last changed records, if there is one.
    fn feed(&self) -> Option<String> {
        let summary = &self.details.summary;
        let recent = SearchAddress { list: ResultList::Recent, ..SearchAddress::default() };
        let feed = recent.with(FacetKind::Repository, &summary.id);
        self.has_indexed_records().then(|| feed.url(self.site.public_url(), SearchForm::Atom.ending()))
    }

    fn head(&self) -> Markup {
        html! {
            @if let Some(feed) = self.feed() {
                link rel="alternate" type="application/atom+xml" title=(RECENT) href=(feed);
            }
        }
    }

    fn how_to_harvest(&self) -> Markup {
        let summary = &self.details.summary;
        let address = RepositoryAddress { repository: &summary.id };
        let base_url = address.base_url(self.site.public_url());
        let has_own_url = self.details.mirror.as_ref().is_some_and(|mirror| mirror.has_own_url);
        let formats = self.details.formats.as_deref().unwrap_or_default();
        let prefix = formats.iter().map(|format| format.prefix.as_str()).find(|prefix| *prefix == "oai_dc");
        let prefix = prefix.or(formats.first().map(|format| format.prefix.as_str())).unwrap_or("oai_dc");
        html! {
            section aria-labelledby="harvest" {
                h2 id="harvest" { (texts::HARVEST_THIS) }
                dl.urls {
                    div { dt { (common::BASE_URL) } dd { code { (base_url) } } }
                    @if has_own_url {
                        div { dt { (texts::MIRROR_URL) }
                            dd { code { (self.site.public_url()) "/_mirror/" (summary.id) } } }
                    }
                    div { dt { (texts::ALL_RECORDS) } dd { code { (base_url) "?verb=ListRecords&metadataPrefix=" (prefix) } } }
                    div { dt { (texts::CHANGES) }
                        dd { code { (base_url) "?verb=ListRecords&metadataPrefix=" (prefix) "&from=2025-01-31" } } }
                }
                p {
                    (texts::RESPONSES) a href={ (base_url) "?verb=Identify" } { (common::IDENTIFY) } " · "
                    a href={ (base_url) "?verb=ListMetadataFormats" } { (texts::FORMATS_RESPONSE) } " · "
                    a href={ (base_url) "?verb=ListSets" } { (texts::SETS_RESPONSE) }
                }
                @if summary.has_record_pages {
                    p { a.landing href=(address.records(self.site.public_base())) { (texts::BROWSE) } }
                    @if self.has_indexed_records() {
                        p { (common::BROWSE_BY) (browse_links(&summary.id, self.site.public_base(), None)) }
                    }
                    @if let Some(feed) = self.feed() { p { a href=(feed) { (texts::FEED) } } }
                }
            }
        }
    }

    fn mirror(&self) -> Markup {
        let summary = &self.details.summary;
        html! {
            @if let Some(mirror) = &self.details.mirror {
                section aria-labelledby="mirror" {
                    h2 id="mirror" { (texts::MIRROR) }
                    dl {
                        div { dt { (common::RECORDS) } dd { (grouped(summary.records.unwrap_or_default())) } }
                        @if mirror.missing > 0 {
                            div { dt { (texts::NOT_STORED) } dd { (grouped(mirror.missing)) } }
                        }
                        (fact(texts::LAST_COMPLETE_HARVEST, summary.last_success_at.as_deref().map(time)))
                        @if let Some(at) = &mirror.last_harvest_at {
                            @let (stored, deleted) = mirror.last_changes;
                            div { dt { (texts::LAST_HARVEST) }
                                dd { (time(at)) br; (texts::changes(&grouped(stored), &grouped(deleted))) } }
                        }
                        (fact(texts::NEXT_HARVEST, mirror.next_harvest_at.as_deref().map(time)))
                    }
                }
            } @else if let Some(at) = &summary.last_success_at {
                section aria-labelledby="source" {
                    h2 id="source" { (texts::SOURCE) }
                    dl { (fact(texts::LAST_RESPONSE, Some(time(at)))) }
                }
            }
        }
    }
}

fn identification(identification: &Identification) -> Markup {
    let Identification { name: _, admin_emails, earliest_datestamp, deleted_record, granularity, version } =
        identification;
    let deleted = deleted_record.as_deref().map(|policy| match policy {
        "no" => texts::DELETIONS_VANISH.to_owned(),
        "transient" => texts::DELETIONS_ARE_FORGOTTEN.to_owned(),
        "persistent" => texts::DELETIONS_STAY.to_owned(),
        other => start_of(other, TEXT_BYTES_MAX),
    });
    let granularity = granularity.as_deref().map(|granularity| match granularity {
        "YYYY-MM-DD" => texts::DAYS.to_owned(),
        "YYYY-MM-DDThh:mm:ssZ" => texts::SECONDS.to_owned(),
        other => start_of(other, TEXT_BYTES_MAX),
    });
    let text = |text: &str| html! { bdi { (start_of(text, TEXT_BYTES_MAX)) } };
    let is_known = identification != &Identification::default();
    html! {
        section aria-labelledby="identify" {
            h2 id="identify" { (texts::IDENTIFICATION) }
            @if is_known {
                dl {
                    (fact(common::EARLIEST_DATESTAMP, earliest_datestamp.as_deref().map(text)))
                    (fact(common::DELETED_RECORDS, deleted.as_deref().map(text)))
                    (fact(texts::PRECISION, granularity.as_deref().map(text)))
                    (fact(texts::VERSION, version.as_deref().map(text)))
                    @if !admin_emails.is_empty() {
                        div {
                            dt { (common::CONTACT) }
                            @for email in admin_emails.iter().take(EMAILS_MAX) { dd { (text(email)) } }
                        }
                    }
                }
            } @else {
                p { (texts::NOT_IDENTIFIED) }
            }
        }
    }
}

fn source(operator: &OperatorDetails, quarantine: &str) -> Markup {
    html! {
        section aria-labelledby="operator" {
            h2 id="operator" { (texts::FOR_OPERATORS) }
            dl {
                @if let Some(url) = &operator.source_base_url {
                    div { dt { (texts::SOURCE_URL) } dd { code { (url) } } }
                }
                (fact(texts::CIRCUIT, operator.circuit_open_secs.map(circuit)))
            }
            p { a href=(quarantine) { (texts::QUARANTINED_RECORDS) } }
            details {
                summary { (texts::CONFIGURATION) }
                pre tabindex="0" { code { (operator.configuration) } }
            }
        }
    }
}

fn fact(name: &str, value: Option<Markup>) -> Markup {
    html! {
        @if let Some(value) = value { div { dt { (name) } dd { (value) } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::{
        CheckResult, FailedRule, FormatDetails, MirrorDetails, RepositoryState, RepositorySummary, SetDetails,
    };
    use oaimend_store::{DayCounts, FrequentRepair, RepairExample, SourceFailure};

    /// A repository with markup in every text, in which `SECRET` is for operators.
    fn details() -> RepositoryDetails {
        let evil = || "<script>\"'".to_owned();
        let repair = |record: Option<String>| FrequentRepair {
            name: "bare-ampersand".to_owned(),
            count: 1_234,
            example: Some(RepairExample {
                original: if record.is_some() { evil() } else { "SECRET".to_owned() },
                record,
                replacement: evil(),
            }),
        };
        RepositoryDetails {
            summary: RepositorySummary {
                id: "x".to_owned(),
                name: Some(evil()),
                state: RepositoryState::NeverHarvested,
                has_record_pages: true,
                days: vec![DayCounts { requests: 5, ..DayCounts::default() }],
                ..RepositorySummary::default()
            },
            identification: Identification {
                admin_emails: vec![evil()],
                earliest_datestamp: Some(evil()),
                deleted_record: Some(evil()),
                granularity: Some(evil()),
                ..Identification::default()
            },
            formats: Some(vec![FormatDetails {
                prefix: evil(),
                namespace: "n".repeat(9_999),
                records: None,
            }]),
            sets: Some(vec![SetDetails { set_spec: evil(), name: evil() }]),
            left_out_sets: 7,
            mirror: Some(MirrorDetails { has_own_url: true, ..MirrorDetails::default() }),
            repairs: vec![repair(Some(evil())), repair(None)],
            failures: vec![SourceFailure {
                at: "2024-05-06T07:08:09Z".to_owned(),
                request: "SECRET".to_owned(),
                reason: "dns".to_owned(),
                details: "SECRET".to_owned(),
            }],
            check: Some(CheckResult {
                checked_at: "2024-05-06T07:08:09Z".to_owned(),
                counts: (5, 1, 0),
                findings: vec![FailedRule {
                    rule: evil(),
                    received: "SECRET".to_owned(),
                    ..FailedRule::default()
                }],
            }),
        }
    }

    fn page(operator: Option<&OperatorDetails>) -> String {
        let site = Site::new("Site", None, "https://e.org/b");
        RepositoryPage { site: &site, details: &details(), operator }.render()
    }

    #[test]
    fn only_operators_see_what_the_source_sent() {
        let public = page(None);
        assert!(!public.contains("SECRET") && !public.contains("For operators"), "{public}");
        let operator = OperatorDetails {
            configuration: "gap = \"<i>\"".to_owned(),
            source_base_url: Some("http://SECRET/?a=***".to_owned()),
            circuit_open_secs: Some(30),
        };
        // The base URL, the failure with its request, the repair outside records, and the finding.
        let page = page(Some(&operator));
        assert_eq!(page.matches("SECRET").count(), 5);
        assert!(page.contains("href=\"/b/x/quarantine/\"") && page.contains("open for 30 s"), "{page}");
    }

    #[test]
    fn texts_are_escaped_and_bounded() {
        let page = page(None);
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains(&"n".repeat(501)) && page.contains(&format!("{}…", "n".repeat(500))));
        for part in [
            "<a href=\"/b/x/sets/%3Cscript%3E%22%27/\">",
            "<caption>8 sets</caption>",
            "… and 7 more: <a href=\"/b/x/sets/\">all sets</a>",
            "<a class=\"identifier\" href=\"/b/x/record/%3Cscript%3E%22%27\">",
            "1,234 times",
            "<code>https://e.org/b/_mirror/x</code>",
            "The host name of the source cannot be resolved.",
            "5 rules hold, 1 fails, 0 warnings.",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
