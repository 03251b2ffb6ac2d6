//! The XML of the documents: sitemaps with the elements `rs:md` and `rs:ln` (sections 7 to 13). Pure: no I/O.

use crate::collection::ListedPart;
use crate::kind::ListKind;
use crate::resources::ListUrls;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_oai::{UnixSecs, escape};

/// The root of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// A list of resources or documents.
    UrlSet,
    /// A list of the parts of a list.
    Index,
}

impl Root {
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::UrlSet => ("urlset", "url"),
            Self::Index => ("sitemapindex", "sitemap"),
        }
    }

    /// The end of the document.
    pub(crate) const fn end(self) -> &'static str {
        match self {
            Self::UrlSet => "</urlset>\n",
            Self::Index => "</sitemapindex>\n",
        }
    }
}

/// An attribute of `rs:md`, or of `rs:ln` beside `rel`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'v> {
    Text(&'v str),
    Time(UnixSecs),
    Number(u64),
}

/// Attributes by their names. A description has few, so they are written in this order.
pub(crate) type Attributes<'v> = [(&'static str, Value<'v>)];

/// Links by their relations.
pub(crate) type Links<'l> = [(&'static str, &'l str)];

/// An entry of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'e> {
    pub(crate) location: &'e str,
    /// The time of the last change; `None`: it is not known, or does not matter.
    pub(crate) modified_secs: Option<UnixSecs>,
    pub(crate) metadata: &'e Attributes<'e>,
    pub(crate) links: &'e Links<'e>,
}

/// The start of a document.
pub(crate) fn start(root: Root, links: &Links<'_>, metadata: &Attributes<'_>) -> String {
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{} xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\n",
        root.names().0
    );
    write_links(links, "  ", &mut xml);
    write_metadata(metadata, "  ", &mut xml);
    xml
}

/// Writes an entry.
pub(crate) fn write_entry(root: Root, entry: &Entry<'_>, xml: &mut String) {
    let name = root.names().1;
    push(xml, &["  <", name, ">\n    <loc>"]);
    escape(entry.location, xml);
    xml.push_str("</loc>\n");
    if let Some(modified_secs) = entry.modified_secs {
        push(xml, &["    <lastmod>", &time(modified_secs), "</lastmod>\n"]);
    }
    write_metadata(entry.metadata, "    ", xml);
    write_links(entry.links, "    ", xml);
    push(xml, &["  </", name, ">\n"]);
}

fn write_metadata(metadata: &Attributes<'_>, indent: &str, xml: &mut String) {
    push(xml, &[indent, "<rs:md"]);
    for (name, value) in metadata {
        push(xml, &[" ", name, "=\""]);
        match value {
            Value::Text(text) => escape(text, xml),
            Value::Time(secs) => xml.push_str(&time(*secs)),
            Value::Number(number) => xml.push_str(&number.to_string()),
        }
        xml.push('"');
    }
    xml.push_str("/>\n");
}

fn write_links(links: &Links<'_>, indent: &str, xml: &mut String) {
    for (relation, url) in links {
        push(xml, &[indent, "<rs:ln rel=\"", relation, "\" href=\""]);
        escape(url, xml);
        xml.push_str("\"/>\n");
    }
}

fn push(xml: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| xml.push_str(part));
}

fn time(secs: UnixSecs) -> String {
    from_secs(secs, Granularity::Second)
}

/// The source description: the capability list of each format (section 8).
pub fn source_description<'f>(formats: impl Iterator<Item = &'f ListUrls>, describedby: &str) -> String {
    let mut xml =
        start(Root::UrlSet, &[("describedby", describedby)], &[("capability", Value::Text("description"))]);
    for urls in formats {
        let entry = Entry {
            location: &urls.capability_list(),
            modified_secs: None,
            metadata: &[("capability", Value::Text("capabilitylist"))],
            links: &[("describedby", &identify(urls))],
        };
        write_entry(Root::UrlSet, &entry, &mut xml);
    }
    xml + Root::UrlSet.end()
}

/// The capability list of a format (section 9). `up` is the URL of the source description.
pub fn capability_list(urls: &ListUrls, up: &str) -> String {
    let links = [("describedby", identify(urls)), ("up", up.to_owned())];
    let links = links.each_ref().map(|(relation, url)| (*relation, url.as_str()));
    let mut xml = start(Root::UrlSet, &links, &[("capability", Value::Text("capabilitylist"))]);
    for &kind in ListKind::ALL {
        let entry = Entry {
            location: &urls.list(kind),
            modified_secs: None,
            metadata: &[("capability", Value::Text(kind.name()))],
            links: &[],
        };
        write_entry(Root::UrlSet, &entry, &mut xml);
    }
    xml + Root::UrlSet.end()
}

fn identify(urls: &ListUrls) -> String {
    format!("{}?verb=Identify", urls.repository)
}

/// The document that names the parts of a list: an index of documents, or the ZIP files of a dump.
///
/// A change list has no `until`: its URL leads to later changes, too. Each part has one.
pub(crate) fn part_index(urls: &ListUrls, kind: ListKind, at_secs: UnixSecs, parts: &[ListedPart]) -> String {
    let root = if kind.is_dump() { Root::UrlSet } else { Root::Index };
    let capability = ("capability", Value::Text(kind.name()));
    let up = urls.capability_list();
    let links = [("up", up.as_str())];
    let mut xml = if kind.has_changes() {
        let from_secs = parts.first().map_or(at_secs, |part| part.from_secs);
        start(root, &links, &[capability, ("from", Value::Time(from_secs))])
    } else {
        start(root, &links, &[capability, ("at", Value::Time(at_secs)), ("completed", Value::Time(at_secs))])
    };
    for listed in parts {
        let mut metadata = Vec::new();
        if kind.is_dump() {
            metadata.push(("type", Value::Text("application/zip")));
        }
        if kind.has_changes() {
            metadata.push(("from", Value::Time(listed.from_secs)));
            metadata.push(("until", Value::Time(listed.until_secs)));
        } else {
            metadata.push(("at", Value::Time(at_secs)));
        }
        let location = urls.part(kind, &listed.part);
        let entry = Entry { location: &location, modified_secs: None, metadata: &metadata, links: &[] };
        write_entry(root, &entry, &mut xml);
    }
    xml + root.end()
}
