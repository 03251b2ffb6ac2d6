//! The pages in place of a search.

use super::texts;
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
            Self::Off => "No search",
            Self::Building => "Search is not ready yet",
            Self::Busy => "Too many searches",
            Self::Unreadable => "Search is not available now",
        }
    }

    /// What the reader can do.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Off => {
                "This server has no search: search.enabled is false in oaimend.toml, or no repository is mirrored."
            }
            Self::Building => "The index of all records is being built. Try again in a minute.",
            Self::Busy => "The server is busy with other searches. Try again in a few seconds.",
            Self::Unreadable => "The index of the records cannot be read. Try again in a few minutes.",
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
