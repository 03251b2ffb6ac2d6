//! The progress of harvests and retries on a terminal: one line for all of them.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use oaimend_base::clock;

/// One line with the progress of all harvests, or of a retry. It is empty if stderr is not a terminal.
#[derive(Debug, Default)]
pub(crate) struct ProgressLine(Mutex<BTreeMap<String, Harvest>>);

/// The progress of one harvest.
#[derive(Debug)]
struct Harvest {
    prefix: String,
    /// Records of the list at the first report, and its time.
    first_records: u64,
    first_at: Duration,
    text: String,
}

impl ProgressLine {
    /// Shows the records of the current list, and of the whole list if known.
    pub(crate) fn show(&self, id: &str, prefix: &str, records: u64, total: Option<u64>) {
        if !io::stderr().is_terminal() {
            return;
        }
        let now = clock::uptime();
        let mut harvests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let harvest = harvests.entry(id.to_owned()).or_insert_with(|| Harvest::new(prefix, records, now));
        if harvest.prefix != prefix || records < harvest.first_records {
            *harvest = Harvest::new(prefix, records, now);
        }
        let rate = rate(records - harvest.first_records, now.saturating_sub(harvest.first_at));
        harvest.text = describe(id, prefix, records, total, rate);
        let line = harvests.values().map(|harvest| harvest.text.as_str()).collect::<Vec<_>>().join("; ");
        // A closed stderr is not an error: progress is optional.
        let _ = write!(io::stderr(), "\r\x1b[K{line}");
    }

    /// Shows how long a task runs.
    pub(crate) fn show_wait(&self, id: &str, secs: u64) {
        if io::stderr().is_terminal() {
            let _ = write!(io::stderr(), "\r\x1b[K{id}: {}:{:02}", secs / 60, secs % 60);
        }
    }

    /// Removes a harvest that has ended, and the line.
    pub(crate) fn end(&self, id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        if io::stderr().is_terminal() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Harvest {
    fn new(prefix: &str, first_records: u64, first_at: Duration) -> Self {
        Self { prefix: prefix.to_owned(), first_records, first_at, text: String::new() }
    }
}

/// Records per second; `None` before enough time has passed.
fn rate(records: u64, time: Duration) -> Option<f64> {
    (time >= Duration::from_secs(1) && records > 0).then(|| records as f64 / time.as_secs_f64())
}

fn describe(id: &str, prefix: &str, records: u64, total: Option<u64>, rate: Option<f64>) -> String {
    let mut text = format!("{id} {prefix}: {records}");
    if let Some(total) = total {
        text.push_str(&format!(" of {total}"));
    }
    if let Some(rate) = rate {
        text.push_str(&format!(", {rate:.0}/s"));
        if let Some(total) = total {
            let secs = (total.saturating_sub(records) as f64 / rate) as u64;
            text.push_str(&format!(", {}:{:02} left", secs / 60, secs % 60));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_the_rate_and_the_remaining_time() {
        let rate = rate(500, Duration::from_secs(5));
        assert_eq!(rate, Some(100.0));
        assert_eq!(
            describe("x", "oai_dc", 700, Some(8_200), rate),
            "x oai_dc: 700 of 8200, 100/s, 1:15 left"
        );
        assert_eq!(describe("x", "oai_dc", 700, None, rate), "x oai_dc: 700, 100/s");
        assert_eq!(describe("x", "oai_dc", 7, None, super::rate(5, Duration::ZERO)), "x oai_dc: 7");
    }
}
