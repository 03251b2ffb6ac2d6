//! The URLs of the documents. Pure: no I/O.

use crate::kind::ListKind;
use crate::partition::Part;
use oaimend_oai::UnixSecs;
use oaimend_oai::path_segment::{segment_of, text_of};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The path of the source description (section 6.3.2).
pub const SOURCE_DESCRIPTION_PATH: &str = "/.well-known/resourcesync";

const CAPABILITY_LIST: &str = "capabilitylist.xml";

/// All characters but the unreserved ones of RFC 3986.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The place of a format of a repository. `base` is the public URL or its path, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatAddress {
    /// The repository id.
    pub repository: String,
    /// The metadataPrefix.
    pub prefix: String,
}

impl FormatAddress {
    /// The URL of its capability list.
    pub fn capability_list(&self, base: &str) -> String {
        self.document(base, CAPABILITY_LIST)
    }

    /// The URL of one of its lists.
    pub fn list(&self, base: &str, kind: ListKind) -> String {
        self.document(base, &format!("{}.xml", kind.name()))
    }

    /// The URL of a part of one of its lists.
    pub fn part(&self, base: &str, kind: ListKind, part: &Part) -> String {
        self.document(base, &part_name(kind, part))
    }

    fn document(&self, base: &str, name: &str) -> String {
        let prefix = segment_of(&self.prefix);
        let [repository, prefix] =
            [&*self.repository, &*prefix].map(|text| utf8_percent_encode(text, SEGMENT));
        format!("{base}/{repository}/resourcesync/{prefix}/{name}")
    }
}

fn part_name(kind: ListKind, part: &Part) -> String {
    let Part { collection, at_secs, first, end } = part;
    format!("{}-{collection}-{at_secs}-{first}-{end}{}", kind.name(), kind.part_ending())
}

/// A document, as a request names it. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncTarget {
    /// The description of all formats of all repositories.
    SourceDescription,
    /// The lists of a format.
    CapabilityList(FormatAddress),
    /// A list, or the index of its parts.
    List(FormatAddress, ListKind),
    /// A part of a list.
    Part(FormatAddress, ListKind, Part),
}

impl SyncTarget {
    /// Reads the segments of a path. `prefix` is as in the path. `None` if no document can have this name.
    pub fn read(repository: &str, prefix: &str, name: &str) -> Option<Self> {
        let prefix = text_of(&percent_decode_str(prefix).decode_utf8().ok()?).to_owned();
        let format = FormatAddress { repository: repository.to_owned(), prefix };
        if name == CAPABILITY_LIST {
            return Some(Self::CapabilityList(format));
        }
        ListKind::ALL.iter().find_map(|&kind| {
            let rest = name.strip_prefix(kind.name())?;
            if rest == ".xml" {
                return Some(Self::List(format.clone(), kind));
            }
            let numbers = rest.strip_suffix(kind.part_ending())?.strip_prefix('-')?;
            let numbers: Vec<u64> = numbers.split('-').map(str::parse).collect::<Result<_, _>>().ok()?;
            let [collection, at_secs, first, end] = numbers.try_into().ok()?;
            let part = Part { collection, at_secs: UnixSecs(i64::try_from(at_secs).ok()?), first, end };
            // One part has one name.
            (part_name(kind, &part) == name).then(|| Self::Part(format.clone(), kind, part))
        })
    }

    /// The repository; `None` for the source description.
    pub fn repository(&self) -> Option<&str> {
        match self {
            Self::SourceDescription => None,
            Self::CapabilityList(format) | Self::List(format, _) | Self::Part(format, ..) => {
                Some(&format.repository)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_as_they_are_written() {
        for prefix in ["a!b/../c", ".", "..", "../"] {
            check_documents(prefix);
        }
    }

    fn check_documents(prefix: &str) {
        let format = FormatAddress { repository: "x".to_owned(), prefix: prefix.to_owned() };
        let part = Part { collection: 7, at_secs: UnixSecs(1_000), first: 0, end: u64::MAX };
        let mut written = vec![(format.capability_list(""), SyncTarget::CapabilityList(format.clone()))];
        for &kind in ListKind::ALL {
            written.push((format.list("", kind), SyncTarget::List(format.clone(), kind)));
            written.push((format.part("", kind, &part), SyncTarget::Part(format.clone(), kind, part)));
        }
        for (url, target) in written {
            let segments: Vec<&str> = url.split('/').collect();
            let ["", "x", "resourcesync", prefix, name] = segments[..] else { panic!("{url}") };
            assert!(![".", ".."].contains(&prefix), "clients remove such a segment: {url}");
            assert_eq!(SyncTarget::read("x", prefix, name), Some(target), "{url}");
        }
    }

    #[test]
    fn other_names_are_no_documents() {
        for name in [
            "",
            "resourcelist",
            "resourcelist.zip",
            "resourcelist-1-2-3.xml",
            "resourcelist-1-2-3-4.zip",
            "resourcedump-1-2-3-4.xml",
            "resourcelist-1-2-3-4-5.xml",
            "resourcelist-+1-2-3-4.xml",
            "resourcelist-01-2-3-4.xml",
            "resourcelist-1-18446744073709551615-3-4.xml",
            "resourcelist-1-2-3-18446744073709551616.xml",
            "description.xml",
        ] {
            assert_eq!(SyncTarget::read("x", "oai_dc", name), None, "{name}");
        }
        assert_eq!(SyncTarget::read("x", "%FF", "resourcelist.xml"), None);
    }
}
