//! The page with the sets of a repository.

use crate::list::{ListAddress, ListPart, SetsAddress};
use crate::record::RepositoryAddress;
use crate::texts::{common, sets as texts};
use maud::html;
use oaimend_html::{Crumb, Page, Site};

/// A page with sets.
#[derive(Clone, Debug)]
pub struct SetsPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The name of the repository.
    pub repository_name: &'a str,
    /// The place of the page.
    pub address: &'a SetsAddress,
    /// The sets with records, at most 1,000.
    pub sets: &'a [SetEntry],
    /// The page with the next sets; `None` on the last page.
    pub next: Option<SetsAddress>,
}

/// A set with records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetEntry {
    /// The setSpec.
    pub set_spec: String,
    /// The name; the setSpec if the source gives none.
    pub name: String,
    /// The number of its records.
    pub records: u64,
}

impl SetsPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let base = self.site.base_path();
        let repository = &self.address.repository;
        let list =
            |set| ListAddress { repository: repository.clone(), set: Some(set), part: ListPart::Months };
        let first = SetsAddress { repository: repository.clone(), after: None };
        let page = RepositoryAddress { repository }.page(base);
        let crumbs = [
            Crumb { name: self.repository_name, url: Some(page) },
            Crumb { name: common::SETS, url: self.address.after.as_ref().map(|_| first.url(base)) },
        ];
        let head = html! { link rel="canonical" href=(self.address.url(self.site.public_url())); };
        let main = html! {
            h1 { (common::SETS) }
            p {
                @if self.sets.is_empty() { (texts::NONE) }
                @else { (texts::INTRODUCTION) }
            }
            ul.list {
                @for set in self.sets {
                    li {
                        a href=(list(set.set_spec.clone()).url(base)) { bdi { (set.name) } } " "
                        @if set.name != set.set_spec { bdi.identifier { (set.set_spec) } " " }
                        span.count { (common::number_of_records(set.records)) }
                    }
                }
            }
            @if let Some(next) = &self.next {
                nav.pages aria-label=(texts::FURTHER) { a rel="next" href=(next.url(base)) { (texts::FURTHER) } }
            }
        };
        let title = common::title(common::SETS, self.repository_name);
        Page { site: self.site, title: &title, crumbs: &crumbs, head, main }.render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_link_to_their_lists() {
        let site = Site::new("Site", None, "https://e.org/b");
        let set = |set_spec: &str, name: &str| SetEntry {
            set_spec: set_spec.to_owned(),
            name: name.to_owned(),
            records: 1_000,
        };
        let address = SetsAddress { repository: "x".to_owned(), after: Some("0".to_owned()) };
        let next = SetsAddress { after: Some("a:b".to_owned()), ..address.clone() };
        let page = SetsPage {
            site: &site,
            repository_name: "<i>",
            address: &address,
            sets: &[set("a:b", "<i>"), set("c", "c")],
            next: Some(next),
        };
        let page = page.render();
        for part in [
            "<a href=\"/b/x/sets/a%3Ab/\"><bdi>&lt;i&gt;</bdi></a> <bdi class=\"identifier\">a:b</bdi> \
             <span class=\"count\">1,000 records</span>",
            "<a href=\"/b/x/sets/c/\"><bdi>c</bdi></a> <span",
            "<a rel=\"next\" href=\"/b/x/sets/?after=a%3Ab\">Further sets</a>",
            "<li><a href=\"/b/x/sets/\"><bdi>Sets</bdi></a></li>",
            "<link rel=\"canonical\" href=\"https://e.org/b/x/sets/?after=0\">",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<i>"), "{page}");
    }
}
