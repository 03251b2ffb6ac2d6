//! The page of a search: the box, and what it found.

use super::facets::{chosen, facets, open};
use super::results::results;
use crate::search::{ResultList, SearchAddress, SearchForm, SearchResults, SortOrder};
use crate::texts::{common, search as texts};
use maud::{Markup, html};
use oaimend_html::{Crumb, Page, Site};

/// The page of a search, or of the last changed records.
#[derive(Clone, Debug)]
pub struct SearchPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The state of the search.
    pub address: &'a SearchAddress,
    /// What the page shows.
    pub shown: Shown<'a>,
}

/// What the page of a search shows.
#[derive(Clone, Copy, Debug)]
pub enum Shown<'a> {
    /// The invitation to search so many records.
    Invitation(u64),
    /// The results.
    Results(&'a SearchResults),
    /// Why the query is refused. For status 400.
    Fault(&'a str),
}

/// Longest query that the box accepts, in characters.
const QUERY_CHARS_MAX: usize = 1_000;

impl SearchPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let title = texts::title(self.address);
        let name = match self.address.list {
            ResultList::Search => texts::SEARCH,
            ResultList::Recent => texts::RECENT,
        };
        let main = html! {
            h1 { (name) }
            @if self.address.list == ResultList::Search { (self.search_box()) }
            @match self.shown {
                Shown::Invitation(records) => (self.invitation(records)),
                Shown::Results(found) => (self.results(found)),
                Shown::Fault(fault) => @match self.address.list {
                    // The box says what is wrong.
                    ResultList::Search => p.note { (texts::SYNTAX) },
                    ResultList::Recent => p.warning role="alert" { (fault) },
                },
            }
        };
        let site = self.site.without_search_box();
        let crumbs = [Crumb { name, url: None }];
        Page { site: &site, title: &title, crumbs: &crumbs, head: self.head(), main }.render()
    }

    fn head(&self) -> Markup {
        let feed = SearchForm::Atom;
        let public_url = self.site.public_url();
        let media_type = feed.content_type().split(';').next().unwrap_or_default();
        let is_listed = matches!(self.shown, Shown::Invitation(_));
        html! {
            // Search engines ask that pages of results stay out of their indexes.
            @if !is_listed { meta name="robots" content="noindex"; }
            @if !matches!(self.shown, Shown::Fault(_)) {
                link rel="alternate" type=(media_type) title=(texts::FEED) href=(self.address.on_page(0).url(public_url, feed.ending()));
            }
        }
    }

    fn search_box(&self) -> Markup {
        let fault = match self.shown {
            Shown::Fault(fault) => Some(fault),
            _ => None,
        };
        let described_by = fault.map(|_| "query-fault");
        html! {
            form.search.wide role="search" method="get" action={ (self.site.base_path()) (ResultList::Search.path()) } {
                label for="query" { (texts::BOX_LABEL) }
                input id="query" name="q" type="search" value=(self.address.query) maxlength=(QUERY_CHARS_MAX) autocomplete="off"
                    aria-invalid=[fault.map(|_| "true")] aria-describedby=[described_by];
                @for (name, value) in self.address.narrowing() { input type="hidden" name=(name) value=(value); }
                button type="submit" { (texts::SEARCH) }
            }
            @if let Some(fault) = fault { p.warning id="query-fault" role="alert" { (fault) } }
        }
    }

    fn invitation(&self, records: u64) -> Markup {
        let base = self.site.base_path();
        html! {
            p { (texts::searchable(records)) }
            section aria-labelledby="examples" {
                h2 id="examples" { (texts::EXAMPLES) }
                ul.list {
                    @for query in texts::EXAMPLE_QUERIES {
                        li { a href=(SearchAddress { query: query.to_owned(), ..SearchAddress::default() }.url(base, "")) { (query) } }
                    }
                }
                p.note { (texts::SYNTAX) }
            }
            p { a href={ (base) (ResultList::Recent.path()) } { (texts::RECENT) } }
        }
    }

    fn results(&self, found: &SearchResults) -> Markup {
        let base = self.site.base_path();
        let has_facets = open(self.address, found).next().is_some();
        html! {
            (chosen(self.address, found, base))
            @if found.items.is_empty() {
                (self.nothing(found))
            } @else {
                div.columns {
                    div.rest {
                        section aria-labelledby="results" {
                            h2 id="results" {
                                (texts::found(found.total, found.is_estimate))
                                @if self.address.pages_before > 0 { (texts::page_number(self.address)) }
                            }
                            @if has_facets { p.to-filters { a href="#filters" { (texts::TO_FILTERS) } } }
                            @if self.address.list == ResultList::Search { (self.orders(base)) }
                            (results(&found.items, self.address, self.site))
                            (self.neighbours(found.total, base))
                        }
                        p.note {
                            a href=(self.address.on_page(0).url(base, SearchForm::Atom.ending())) { (texts::FEED) } ", "
                            a href=(self.address.url(base, SearchForm::Json.ending())) { (texts::JSON) }
                        }
                    }
                    @if has_facets { (facets(self.address, found, base)) }
                }
            }
        }
    }

    fn nothing(&self, found: &SearchResults) -> Markup {
        let base = self.site.base_path();
        let mut without_choice = self.address.on_page(0);
        without_choice.chosen.clear();
        html! {
            @if found.total > 0 {
                p { (texts::NO_MORE) " " a href=(self.address.on_page(0).url(base, "")) { (texts::FIRST_PAGE) } }
            } @else {
                p { strong { (texts::NO_RESULTS) } }
                section aria-labelledby="tries" {
                    h2 id="tries" { (texts::WHAT_TO_TRY) }
                    ul {
                        @if !self.address.chosen.is_empty() {
                            li { a href=(without_choice.url(base, "")) { (texts::TRY_ALL_VALUES) } }
                        }
                        li { (texts::TRY_WORDS) }
                        li { (texts::TRY_PLUS) }
                    }
                    p.note { (texts::SYNTAX) }
                }
            }
        }
    }

    /// Links to the same results in other orders.
    fn orders(&self, base: &str) -> Markup {
        html! {
            nav.orders aria-label=(texts::ORDER) {
                ul {
                    @for &sort in SortOrder::ALL {
                        @let current = (sort == self.address.sort).then_some("true");
                        li { a href=(self.address.sorted(sort).url(base, "")) aria-current=[current] { (texts::sort_order(sort)) } }
                    }
                }
            }
        }
    }

    /// Links to the pages before and after this one.
    fn neighbours(&self, total: u64, base: &str) -> Markup {
        let (previous, next) = (self.address.previous(), self.address.next(total));
        html! {
            @if previous.is_some() || next.is_some() {
                nav.pages aria-label=(common::PAGES) {
                    span { @if let Some(previous) = previous { a rel="prev" href=(previous.url(base, "")) { (common::PREVIOUS) } } }
                    span { @if let Some(next) = next { a rel="next" href=(next.url(base, "")) { (common::NEXT) } } }
                }
            }
        }
    }
}
