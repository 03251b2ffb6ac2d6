//! The state of a search, as its URL has it.

use oaimend_html::layout::SEARCH_PATH;
use oaimend_oai::named_enum;
use std::collections::BTreeMap;
use url::form_urlencoded;

/// The number of records on a page of results.
pub const PAGE_ITEMS: usize = 20;
/// The last page of results that is shown. The cost of a page rises with its number.
pub const PAGES_MAX: usize = 500;
/// The path of the suggestions.
pub const SUGGESTIONS_PATH: &str = "/_search/suggest";

named_enum! {
    /// A property by which results are counted and narrowed. The names are parameters of URLs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum FacetKind {
        /// The repository, by its id.
        Repository = "repository",
        /// The type of the work.
        Type = "type",
        /// The year of publication.
        Year = "year",
        /// The language, by its tag.
        Language = "language",
        /// Whether the full text is open to everyone.
        Access = "access",
    }
}

named_enum! {
    /// The order of results. The names are values of the parameter `sort`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum SortOrder {
        /// The most relevant first; without a query, the last changed.
        #[default]
        Relevance = "relevance",
        /// The latest publication first.
        Newest = "newest",
        /// The earliest publication first.
        Oldest = "oldest",
    }
}

/// The list whose page is requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultList {
    /// The results of a search.
    #[default]
    Search,
    /// The last changed records.
    Recent,
}

impl ResultList {
    /// The path, without an ending that selects a form.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Search => SEARCH_PATH,
            Self::Recent => "/_recent",
        }
    }
}

/// The state of a search. Its URL contains all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchAddress {
    /// The list.
    pub list: ResultList,
    /// The query as written, without blanks around it; empty: all records.
    pub query: String,
    /// The chosen values, at most one of each property.
    pub chosen: BTreeMap<FacetKind, String>,
    /// The order.
    pub sort: SortOrder,
    /// The number of pages before this one, less than [`PAGES_MAX`].
    pub pages_before: usize,
}

/// Why the parameters of a URL are no state of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchFault {
    /// `sort` has an unknown value.
    Sort,
    /// `page` is no number from 1 to [`PAGES_MAX`].
    Page,
    /// `year` is no year, and no range of years such as `1990-1999`.
    Year,
    /// `access` is neither `open` nor `other`.
    Access,
}

impl SearchAddress {
    /// Reads the arguments of a URL. Unknown ones are ignored; of several with one name, the first counts. A wrong value
    /// counts as absent, and the first one is returned as the fault.
    pub fn read(list: ResultList, arguments: &str) -> (Self, Option<SearchFault>) {
        let (mut address, mut fault) = (Self { list, ..Self::default() }, None);
        let mut known = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(arguments.as_bytes()) {
            let value = value.trim();
            if !value.is_empty() {
                known.entry(name.into_owned()).or_insert_with(|| value.to_owned());
            }
        }
        let mut fail = |found| {
            fault.get_or_insert(found);
        };
        if list == ResultList::Search {
            address.query = known.remove("q").unwrap_or_default();
            match known.get("sort").map(|name| SortOrder::from_name(name)) {
                Some(None) => fail(SearchFault::Sort),
                sort => address.sort = sort.flatten().unwrap_or_default(),
            }
        }
        match known.get("page").map(|page| page.parse::<usize>()) {
            None => {}
            Some(Ok(page @ 1..=PAGES_MAX)) => address.pages_before = page - 1,
            Some(_) => fail(SearchFault::Page),
        }
        for &kind in FacetKind::ALL {
            let Some(value) = known.remove(kind.name()) else { continue };
            match kind {
                FacetKind::Year if years(&value).is_none() => fail(SearchFault::Year),
                FacetKind::Access if !["open", "other"].contains(&value.as_str()) => {
                    fail(SearchFault::Access)
                }
                _ => {
                    address.chosen.insert(kind, value);
                }
            }
        }
        (address, fault)
    }

    /// The last changed records of all repositories, or of one.
    pub fn recent(repository: Option<&str>) -> Self {
        let chosen = repository.map(|id| (FacetKind::Repository, id.to_owned()));
        Self { list: ResultList::Recent, chosen: chosen.into_iter().collect(), ..Self::default() }
    }

    /// Whether this is the first page of [`SearchAddress::recent`].
    pub fn is_recent(&self) -> bool {
        *self == Self::recent(self.chosen.get(&FacetKind::Repository).map(String::as_str))
    }

    /// The records whose field has the words of a value side by side.
    pub(crate) fn of_value(field: &str, value: &str) -> Self {
        // A quotation mark would end the phrase.
        let query = format!("{field}:\"{}\"", value.replace(['"', '\\'], " "));
        Self { query, ..Self::default() }
    }

    /// Whether the page is the one that invites to a search: it has no query, and nothing is chosen.
    pub fn is_empty(&self) -> bool {
        self.list == ResultList::Search && self.query.is_empty() && self.chosen.is_empty()
    }

    /// The first and the last of the chosen years.
    pub fn years(&self) -> Option<(u16, u16)> {
        self.chosen.get(&FacetKind::Year).and_then(|value| years(value))
    }

    /// The first page of the results with this value.
    #[must_use]
    pub fn with(&self, kind: FacetKind, value: &str) -> Self {
        let mut address = self.on_page(0);
        address.chosen.insert(kind, value.to_owned());
        address
    }

    /// The first page of the results with any value of a property.
    #[must_use]
    pub fn without(&self, kind: FacetKind) -> Self {
        let mut address = self.on_page(0);
        address.chosen.remove(&kind);
        address
    }

    /// The first page of the same results in this order.
    #[must_use]
    pub fn sorted(&self, sort: SortOrder) -> Self {
        Self { sort, ..self.on_page(0) }
    }

    /// Another page of the same results.
    #[must_use]
    pub fn on_page(&self, pages_before: usize) -> Self {
        Self { pages_before, ..self.clone() }
    }

    /// The page before this one.
    pub fn previous(&self) -> Option<Self> {
        self.pages_before.checked_sub(1).map(|before| self.on_page(before))
    }

    /// The page after this one, if there are so many results.
    pub fn next(&self, total: u64) -> Option<Self> {
        let end = (self.offset() + PAGE_ITEMS) as u64;
        let next = self.pages_before + 1;
        (end < total && next < PAGES_MAX).then(|| self.on_page(next))
    }

    /// The number of results before those of this page.
    pub fn offset(&self) -> usize {
        self.pages_before * PAGE_ITEMS
    }

    /// The arguments other than the query and the page, as a form repeats them.
    pub fn narrowing(&self) -> Vec<(&'static str, &str)> {
        let chosen = self.chosen.iter().map(|(kind, value)| (kind.name(), value.as_str()));
        let sort = (self.sort != SortOrder::default()).then(|| ("sort", self.sort.name()));
        chosen.chain(sort).collect()
    }

    /// The URL with an ending such as `.atom`, or without one. `base` is the public URL or its path, without a slash at
    /// its end.
    pub fn url(&self, base: &str, ending: &str) -> String {
        let mut arguments = form_urlencoded::Serializer::new(String::new());
        if !self.query.is_empty() {
            arguments.append_pair("q", &self.query);
        }
        arguments.extend_pairs(self.narrowing());
        if self.pages_before > 0 {
            arguments.append_pair("page", &(self.pages_before + 1).to_string());
        }
        let (path, arguments) = (self.list.path(), arguments.finish());
        let mark = if arguments.is_empty() { "" } else { "?" };
        format!("{base}{path}{ending}{mark}{arguments}")
    }
}

/// The first and the last year of `YYYY` or `YYYY-YYYY`.
fn years(text: &str) -> Option<(u16, u16)> {
    let year = |digits: &str| {
        let is_year = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_year { digits.parse().ok() } else { None }
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (year(first)?, year(last)?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &str) -> (SearchAddress, Option<SearchFault>) {
        SearchAddress::read(ResultList::Search, arguments)
    }

    #[test]
    fn every_state_has_a_url_that_leads_back_to_it() {
        for (arguments, url) in [
            ("", "/b/_search"),
            ("utm_source=x&q=+", "/b/_search"),
            ("q=a+b&page=1&sort=relevance", "/b/_search?q=a+b"),
            (
                "sort=newest&q=%2Bt%C3%AFde%26%3D&access=open&year=1990-1999&repository=x&page=3",
                "/b/_search?q=%2Bt%C3%AFde%26%3D&repository=x&year=1990-1999&access=open&sort=newest&page=3",
            ),
        ] {
            let (address, fault) = read(arguments);
            assert_eq!((address.url("/b", ""), fault), (url.to_owned(), None), "{arguments}");
            assert_eq!(read(url.split_once('?').unwrap_or_default().1), (address, None), "{url}");
        }
        let (recent, _) = SearchAddress::read(ResultList::Recent, "q=a&sort=newest&repository=x&page=2");
        assert_eq!(recent.url("", ".atom"), "/_recent.atom?repository=x&page=2");
        assert_eq!(recent.on_page(0), SearchAddress::recent(Some("x")));
        let narrowed = recent.on_page(0).with(FacetKind::Year, "2001");
        let search = SearchAddress::default();
        assert!(recent.on_page(0).is_recent() && SearchAddress::recent(None).is_recent());
        assert!(!recent.is_recent() && !narrowed.is_recent() && !search.is_recent());
    }

    #[test]
    fn wrong_values_are_faults_and_count_as_absent() {
        for (arguments, expected) in [
            ("q=a&sort=best", SearchFault::Sort),
            ("q=a&page=0", SearchFault::Page),
            ("q=a&page=501", SearchFault::Page),
            ("q=a&page=-1&year=x", SearchFault::Page),
            ("q=a&year=90", SearchFault::Year),
            ("q=a&year=1999-1990", SearchFault::Year),
            ("q=a&access=closed", SearchFault::Access),
        ] {
            let (address, fault) = read(arguments);
            assert_eq!(
                (address.url("", "").as_str(), fault),
                ("/_search?q=a", Some(expected)),
                "{arguments}"
            );
        }
    }

    #[test]
    fn a_choice_leads_to_the_first_page() {
        let (address, _) = read("q=a&page=3&year=2001");
        for (other, url) in [
            (address.with(FacetKind::Year, "2002"), "/_search?q=a&year=2002"),
            (address.with(FacetKind::Language, "de"), "/_search?q=a&year=2001&language=de"),
            (address.without(FacetKind::Year), "/_search?q=a"),
            (address.sorted(SortOrder::Oldest), "/_search?q=a&year=2001&sort=oldest"),
            (address.previous().unwrap_or_default(), "/_search?q=a&year=2001&page=2"),
            (address.next(61).unwrap_or_default(), "/_search?q=a&year=2001&page=4"),
        ] {
            assert_eq!(other.url("", ""), url);
        }
        assert_eq!((address.offset(), address.next(60)), (40, None));
        assert_eq!(address.on_page(PAGES_MAX - 1).next(u64::MAX), None);
        assert_eq!(address.on_page(0).previous(), None);
    }
}
