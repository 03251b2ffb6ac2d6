//! The page of a quarantined record.

use super::super::super::record::{QuarantineAddress, RecordAddress, RepositoryAddress};
use super::super::byte_text::byte_text;
use super::super::repository::start_of;
use super::super::repository::state::time;
use super::IDENTIFIER_BYTES_MAX;
use super::hex_dump::hex_dump;
use crate::texts::numbers::grouped;
use crate::texts::{common, operator as texts};
use maud::{Markup, html};
use oaimend_html::{Crumb, Page, Site};
use oaimend_record::shown_size;
use oaimend_store::QuarantineEntry;

/// The page of a quarantined record.
#[derive(Clone, Debug)]
pub struct QuarantinedRecordPage<'a> {
    /// The site.
    pub site: &'a Site,
    /// The repository id.
    pub repository: &'a str,
    /// The key of the record.
    pub key: &'a str,
    /// Its entry.
    pub entry: &'a QuarantineEntry,
    /// Its bytes, as the source sent them.
    pub raw: &'a [u8],
}

/// The bytes that are shown as text, and again as hexadecimal digits.
const SHOWN_BYTES_MAX: usize = 16 << 10;
/// Longest request of a harvester that is shown, in bytes.
const REQUEST_BYTES_MAX: usize = 2_000;
/// Longest command that is shown, in bytes.
const COMMAND_BYTES_MAX: usize = 8 << 10;

impl QuarantinedRecordPage<'_> {
    /// The whole document.
    pub fn render(&self) -> String {
        let Self { site, repository, key, entry, raw } = self;
        let base = site.base_path();
        let crumbs = [
            Crumb { name: repository, url: Some(RepositoryAddress { repository }.page(base)) },
            Crumb { name: texts::QUARANTINE, url: Some(QuarantineAddress { repository }.list(base)) },
            Crumb { name: key, url: None },
        ];
        let identifier = entry.plain_identifier();
        let identifier = identifier.as_deref().map(|text| start_of(text, IDENTIFIER_BYTES_MAX));
        let title = identifier.as_deref().unwrap_or(texts::RECORD_WITHOUT_IDENTIFIER);
        let shown = raw.get(..SHOWN_BYTES_MAX).unwrap_or(raw);
        let main = html! {
            p.kind { (texts::QUARANTINED_RECORD) }
            h1 { bdi { (title) } }
            table.fields {
                tbody {
                    (row(texts::STATE, html! {
                        (entry.state().name())
                        @if let Some(resolved_at) = &entry.resolved_at { ", " (time(resolved_at)) }
                    }))
                    (row(texts::REASON, html! {
                        b { (entry.why) }
                        @if is_name(&entry.why) { " " (texts::explained_by(&entry.why)) }
                    }))
                    (row(texts::OFFSET, html! { (texts::bytes(entry.offset)) (texts::FROM_PAGE_START) }))
                    (row(texts::LENGTH, html! { (texts::bytes(entry.bytes)) }))
                    (row(texts::COUNT, html! { (grouped(entry.seen)) }))
                    (row(texts::FIRST_TIME, time(&entry.first_seen)))
                    (row(texts::LAST_TIME, time(&entry.last_seen)))
                    (row(texts::REQUEST, html! { code { (start_of(&entry.request, REQUEST_BYTES_MAX)) } }))
                }
            }
            div.rest {
                (self.try_again())
                section aria-labelledby="text" {
                    h2 id="text" { (texts::AS_TEXT) }
                    pre.xml dir="ltr" lang="" tabindex="0" role="region" aria-label=(texts::RECORD_AS_TEXT) {
                        code { (byte_text(whole_characters(shown, raw))) }
                    }
                    (left_out(raw, shown))
                }
                section aria-labelledby="hex" {
                    h2 id="hex" { (texts::AS_BYTES) }
                    pre.xml.hex dir="ltr" lang="" tabindex="0" role="region" aria-label=(texts::RECORD_AS_BYTES) {
                        code { (hex_dump(shown)) }
                    }
                    (left_out(raw, shown))
                }
            }
        };
        Page { site, title, crumbs: &crumbs, head: html! {}, main }.render()
    }

    /// The command that requests the record again.
    fn try_again(&self) -> Markup {
        let prefix = self.entry.format();
        let request = self.entry.plain_identifier().map(|identifier| {
            let (repository, identifier) = (self.repository, identifier.as_ref());
            let address = RecordAddress { repository, identifier, format: prefix.as_deref() };
            quoted(&address.get_record(self.site.public_url()))
        });
        html! {
            section aria-labelledby="again" {
                h2 id="again" { (texts::TRY_AGAIN) }
                @match request {
                    Some(url) if url.len() <= COMMAND_BYTES_MAX => {
                        p {
                            (texts::try_again_with(self.repository, self.key))
                        }
                        div.urls { code { "curl " (url) } }
                    },
                    Some(_) => p { (texts::LONG_IDENTIFIER) },
                    None => p { (texts::NO_IDENTIFIER) },
                }
            }
        }
    }
}

/// A text as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Whether a text is a name that needs no quotation in a shell.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// The shown bytes without the start of a character whose rest is not shown.
fn whole_characters<'a>(shown: &'a [u8], raw: &[u8]) -> &'a [u8] {
    if shown.len() == raw.len() {
        return shown;
    }
    let last = shown.utf8_chunks().last();
    match last.map(|chunk| chunk.invalid()).filter(|invalid| !invalid.is_empty()) {
        Some(invalid) => shown.get(..shown.len() - invalid.len()).unwrap_or(shown),
        None => shown,
    }
}

fn row(name: &str, value: Markup) -> Markup {
    html! { tr { th scope="row" { (name) } td { (value) } } }
}

fn left_out(raw: &[u8], shown: &[u8]) -> Markup {
    let left_out = raw.len() - shown.len();
    html! { @if left_out > 0 { p.cut { (common::not_shown(&shown_size(left_out))) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(public_url: &str, identifier: Option<&str>, request: &str, raw: &[u8]) -> String {
        let site = Site::new("Site", None, public_url).for_operators();
        let entry = QuarantineEntry {
            identifier: identifier.map(str::to_owned),
            why: "mismatched-tags".to_owned(),
            offset: 7,
            request: request.to_owned(),
            first_seen: "2024-05-06T07:08:09Z".to_owned(),
            last_seen: "2024-05-07T07:08:09Z".to_owned(),
            seen: 3,
            bytes: raw.len() as u64,
            metadata_prefix: None,
            resolved_at: None,
        };
        QuarantinedRecordPage { site: &site, repository: "x", key: "k", entry: &entry, raw }.render()
    }

    #[test]
    fn command_is_one_word_of_a_shell() {
        let request = "verb=ListRecords&metadataPrefix=a%27b";
        let page = page("https://e.org/it's", Some("a' ;$(rm)\n<b>"), request, b"");
        let command = "<code>curl 'https://e.org/it'\\''s/x?verb=GetRecord&amp;identifier=a%27%20%3B%24%28rm%29%0A%3Cb%3E\
                       &amp;metadataPrefix=a%27b'</code>";
        assert!(page.contains(command), "{page}");
    }

    #[test]
    fn records_without_an_identifier_have_no_command() {
        let page = page("https://e.org", None, "", b"");
        assert!(page.contains("The record has no identifier") && !page.contains("curl"), "{page}");
    }

    #[test]
    fn long_records_are_cut_between_characters() {
        let raw = ["a", &"é".repeat(20_000)].concat();
        let page = page("https://e.org", None, "", raw.as_bytes());
        assert_eq!(page.matches("… 23 kB not shown").count(), 2, "{page}");
        assert_eq!(page.matches('é').count(), (SHOWN_BYTES_MAX - 1) / 2);
        assert!(!page.contains("class=\"byte\""), "half a character");
        assert!(page.len() < 128 << 10, "{}", page.len());
    }
}
