//! The page of the view of all mirrored repositories.

use crate::oai_page::RequestAddress;
use crate::texts::numbers::grouped;
use crate::texts::{common, repository as texts};
use maud::{Markup, html};
use oaimend_html::{Crumb, Page, Site};
use oaimend_oai::Request;

/// The page of the view of all mirrored repositories.
#[derive(Clone, Debug)]
pub struct AggregatePage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The path of the view, without a slash at its start.
    pub path: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The number of the repositories in it.
    pub repositories: usize,
    /// The number of their records that are not deleted, in the format with most of them.
    pub records: u64,
}

impl AggregatePage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let base = self.site.base_path();
        let address = RequestAddress { repository: self.path.to_owned(), query: String::new() };
        let main = html! {
            h1 { (self.name) }
            p { (texts::aggregate(self.repositories as u64, &grouped(self.records), &format!("{base}/"))) }
            (how_to_harvest(&address, "oai_dc", self.site))
        };
        let crumbs = [Crumb { name: self.name, url: None }];
        let head = html! { link rel="canonical" href=(address.url(self.site.public_url())); };
        Page { site: self.site, title: self.name, crumbs: &crumbs, head, main }.render()
    }
}

/// The base URL of a repository of this server, and links to its responses.
pub(super) fn how_to_harvest(address: &RequestAddress, prefix: &str, site: &Site) -> Markup {
    let records = Request::list_records(prefix, None, None, None);
    let requests = [
        (common::IDENTIFY, Request::identify()),
        (common::FORMATS, Request::list_metadata_formats(None)),
        (common::SETS, Request::list_sets()),
        (common::IDENTIFIERS, records.to_list_identifiers()),
        (common::RECORDS, records),
    ];
    html! {
        h2 { (texts::HARVEST_IT) }
        p { (texts::base_url(&address.url(site.public_url()))) }
        ul {
            @for (name, request) in &requests {
                li { a href=(address.other(site.base_path(), request)) { (name) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_links_and_texts_are_escaped() {
        let site = Site::new("Site", None, "https://e.org/b");
        let page = AggregatePage { site: &site, path: "_all", name: "<i>", repositories: 1, records: 1_234 };
        let page = page.render();
        for part in [
            "<code>https://e.org/b/_all</code>",
            "<a href=\"/b/_all?verb=ListRecords&amp;metadataPrefix=oai_dc\">Records</a>",
            "records of 1 repository, 1,234 in all.",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<i>"), "{page}");
    }
}
