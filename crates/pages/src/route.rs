//! Finds the page that a request target names.
//!
//! The target is read as received: identifiers contain any character, so they are decoded exactly once. Pure: no I/O.

use super::list::ListTarget;
use super::record_form::RecordForm;
use super::sitemap::SitemapAddress;
use percent_encoding::percent_decode_str;
use url::form_urlencoded;

/// A page of the gateway, as a request names it. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageTarget {
    /// The overview of all repositories.
    Overview(OverviewTarget),
    /// A repository with this id.
    Repository(String),
    /// A page that does not exist. The first part of its path is this text.
    Unknown(String),
    /// A record of a repository.
    Record(RecordTarget),
    /// A list of the records or sets of a repository.
    List(ListTarget),
    /// A sitemap, or the index of all sitemaps.
    Sitemap(SitemapAddress),
    /// The style sheet at this path.
    StyleSheet(String),
}

/// The overview of all repositories, as a request names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverviewTarget {
    /// The repositories whose id or name contains this text; empty: all of them.
    pub filter: String,
}

/// A record of a repository, as a request names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordTarget {
    /// The repository id.
    pub repository: String,
    /// The identifier.
    pub identifier: String,
    /// The form that the ending of the path selects; `None`: by `Accept`.
    pub form: Option<RecordForm>,
    /// The metadataPrefix; `None`: the default one.
    pub format: Option<String>,
}

/// The endings of paths that select a form.
const ENDINGS: [(&str, RecordForm); 2] = [(".xml", RecordForm::Xml), (".json", RecordForm::JsonLd)];

impl PageTarget {
    /// Reads a request target: a path that begins with a slash, with its query. `None` if it names no page of the
    /// gateway.
    pub fn read(target: &[u8]) -> Option<Self> {
        let target = std::str::from_utf8(target).ok()?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path.starts_with("/-/") {
            return path.ends_with(".css").then(|| Self::StyleSheet(path.to_owned()));
        }
        if path == "/" {
            return Some(Self::Overview(OverviewTarget::read(query)));
        }
        if let Some(sitemap) = SitemapAddress::read(path) {
            return Some(Self::Sitemap(sitemap));
        }
        if let Some(repository) = repository_named_by(path).filter(|_| query.is_empty()) {
            return Some(Self::Repository(repository.to_owned()));
        }
        let (repository, rest) = path.strip_prefix('/')?.split_once('/')?;
        // The views of the mirror: a repository in `/_mirror/ID` may have the name of a list.
        if repository.starts_with('_') {
            return None;
        }
        if let Some(list) = ListTarget::read(repository, rest, query) {
            return Some(Self::List(list));
        }
        let written = rest.strip_prefix("record/").filter(|_| !repository.is_empty())?;
        let by_ending = |(ending, form): (&str, RecordForm)| {
            let identifier = written.strip_suffix(ending).filter(|identifier| !identifier.is_empty());
            identifier.map(|identifier| (identifier, Some(form)))
        };
        let (identifier, form) = ENDINGS.into_iter().find_map(by_ending).unwrap_or((written, None));
        let identifier = percent_decode_str(identifier).decode_utf8().ok()?.into_owned();
        let mut arguments = form_urlencoded::parse(query.as_bytes());
        let format = arguments.find(|(name, value)| name == "format" && !value.is_empty());
        let format = format.map(|(_, value)| value.into_owned());
        let repository = repository.to_owned();
        let record = RecordTarget { repository, identifier, form, format };
        (!record.identifier.is_empty()).then_some(Self::Record(record))
    }
}

/// The only segment of a path, with or without a slash after it.
fn repository_named_by(path: &str) -> Option<&str> {
    let path = path.strip_prefix('/')?;
    let repository = path.strip_suffix('/').unwrap_or(path);
    (!repository.is_empty() && !repository.contains('/')).then_some(repository)
}

/// Longest filter that is used, in characters.
const FILTER_CHARS_MAX: usize = 100;

impl OverviewTarget {
    fn read(query: &str) -> Self {
        let filter = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "q");
        let filter = filter.map(|(_, filter)| filter.trim().chars().take(FILTER_CHARS_MAX).collect());
        Self { filter: filter.unwrap_or_default() }
    }

    /// Whether the filter matches one of these texts.
    pub fn matches(&self, texts: &[&str]) -> bool {
        let filter = self.filter.to_lowercase();
        texts.iter().any(|text| text.to_lowercase().contains(&filter))
    }
}

impl RecordTarget {
    /// The same target, with its ending as a part of the identifier. Some clients decode the dot that
    /// [`RecordAddress`](super::record::RecordAddress) encodes in such an identifier.
    pub fn with_ending_in_identifier(&self) -> Option<Self> {
        let (ending, _) = ENDINGS.into_iter().find(|(_, form)| Some(*form) == self.form)?;
        let identifier = format!("{}{ending}", self.identifier);
        Some(Self { identifier, form: None, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::RecordAddress;
    use super::*;

    fn record(target: &str) -> Option<RecordTarget> {
        match PageTarget::read(target.as_bytes()) {
            Some(PageTarget::Record(record)) => Some(record),
            _ => None,
        }
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
            "record/1",
            "../x",
            &long,
        ] {
            for format in [None, Some("a&b=c")] {
                let address = RecordAddress { repository: "x", identifier, format };
                for (url, form) in [
                    (address.page(""), None),
                    (address.xml(""), Some(RecordForm::Xml)),
                    (address.json(""), Some(RecordForm::JsonLd)),
                ] {
                    let expected = RecordTarget {
                        repository: "x".to_owned(),
                        identifier: identifier.to_owned(),
                        form,
                        format: format.map(str::to_owned),
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
    fn the_overview_and_repositories_are_pages() {
        let filter = |target: &str| match PageTarget::read(target.as_bytes()) {
            Some(PageTarget::Overview(overview)) => Some(overview.filter),
            _ => None,
        };
        let long = format!("/?q={}", "x".repeat(999));
        for (target, expected) in [
            ("/", ""),
            ("/?", ""),
            ("/?utm_source=a", ""),
            ("/?q=+%C3%9Cni+b%26+", "Üni b&"),
            (long.as_str(), &"x".repeat(FILTER_CHARS_MAX)),
        ] {
            assert_eq!(filter(target).as_deref(), Some(expected), "{target}");
        }
        for target in ["/x", "/x/", "/x?", "/x/?"] {
            let expected = Some(PageTarget::Repository("x".to_owned()));
            assert_eq!(PageTarget::read(target.as_bytes()), expected, "{target}");
        }
        let overview = OverviewTarget { filter: "üni".to_owned() };
        assert!(overview.matches(&["x", "Eine ÜNIVERSITÄT"]) && !overview.matches(&["x", "uni"]));
    }

    #[test]
    fn lists_and_sitemaps_are_pages() {
        let read = |target: &str| PageTarget::read(target.as_bytes());
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
            "/x?a=/x/record/1",
            "/-/livez",
            "/x/record/%FF",
            "http://x/record/1",
        ] {
            assert_eq!(PageTarget::read(target.as_bytes()), None, "{target}");
        }
        assert_eq!(PageTarget::read(b"/x/record/\xFF"), None);
        let sheet = PageTarget::StyleSheet("/-/style-1.css".to_owned());
        assert_eq!(PageTarget::read(b"/-/style-1.css?x"), Some(sheet));
    }
}
