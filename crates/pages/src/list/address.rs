//! The URLs of lists.

use super::month::Month;
use super::range::SequenceRange;
use crate::record::{RepositoryAddress, encoded_segment};
use oaimend_oai::path_segment::text_of;
use percent_encoding::percent_decode_str;
use url::form_urlencoded;

/// The place of a list of records on this server. The list need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListAddress {
    /// The repository id.
    pub repository: String,
    /// The setSpec; `None` for the list of all records.
    pub set: Option<String>,
    /// The part of the list.
    pub part: ListPart,
}

/// A part of the list of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListPart {
    /// The months.
    Months,
    /// A month.
    Month(Month),
    /// A range of sequences in a month.
    Range(Month, SequenceRange),
    /// A part that cannot exist, such as a month 13.
    Unknown,
}

/// The place of the list of sets on this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetsAddress {
    /// The repository id.
    pub repository: String,
    /// The page begins after this setSpec; `None`: at the start.
    pub after: Option<String>,
}

/// The place of the feed of the newest records of a set on this server. The set need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetFeedAddress {
    /// The repository id.
    pub repository: String,
    /// The setSpec.
    pub set: String,
}

/// The last part of the path of a feed. No part of a list has this name, and setSpecs may end with `.atom` themselves.
const FEED: &str = "recent.atom";

/// A list, as a request names it. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListTarget {
    /// The records of a repository or of a set.
    Records(ListAddress),
    /// The same, at a URL with a slash too much or too little at its end.
    Moved(ListAddress),
    /// The sets of a repository.
    Sets(SetsAddress),
    /// The feed of a set.
    Feed(SetFeedAddress),
}

impl ListTarget {
    /// Reads the part of a path after the repository, and a query. `None` if it names no list.
    pub fn read(repository: &str, path: &str, query: &str) -> Option<Self> {
        if repository.is_empty() {
            return None;
        }
        if ["sets", "sets/"].contains(&path) {
            let mut arguments = form_urlencoded::parse(query.as_bytes());
            let after = arguments.find(|(name, value)| name == "after" && !value.is_empty());
            let after = after.map(|(_, value)| value.into_owned());
            return Some(Self::Sets(SetsAddress { repository: repository.to_owned(), after }));
        }
        if let Some(address) = SetFeedAddress::read(repository, path) {
            return Some(Self::Feed(address));
        }
        let (address, is_moved) = ListAddress::read(repository, path)?;
        Some(if is_moved { Self::Moved(address) } else { Self::Records(address) })
    }

    /// The repository id.
    pub fn repository(&self) -> &str {
        match self {
            Self::Records(address) | Self::Moved(address) => &address.repository,
            Self::Sets(address) => &address.repository,
            Self::Feed(address) => &address.repository,
        }
    }
}

impl ListAddress {
    /// The list of all records of a repository.
    pub fn of_repository(repository: &str) -> Self {
        Self { repository: repository.to_owned(), set: None, part: ListPart::Months }
    }

    /// The feed of the set, if the list is that of a set.
    pub fn feed(&self) -> Option<SetFeedAddress> {
        self.set.clone().map(|set| SetFeedAddress { repository: self.repository.clone(), set })
    }

    /// Another part of the same list.
    #[must_use]
    pub fn with(&self, part: ListPart) -> Self {
        Self { part, ..self.clone() }
    }

    /// Reads the part of a path after the repository: `records/2026-11/0-999`, or `sets/SETSPEC/2026-11/0-999`. `None` if
    /// it is not the path of a list of records. The second value says whether a slash at the end is missing or too much.
    fn read(repository: &str, path: &str) -> Option<(Self, bool)> {
        let (folder, rest) = path.split_once('/').unwrap_or((path, ""));
        let (set, rest, is_folder) = match folder {
            "records" => (None, rest, path.contains('/')),
            "sets" => {
                let (set, after) = rest.split_once('/').unwrap_or((rest, ""));
                if set.is_empty() {
                    return None;
                }
                (Some(read_set(set)?), after, rest.contains('/'))
            }
            _ => return None,
        };
        let (part, has_slash) = ListPart::read(rest);
        let is_written_well = match part {
            ListPart::Months => is_folder,
            ListPart::Month(_) => has_slash,
            ListPart::Range(..) => !has_slash,
            ListPart::Unknown => true,
        };
        Some((Self { repository: repository.to_owned(), set, part }, !is_written_well))
    }

    /// The URL. `base` is the public URL or its path, without a slash at its end.
    pub fn url(&self, base: &str) -> String {
        let repository = RepositoryAddress { repository: &self.repository };
        let list = match &self.set {
            None => repository.records(base),
            Some(set) => repository.set(base, set),
        };
        match self.part {
            ListPart::Months | ListPart::Unknown => list,
            ListPart::Month(month) => format!("{list}{month}/"),
            ListPart::Range(month, range) => format!("{list}{month}/{range}"),
        }
    }
}

/// The setSpec of a segment; `None` if it is not UTF-8.
fn read_set(segment: &str) -> Option<String> {
    Some(text_of(&percent_decode_str(segment).decode_utf8().ok()?).to_owned())
}

impl ListPart {
    /// Reads a part, and whether a slash is at its end.
    fn read(text: &str) -> (Self, bool) {
        let (month, rest) = text.split_once('/').unwrap_or((text, ""));
        if text.is_empty() {
            return (Self::Months, false);
        }
        let Some(month) = Month::read(month) else { return (Self::Unknown, false) };
        if rest.is_empty() {
            return (Self::Month(month), text.ends_with('/'));
        }
        let range = rest.strip_suffix('/').unwrap_or(rest);
        let range = SequenceRange::read(range);
        (range.map_or(Self::Unknown, |range| Self::Range(month, range)), rest.ends_with('/'))
    }
}

impl SetFeedAddress {
    /// Reads the part of a path after the repository: `sets/SETSPEC/recent.atom`.
    fn read(repository: &str, path: &str) -> Option<Self> {
        let (set, name) = path.strip_prefix("sets/")?.split_once('/')?;
        let set = read_set(set).filter(|set| !set.is_empty() && name == FEED)?;
        Some(Self { repository: repository.to_owned(), set })
    }

    /// The URL. `base` is the public URL or its path, without a slash at its end.
    pub fn url(&self, base: &str) -> String {
        format!("{}{FEED}", RepositoryAddress { repository: &self.repository }.set(base, &self.set))
    }
}

impl SetsAddress {
    /// The URL. `base` is the public URL or its path, without a slash at its end.
    pub fn url(&self, base: &str) -> String {
        let sets = RepositoryAddress { repository: &self.repository }.sets(base);
        match &self.after {
            None => sets,
            Some(after) => format!("{sets}?after={}", encoded_segment(after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Option<(Option<String>, ListPart, bool)> {
        let read = ListAddress::read("x", path);
        read.map(|(address, is_wrong)| (address.set, address.part, is_wrong))
    }

    #[test]
    fn addresses_are_read_as_written() {
        let month = Month::read("2026-11").expect("a month");
        let range = SequenceRange::read("1000-1999").expect("a fixed range");
        for set in
            [None, Some("a"), Some("a:b"), Some("2026-11"), Some("é %/?#"), Some("records"), Some("..")]
        {
            for part in [ListPart::Months, ListPart::Month(month), ListPart::Range(month, range)] {
                let address = ListAddress { repository: "x".to_owned(), set: set.map(str::to_owned), part };
                let url = address.url("");
                let path = url.strip_prefix("/x/").expect("the repository is first");
                assert_eq!(ListAddress::read("x", path), Some((address, false)), "{url}");
            }
        }
        assert_eq!(read("sets/a:b/").and_then(|(set, ..)| set).as_deref(), Some("a:b"));
    }

    #[test]
    fn a_wrong_slash_is_noticed() {
        for (path, is_wrong) in [
            ("records", true),
            ("records/", false),
            ("records/2026-11", true),
            ("records/2026-11/", false),
            ("records/2026-11/0-999", false),
            ("records/2026-11/0-999/", true),
            ("sets/a", true),
            ("sets/a/", false),
            ("sets/a/2026-11", true),
            ("sets/a/2026-11/0-999/", true),
        ] {
            assert_eq!(read(path).map(|(_, _, is_wrong)| is_wrong), Some(is_wrong), "{path}");
        }
    }

    #[test]
    fn sets_are_on_pages() {
        let after = |path, query| match ListTarget::read("x", path, query) {
            Some(ListTarget::Sets(address)) => Some(address.after),
            _ => None,
        };
        assert_eq!((after("sets", ""), after("sets/", "after=")), (Some(None), Some(None)));
        assert_eq!(after("sets/", "a=1&after=a%3Ab"), Some(Some("a:b".to_owned())));
        assert_eq!((after("sets/a/", ""), ListTarget::read("", "sets/", "")), (None, None));
    }

    #[test]
    fn sets_have_feeds() {
        for set in ["a", "a:b", "recent.atom", "x.atom", "é %/?#", ".", ".."] {
            let list = ListAddress::of_repository("x");
            assert_eq!(list.feed(), None);
            let feed = ListAddress { set: Some(set.to_owned()), ..list }.feed().expect("a set");
            let url = feed.url("");
            let path = url.strip_prefix("/x/").expect("the repository is first");
            assert_eq!(ListTarget::read("x", path, ""), Some(ListTarget::Feed(feed.clone())), "{url}");
        }
        for path in
            ["sets/recent.atom", "sets/x.atom", "records/recent.atom", "sets//recent.atom", "sets/a/x.atom"]
        {
            let read = ListTarget::read("x", path, "");
            assert!(!matches!(read, Some(ListTarget::Feed(_))), "{path}: {read:?}");
        }
    }

    #[test]
    fn unknown_parts_and_other_paths() {
        for path in [
            "records/1",
            "records//",
            "records/2026-13/",
            "records/2026-11/1-2",
            "records/2026-11/0-999/1",
            "records/2026-11//",
            "sets/a/b",
        ] {
            assert_eq!(read(path).map(|(_, part, _)| part), Some(ListPart::Unknown), "{path}");
        }
        for path in ["", "record/1", "sets", "sets/", "sets//", "recordsx/", "sets/%FF/"] {
            assert_eq!(read(path), None, "{path}");
        }
    }

    #[test]
    fn pages_of_sets_have_urls() {
        let address = SetsAddress { repository: "x".to_owned(), after: Some("a:b&c".to_owned()) };
        assert_eq!(address.url("https://e.org"), "https://e.org/x/sets/?after=a%3Ab%26c");
        assert_eq!(SetsAddress { after: None, ..address }.url(""), "/x/sets/");
    }
}
