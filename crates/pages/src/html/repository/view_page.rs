//! The page of a view of chosen records.

use super::super::search::results::results;
use super::aggregate_page::how_to_harvest;
use super::{NAME_BYTES_MAX, start_of};
use crate::oai_page::RequestAddress;
use crate::search::{ResultList, SearchAddress, SearchItem};
use crate::texts::repository as texts;
use maud::html;
use oaimend_html::{Crumb, Page, Site};

/// The page of a view of chosen records.
#[derive(Clone, Debug)]
pub struct ViewPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The path of the view, without a slash at its start.
    pub path: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What it is about.
    pub description: Option<&'a str>,
    /// The query that its records match.
    pub query: Option<&'a str>,
    /// The metadataPrefix for the links to its records.
    pub prefix: &'a str,
    /// Its newest records; `None` if they cannot be read now.
    pub newest: Option<&'a [SearchItem]>,
}

impl ViewPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let public_url = self.site.public_url();
        let address = RequestAddress { repository: self.path.to_owned(), query: String::new() };
        let feed = format!("{}.atom", address.url(public_url));
        let recent = SearchAddress { list: ResultList::Recent, ..SearchAddress::default() };
        let title = start_of(self.name, NAME_BYTES_MAX);
        let main = html! {
            h1 { bdi { (title) } }
            @if let Some(description) = self.description { p { (description) } }
            p { (texts::view(self.query)) }
            (how_to_harvest(&address, self.prefix, self.site))
            h2 { (texts::NEWEST) }
            @match self.newest {
                None => p { (texts::UNREADABLE_VIEW) },
                Some([]) => p { (texts::EMPTY_VIEW) },
                Some(items) => {
                    p { a href=(feed) { (texts::VIEW_FEED) } }
                    (results(items, &recent, self.site))
                },
            }
        };
        let crumbs = [Crumb { name: &title, url: None }];
        let head = html! {
            link rel="canonical" href=(address.url(public_url));
            link rel="alternate" type="application/atom+xml" title=(title) href=(feed);
        };
        Page { site: self.site, title: &title, crumbs: &crumbs, head, main }.render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_the_feed_is_found() {
        let site = Site::new("Site", None, "https://e.org/b");
        let page = ViewPage {
            site: &site,
            path: "_view/maps",
            name: "<i>",
            description: Some("<i>"),
            query: Some("+maps <i>"),
            prefix: "mods",
            newest: Some(&[SearchItem::default()]),
        };
        let shown = page.render();
        for part in [
            "<code>https://e.org/b/_view/maps</code>",
            "<code>+maps &lt;i&gt;</code>",
            "<a href=\"/b/_view/maps?verb=ListRecords&amp;metadataPrefix=mods\">Records</a>",
            "<link rel=\"alternate\" type=\"application/atom+xml\" title=\"&lt;i&gt;\" href=\"https://e.org/b/_view/maps.atom\">",
            "<ol class=\"results\" start=\"1\">",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("<i>"), "{shown}");
        let failed = ViewPage { newest: None, ..page }.render();
        assert!(failed.contains("cannot be read now"), "{failed}");
    }
}
