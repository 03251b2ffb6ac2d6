//! The list of the quarantined records of a repository.

use super::super::super::record::{QuarantineAddress, RepositoryAddress};
use super::super::repository::numbers::{counted, grouped};
use super::super::repository::start_of;
use super::super::repository::state::time;
use super::IDENTIFIER_BYTES_MAX;
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
            [Crumb { name: self.repository, url: Some(url) }, Crumb { name: "Quarantine", url: None }];
        let main = html! {
            h1 { "Quarantine" }
            @if self.records.is_empty() {
                p { "No record of this repository is in quarantine." }
            } @else {
                p {
                    "The source sent these records without a safe repair, so harvesters did not get them. A record is \
                     resolved when the source has sent it whole."
                }
                (self.table())
                @if self.is_cut { p.cut { "There may be more records. Only the first ones are shown, in the order of their keys." } }
            }
        };
        Page { site: self.site, title: "Quarantine", crumbs: &crumbs, head: html! {}, main }.render()
    }

    fn table(&self) -> Markup {
        html! {
            table.plain.rows role="table" {
                caption { (counted(self.records.len() as u64, "record", "records")) }
                thead role="rowgroup" {
                    tr role="row" {
                        th scope="col" role="columnheader" { "Record" }
                        th scope="col" role="columnheader" { "State" }
                        th scope="col" role="columnheader" { "Reason" }
                        th.n scope="col" role="columnheader" { "Offset" }
                        th.n scope="col" role="columnheader" { "Length" }
                        th.n scope="col" role="columnheader" { "Count" }
                        th scope="col" role="columnheader" { "Last time" }
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
                            None => "without an identifier",
                        }
                    }
                    div.about { code { (key) } }
                }
                td role="cell" data-label="State" { (entry.state().name()) }
                td role="cell" data-label="Reason" { (entry.why) }
                td.n role="cell" data-label="Offset" { (grouped(entry.offset)) }
                td.n role="cell" data-label="Length" { (shown_size(length)) }
                td.n role="cell" data-label="Count" { (grouped(entry.seen)) }
                td role="cell" data-label="Last time" { (time(&entry.last_seen)) }
            }
        }
    }
}
