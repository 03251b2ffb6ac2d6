//! Reports to providers: the `[reports]` table of `oaimend.toml`, and `report_to` of a mapping.

use super::keys::{Keys, Text, choice, declare, text, whole};
use super::notifications::read_mailbox;
use url::Url;

/// When reports are sent, and where their links lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportPolicy {
    /// The day of the week, from 0 for Monday to 6 for Sunday, in UTC.
    pub weekday: u8,
    /// The hour of that day, from 0 to 23, in UTC.
    pub hour: u8,
    /// The address of the folder `docs/reference/`, with a slash at its end; `None`: there are no links.
    pub docs_url: Option<Url>,
}

/// Who receives the weekly report about a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportTo {
    /// The first `adminEmail` of the source.
    Admin,
    /// This address.
    Address(String),
}

/// The days of the week, with their values of [`ReportPolicy::weekday`].
const WEEKDAYS: [(&str, u8); 7] = [
    ("monday", 0),
    ("tuesday", 1),
    ("wednesday", 2),
    ("thursday", 3),
    ("friday", 4),
    ("saturday", 5),
    ("sunday", 6),
];

impl Default for ReportPolicy {
    fn default() -> Self {
        Self { weekday: 0, hour: 6, docs_url: None }
    }
}

impl ReportPolicy {
    /// The keys of the table.
    pub(super) fn declare(&mut self, keys: &mut Keys<'_, '_>) {
        let weekday =
            choice(WEEKDAYS.into()).with_problem("is not a day; expected one from \"monday\" to \"sunday\"");
        declare! { keys:
            /// The day on which reports are sent, in UTC.
            weekday: weekday => self.weekday,
            /// The hour of that day, in UTC.
            hour: whole(0..=23) => self.hour,
            /// The address at which the provider can read the folder `docs/reference/`, with a slash at its end.
            /// The links of a report begin with it. Without it they name the file and the heading.
            docs_url: text("URL", read_docs_url, |url| Some(url.to_string())) => self.docs_url,
        }
    }
}

/// The recipient, as a mapping file names it.
pub(super) fn report_to() -> Text<'static, ReportTo> {
    text("`\"admin\"` or mail address", read_report_to, |recipient| {
        Some(match recipient {
            ReportTo::Admin => "admin".to_owned(),
            ReportTo::Address(address) => address.clone(),
        })
    })
}

fn read_report_to(text: &str) -> Result<ReportTo, String> {
    if text == "admin" {
        return Ok(ReportTo::Admin);
    }
    read_mailbox(text).map(ReportTo::Address).map_err(|problem| format!("{problem}, or \"admin\""))
}

fn read_docs_url(text: &str) -> Result<Url, String> {
    let problem =
        "is not the URL of a folder; expected one such as \"https://docs.example.org/oaimend/reference/\"";
    let url = Url::parse(text).map_err(|error| format!("{problem} ({error})"))?;
    if matches!(url.scheme(), "http" | "https") && url.path().ends_with('/') && url.query().is_none() {
        Ok(url)
    } else {
        Err(format!("{problem} (http or https, with a slash at its end)"))
    }
}
