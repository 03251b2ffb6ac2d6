//! `oaimend quarantine retry`: requests quarantined records again.

use std::collections::BTreeMap;

use oaimend::quarantine_retry::{RetriedRecord, RetryLine, RetryOutcome};

use super::super::admin_api::{AdminApi, no_result};
use super::super::exit::{Exit, Failure, print};
use super::super::progress::ProgressLine;
use super::{explain, path, url_part};

/// Prints the results of a retry, and counts them.
struct Results<'s> {
    id: &'s str,
    progress: ProgressLine,
    records: u64,
    counts: BTreeMap<RetryOutcome, u64>,
    is_stopped: bool,
}

/// Requests records again, and prints the results.
pub(super) fn retry(
    api: &AdminApi,
    id: &str,
    key: Option<&str>,
    prefix: Option<&str>,
) -> Result<Exit, Failure> {
    api.check_id(id)?;
    let prefix = prefix.map_or_else(String::new, |prefix| format!("?prefix={}", url_part(prefix)));
    let target = format!("{}/retry{prefix}", path(id, key));
    let lines = api.send("POST", &target)?.map_err(|refusal| explain(id, key, refusal))?;
    let mut results = Results::new(id);
    for line in lines.into_lines() {
        results.note(line?)?;
    }
    results.finish()
}

impl<'s> Results<'s> {
    fn new(id: &'s str) -> Self {
        let (progress, counts) = (ProgressLine::default(), BTreeMap::new());
        Self { id, progress, records: 0, counts, is_stopped: false }
    }

    fn note(&mut self, line: RetryLine) -> Result<(), Failure> {
        match line {
            RetryLine::Started { records } => self.records = records,
            RetryLine::Running => {}
            RetryLine::Retried(record) => {
                *self.counts.entry(record.outcome).or_default() += 1;
                self.progress.end(self.id);
                print(describe(&record).as_bytes())?;
            }
            RetryLine::Stopped { left, why } => {
                self.is_stopped = true;
                self.progress.end(self.id);
                print(format!("{}: {left} records were not requested: {why}\n", self.id).as_bytes())?;
            }
        }
        let done = self.counts.values().sum();
        if done < self.records && !self.is_stopped {
            self.progress.show(self.id, "retry", done, Some(self.records));
        }
        Ok(())
    }

    /// Prints the sums. Success: no record is left to repair.
    fn finish(&self) -> Result<Exit, Failure> {
        let count = |outcome| self.counts.get(&outcome).copied().unwrap_or_default();
        let sum = |outcome: &RetryOutcome| format!("{} {}", count(*outcome), words(*outcome));
        let sums: Vec<String> = RetryOutcome::ALL.iter().map(sum).collect();
        let done: u64 = self.counts.values().sum();
        if done < self.records && !self.is_stopped {
            return Err(no_result());
        }
        let records = if done == 1 { "record" } else { "records" };
        print(format!("{}: {done} {records} requested: {}\n", self.id, sums.join(", ")).as_bytes())?;
        let is_good = done == count(RetryOutcome::Resolved) && !self.is_stopped;
        Ok(if is_good { Exit::Success } else { Exit::Incomplete })
    }
}

/// The outcome for people.
fn words(outcome: RetryOutcome) -> String {
    outcome.name().replace('-', " ")
}

fn describe(record: &RetriedRecord) -> String {
    let RetriedRecord { key, identifier, outcome, details } = record;
    // An identifier may contain characters that control the terminal.
    let identifier =
        identifier.as_ref().map_or_else(|| "unknown".to_owned(), |text| text.escape_debug().to_string());
    let details = details.as_ref().map(|text| format!(": {}", text.escape_debug())).unwrap_or_default();
    format!("{key}  {:12}  {identifier}{details}\n", words(*outcome))
}
