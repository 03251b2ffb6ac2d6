//! Reports to providers: the `[reports]` table of `oaimend.toml`, and `report_to` of a mapping.

use super::file::Table;
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

/// The days of the week, in the order of [`ReportPolicy::weekday`].
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

impl Default for ReportPolicy {
    fn default() -> Self {
        Self { weekday: 0, hour: 6, docs_url: None }
    }
}

impl ReportPolicy {
    /// Reads the `[reports]` table.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>) {
        self.weekday = table.read_parsed("weekday", read_weekday).unwrap_or(self.weekday);
        if let Some(hour) = table.read_integer("hour", 0..=23).and_then(|hour| u8::try_from(hour).ok()) {
            self.hour = hour;
        }
        self.docs_url = table.read_parsed("docs_url", read_docs_url);
        table.finish();
    }
}

impl ReportTo {
    /// The value as a mapping file has it.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Admin => "admin",
            Self::Address(address) => address,
        }
    }
}

/// Parses the value of `report_to`.
pub(super) fn read_report_to(text: &str) -> Result<ReportTo, String> {
    if text == "admin" {
        return Ok(ReportTo::Admin);
    }
    read_mailbox(text).map(ReportTo::Address).map_err(|problem| format!("{problem}, or \"admin\""))
}

fn read_weekday(text: &str) -> Result<u8, String> {
    let day = WEEKDAYS.iter().position(|day| *day == text).and_then(|day| u8::try_from(day).ok());
    day.ok_or_else(|| "is not a day; expected one from \"monday\" to \"sunday\"".to_owned())
}

fn read_docs_url(text: &str) -> Result<Url, String> {
    let problem =
        "is not the URL of a folder; expected one such as \"https://docs.example.org/oaimend/reference/\"";
    let url = Url::parse(text).map_err(|error| format!("{problem} ({error})"))?;
    match matches!(url.scheme(), "http" | "https") && url.path().ends_with('/') && url.query().is_none() {
        true => Ok(url),
        false => Err(format!("{problem} (http or https, with a slash at its end)")),
    }
}
