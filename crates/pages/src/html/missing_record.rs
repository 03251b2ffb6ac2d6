//! The pages of records that do not exist: deleted ones and unknown ones.

use super::super::record::RecordAddress;
use crate::texts::record_notices as texts;
use maud::{Markup, html};
use oaimend_html::{Crumb, Page, Site};

/// The page of a deleted record, for status 410.
#[derive(Clone, Debug)]
pub struct DeletedRecordPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The name of the repository.
    pub repository_name: &'a str,
    /// The place of the record.
    pub address: RecordAddress<'a>,
    /// The datestamp of the deletion.
    pub deleted_at: &'a str,
}

impl DeletedRecordPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let main = html! {
            h1 { (texts::DELETED) }
            p { (texts::deleted_at(self.address.identifier, self.deleted_at)) }
            p { a href=(self.address.repository(self.site.base_path())) { (texts::repository(self.repository_name)) } }
        };
        let notice = Notice {
            site: self.site,
            repository_name: self.repository_name,
            address: &self.address,
            to_repository: ToRepository::Link,
        };
        notice.page(texts::DELETED_TITLE, main)
    }
}

/// The page of an unknown identifier, for status 404.
#[derive(Clone, Debug)]
pub struct UnknownRecordPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The name of the repository.
    pub repository_name: &'a str,
    /// The place that was requested.
    pub address: RecordAddress<'a>,
}

impl UnknownRecordPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let main = html! {
            h1 { (texts::UNKNOWN) }
            p { (texts::unknown_in(self.repository_name, self.address.identifier)) }
            h2 { (texts::WHAT_TO_DO) }
            ul {
                li { (texts::COMPARE) }
                li { (texts::CHECK_THE_END) }
                li {
                    a href=(self.address.repository(self.site.base_path())) { (texts::SEARCH) }
                    (texts::AFTER_SEARCH)
                }
            }
        };
        let notice = Notice {
            site: self.site,
            repository_name: self.repository_name,
            address: &self.address,
            to_repository: ToRepository::Link,
        };
        notice.page(texts::UNKNOWN_TITLE, main)
    }
}

/// Whether a page leads to the page of its repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToRepository {
    Link,
    NoLink,
}

/// A notice in place of a record.
pub(super) struct Notice<'a> {
    pub(super) site: &'a Site,
    pub(super) repository_name: &'a str,
    pub(super) address: &'a RecordAddress<'a>,
    pub(super) to_repository: ToRepository,
}

impl Notice<'_> {
    /// The page of the notice.
    pub(super) fn page(&self, title: &str, main: Markup) -> String {
        let Self { site, repository_name, address, to_repository } = *self;
        let is_link = to_repository == ToRepository::Link;
        let repository = is_link.then(|| address.repository(site.base_path()));
        let crumbs = [Crumb { name: repository_name, url: repository }, Crumb { name: title, url: None }];
        let main = html! { div.notice { (main) } };
        Page { site, title, crumbs: &crumbs, head: html! {}, main }.render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: RecordAddress<'_> = RecordAddress { repository: "x", identifier: "<i>&\"", format: None };

    #[test]
    fn a_deleted_record_says_since_when() {
        let site = Site::new("Site", None, "https://e.org/b");
        let page = DeletedRecordPage {
            site: &site,
            repository_name: "<i>",
            address: ADDRESS,
            deleted_at: "2024-05-06",
        };
        let page = page.render();
        assert!(page.contains("<time datetime=\"2024-05-06\">2024-05-06</time>"), "{page}");
        assert!(page.contains("&lt;i&gt;&amp;&quot;") && !page.contains("<i>"), "{page}");
    }

    #[test]
    fn an_unknown_record_leads_to_its_repository() {
        let site = Site::new("Site", None, "https://e.org/b");
        let page = UnknownRecordPage { site: &site, repository_name: "<i>", address: ADDRESS }.render();
        assert!(page.contains("<a href=\"/b/x/\">Search the records"), "{page}");
        assert!(page.contains("&lt;i&gt;&amp;&quot;") && !page.contains("<i>"), "{page}");
    }
}
