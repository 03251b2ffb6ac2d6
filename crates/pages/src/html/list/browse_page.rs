//! A page with the values of a field in a repository.

use crate::list::{BrowseAddress, BrowsedField};
use crate::record::RepositoryAddress;
use crate::texts::{common, lists as texts};
use maud::{Markup, html};
use oaimend_html::{Crumb, Page, Site};

/// A page with the values of a field in a repository.
#[derive(Clone, Debug)]
pub struct BrowsePage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The name of the repository.
    pub repository_name: &'a str,
    /// The place of the page.
    pub address: &'a BrowseAddress,
    /// The values with the numbers of their records. `None`: the index has too many values here.
    pub values: Option<&'a [(String, u64)]>,
    /// The page after this one.
    pub next: Option<BrowseAddress>,
}

/// Links to the values of each field. That of the page itself is marked.
pub(in crate::html) fn browse_links(repository: &str, base: &str, current: Option<BrowsedField>) -> Markup {
    html! {
        @for (place, &field) in BrowsedField::ALL.iter().enumerate() {
            @if place > 0 { " · " }
            a rel="nofollow" href=(BrowseAddress::of(repository, field).url(base))
                aria-current=[(current == Some(field)).then_some("page")] { (texts::field(field)) }
        }
    }
}

impl BrowsePage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let base = self.site.base_path();
        let BrowseAddress { repository, field, .. } = self.address;
        let main = html! {
            h1 { (texts::field(*field)) }
            nav.fields aria-label=(texts::FIELDS) { p { (browse_links(repository, base, Some(*field))) } }
            @if *field != BrowsedField::Years { (self.form(base)) }
            @match self.values {
                None => p { (texts::TOO_MANY_VALUES) },
                Some([]) if self.address.start.is_empty() => p { (texts::without_values(*field)) },
                Some([]) => p { (texts::NO_VALUES) },
                Some(values) => ul.list {
                    @for (value, records) in values {
                        li {
                            a href=(field.search(repository, value).url(base, "")) { bdi { (value) } } " "
                            span.count { (common::number_of_records(*records)) }
                        }
                    }
                },
            }
            (self.pages(base))
        };
        let crumbs = [
            Crumb { name: self.repository_name, url: Some(RepositoryAddress { repository }.page(base)) },
            Crumb { name: texts::field(*field), url: None },
        ];
        let title = common::title(texts::field(*field), self.repository_name);
        // Crawlers find all records in the lists, and are kept from searches.
        let head = html! { meta name="robots" content="noindex, nofollow"; };
        Page { site: self.site, title: &title, crumbs: &crumbs, head, main }.render()
    }

    fn form(&self, base: &str) -> Markup {
        let BrowseAddress { repository, field, start, .. } = self.address;
        html! {
            form.search.wide role="search" method="get" action=(BrowseAddress::of(repository, *field).url(base)) {
                label for="start" { (texts::beginning_with(*field)) }
                input id="start" name="start" type="search" value=(start) maxlength="100" autocomplete="off";
                button type="submit" { (texts::SHOW) }
            }
        }
    }

    fn pages(&self, base: &str) -> Markup {
        let first = BrowseAddress { after: None, ..self.address.clone() };
        let is_first = self.address.after.is_none();
        html! {
            @if !is_first || self.next.is_some() {
                nav.pages aria-label=(common::PAGES) {
                    @if !is_first { a rel="first" href=(first.url(base)) { (common::FIRST_PAGE) } }
                    @if let Some(next) = &self.next { a rel="next" href=(next.url(base)) { (common::NEXT_PAGE) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(address: &BrowseAddress, values: Option<&[(String, u64)]>) -> String {
        let site = Site::new("Site", None, "https://e.org/b");
        let next = Some(BrowseAddress { after: Some("b c".to_owned()), ..address.clone() });
        BrowsePage { site: &site, repository_name: "<i>", address, values, next }.render()
    }

    #[test]
    fn values_lead_to_searches() {
        let address = BrowseAddress {
            start: "<i>".to_owned(),
            after: Some("a".to_owned()),
            ..BrowseAddress::of("x", BrowsedField::Creators)
        };
        let creators = page(&address, Some(&[("<i> \"B\"".to_owned(), 2)]));
        for part in [
            "<a href=\"/b/_search?q=creator%3A%22%3Ci%3E++B+%22&amp;repository=x\"><bdi>&lt;i&gt; &quot;B&quot;</bdi></a>",
            "<span class=\"count\">2 records</span>",
            "<a rel=\"nofollow\" href=\"/b/x/browse/titles/\">Titles</a>",
            "<a rel=\"nofollow\" href=\"/b/x/browse/creators/\" aria-current=\"page\">Creators</a>",
            "<a rel=\"first\" href=\"/b/x/browse/creators/?start=%3Ci%3E\">",
            "<a rel=\"next\" href=\"/b/x/browse/creators/?start=%3Ci%3E&amp;after=b+c\">",
            "value=\"&lt;i&gt;\"",
        ] {
            assert!(creators.contains(part), "{part}: {creators}");
        }
        assert!(!creators.contains("<i>"), "{creators}");
        let years = page(&BrowseAddress::of("x", BrowsedField::Years), Some(&[("2019".to_owned(), 1)]));
        assert!(
            years.contains("/b/_search?repository=x&amp;year=2019") && !years.contains("<form"),
            "{years}"
        );
    }

    #[test]
    fn a_page_without_values_says_why() {
        let address = BrowseAddress::of("x", BrowsedField::Titles);
        assert!(page(&address, None).contains("Enter the first letters"));
        assert!(page(&address, Some(&[])).contains("No record here has a title."));
        let address = BrowseAddress { start: "x".to_owned(), ..address };
        assert!(page(&address, Some(&[])).contains("No record has such a value."));
    }
}
