//! Results as an Atom feed (RFC 4287) whose further pages are linked (RFC 5005), with the counts of OpenSearch.

use super::address::{PAGE_ITEMS, SearchAddress};
use super::form::SearchForm;
use super::results::SearchItem;
use oaimend_html::layout::DESCRIPTION_PATH;
use oaimend_oai::escape;

/// A page of results as a feed.
#[derive(Clone, Copy, Debug)]
pub struct AtomFeed<'a> {
    /// The title of the feed.
    pub title: &'a str,
    /// The name of the site, the author of records without creators.
    pub site_name: &'a str,
    /// The public URL, without a slash at its end.
    pub public_url: &'a str,
    /// The URLs of the feed.
    pub place: FeedPlace<'a>,
    /// The hub that pushes the feed to its subscribers (WebSub).
    pub hub: Option<&'a str>,
    /// The records.
    pub items: &'a [SearchItem],
}

/// The URLs of a feed.
#[derive(Clone, Copy, Debug)]
pub enum FeedPlace<'a> {
    /// A page of the results of a search, with the number of all results.
    Search(&'a SearchAddress, u64),
    /// A feed of one page at this URL, with the URL of the page for people.
    Alone {
        /// The feed.
        feed: &'a str,
        /// The page for people.
        page: &'a str,
    },
}

/// Maximum number of creators and of subjects of an entry.
const VALUES_MAX: usize = 50;
/// The time of the last change of a feed without entries.
const NEVER: &str = "1970-01-01T00:00:00Z";

/// The document.
pub fn atom_feed(feed: &AtomFeed<'_>) -> String {
    let AtomFeed { title, site_name, public_url, place, hub, items } = *feed;
    let url = |address: &SearchAddress, form: SearchForm| address.url(public_url, form.ending());
    let (id, this, page) = match place {
        FeedPlace::Search(address, _) => (
            url(&address.on_page(0), SearchForm::Atom),
            url(address, SearchForm::Atom),
            url(address, SearchForm::Html),
        ),
        FeedPlace::Alone { feed, page } => (feed.to_owned(), feed.to_owned(), page.to_owned()),
    };
    let mut xml = Xml(String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\" \
         xmlns:opensearch=\"http://a9.com/-/spec/opensearch/1.1/\">\n",
    ));
    xml.text("title", title);
    xml.text("id", &id);
    let changed = items.iter().map(|item| item.changed.as_str()).max();
    xml.text("updated", changed.unwrap_or(NEVER));
    xml.author(site_name);
    let atom = SearchForm::Atom.content_type().split(';').next().unwrap_or_default();
    xml.link("self", atom, &this);
    if let Some(hub) = hub {
        xml.0.push_str("<link rel=\"hub\" href=\"");
        escape(hub, &mut xml.0);
        xml.0.push_str("\"/>\n");
    }
    xml.link("alternate", "text/html", &page);
    if let FeedPlace::Search(address, total) = place {
        xml.link("first", atom, &id);
        for (relation, other) in [("previous", address.previous()), ("next", address.next(total))] {
            if let Some(other) = other {
                xml.link(relation, atom, &url(&other, SearchForm::Atom));
            }
        }
        let description = format!("{public_url}{DESCRIPTION_PATH}");
        xml.link("search", "application/opensearchdescription+xml", &description);
        xml.text("opensearch:totalResults", &total.to_string());
        xml.text("opensearch:startIndex", &(address.offset() + 1).to_string());
        xml.text("opensearch:itemsPerPage", &PAGE_ITEMS.to_string());
    }
    for item in items {
        entry(item, public_url, &mut xml);
    }
    xml.0.push_str("</feed>\n");
    xml.0
}

fn entry(item: &SearchItem, public_url: &str, xml: &mut Xml) {
    let url = item.url(public_url);
    xml.0.push_str("<entry>\n");
    xml.text("title", item.title_text());
    xml.text("id", &url);
    xml.text("updated", &item.changed);
    for creator in item.work.core.creators.iter().take(VALUES_MAX) {
        xml.author(&creator.value);
    }
    xml.link("alternate", "text/html", &url);
    if let Some(link) = item.work.links.persistent().or_else(|| item.work.links.landing_page()) {
        xml.link("related", "text/html", &link.url);
    }
    for subject in item.work.core.subjects.iter().take(VALUES_MAX) {
        xml.0.push_str("<category term=\"");
        escape(&subject.value, &mut xml.0);
        xml.0.push_str("\"/>\n");
    }
    if let Some(snippet) = &item.snippet {
        xml.text("summary", &snippet.text.value);
    }
    xml.0.push_str("</entry>\n");
}

struct Xml(String);

impl Xml {
    fn text(&mut self, name: &str, text: &str) {
        self.0.push_str(&format!("<{name}>"));
        escape(text, &mut self.0);
        self.0.push_str(&format!("</{name}>\n"));
    }

    fn author(&mut self, name: &str) {
        self.0.push_str("<author>");
        self.text("name", name);
        self.0.push_str("</author>\n");
    }

    fn link(&mut self, relation: &str, media_type: &str, url: &str) {
        self.0.push_str(&format!("<link rel=\"{relation}\" type=\"{media_type}\" href=\""));
        escape(url, &mut self.0);
        self.0.push_str("\"/>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::ResultList;
    use super::*;

    #[test]
    fn texts_are_escaped_and_pages_are_linked() {
        let (address, _) = SearchAddress::read(ResultList::Search, "q=a%3Cb%00&page=2");
        let item = SearchItem {
            repository: "x".to_owned(),
            work: oaimend_record::WorkDescription {
                identifier: "oai:x:<1>".to_owned(),
                ..Default::default()
            },
            changed: "2026-11-26T12:00:00Z".to_owned(),
            ..SearchItem::default()
        };
        let feed = AtomFeed {
            title: "a<b\0",
            site_name: "Site & more",
            public_url: "https://e.org/p",
            place: FeedPlace::Search(&address, 41),
            hub: Some("https://hub.example/?a&b"),
            items: &[item],
        };
        let xml = atom_feed(&feed);
        for part in [
            "<title>a&lt;b\u{FFFD}</title>\n<id>https://e.org/p/_search.atom?q=a%3Cb%00</id>",
            "<updated>2026-11-26T12:00:00Z</updated>\n<author><name>Site &amp; more</name>",
            "<link rel=\"self\" type=\"application/atom+xml\" href=\"https://e.org/p/_search.atom?q=a%3Cb%00&amp;page=2\"/>",
            "<link rel=\"previous\" type=\"application/atom+xml\" href=\"https://e.org/p/_search.atom?q=a%3Cb%00\"/>",
            "<link rel=\"next\" type=\"application/atom+xml\" href=\"https://e.org/p/_search.atom?q=a%3Cb%00&amp;page=3\"/>",
            "<link rel=\"hub\" href=\"https://hub.example/?a&amp;b\"/>",
            "<opensearch:startIndex>21</opensearch:startIndex>",
            "<entry>\n<title>oai:x:&lt;1&gt;</title>\n<id>https://e.org/p/x/record/oai%3Ax%3A%3C1%3E</id>",
        ] {
            assert!(xml.contains(part), "{part}: {xml}");
        }
    }
}
