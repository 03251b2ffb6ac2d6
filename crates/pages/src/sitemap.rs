//! Sitemaps (<https://www.sitemaps.org/protocol.html>): their URLs and their XML.
//!
//! A sitemap contains the records in a fixed range of sequence numbers, so its URL stays the same while records and
//! repositories are added. Pure: no I/O.

use super::record::{RepositoryAddress, encoded_segment};
use oaimend_oai::escape;
use percent_encoding::percent_decode_str;
use std::num::NonZeroU64;

/// A sitemap on this server. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SitemapAddress {
    /// The index of all sitemaps.
    Index,
    /// The pages of the repositories.
    Repositories,
    /// The records of a repository in one range of sequences.
    Records {
        /// The repository id.
        repository: String,
        /// The number of the range.
        number: u64,
    },
}

/// The sequences of one sitemap. The protocol allows 50,000 URLs and 50 MB; so many of the longest entries have 43 MB.
pub const SITEMAP_SEQUENCES: NonZeroU64 = NonZeroU64::new(20_000).expect("a literal above zero");
/// Maximum number of URLs of a sitemap, and of sitemaps of an index.
pub const ENTRIES_MAX: usize = 50_000;
/// A URL of this length, in bytes, or a longer one is not in a sitemap.
pub(crate) const URL_BYTES_END: usize = 2_048;

const START: &str = "/sitemap";
const END: &str = ".xml.gz";
const NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

impl SitemapAddress {
    /// Reads a path.
    pub fn read(path: &str) -> Option<Self> {
        if path == "/sitemap.xml" {
            return Some(Self::Index);
        }
        let name = path.strip_prefix("/sitemap-")?.strip_suffix(END)?;
        if name == "repositories" {
            return Some(Self::Repositories);
        }
        let (repository, digits) = name.rsplit_once('-')?;
        let number: u64 = digits.parse().ok().filter(|number: &u64| number.to_string() == digits)?;
        let repository = percent_decode_str(repository).decode_utf8().ok()?.into_owned();
        (!repository.is_empty()).then_some(Self::Records { repository, number })
    }

    /// The URL. `base` is the public URL or its path, without a slash at its end.
    pub fn url(&self, base: &str) -> String {
        match self {
            Self::Index => format!("{base}{START}.xml"),
            Self::Repositories => format!("{base}{START}-repositories{END}"),
            Self::Records { repository, number } => {
                format!("{base}{START}-{}-{number}{END}", encoded_segment(repository))
            }
        }
    }
}

/// The index of these sitemaps, at most 50,000.
pub fn sitemap_index<'s>(public_url: &str, sitemaps: impl IntoIterator<Item = &'s SitemapAddress>) -> String {
    let mut xml = format!("{DECLARATION}<sitemapindex xmlns=\"{NAMESPACE}\">\n");
    for sitemap in sitemaps.into_iter().take(ENTRIES_MAX) {
        xml.push_str("<sitemap><loc>");
        escape(&sitemap.url(public_url), &mut xml);
        xml.push_str("</loc></sitemap>\n");
    }
    xml.push_str("</sitemapindex>\n");
    xml
}

const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// The start of a sitemap.
pub fn sitemap_start() -> String {
    format!("{DECLARATION}<urlset xmlns=\"{NAMESPACE}\">\n")
}

/// The end of a sitemap.
pub const SITEMAP_END: &str = "</urlset>\n";

/// Writes an entry of a sitemap. `modified` is a date or a time such as `2026-11-01T00:00:00Z`. A URL that is too long
/// for the protocol is left out.
pub fn write_entry(url: &str, modified: Option<&str>, xml: &mut String) {
    if url.len() >= URL_BYTES_END {
        return;
    }
    xml.push_str("<url><loc>");
    escape(url, xml);
    xml.push_str("</loc>");
    if let Some(modified) = modified {
        xml.push_str("<lastmod>");
        xml.push_str(modified);
        xml.push_str("</lastmod>");
    }
    xml.push_str("</url>\n");
}

/// The sitemap of the start page and of the pages of repositories, by their ids. `has_records` says whether a repository
/// has lists of records.
pub fn repositories_sitemap<'r>(
    public_url: &str,
    repositories: impl IntoIterator<Item = (&'r str, bool)>,
) -> String {
    let mut xml = sitemap_start();
    write_entry(&format!("{public_url}/"), None, &mut xml);
    for (repository, has_records) in repositories.into_iter().take(ENTRIES_MAX / 2 - 1) {
        let address = RepositoryAddress { repository };
        write_entry(&address.page(public_url), None, &mut xml);
        if has_records {
            write_entry(&address.records(public_url), None, &mut xml);
        }
    }
    xml.push_str(SITEMAP_END);
    xml
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_written() {
        let records =
            |repository: &str, number| SitemapAddress::Records { repository: repository.to_owned(), number };
        for (address, path) in [
            (SitemapAddress::Index, "/sitemap.xml"),
            (SitemapAddress::Repositories, "/sitemap-repositories.xml.gz"),
            (records("x", 0), "/sitemap-x-0.xml.gz"),
            (records("a-1", 20), "/sitemap-a-1-20.xml.gz"),
            (records("repositories", 1), "/sitemap-repositories-1.xml.gz"),
        ] {
            assert_eq!(address.url(""), path);
            assert_eq!(SitemapAddress::read(path), Some(address));
        }
        for path in [
            "/sitemap",
            "/sitemap.xml.gz",
            "/sitemap-x.xml.gz",
            "/sitemap-x-.xml.gz",
            "/sitemap-x-01.xml.gz",
            "/sitemap-x-+1.xml.gz",
            "/sitemap--1.xml.gz",
            "/sitemap-x-1.xml",
            "/x/sitemap.xml",
        ] {
            assert_eq!(SitemapAddress::read(path), None, "{path}");
        }
    }

    #[test]
    fn the_longest_sitemap_is_within_the_limits_of_the_protocol() {
        let mut xml = String::new();
        write_entry(&"x".repeat(URL_BYTES_END - 1), Some("2026-11-01T00:00:00Z"), &mut xml);
        let count = SITEMAP_SEQUENCES.get() as usize;
        assert!(
            count <= ENTRIES_MAX
                && sitemap_start().len() + count * xml.len() + SITEMAP_END.len() <= 50_000_000
        );
        xml.clear();
        write_entry(&"x".repeat(URL_BYTES_END), None, &mut xml);
        assert_eq!(xml, "");
    }

    #[test]
    fn urls_are_escaped() {
        let xml = sitemap_index("https://e.org/a&b", [&SitemapAddress::Repositories]);
        assert!(xml.contains("<loc>https://e.org/a&amp;b/sitemap-repositories.xml.gz</loc>"), "{xml}");
        let xml = repositories_sitemap("https://e.org/a&b", [("x", true), ("y", false)]);
        for path in ["/", "/x/", "/x/records/", "/y/"] {
            assert!(xml.contains(&format!("<loc>https://e.org/a&amp;b{path}</loc>")), "{path}: {xml}");
        }
        assert_eq!(xml.matches("<url>").count(), 4);
    }
}
