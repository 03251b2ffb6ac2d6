//! The state of the server: requests, hosts of sources, and harvests.

use super::super::super::record::{PLAN_CHART_PATH, RepositoryAddress};
use super::super::repository::start_of;
use super::super::repository::state::time;
use super::IDENTIFIER_BYTES_MAX;
use crate::texts::numbers::grouped;
use crate::texts::{common, operator as texts};
use maud::{Markup, html};
use oaimend_html::{Crumb, Page, Site};

/// The state of the server.
#[derive(Clone, Debug)]
pub struct StatusPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The requests that are being answered, the oldest first.
    pub requests: &'a [RequestRow],
    /// The repositories whose source has been requested.
    pub sources: &'a [SourceRow],
    /// The mirrored repositories, in the order of their next harvest.
    pub harvests: &'a [HarvestRow],
}

/// A request that is being answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestRow {
    /// The name of the repository.
    pub repository: String,
    /// Its arguments.
    pub query: String,
    /// The class of the client.
    pub class: Option<String>,
    /// Its age, in seconds.
    pub secs: u64,
}

/// The limits on requests to a source, and their use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceRow {
    /// The repository id.
    pub repository: String,
    /// The lists in flight at its host, and how many there may be.
    pub lists_in_flight: (usize, usize),
    /// The requests that wait for its host.
    pub waiting: usize,
    /// The gap between two requests that its responses have caused, or that is configured, in milliseconds.
    pub gap_millis: u64,
    /// The time until the next request may be sent, in milliseconds.
    pub wait_millis: u64,
    /// The seconds until the circuit is tried again; `None` if it is closed.
    pub circuit_open_secs: Option<u64>,
}

/// A mirrored repository in the queue of harvests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HarvestRow {
    /// The repository id.
    pub repository: String,
    /// What happens next, or now.
    pub state: HarvestState,
}

/// The state of the harvests of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HarvestState {
    /// A harvest runs. The progress is that of its current list.
    Running {
        /// Its begin.
        began_at: String,
        /// The format; empty before its first page.
        prefix: String,
        /// The records so far.
        records: u64,
        /// The records of the whole list, as far as its source says.
        total: Option<u64>,
    },
    /// An operator has requested a harvest, which has not begun.
    Requested,
    /// The next harvest is due then.
    Due(String),
    /// The schedule has not read its history yet.
    #[default]
    Unknown,
}

/// Maximum number of rows of a table.
const ROWS_MAX: usize = 1_000;

impl StatusPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let crumbs = [Crumb { name: texts::STATUS, url: None }];
        let main = html! {
            h1 { (texts::STATUS) }
            (self.requests())
            (self.sources())
            (self.harvests())
        };
        Page { site: self.site, title: texts::STATUS, crumbs: &crumbs, head: html! {}, main }.render()
    }

    fn requests(&self) -> Markup {
        html! {
            section aria-labelledby="requests" {
                h2 id="requests" { (texts::REQUESTS) }
                @if self.requests.is_empty() {
                    p { (texts::NO_REQUESTS) }
                } @else {
                    table.plain.rows role="table" {
                        (heads(&[common::REPOSITORY, texts::REQUEST, texts::CLIENT, texts::SECONDS]))
                        tbody role="rowgroup" {
                            @for row in self.requests.iter().take(ROWS_MAX) {
                                tr role="row" {
                                    th scope="row" role="rowheader" { bdi { (row.repository) } }
                                    td role="cell" { code { (start_of(&row.query, IDENTIFIER_BYTES_MAX)) } }
                                    td role="cell" { (row.class.as_deref().unwrap_or(texts::THIS_MACHINE)) }
                                    td.n role="cell" { (row.secs) }
                                }
                            }
                        }
                    }
                    (left_out(self.requests.len()))
                }
            }
        }
    }

    fn sources(&self) -> Markup {
        html! {
            section aria-labelledby="sources" {
                h2 id="sources" { (texts::SOURCES) }
                @if self.sources.is_empty() {
                    p { (texts::NO_SOURCES) }
                } @else {
                    table.plain.rows role="table" {
                        (heads(&[common::REPOSITORY, texts::LISTS, texts::WAITING, texts::GAP, texts::NEXT_REQUEST, texts::CIRCUIT]))
                        tbody role="rowgroup" {
                            @for row in self.sources.iter().take(ROWS_MAX) { (self.source(row)) }
                        }
                    }
                    (left_out(self.sources.len()))
                    p.note { (texts::SHARED_HOSTS) }
                }
            }
        }
    }

    fn source(&self, row: &SourceRow) -> Markup {
        let (in_flight, max) = row.lists_in_flight;
        html! {
            tr role="row" {
                th scope="row" role="rowheader" { (self.link(&row.repository)) }
                td role="cell" { (texts::lists_in_flight(in_flight, max)) }
                td role="cell" { (row.waiting) }
                td role="cell" { (millis(row.gap_millis)) }
                td role="cell" { @if row.wait_millis == 0 { (texts::AT_ONCE) } @else { (texts::after(&millis(row.wait_millis))) } }
                td role="cell" {
                    @match row.circuit_open_secs {
                        Some(secs) => (texts::open_for(secs)),
                        None => (texts::CLOSED),
                    }
                }
            }
        }
    }

    fn harvests(&self) -> Markup {
        html! {
            section aria-labelledby="harvests" {
                h2 id="harvests" { (texts::HARVESTS) }
                @if self.harvests.is_empty() {
                    p { (texts::NO_HARVESTS) }
                } @else {
                    table.plain.rows role="table" {
                        (heads(&[common::REPOSITORY, texts::STATE]))
                        tbody role="rowgroup" {
                            @for row in self.harvests.iter().take(ROWS_MAX) {
                                tr role="row" {
                                    th scope="row" role="rowheader" { (self.link(&row.repository)) }
                                    td role="cell" { (harvest(&row.state)) }
                                }
                            }
                        }
                    }
                    (left_out(self.harvests.len()))
                    p { img.plan src={ (self.site.base_path()) (PLAN_CHART_PATH) } width="800" height="500"
                        alt=(texts::PLAN_CHART); }
                }
            }
        }
    }

    fn link(&self, repository: &str) -> Markup {
        let url = RepositoryAddress { repository }.page(self.site.base_path());
        html! { a href=(url) { bdi { (repository) } } }
    }
}

fn heads(names: &[&str]) -> Markup {
    html! {
        thead role="rowgroup" {
            tr role="row" { @for name in names { th scope="col" role="columnheader" { (name) } } }
        }
    }
}

fn left_out(rows: usize) -> Markup {
    html! { @if rows > ROWS_MAX { p.cut { (common::and_more((rows - ROWS_MAX) as u64)) } } }
}

fn millis(millis: u64) -> String {
    if millis < 1_000 { format!("{millis} ms") } else { format!("{} s", millis.div_ceil(1_000)) }
}

fn harvest(state: &HarvestState) -> Markup {
    html! {
        @match state {
            HarvestState::Running { began_at, prefix, records, total } => {
                @let total = total.map(grouped);
                (texts::running(&time(began_at), prefix, &grouped(*records), total.as_deref()))
            }
            HarvestState::Requested => (texts::REQUESTED),
            HarvestState::Due(at) => (texts::next_at(&time(at))),
            HarvestState::Unknown => (texts::NOT_PLANNED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(requests: &[RequestRow], sources: &[SourceRow], harvests: &[HarvestRow]) -> String {
        let site = Site::new("Site", None, "https://e.org").for_operators();
        StatusPage { site: &site, requests, sources, harvests }.render()
    }

    #[test]
    fn empty_tables_say_so() {
        let page = page(&[], &[], &[]);
        for text in ["No request is in flight.", "No source has been requested", "No repository is mirrored."]
        {
            assert!(page.contains(text), "{page}");
        }
        assert!(!page.contains("<table") && !page.contains("plan.svg"), "{page}");
    }

    #[test]
    fn rows_are_escaped_and_complete() {
        let request = RequestRow {
            repository: "<i>".to_owned(),
            query: "verb=<script>".to_owned(),
            class: Some("crawlers".to_owned()),
            secs: 12,
        };
        let source = SourceRow {
            repository: "x".to_owned(),
            lists_in_flight: (1, 2),
            waiting: 7,
            gap_millis: 500,
            wait_millis: 3_200,
            circuit_open_secs: Some(30),
        };
        let running = HarvestState::Running {
            began_at: "2026-01-02T03:04:05Z".to_owned(),
            prefix: "oai_dc".to_owned(),
            records: 12_345,
            total: Some(20_000),
        };
        let harvest = HarvestRow { repository: "x".to_owned(), state: running };
        let page = page(&[request], &[source], &[harvest]);
        for text in [
            "<code>verb=&lt;script&gt;</code>",
            "crawlers",
            "1 of 2",
            ">7<",
            "500 ms",
            "in 4 s",
            "open for 30 s",
            "href=\"/x/\"",
            "/-/plan.svg",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
        assert!(!page.contains("<script>") && !page.contains("<i>"), "{page}");
    }
}
