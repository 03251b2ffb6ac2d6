//! The pages in place of a search.

use crate::texts::search as texts;
use maud::html;
use oaimend_html::{Crumb, Page, Site};

/// Why this server does not search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchNotice {
    /// The operator has turned it off, or no repository is mirrored. For status 404.
    Off,
    /// The index is built for the first time. For status 503.
    Building,
    /// Too many searches are running. For status 503.
    Busy,
    /// The index or the mirror cannot be read. For status 503.
    Unreadable,
}

impl SearchNotice {
    /// The status.
    pub const fn status(self) -> u16 {
        match self {
            Self::Off => 404,
            Self::Building | Self::Busy | Self::Unreadable => 503,
        }
    }

    /// The title of the page.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Off => texts::OFF_TITLE,
            Self::Building => texts::BUILDING_TITLE,
            Self::Busy => texts::BUSY_TITLE,
            Self::Unreadable => texts::UNREADABLE_TITLE,
        }
    }

    /// What the reader can do.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Off => texts::OFF,
            Self::Building => texts::BUILDING,
            Self::Busy => texts::BUSY,
            Self::Unreadable => texts::UNREADABLE,
        }
    }
}

/// The page in place of a search.
#[derive(Clone, Copy, Debug)]
pub struct SearchNoticePage<'a> {
    /// The site.
    pub site: &'a Site,
    /// Why there is no search.
    pub notice: SearchNotice,
}

impl SearchNoticePage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let main = html! {
            div.notice {
                h1 { (self.notice.title()) }
                p { (self.notice.sentence()) }
            }
        };
        let head = html! { meta name="robots" content="noindex"; };
        let crumbs = [Crumb { name: texts::SEARCH, url: None }];
        Page { site: self.site, title: self.notice.title(), crumbs: &crumbs, head, main }.render()
    }
}
