//! A page of the list of records: months, ranges of sequences, or links to records.

use super::browse_page::browse_links;
use crate::list::{ListAddress, ListPart, Month, SequenceRange, SetsAddress};
use crate::record::{RecordAddress, RepositoryAddress};
use crate::texts::sets::FEED;
use crate::texts::{common, lists as texts};
use maud::{Markup, html};
use oaimend_html::{Crumb, Page, Site};
use oaimend_record::Text;

/// A page of the list of records.
#[derive(Clone, Debug)]
pub struct ListPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The name of the repository.
    pub repository_name: &'a str,
    /// The place of the page.
    pub address: &'a ListAddress,
    /// The name of the set, if the list is that of a set.
    pub set_name: Option<&'a str>,
    /// What the page lists.
    pub content: ListContent,
    /// The parts of the list before and after this one.
    pub neighbours: [Option<ListPart>; 2],
    /// Whether the repository has sets.
    pub has_sets: bool,
    /// Where the list is from.
    pub listed_from: ListedFrom,
}

/// Where a list is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListedFrom {
    /// The mirror, so that the times are those of changes in it.
    Mirror,
    /// The source, so that the times are its datestamps.
    Source {
        /// When it was read, such as `2026-11-24T00:00:00Z`.
        read_at: String,
        /// Whether these are all records.
        is_complete: bool,
    },
}

/// What a page of the list of records contains. Each kind has at most 1,000 links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListContent {
    /// The months with records.
    Months(Vec<MonthEntry>),
    /// The ranges with records, and the numbers of their records.
    Ranges(Month, Vec<(SequenceRange, u64)>),
    /// The records.
    Records(Vec<RecordLink>),
}

/// A month with records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonthEntry {
    /// The month.
    pub month: Month,
    /// The number of its records.
    pub records: u64,
    /// The ranges that its own page would list, if a bin were more than one link away from there.
    pub ranges: Vec<(SequenceRange, u64)>,
}

/// A link to a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordLink {
    /// The identifier.
    pub identifier: String,
    /// The title; `None` if it is not known.
    pub title: Option<Text>,
    /// The first creators.
    pub creators: Vec<Text>,
    /// The number of further creators.
    pub more_creators: usize,
    /// The year of publication; `None` if it is not known.
    pub year: Option<u16>,
    /// The day of the stamp, such as `2026-11-24`.
    pub changed: String,
}

impl ListPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let base = self.site.base_path();
        let heading = self.heading();
        let repository = RepositoryAddress { repository: &self.address.repository };
        let mut crumbs = vec![Crumb { name: self.repository_name, url: Some(repository.page(base)) }];
        let part_name = part_name(self.address.part);
        let month_name = match self.address.part {
            ListPart::Range(month, _) => month.name(),
            _ => String::new(),
        };
        let list = self.address.with(ListPart::Months).url(base);
        let list_url = (self.address.part != ListPart::Months).then_some(list);
        if let Some(name) = self.set_name {
            crumbs.push(Crumb { name: common::SETS, url: Some(self.sets().url(base)) });
            crumbs.push(Crumb { name, url: list_url });
        } else {
            crumbs.push(Crumb { name: common::RECORDS, url: list_url });
        }
        if let ListPart::Range(month, _) = self.address.part {
            let url = self.address.with(ListPart::Month(month)).url(base);
            crumbs.push(Crumb { name: &month_name, url: Some(url) });
        }
        if let Some(name) = &part_name {
            crumbs.push(Crumb { name, url: None });
        }
        let title = common::title(&heading, self.repository_name);
        let main = html! {
            h1 { (heading) }
            (self.introduction())
            (self.links(base))
            (self.neighbours_nav(base))
        };
        Page { site: self.site, title: &title, crumbs: &crumbs, head: self.head(), main }.render()
    }

    fn sets(&self) -> SetsAddress {
        SetsAddress { repository: self.address.repository.clone(), after: None }
    }

    fn heading(&self) -> String {
        let month = match self.address.part {
            ListPart::Range(month, _) => Some(month.name()),
            _ => None,
        };
        let parts: Vec<String> = month.into_iter().chain(part_name(self.address.part)).collect();
        texts::heading(self.set_name, &parts)
    }

    fn head(&self) -> Markup {
        let public_url = self.site.public_url();
        let is_empty = matches!(&self.content, ListContent::Records(links) if links.is_empty());
        html! {
            link rel="canonical" href=(self.address.url(public_url));
            @if let Some(feed) = self.address.feed() {
                link rel="alternate" type="application/atom+xml" title=(FEED) href=(feed.url(public_url));
            }
            @if is_empty { meta name="robots" content="noindex"; }
        }
    }

    fn introduction(&self) -> Markup {
        let (count, order) = match &self.content {
            ListContent::Months(months) => (months.iter().map(|month| month.records).sum(), texts::BY_MONTH),
            ListContent::Ranges(_, ranges) => (ranges.iter().map(|(_, count)| count).sum(), texts::IN_ORDER),
            ListContent::Records(links) => (links.len() as u64, texts::IN_ORDER),
        };
        let place = match &self.listed_from {
            ListedFrom::Mirror => texts::IN_MIRROR,
            ListedFrom::Source { .. } => texts::AT_SOURCE,
        };
        let is_root = self.address.set.is_none() && self.address.part == ListPart::Months;
        html! {
            @if count == 0 {
                p { (texts::NONE) }
            } @else {
                p { (texts::introduction(count, order, place)) }
            }
            @if let ListedFrom::Source { read_at, is_complete } = &self.listed_from {
                p {
                    (texts::requested_at(read_at))
                    @if !is_complete { (texts::NOT_COMPLETE) }
                }
            }
            @if let Some(feed) = self.address.feed() {
                p { a href=(feed.url(self.site.base_path())) { (FEED) } }
            }
            @if is_root && self.has_sets {
                p { a href=(self.sets().url(self.site.base_path())) { (texts::BY_SET) } }
            }
            @if is_root && self.site.has_search() && self.listed_from == ListedFrom::Mirror {
                p { (common::BROWSE_BY) (browse_links(&self.address.repository, self.site.base_path(), None)) }
            }
        }
    }

    fn links(&self, base: &str) -> Markup {
        let month_url = |month| self.address.with(ListPart::Month(month)).url(base);
        html! {
            ul.list {
                @match &self.content {
                    ListContent::Months(months) => @for entry in months {
                        li {
                            a href=(month_url(entry.month)) { (entry.month.name()) } " "
                            span.count { (common::number_of_records(entry.records)) }
                            @if !entry.ranges.is_empty() {
                                ul.list { (self.ranges(entry.month, &entry.ranges, base)) }
                            }
                        }
                    },
                    ListContent::Ranges(month, ranges) => (self.ranges(*month, ranges, base)),
                    ListContent::Records(links) => @for link in links { (self.record(link, base)) },
                }
            }
        }
    }

    fn ranges(&self, month: Month, ranges: &[(SequenceRange, u64)], base: &str) -> Markup {
        html! {
            @for (range, count) in ranges {
                li {
                    a href=(self.address.with(ListPart::Range(month, *range)).url(base)) { (range.name()) } " "
                    span.count { (common::number_of_records(*count)) }
                }
            }
        }
    }

    fn record(&self, link: &RecordLink, base: &str) -> Markup {
        let RecordLink { identifier, title, creators, more_creators, year, changed } = link;
        let address = RecordAddress { repository: &self.address.repository, identifier, format: None };
        html! {
            li {
                @match title {
                    Some(title) => a href=(address.page(base)) lang=(title.lang()) dir=(title.direction().name()) {
                        (title.value) @if title.left_out_bytes > 0 { "…" }
                    },
                    None => a.identifier href=(address.page(base)) { bdi { (identifier) } },
                }
                " " time.count datetime=(changed) { (changed) }
                @if !creators.is_empty() || year.is_some() {
                    div.by {
                        @for (index, creator) in creators.iter().enumerate() {
                            @if index > 0 { "; " }
                            bdi lang=(creator.lang()) { (creator.value) }
                        }
                        @if *more_creators > 0 { (texts::and_more_creators(*more_creators)) }
                        @if let Some(year) = year {
                            @if !creators.is_empty() { ", " }
                            (year)
                        }
                    }
                }
            }
        }
    }

    fn neighbours_nav(&self, base: &str) -> Markup {
        let [previous, next] = self.neighbours;
        let link = |part: ListPart, relation, label| {
            html! {
                a rel=(relation) href=(self.address.with(part).url(base)) {
                    (label) ": " (part_name(part).unwrap_or_default())
                }
            }
        };
        html! {
            @if previous.is_some() || next.is_some() {
                nav.pages aria-label=(texts::NEIGHBOURS) {
                    @if let Some(part) = previous { (link(part, "prev", common::PREVIOUS)) }
                    @if let Some(part) = next { (link(part, "next", common::NEXT)) }
                }
            }
        }
    }
}

/// The name of a part for people; `None` for the whole list.
fn part_name(part: ListPart) -> Option<String> {
    match part {
        ListPart::Months | ListPart::Unknown => None,
        ListPart::Month(month) => Some(month.name()),
        ListPart::Range(_, range) => Some(range.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_oai::UnixSecs;

    fn render(address: &ListAddress, set_name: Option<&str>, content: ListContent) -> String {
        let site = Site::new("Site", None, "https://e.org/b");
        let neighbours = [None, Some(ListPart::Month(Month::of_secs(UnixSecs(0))))];
        let page = ListPage {
            site: &site,
            repository_name: "<i>",
            address,
            set_name,
            content,
            neighbours,
            has_sets: true,
            listed_from: ListedFrom::Mirror,
        };
        page.render()
    }

    fn range() -> SequenceRange {
        SequenceRange::read("1000-1999").expect("a fixed range")
    }

    #[test]
    fn months_link_to_their_pages_and_their_ranges() {
        let month = Month::of_secs(UnixSecs(1_793_800_000));
        let entry = |ranges| MonthEntry { month, records: 1_234_567, ranges };
        let address = ListAddress::of_repository("x");
        let page = render(&address, None, ListContent::Months(vec![entry(vec![(range(), 1)])]));
        for part in [
            "<h1>Records</h1><p>1,234,567 records, by the month",
            "<a href=\"/b/x/records/2026-11/\">November 2026</a>",
            "<a href=\"/b/x/records/2026-11/1000-1999\">1,000–1,999</a> <span class=\"count\">1 record</span>",
            "<a href=\"/b/x/sets/\">Records by set</a>",
            "<link rel=\"canonical\" href=\"https://e.org/b/x/records/\">",
            "<li><span aria-current=\"page\"><bdi>Records</bdi></span></li>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<i>"), "{page}");
    }

    #[test]
    fn records_are_links_with_titles_or_identifiers() {
        let title = Text {
            value: "<i> أغاني الميناء".to_owned(),
            language: Some("ar".to_owned()),
            left_out_bytes: 1,
        };
        let link = |identifier: &str, title| RecordLink {
            identifier: identifier.to_owned(),
            title,
            creators: vec![Text { value: "<i> B".to_owned(), ..Text::default() }; 2],
            more_creators: 5,
            year: Some(2019),
            changed: "2026-11-24".to_owned(),
        };
        let month = Month::of_secs(UnixSecs(1_793_800_000));
        let address = ListAddress {
            repository: "x".to_owned(),
            set: Some("a:b".to_owned()),
            part: ListPart::Range(month, range()),
        };
        let content = ListContent::Records(vec![link("a/<b>", Some(title)), link("<i>", None)]);
        let page = render(&address, Some("<i>"), content);
        for part in [
            "<h1>Records of the set &lt;i&gt;, November 2026, 1,000–1,999</h1><p>2 records, in the order",
            "<a href=\"/b/x/record/a%2F%3Cb%3E\" lang=\"ar\" dir=\"rtl\">&lt;i&gt; أغاني الميناء…</a>",
            "<a class=\"identifier\" href=\"/b/x/record/%3Ci%3E\"><bdi>&lt;i&gt;</bdi></a>",
            "<time class=\"count\" datetime=\"2026-11-24\">2026-11-24</time>\
             <div class=\"by\"><bdi lang=\"\">&lt;i&gt; B</bdi>; <bdi lang=\"\">&lt;i&gt; B</bdi> and 5 more, 2019</div>",
            "<li><a href=\"/b/x/sets/\"><bdi>Sets</bdi></a></li>",
            "<li><a href=\"/b/x/sets/a%3Ab/\"><bdi>&lt;i&gt;</bdi></a></li>",
            "<li><a href=\"/b/x/sets/a%3Ab/2026-11/\"><bdi>November 2026</bdi></a></li>",
            "<a rel=\"next\" href=\"/b/x/sets/a%3Ab/1970-01/\">Next: January 1970</a>",
            "<link rel=\"alternate\" type=\"application/atom+xml\" title=\"Feed of the newest records of this set\" \
             href=\"https://e.org/b/x/sets/a%3Ab/recent.atom\">",
            "<a href=\"/b/x/sets/a%3Ab/recent.atom\">",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<i>") && !page.contains("noindex"), "{page}");
    }

    #[test]
    fn an_empty_list_says_so() {
        let page = render(&ListAddress::of_repository("x"), None, ListContent::Records(Vec::new()));
        assert!(page.contains("This list has no records now.") && page.contains("noindex"), "{page}");
    }
}
