//! The pages in place of lists that do not exist or cannot be shown.

use crate::record::RepositoryAddress;
use crate::texts::{common, list_notices as texts};
use maud::html;
use oaimend_html::{Crumb, Page, Site};
use oaimend_store::MirrorError;

/// Why there is no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListNotice {
    /// No record was ever in this part of the list, or no set has this name. For status 404.
    Unknown,
    /// No format was harvested completely. For status 503.
    NotHarvested,
    /// The list of a source that is not mirrored was not read yet. For status 503.
    NotListed,
    /// The mirror does not know which records are in the set. For status 503.
    UnknownMembers,
    /// The mirror cannot be read. For status 503.
    Unreadable,
    /// The operator has turned the pages of this repository off. For status 404.
    PagesOff,
    /// The repository is no longer served, or no longer mirrored. For status 410.
    RepositoryRemoved,
}

impl From<MirrorError> for ListNotice {
    fn from(_: MirrorError) -> Self {
        Self::Unreadable
    }
}

impl ListNotice {
    /// The title of the page.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Unknown => texts::UNKNOWN_TITLE,
            Self::NotHarvested => common::NOT_HARVESTED_TITLE,
            Self::NotListed => texts::NOT_LISTED_TITLE,
            Self::UnknownMembers => texts::UNKNOWN_MEMBERS_TITLE,
            Self::Unreadable => texts::UNREADABLE_TITLE,
            Self::PagesOff => common::PAGES_OFF_TITLE,
            Self::RepositoryRemoved => common::REPOSITORY_REMOVED_TITLE,
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Unknown => texts::UNKNOWN,
            Self::NotHarvested => texts::NOT_HARVESTED,
            Self::NotListed => texts::NOT_LISTED,
            Self::UnknownMembers => texts::UNKNOWN_MEMBERS,
            Self::Unreadable => texts::UNREADABLE,
            Self::PagesOff => common::PAGES_OFF,
            Self::RepositoryRemoved => common::REPOSITORY_REMOVED,
        }
    }
}

/// The page in place of a list.
#[derive(Clone, Debug)]
pub struct ListNoticePage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The repository id.
    pub repository: &'a str,
    /// The name of the repository.
    pub repository_name: &'a str,
    /// Why there is no list.
    pub notice: ListNotice,
}

impl ListNoticePage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let base = self.site.base_path();
        let title = self.notice.title();
        let address = RepositoryAddress { repository: self.repository };
        let has_page = self.notice != ListNotice::RepositoryRemoved;
        let crumbs = [
            Crumb { name: self.repository_name, url: has_page.then(|| address.page(base)) },
            Crumb { name: title, url: None },
        ];
        let list = address.records(base);
        let main = html! {
            div.notice {
                h1 { (title) }
                p { (self.notice.sentence()) }
                @if self.notice == ListNotice::Unknown { p { a href=(list) { (texts::ALL_RECORDS) } } }
            }
        };
        Page { site: self.site, title, crumbs: &crumbs, head: html! {}, main }.render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_notice_has_a_page() {
        let site = Site::new("Site", None, "https://e.org/b");
        for notice in [
            ListNotice::Unknown,
            ListNotice::NotHarvested,
            ListNotice::Unreadable,
            ListNotice::PagesOff,
            ListNotice::RepositoryRemoved,
        ] {
            let page =
                ListNoticePage { site: &site, repository: "x", repository_name: "<i>", notice }.render();
            assert!(page.contains(&format!("<h1>{}</h1>", notice.title())), "{page}");
            assert!(!page.contains("<i>"), "{page}");
            let is_removed = notice == ListNotice::RepositoryRemoved;
            assert_eq!(page.contains("<a href=\"/b/x/\">"), !is_removed, "{page}");
            assert_eq!(page.contains("href=\"/b/x/records/\""), notice == ListNotice::Unknown, "{page}");
        }
    }
}
