//! The page of a federation.

use super::aggregate_page::how_to_harvest;
use super::state::state_of;
use super::{NAME_BYTES_MAX, TEXT_BYTES_MAX, start_of};
use crate::oai_page::RequestAddress;
use crate::record::RepositoryAddress;
use crate::repository::RepositorySummary;
use crate::texts::{common, repository as texts};
use maud::{Markup, html};
use oaimend_html::{Crumb, Page, Site};
use oaimend_oai::set_spec;
use oaimend_store::ListedFormat;

/// Maximum number of formats that are shown.
const FORMATS_SHOWN_MAX: usize = 100;

/// The page of a federation.
#[derive(Clone, Debug)]
pub struct FederationPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The path of the federation, without a slash at its start.
    pub path: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What it is about.
    pub description: Option<&'a str>,
    /// Its first repositories, in the order of its lists.
    pub members: &'a [RepositorySummary],
    /// The number of all its repositories.
    pub members_count: usize,
    /// The formats of the repositories that are shown, as far as they are known.
    pub formats: &'a [ListedFormat],
}

impl FederationPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let address = RequestAddress { repository: self.path.to_owned(), query: String::new() };
        let title = start_of(self.name, NAME_BYTES_MAX);
        let main = html! {
            h1 { bdi { (title) } }
            @if let Some(description) = self.description { p { (description) } }
            p { (texts::federation(self.members_count as u64)) }
            (how_to_harvest(&address, "oai_dc", self.site))
            (self.repositories())
            (self.formats())
        };
        let crumbs = [Crumb { name: &title, url: None }];
        let head = html! { link rel="canonical" href=(address.url(self.site.public_url())); };
        Page { site: self.site, title: &title, crumbs: &crumbs, head, main }.render()
    }

    fn repositories(&self) -> Markup {
        html! {
            section aria-labelledby="repositories" {
                h2 id="repositories" { (common::REPOSITORIES) }
                p { (texts::SETS_OF_FEDERATION) }
                table.plain {
                    caption { (texts::number_of(self.members_count as u64)) }
                    thead {
                        tr {
                            th scope="col" { (common::REPOSITORY) }
                            th scope="col" { (texts::STATE) }
                            th scope="col" { (texts::SET_SPEC) }
                        }
                    }
                    tbody { @for member in self.members { (self.row(member)) } }
                }
                (left_out(self.members_count.saturating_sub(self.members.len())))
            }
        }
    }

    fn row(&self, member: &RepositorySummary) -> Markup {
        let page = RepositoryAddress { repository: &member.id }.page(self.site.base_path());
        html! {
            tr {
                th scope="row" { a href=(page) { bdi { (start_of(member.title(), NAME_BYTES_MAX)) } } }
                td { (state_of(member)) }
                td { code { (set_spec::escape_part(&member.id)) } }
            }
        }
    }

    fn formats(&self) -> Markup {
        html! {
            section aria-labelledby="formats" {
                h2 id="formats" { (common::FORMATS) }
                @if self.formats.is_empty() {
                    p { (texts::NOT_KNOWN) }
                } @else {
                    p { (texts::FORMATS_OF_FEDERATION) }
                    table.plain {
                        caption { (texts::number_of_formats(self.formats.len() as u64)) }
                        thead { tr { th scope="col" { (texts::PREFIX) } th scope="col" { (texts::NAMESPACE) } } }
                        tbody {
                            @for format in self.formats.iter().take(FORMATS_SHOWN_MAX) {
                                tr {
                                    th scope="row" { bdi { (start_of(&format.prefix, TEXT_BYTES_MAX)) } }
                                    td { bdi { (start_of(&format.namespace, TEXT_BYTES_MAX)) } }
                                }
                            }
                        }
                    }
                    (left_out(self.formats.len().saturating_sub(FORMATS_SHOWN_MAX)))
                }
            }
        }
    }
}

fn left_out(count: usize) -> Markup {
    html! { @if count > 0 { p.cut { (common::and_more(count as u64)) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_and_formats_are_listed_and_texts_are_escaped() {
        let site = Site::new("Site", None, "https://e.org/b");
        let member = |id: &str| RepositorySummary { id: id.to_owned(), ..RepositorySummary::default() };
        let failing = RepositorySummary {
            name: Some("<i>".to_owned()),
            fails_since: Some("2026-01-02T03:04:05Z".to_owned()),
            ..member("a")
        };
        let format = |prefix: &str| ListedFormat {
            prefix: prefix.to_owned(),
            namespace: "urn:<i>".to_owned(),
            ..ListedFormat::default()
        };
        let page = FederationPage {
            site: &site,
            path: "_federation/maps",
            name: "<i>",
            description: Some("<i>"),
            members: &[failing, member("b.c")],
            members_count: 3,
            formats: &[format("mods")],
        };
        let shown = page.render();
        for part in [
            "<code>https://e.org/b/_federation/maps</code>",
            "<a href=\"/b/_federation/maps?verb=ListRecords&amp;metadataPrefix=oai_dc\">Records</a>",
            "<a href=\"/b/a/\"><bdi>&lt;i&gt;</bdi></a>",
            "2026-01-02 03:04 UTC",
            "<code>b.c</code>",
            "… and 1 more",
            "<bdi>mods</bdi>",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("<i>"), "{shown}");
        let unknown = FederationPage { formats: &[], ..page }.render();
        assert!(unknown.contains("Not known yet."), "{unknown}");
    }
}
