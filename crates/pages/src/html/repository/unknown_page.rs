//! The pages in place of a repository that is not served.

use super::super::super::record::RepositoryAddress;
use crate::texts::{common, repository as texts};
use maud::html;
use oaimend_html::{Crumb, Page, Site};

/// What a path that leads nowhere names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownPath<'a> {
    /// No repository of the server.
    Repository,
    /// A page that this repository does not have.
    PageOf(&'a str),
    /// The list of the records of this repository, which is not mirrored.
    ListOf(&'a str),
    /// A page of the server itself.
    Page,
}

/// The page for a path that leads nowhere, for status 404.
#[derive(Clone, Debug)]
pub struct UnknownPathPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// What the path names.
    pub path: UnknownPath<'a>,
    /// The ids of the repositories, in order.
    pub repositories: &'a [&'a str],
}

/// Maximum number of repositories that the page lists.
const LISTED_MAX: usize = 500;

impl UnknownPathPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let base = self.site.base_path();
        let left_out = self.repositories.len().saturating_sub(LISTED_MAX);
        let title = match self.path {
            UnknownPath::Repository => texts::UNKNOWN_TITLE,
            UnknownPath::PageOf(_) | UnknownPath::ListOf(_) | UnknownPath::Page => texts::UNKNOWN_PAGE_TITLE,
        };
        let main = html! {
            h1 { (title) }
            @match self.path {
                UnknownPath::PageOf(repository) | UnknownPath::ListOf(repository) => p {
                    @if self.path == UnknownPath::ListOf(repository) {
                        (texts::NO_LISTS)
                    }
                    (texts::open_repository(&RepositoryAddress { repository }.page(base), repository))
                },
                UnknownPath::Repository | UnknownPath::Page => {},
            }
            @if self.repositories.is_empty() {
                p { (texts::NONE_SERVED) }
            } @else {
                p { (texts::compare(&format!("{base}/"))) }
                ul {
                    @for repository in self.repositories.iter().take(LISTED_MAX) {
                        li { a href=(RepositoryAddress { repository }.page(base)) { (repository) } }
                    }
                }
                @if left_out > 0 { p.cut { (common::and_more(left_out as u64)) } }
            }
        };
        let main = html! { div.notice { (main) } };
        Page { site: self.site, title, crumbs: &[], head: html! {}, main }.render()
    }
}

/// The page of a repository that is no longer served, for status 410.
#[derive(Clone, Debug)]
pub struct RemovedRepositoryPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The id of the repository.
    pub repository: &'a str,
}

impl RemovedRepositoryPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let title = common::REPOSITORY_REMOVED_TITLE;
        let main = html! {
            div.notice {
                h1 { (title) }
                p { (texts::removed(self.repository)) }
                p { a href={ (self.site.base_path()) "/" } { (common::ALL_REPOSITORIES) } }
            }
        };
        let crumbs = [Crumb { name: self.repository, url: None }];
        Page { site: self.site, title, crumbs: &crumbs, head: html! {}, main }.render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_repositories_are_listed() {
        let site = Site::new("Site", None, "https://e.org/b");
        let many = vec!["x"; LISTED_MAX + 2];
        let path = UnknownPath::Repository;
        let page = UnknownPathPage { site: &site, path, repositories: &many }.render();
        assert_eq!(page.matches("<li><a href=\"/b/x/\">x</a></li>").count(), LISTED_MAX);
        assert!(page.contains("… and 2 more") && page.contains("<h1>No such repository</h1>"), "{page}");
        let page =
            UnknownPathPage { site: &site, path: UnknownPath::ListOf("y"), repositories: &[] }.render();
        assert!(page.contains("<h1>No such page</h1>") && page.contains("<a href=\"/b/y/\">"), "{page}");
        let page = RemovedRepositoryPage { site: &site, repository: "<i>" }.render();
        assert!(page.contains("&lt;i&gt;") && !page.contains("<i>"), "{page}");
    }
}
