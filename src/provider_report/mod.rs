//! The weekly report to the provider of a source: the defects of its responses, as plain text.
//!
//! `schedule` and `text` are pure. `findings` reads the stores. `src/serve/background/notifications/` sends the reports.

mod findings;
mod schedule;
mod text;

pub use findings::week_report;
pub(crate) use schedule::{WeekTime, is_due, slot_secs};
pub use text::ProviderReport;
