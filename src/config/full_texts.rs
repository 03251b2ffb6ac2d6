//! The table `full_texts` of a mapping: which full texts of records are fetched, and how.

use super::keys::{Keys, declare, list, text, whole};
use oaimend_full_text::{AllowedHost, FullTextHosts};
use std::time::Duration;
use url::Url;

/// How full texts of the records of a repository are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullTextChoices {
    /// The hosts from which they are fetched; empty: that of the base URL.
    pub hosts: Vec<AllowedHost>,
    /// Maximum number of requests to a host in a minute.
    pub requests_per_minute_max: u32,
    /// Longest full text, in bytes.
    pub bytes_max: usize,
}

/// Longest full text unless a mapping says otherwise, in bytes.
const BYTES_MAX: usize = 32 << 20;
/// Requests to a host in a minute unless a mapping says otherwise.
const REQUESTS_PER_MINUTE_MAX: u32 = 6;

impl Default for FullTextChoices {
    fn default() -> Self {
        Self { hosts: Vec::new(), requests_per_minute_max: REQUESTS_PER_MINUTE_MAX, bytes_max: BYTES_MAX }
    }
}

impl FullTextChoices {
    /// The keys of the table, whose presence turns full texts on; `None`: it is not there. The records are in the mirror,
    /// and a local repository has no base URL.
    pub(super) fn declare(
        before: Option<Self>,
        keys: &mut Keys<'_, '_>,
        (is_mirrored, is_local): (bool, bool),
    ) -> Option<Self> {
        let was_on = before.is_some();
        let mut choices = before.unwrap_or_default();
        let host = || text("host", AllowedHost::read, |host: &AllowedHost| Some(host.text()));
        let meaning =
            "Full texts of records that are PDFs, from which references are read. This table turns it on.";
        keys.table("full_texts", meaning, |keys| {
            declare! { keys:
                /// The hosts from which full texts are fetched, such as `"files.example.org"` or `"10.0.0.2:8080"`, in
                /// place of that of `base_url`.
                hosts: list("hosts", host()) => choices.hosts,
                /// Maximum number of requests to a host in a minute.
                requests_per_minute_max: whole(1..=1_000_000) => choices.requests_per_minute_max,
                /// Longest full text that is fetched, in bytes.
                bytes_max: whole(1_000..=268_435_456) => choices.bytes_max,
            }
        });
        let Some(table) = keys.reading() else { return was_on.then_some(choices) };
        if !table.has_key("full_texts") {
            return None;
        }
        if !is_mirrored && !is_local {
            table.report_missing("full_texts needs a mirrored repository; add a [mirror] table".to_owned());
        } else if is_local && choices.hosts.is_empty() {
            let problem =
                "a local repository has no base_url; set full_texts.hosts to the hosts of its full texts";
            table.report_missing(problem.to_owned());
        }
        Some(choices)
    }

    /// The hosts for a repository with this base URL.
    pub fn allowed_hosts(&self, base_url: Option<&Url>) -> FullTextHosts {
        FullTextHosts::new(&self.hosts, base_url)
    }

    /// The shortest time between the starts of two requests to a host.
    pub fn gap(&self) -> Duration {
        Duration::from_secs(60) / self.requests_per_minute_max.max(1)
    }
}
