//! The page in place of a page of operators that does not exist.

use crate::texts::common;
use maud::html;
use oaimend_html::{Page, Site};

/// The page in place of one that does not exist, for status 404, or that cannot be created, for status 500.
#[derive(Clone, Debug)]
pub struct UnknownOperatorPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The title.
    pub title: &'a str,
    /// What the operator can do.
    pub text: &'a str,
}

impl UnknownOperatorPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let main = html! {
            div.notice {
                h1 { (self.title) }
                p { (self.text) }
                p { a href={ (self.site.base_path()) "/" } { (common::ALL_REPOSITORIES) } }
            }
        };
        Page { site: self.site, title: self.title, crumbs: &[], head: html! {}, main }.render()
    }
}
