//! The list of the quarantined records of a repository.

use super::super::super::record::{QuarantineAddress, RepositoryAddress};
use super::super::repository::start_of;
use super::super::repository::state::time;
use super::IDENTIFIER_BYTES_MAX;
use crate::texts::numbers::grouped;
use crate::texts::{common, operator as texts};
use maud::{Markup, html};
use oaimend_html::{Crumb, Page, Site};
use oaimend_record::shown_size;
use oaimend_store::QuarantineEntry;

/// The list of the quarantined records of a repository.
#[derive(Clone, Debug)]
pub struct QuarantinePage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The repository id.
    pub repository: &'a str,
    /// The records with their keys.
    pub records: &'a [(String, QuarantineEntry)],
    /// Whether there may be more records.
    pub is_cut: bool,
}

impl QuarantinePage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let url = RepositoryAddress { repository: self.repository }.page(self.site.base_path());
        let crumbs =
            [Crumb { name: self.repository, url: Some(url) }, Crumb { name: texts::QUARANTINE, url: None }];
        let main = html! {
            h1 { (texts::QUARANTINE) }
            @if self.records.is_empty() {
                p { (texts::EMPTY_QUARANTINE) }
            } @else {
                p {
                    (texts::QUARANTINE_INTRODUCTION)
                }
                (self.table())
                @if self.is_cut { p.cut { (texts::QUARANTINE_IS_CUT) } }
            }
        };
        Page { site: self.site, title: texts::QUARANTINE, crumbs: &crumbs, head: html! {}, main }.render()
    }

    fn table(&self) -> Markup {
        html! {
            table.plain.rows role="table" {
                caption { (common::number_of_records(self.records.len() as u64)) }
                thead role="rowgroup" {
                    tr role="row" {
                        th scope="col" role="columnheader" { (common::RECORD) }
                        th scope="col" role="columnheader" { (texts::STATE) }
                        th scope="col" role="columnheader" { (texts::REASON) }
                        th.n scope="col" role="columnheader" { (texts::OFFSET) }
                        th.n scope="col" role="columnheader" { (texts::LENGTH) }
                        th.n scope="col" role="columnheader" { (texts::COUNT) }
                        th scope="col" role="columnheader" { (texts::LAST_TIME) }
                    }
                }
                tbody role="rowgroup" { @for (key, entry) in self.records { (self.row(key, entry)) } }
            }
        }
    }

    fn row(&self, key: &str, entry: &QuarantineEntry) -> Markup {
        let address = QuarantineAddress { repository: self.repository };
        let length = usize::try_from(entry.bytes).unwrap_or(usize::MAX);
        html! {
            tr role="row" {
                th scope="row" role="rowheader" {
                    a href=(address.record(self.site.base_path(), key)) {
                        @match entry.plain_identifier() {
                            Some(identifier) => bdi { (start_of(&identifier, IDENTIFIER_BYTES_MAX)) },
                            None => (texts::WITHOUT_IDENTIFIER),
                        }
                    }
                    div.about { code { (key) } }
                }
                td role="cell" data-label=(texts::STATE) { (entry.state().name()) }
                td role="cell" data-label=(texts::REASON) { (entry.why) }
                td.n role="cell" data-label=(texts::OFFSET) { (grouped(entry.offset)) }
                td.n role="cell" data-label=(texts::LENGTH) { (shown_size(length)) }
                td.n role="cell" data-label=(texts::COUNT) { (grouped(entry.seen)) }
                td role="cell" data-label=(texts::LAST_TIME) { (time(&entry.last_seen)) }
            }
        }
    }
}
