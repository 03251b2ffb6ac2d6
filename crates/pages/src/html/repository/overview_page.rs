//! The overview of all repositories.

use super::super::super::record::{RepositoryAddress, STATUS_PATH};
use super::super::super::repository::{OperatorDetails, RepositorySummary};
use super::activity::sparkline;
use super::state::{circuit, state_of, time};
use super::{NAME_BYTES_MAX, start_of};
use crate::route::OverviewTarget;
use crate::texts::numbers::{grouped, share};
use crate::texts::operator::STATUS;
use crate::texts::{common, repository as texts};
use maud::{Markup, html};
use oaimend_html::{Page, Site};
use std::collections::BTreeMap;

/// The overview of all repositories.
#[derive(Clone, Debug)]
pub struct OverviewPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The page, and the text that the shown repositories contain.
    pub target: &'a OverviewTarget,
    /// The shown repositories, in the order of the page.
    pub repositories: &'a [RepositorySummary],
    /// Maximum number of repositories on a page.
    pub rows_max: usize,
    /// The number of repositories that match the filter.
    pub matching: usize,
    /// The number of all repositories.
    pub all: usize,
    /// What only operators may know of the repositories, by id. `None` on the page for everyone.
    pub operator: Option<&'a BTreeMap<String, OperatorDetails>>,
}

impl OverviewPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let main = html! {
            h1 { (common::REPOSITORIES) }
            p {
                (texts::INTRODUCTION)
            }
            @if self.all == 0 {
                p { (texts::none_yet()) }
            } @else {
                (self.search())
                @if self.repositories.is_empty() {
                    p {
                        @if self.matching > 0 { (texts::EMPTY_PAGE) }
                        @else { (texts::none_contains(&self.target.filter)) }
                        a href={ (self.site.base_path()) "/" } { (texts::SHOW_ALL) }
                    }
                } @else {
                    (self.table())
                    (self.pages())
                }
            }
            p.note { (texts::for_programs(&format!("{}/friends.xml", self.site.public_base()))) }
            @if self.operator.is_some() {
                p { a href={ (self.site.base_path()) (STATUS_PATH) } { (STATUS) } (texts::STATUS_CONTENT) }
            }
        };
        Page { site: self.site, title: common::REPOSITORIES, crumbs: &[], head: html! {}, main }.render()
    }

    fn search(&self) -> Markup {
        html! {
            form.search role="search" method="get" action={ (self.site.base_path()) "/" } {
                label for="q" { (texts::FILTER_LABEL) }
                input id="q" name="q" type="search" value=(self.target.filter) maxlength="100" autocomplete="off";
                button type="submit" { (texts::FILTER) }
            }
        }
    }

    /// The links to the pages before and after this one.
    fn pages(&self) -> Markup {
        let (base, page) = (self.site.base_path(), self.target.page);
        let count = self.matching.div_ceil(self.rows_max);
        html! {
            @if count > 1 {
                nav.pages aria-label=(common::PAGES) {
                    p { (texts::page_of(page, count)) }
                    @if page > 1 { a rel="prev" href=(self.target.url(base, page - 1)) { (common::PREVIOUS_PAGE) } " " }
                    @if page < count { a rel="next" href=(self.target.url(base, page + 1)) { (common::NEXT_PAGE) } }
                }
            }
        }
    }

    fn table(&self) -> Markup {
        let shown = if self.target.filter.is_empty() {
            texts::number_of(self.all as u64)
        } else {
            texts::matching(&grouped(self.matching as u64), self.all as u64)
        };
        html! {
            table.plain.rows role="table" {
                caption { (shown) (texts::SHARES) }
                thead role="rowgroup" {
                    tr role="row" {
                        th scope="col" role="columnheader" { (common::REPOSITORY) }
                        th.n scope="col" role="columnheader" { (common::RECORDS) }
                        th scope="col" role="columnheader" { (texts::LAST_SUCCESS) }
                        th.n scope="col" role="columnheader" { (texts::REPAIRED) }
                        th.n scope="col" role="columnheader" { (texts::QUARANTINED) }
                        th scope="col" role="columnheader" { (texts::LAST_DAYS) }
                    }
                }
                tbody role="rowgroup" {
                    @for repository in self.repositories { (self.row(repository)) }
                }
            }
        }
    }

    fn row(&self, repository: &RepositorySummary) -> Markup {
        let base = self.site.base_path();
        let address = RepositoryAddress { repository: &repository.id };
        let base_url = address.base_url(self.site.public_url());
        let total = repository.total();
        let share = |number| share(number, total.items());
        let nothing = || html! { span.nothing { "–" } };
        html! {
            tr role="row" {
                th scope="row" role="rowheader" {
                    a href=(address.page(base)) { bdi { (start_of(repository.title(), NAME_BYTES_MAX)) } }
                    div.about { (state_of(repository)) }
                    div.about {
                        @if repository.has_record_pages {
                            a href=(address.records(self.site.public_base())) aria-label=(texts::records_of(&repository.id)) { (common::RECORDS) } " · "
                        }
                        a.url href={ (base_url) "?verb=Identify" } { (base_url) }
                    }
                    @if let Some(operator) = self.operator.and_then(|operator| operator.get(&repository.id)) {
                        div.about {
                            @if let Some(url) = &operator.source_base_url { (texts::SOURCE_IS) code { (url) } }
                            @if let Some(secs) = operator.circuit_open_secs { " " (circuit(secs)) }
                        }
                    }
                }
                td.n role="cell" data-label=(common::RECORDS) {
                    @match repository.records { Some(records) => (grouped(records)), None => (nothing()) }
                }
                td role="cell" data-label=(texts::LAST_SUCCESS) {
                    @match &repository.last_success_at { Some(at) => (time(at)), None => (nothing()) }
                }
                td.n role="cell" data-label=(texts::REPAIRED) {
                    @match share(total.repaired) { Some(share) => (share), None => (nothing()) }
                }
                td.n role="cell" data-label=(texts::QUARANTINED) {
                    @match share(total.quarantined) { Some(share) => (share), None => (nothing()) }
                }
                td role="cell" data-label=(texts::LAST_DAYS) { (sparkline(&repository.days)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::RepositoryState;

    fn page(filter: &str, repositories: &[RepositorySummary], all: usize) -> String {
        let site = Site::new("Site", None, "https://e.org/b");
        let target = OverviewTarget { filter: filter.to_owned(), page: 1 };
        let (matching, rows_max, operator) = (repositories.len(), 500, None);
        OverviewPage { site: &site, target: &target, repositories, rows_max, matching, all, operator }
            .render()
    }

    #[test]
    fn pages_lead_to_each_other() {
        let site = Site::new("Site", None, "https://e.org/b");
        let repository = RepositorySummary { id: "x".to_owned(), ..RepositorySummary::default() };
        let page = |page, filter: &str| {
            let target = OverviewTarget { filter: filter.to_owned(), page };
            let (repositories, matching, rows_max) = (&[repository.clone()][..], 3, 1);
            let page = OverviewPage {
                site: &site,
                target: &target,
                repositories,
                rows_max,
                matching,
                all: 3,
                operator: None,
            };
            page.render()
        };
        let (previous, next) = ("rel=\"prev\" href=", "rel=\"next\" href=");
        let first = page(1, "");
        assert!(first.contains(&format!("{next}\"/b/?page=2\"")) && !first.contains(previous), "{first}");
        let second = page(2, "a&b");
        let expected = format!("{next}\"/b/?q=a%26b&amp;page=3\"");
        assert!(second.contains(&expected), "{second}");
        assert!(second.contains(&format!("{previous}\"/b/?q=a%26b\"")), "{second}");
        assert!(!page(3, "").contains(next));
    }

    #[test]
    fn texts_are_escaped_and_links_begin_with_the_base_path() {
        let repository = RepositorySummary {
            id: "x".to_owned(),
            name: Some("<script>alert(1)</script>".to_owned()),
            state: RepositoryState::Incomplete,
            fails_since: Some("2024-05-06T07:08:09Z".to_owned()),
            records: Some(1_234),
            has_record_pages: true,
            ..RepositorySummary::default()
        };
        let page = page("\"><script>", &[repository], 3);
        assert!(!page.contains("<script"), "{page}");
        for part in [
            "<a href=\"/b/x/\"><bdi>&lt;script&gt;",
            "<a href=\"/b/x/records/\"",
            "<a class=\"url\" href=\"https://e.org/b/x?verb=Identify\">https://e.org/b/x</a>",
            "value=\"&quot;&gt;&lt;script&gt;\"",
            "<caption>1 of 3 repositories.",
            ">1,234</td>",
            "source fails since <time datetime=\"2024-05-06T07:08:09Z\">2024-05-06 07:08 UTC</time>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn pages_without_rows_say_why() {
        assert!(page("", &[], 0).contains("There is no repository yet"));
        assert!(page("a<b", &[], 3).contains("No repository contains <q>a&lt;b</q>"));
    }
}
