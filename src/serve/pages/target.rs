//! The page that a request target names.
//!
//! The target is read as received: identifiers contain any character, so they are decoded exactly once. Pure: no I/O.

use crate::serve::routes::{PUBLIC, PublicEndpoint, Route};
use oaimend_oai::Request;
use oaimend_pages::list::{BrowseAddress, ListTarget};
use oaimend_pages::route::{OverviewTarget, RecordTarget};
use oaimend_pages::search::{ResultList, SearchForm, SearchTarget};
use oaimend_pages::sitemap::SitemapAddress;
use oaimend_resourcesync::{SOURCE_DESCRIPTION_PATH, SyncTarget};
use url::form_urlencoded;

/// A page of the gateway, as a request names it. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PageTarget {
    /// The overview of all repositories.
    Overview(OverviewTarget),
    /// A repository with this id.
    Repository(String),
    /// The view of all mirrored repositories.
    Aggregate,
    /// A federation, by its name; `None`: that of all repositories.
    Federation(Option<String>),
    /// A view of chosen records, by its name.
    View(String),
    /// The feed of the newest records of a view, by its name.
    ViewFeed(String),
    /// A page that does not exist. The first part of its path is this text.
    Unknown(String),
    /// A record of a repository.
    Record(RecordTarget),
    /// A record that a view shows. The repository of the target is the name of the view.
    ViewRecord(RecordTarget),
    /// A list of the records or sets of a repository.
    List(ListTarget),
    /// The values of a field of the records of a repository.
    Browse(BrowseAddress),
    /// A sitemap, or the index of all sitemaps.
    Sitemap(SitemapAddress),
    /// A page of results.
    Search(SearchTarget),
    /// The OpenSearch description.
    SearchDescription,
    /// The suggestions for the start of a query.
    Suggestions(String),
    /// A document of ResourceSync.
    Sync(SyncTarget),
    /// The style sheet at this path.
    StyleSheet(String),
}

impl PageTarget {
    /// Reads a request target: a path that begins with a slash, with its query. `None` if it names no page of the
    /// gateway.
    pub(crate) fn read(target: &str) -> Option<(Self, &'static Route<PublicEndpoint>)> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let found = PUBLIC.find("GET", path)?;
        let id = found.id();
        let page = match found.route.endpoint {
            PublicEndpoint::Overview => Self::Overview(OverviewTarget::read(query)),
            PublicEndpoint::StyleSheet => Self::StyleSheet(path.to_owned()),
            PublicEndpoint::Sitemap => match SitemapAddress::read(path) {
                Some(address) => Self::Sitemap(address),
                // A repository may have such a name.
                None if query.is_empty() => Self::Repository(path.trim_start_matches('/').to_owned()),
                None => return None,
            },
            PublicEndpoint::Search => search(ResultList::Search, path, query)?,
            PublicEndpoint::Recent => search(ResultList::Recent, path, query)?,
            PublicEndpoint::SearchDescription => Self::SearchDescription,
            PublicEndpoint::Suggestions => Self::Suggestions(start_of_query(query)),
            PublicEndpoint::Repository if query.is_empty() => Self::Repository(id.to_owned()),
            PublicEndpoint::Aggregate if query.is_empty() => Self::Aggregate,
            PublicEndpoint::FederationOfAll if query.is_empty() => Self::Federation(None),
            PublicEndpoint::Federation if query.is_empty() => Self::Federation(Some(id.to_owned())),
            PublicEndpoint::View if query.is_empty() => match id.strip_suffix(SearchForm::Atom.ending()) {
                Some(name) => Self::ViewFeed(name.to_owned()),
                None => Self::View(id.to_owned()),
            },
            PublicEndpoint::ResourceSync if path == SOURCE_DESCRIPTION_PATH => {
                Self::Sync(SyncTarget::SourceDescription)
            }
            // No repository begins so.
            PublicEndpoint::Record
            | PublicEndpoint::List
            | PublicEndpoint::FieldValues
            | PublicEndpoint::ResourceSync
                if id.starts_with('_') =>
            {
                return None;
            }
            PublicEndpoint::Record => {
                let written = found.part("identifier").unwrap_or_default();
                Self::Record(RecordTarget::read(id, written, query)?)
            }
            PublicEndpoint::ViewRecord => {
                let written = found.part("identifier").unwrap_or_default();
                Self::ViewRecord(RecordTarget::read(id, written, query)?)
            }
            PublicEndpoint::ResourceSync => {
                let part = |name| found.part(name).unwrap_or_default();
                Self::Sync(SyncTarget::read(id, part("prefix"), part("document"))?)
            }
            PublicEndpoint::FieldValues => {
                Self::Browse(BrowseAddress::read(id, found.part("field").unwrap_or_default(), query)?)
            }
            PublicEndpoint::List => {
                let (_, rest) = path.get(1..)?.split_once('/')?;
                Self::List(ListTarget::read(id, rest, query)?)
            }
            _ => return None,
        };
        Some((page, found.route))
    }
}

/// A page of results; `None` for a request of OAI-PMH at the same path.
fn search(list: ResultList, path: &str, query: &str) -> Option<PageTarget> {
    let form = [SearchForm::Json, SearchForm::Atom].into_iter().find(|form| path.ends_with(form.ending()));
    let is_oai = form.is_none() && Request::has_verb(query.as_bytes());
    if is_oai { None } else { Some(PageTarget::Search(SearchTarget::read(list, form, query))) }
}

/// The start of a query that a browser wants completed.
fn start_of_query(query: &str) -> String {
    let mut arguments = form_urlencoded::parse(query.as_bytes());
    arguments.find(|(name, _)| name == "q").map(|(_, value)| value.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_pages::RecordForm;
    use oaimend_pages::record::RecordAddress;

    fn read(target: &str) -> Option<PageTarget> {
        PageTarget::read(target).map(|(page, _)| page)
    }

    fn record(target: &str) -> Option<RecordTarget> {
        match read(target) {
            Some(PageTarget::Record(record)) => Some(record),
            _ => None,
        }
    }

    #[test]
    fn a_repository_may_have_a_name_like_a_sitemap() {
        let page = |path| read(path).expect("a page");
        assert!(matches!(page("/sitemap-x-1.xml.gz"), PageTarget::Sitemap(_)));
        assert!(matches!(page("/sitemap-x.xml.gz"), PageTarget::Repository(id) if id == "sitemap-x.xml.gz"));
    }

    #[test]
    fn addresses_are_read_as_written() {
        let long = "é/".repeat(1_000);
        for identifier in [
            "oai:x:1",
            "a/b c",
            "a//b/",
            "50%",
            "%2F",
            "?#&=+",
            "ü\"<'>漢",
            "a.xml",
            ".xml",
            "b.json",
            "c.xml.json",
            "d.csl",
            "d.csl.json",
            "d.linkset",
            "d.linkset.json",
            "d.links",
            "d.links.json",
            "d.bib",
            "d.ris",
            "record/1",
            "../x",
            &long,
        ] {
            for format in [None, Some("a&b=c")] {
                let address = RecordAddress { repository: "x", identifier, format };
                let raw = address.raw_metadata("", format.unwrap_or("oai_dc"));
                for (url, form, format) in [
                    (address.page(""), None, format),
                    (address.in_form("", RecordForm::Xml), Some(RecordForm::Xml), format),
                    (address.in_form("", RecordForm::JsonLd), Some(RecordForm::JsonLd), format),
                    (address.in_form("", RecordForm::CslJson), Some(RecordForm::CslJson), format),
                    (address.in_form("", RecordForm::BibTeX), Some(RecordForm::BibTeX), format),
                    (address.in_form("", RecordForm::Linkset), Some(RecordForm::Linkset), format),
                    (address.in_form("", RecordForm::LinksetJson), Some(RecordForm::LinksetJson), format),
                    (address.in_form("", RecordForm::LinksJson), Some(RecordForm::LinksJson), format),
                    (raw, Some(RecordForm::RawMetadata), format.or(Some("oai_dc"))),
                ] {
                    let expected = RecordTarget {
                        repository: "x".to_owned(),
                        identifier: identifier.to_owned(),
                        form,
                        format: format.map(str::to_owned),
                        after: None,
                    };
                    assert_eq!(record(&url), Some(expected), "{url}");
                }
            }
        }
    }

    #[test]
    fn identifiers_are_decoded_once() {
        let identifier = |target| record(target).map(|record| record.identifier);
        for (target, expected) in [
            ("/x/record/a/b:c", "a/b:c"),
            ("/x/record/a%252Fb", "a%2Fb"),
            ("/x/record/a+b", "a+b"),
            ("/x/record/50%", "50%"),
            ("/x/record/é", "é"),
            ("/x/record/a?utm_source=b&format=", "a"),
        ] {
            assert_eq!(identifier(target).as_deref(), Some(expected), "{target}");
        }
        let decoded = record("/x/record/a.xml").and_then(|record| record.with_ending_in_identifier());
        assert_eq!(decoded.map(|record| (record.identifier, record.form)), Some(("a.xml".to_owned(), None)));
        assert_eq!(record("/x/record/a").and_then(|record| record.with_ending_in_identifier()), None);
    }

    #[test]
    fn records_of_views_are_read_as_those_of_repositories() {
        let of_repository = |target: &str| record(&format!("/x{target}"));
        for target in ["/record/a%2Fb.json", "/record/a/b?raw=marc", "/record/a?format=marc", "/record/é"] {
            let of_view = match read(&format!("/_view/x{target}")) {
                Some(PageTarget::ViewRecord(record)) => Some(record),
                _ => None,
            };
            assert!(of_view.is_some() && of_view == of_repository(target), "{target}: {of_view:?}");
        }
    }

    #[test]
    fn the_overview_and_repositories_are_pages() {
        let filter = |target: &str| match read(target) {
            Some(PageTarget::Overview(overview)) => Some(overview.filter),
            _ => None,
        };
        let long = format!("/?q={}", "x".repeat(999));
        for (target, expected) in [
            ("/", ""),
            ("/?", ""),
            ("/?utm_source=a", ""),
            ("/?q=+%C3%9Cni+b%26+", "Üni b&"),
            (long.as_str(), &"x".repeat(100)),
        ] {
            assert_eq!(filter(target).as_deref(), Some(expected), "{target}");
        }
        for target in ["/x", "/x/", "/x?", "/x/?"] {
            let expected = Some(PageTarget::Repository("x".to_owned()));
            assert_eq!(read(target), expected, "{target}");
        }
        for (target, name) in
            [("/_federation", None), ("/_federation/?", None), ("/_federation/x/", Some("x"))]
        {
            let expected = Some(PageTarget::Federation(name.map(str::to_owned)));
            assert_eq!(read(target), expected, "{target}");
        }
        let overview = OverviewTarget { filter: "üni".to_owned(), page: 1 };
        assert!(overview.matches(&["x", "Eine ÜNIVERSITÄT"]) && !overview.matches(&["x", "uni"]));
    }

    #[test]
    fn lists_and_sitemaps_are_pages() {
        let list = |path, query| ListTarget::read("x", path, query).map(PageTarget::List);
        for (target, path, query) in [
            ("/x/records/?utm_source=b", "records/", "utm_source=b"),
            ("/x/records", "records", ""),
            ("/x/records/1", "records/1", ""),
            ("/x/sets/a%3Ab/", "sets/a%3Ab/", ""),
            ("/x/sets/?after=a%3Ab", "sets/", "after=a%3Ab"),
        ] {
            assert!(read(target).is_some() && read(target) == list(path, query), "{target}");
        }
        assert_eq!(read("/sitemap.xml"), Some(PageTarget::Sitemap(SitemapAddress::Index)));
        assert_eq!((read("//records/"), read("//sets/")), (None, None));
    }

    #[test]
    fn searches_have_forms_unless_they_are_requests_of_oai_pmh() {
        let search = |target: &str| match read(target) {
            Some(PageTarget::Search(target)) => Some((target.address.url("", ""), target.form)),
            _ => None,
        };
        for (target, url, form) in [
            ("/_search", "/_search", None),
            ("/_search?q=a+b&page=2", "/_search?q=a+b&page=2", None),
            ("/_search.json?q=verb", "/_search?q=verb", Some(SearchForm::Json)),
            ("/_search.atom?verb=x", "/_search", Some(SearchForm::Atom)),
            ("/_recent?repository=x&q=a", "/_recent?repository=x", None),
            ("/_recent.atom", "/_recent", Some(SearchForm::Atom)),
        ] {
            assert_eq!(search(target), Some((url.to_owned(), form)), "{target}");
        }
        for target in ["/_search?verb=Identify", "/_search?a=b&Verb=ListRecords", "/_recent?VERB=Identify"] {
            assert_eq!(read(target), None, "{target}");
        }
        assert_eq!(read("/_search/opensearch.xml"), Some(PageTarget::SearchDescription));
        assert_eq!(read("/_search/suggest?q=a%20b"), Some(PageTarget::Suggestions("a b".to_owned())));
    }

    #[test]
    fn other_targets_are_no_pages() {
        for target in [
            "",
            "x",
            "//",
            "/x?a=b",
            "/x/record",
            "/x/record/",
            "//record/1",
            "/x/y/record/1",
            "/x?verb=Identify",
            "/_mirror/records",
            "/_mirror/sets?verb=ListSets",
            "/_mirror/record/xml?verb=Identify",
            "/_all/record/1",
            "/_view/record/1",
            "/x?a=/x/record/1",
            "/-/livez",
            "/x/record/%FF",
            "http://x/record/1",
        ] {
            assert_eq!(read(target), None, "{target}");
        }
        let sheet = PageTarget::StyleSheet("/-/style-1.css".to_owned());
        assert_eq!(read("/-/style-1.css?x"), Some(sheet));
    }
}
