//! The pages of records that cannot be shown, although they may exist.

use super::super::record::RecordAddress;
use super::missing_record::{Notice, ToRepository};
use crate::texts::{common, record_notices as texts};
use maud::html;
use oaimend_html::Site;

/// Why a record cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRecordReason {
    /// The format was never harvested completely. For status 503.
    NotHarvested,
    /// The record is damaged on disk and is to be harvested again. For status 503.
    Damaged,
    /// The mirror cannot be read. For status 503.
    Unreadable,
    /// The source of a repository that is not mirrored failed. For status 502, 503 or 504.
    SourceFailed,
    /// A crawler requested a record that is not mirrored. For status 403.
    ForPeopleOnly,
    /// The links of a record that is not mirrored were requested. For status 404.
    LinksNotKnown,
    /// The operator has turned the pages of this repository off. For status 404.
    PagesOff,
    /// The repository is no longer served, or no longer mirrored. For status 410.
    RepositoryRemoved,
    /// The record never was in the view, or not in this format. For status 404.
    NotInView,
    /// The record has left the view. For status 410.
    LeftView,
    /// The records of the view cannot be read, or are being read from the mirror. For status 503.
    ViewUnreadable,
}

impl NoRecordReason {
    /// The title of the page.
    pub const fn title(self) -> &'static str {
        match self {
            Self::NotHarvested => common::NOT_HARVESTED_TITLE,
            Self::Damaged | Self::Unreadable | Self::SourceFailed => texts::NOT_AVAILABLE_TITLE,
            Self::PagesOff => common::PAGES_OFF_TITLE,
            Self::ForPeopleOnly => texts::FOR_PEOPLE_ONLY_TITLE,
            Self::LinksNotKnown => texts::LINKS_NOT_KNOWN_TITLE,
            Self::RepositoryRemoved => common::REPOSITORY_REMOVED_TITLE,
            Self::NotInView => texts::NOT_IN_VIEW_TITLE,
            Self::LeftView => texts::LEFT_VIEW_TITLE,
            Self::ViewUnreadable => texts::NOT_AVAILABLE_TITLE,
        }
    }

    /// What happened and what to do, one sentence each.
    pub const fn sentences(self) -> &'static [&'static str] {
        match self {
            Self::NotHarvested => &[texts::NOT_HARVESTED, texts::TRY_LATER],
            Self::Damaged => &[texts::DAMAGED, texts::TRY_LATER],
            Self::Unreadable => &[texts::UNREADABLE, texts::TRY_SOON],
            Self::SourceFailed => &[texts::SOURCE_FAILED, texts::TRY_SOON],
            Self::ForPeopleOnly => &[texts::FOR_PEOPLE_ONLY, texts::NOT_FOR_CRAWLERS],
            Self::LinksNotKnown => &[texts::LINKS_NOT_KNOWN],
            Self::PagesOff => &[common::PAGES_OFF],
            Self::RepositoryRemoved => &[common::REPOSITORY_REMOVED],
            Self::NotInView => &[texts::NOT_IN_VIEW],
            Self::LeftView => &[texts::LEFT_VIEW],
            Self::ViewUnreadable => &[texts::VIEW_UNREADABLE, texts::TRY_SOON],
        }
    }
}

/// The page of a record that cannot be shown.
#[derive(Clone, Debug)]
pub struct NoRecordPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The name of the repository.
    pub repository_name: &'a str,
    /// The place of the record.
    pub address: RecordAddress<'a>,
    /// Why it cannot be shown.
    pub reason: NoRecordReason,
}

impl NoRecordPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let title = self.reason.title();
        let main = html! {
            h1 { (title) }
            p { (texts::RECORD) bdi.identifier { (self.address.identifier) } }
            @for sentence in self.reason.sentences() { p { (sentence) } }
        };
        let to_repository = match self.reason {
            NoRecordReason::RepositoryRemoved
            | NoRecordReason::NotInView
            | NoRecordReason::LeftView
            | NoRecordReason::ViewUnreadable => ToRepository::NoLink,
            _ => ToRepository::Link,
        };
        let notice = Notice {
            site: self.site,
            repository_name: self.repository_name,
            address: &self.address,
            to_repository,
        };
        notice.page(title, main)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_page() {
        let site = Site::new("Site", None, "https://e.org/b");
        let address = RecordAddress { repository: "x", identifier: "<i>&\"", format: None };
        for reason in [
            NoRecordReason::NotHarvested,
            NoRecordReason::Damaged,
            NoRecordReason::Unreadable,
            NoRecordReason::SourceFailed,
            NoRecordReason::ForPeopleOnly,
            NoRecordReason::LinksNotKnown,
            NoRecordReason::PagesOff,
            NoRecordReason::RepositoryRemoved,
            NoRecordReason::NotInView,
            NoRecordReason::LeftView,
            NoRecordReason::ViewUnreadable,
        ] {
            let page = NoRecordPage { site: &site, repository_name: "<i>", address, reason }.render();
            assert!(page.contains(&format!("<h1>{}</h1>", reason.title())), "{page}");
            assert!(page.contains("&lt;i&gt;&amp;&quot;") && !page.contains("<i>"), "{page}");
            let has_no_repository = [
                NoRecordReason::RepositoryRemoved,
                NoRecordReason::NotInView,
                NoRecordReason::LeftView,
                NoRecordReason::ViewUnreadable,
            ]
            .contains(&reason);
            assert_eq!(page.contains("<a href=\"/b/x/\">"), !has_no_repository, "{page}");
        }
    }
}
