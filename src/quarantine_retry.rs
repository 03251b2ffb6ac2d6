//! Requests quarantined records again by `GetRecord`, through the same repairs as a request of a harvester.
//!
//! The admin API does it. A record that comes whole marks its entries as resolved. If the repository is mirrored, it is
//! stored there too, because the next harvest may not list it again. A record that a crosswalk could not convert is converted
//! again.

use oaimend_base::clock::{self, Clock};
use oaimend_crosswalks::Unconverted;
use oaimend_mirror::harvest::{Harvester, store_recovered};
use oaimend_oai::{ErrorCode, Request, named_enum, serde_by_name};
use oaimend_repository::{
    DeliveredRecord, Event, Failure, HarvesterTraits, Reason, Repository, RepositoryRequest, ResponseSummary,
};
use oaimend_store::{
    Quarantine, QuarantineEntry, QuarantineError, QuarantineQuery, QuarantineState, RepositoryId,
    WholeRecords,
};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Maximum number of records of one retry.
pub(crate) const RETRIED_RECORDS_MAX: usize = 100_000;
/// A retry ends after this many failures of the source, one after another.
const FAILURES_IN_A_ROW_MAX: u32 = 5;

/// A retry of quarantined records of one repository.
pub(crate) struct Retry {
    /// The id of the repository.
    pub(crate) id: String,
    /// The repository that is asked.
    pub(crate) source: Arc<dyn Repository>,
    /// The repository as it is served, with the formats that crosswalks make; the failure if it cannot be opened.
    pub(crate) with_crosswalks: Result<Arc<dyn Repository>, Failure>,
    /// The quarantine.
    pub(crate) quarantine: Arc<dyn Quarantine>,
    /// The harvester of the repository; `None` if it is not mirrored, or if a harvest runs, which fetches the missing
    /// records itself.
    pub(crate) mirror: Option<Harvester>,
    /// The clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// The `Via` header for the source.
    pub(crate) via: String,
    /// The baseURL in responses, which nobody reads.
    pub(crate) base_url: String,
    /// The format to request records in whose format is not known.
    pub(crate) prefix: Option<String>,
}

/// A line about a retry, one JSON object each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryLine {
    /// The retry begins.
    Started {
        /// The number of records that it requests.
        records: u64,
    },
    /// The next record has not come yet.
    Running,
    /// A record was requested.
    Retried(RetriedRecord),
    /// The retry ends before its last record.
    Stopped {
        /// The number of records that were not requested.
        left: u64,
        /// The reason.
        why: String,
    },
}

/// The result for one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetriedRecord {
    /// The key of the entry.
    pub key: String,
    /// The identifier of the record, if it has one.
    pub identifier: Option<String>,
    /// The result.
    pub outcome: RetryOutcome,
    /// The reason, or what is special about the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

named_enum! {
    /// The result of the request for a record.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum RetryOutcome {
        /// The record came whole. The entry is resolved.
        Resolved = "resolved",
        /// The record still has no safe repair. The entry stays open.
        StillBroken = "still-broken",
        /// The source does not have the record any more. The entry stays open, because it has the only copy.
        Gone = "gone",
        /// There is no result. The entry stays open.
        Failed = "failed",
    }
}

serde_by_name!(RetryOutcome);

/// A running retry.
pub(crate) struct RetryRun {
    retry: Retry,
    queue: VecDeque<Candidate>,
    has_begun: bool,
    failures_in_a_row: u32,
    /// The results so far. Several entries may have the same record.
    results: HashMap<RecordName, (RetryOutcome, Option<String>)>,
}

/// An entry to retry.
struct Candidate {
    key: String,
    identifier: Option<String>,
    prefix: Option<String>,
    is_converted: bool,
}

/// A record that is requested.
#[derive(Clone, PartialEq, Eq, Hash)]
struct RecordName {
    identifier: String,
    prefix: String,
    /// Whether a crosswalk makes it.
    is_converted: bool,
}

/// The response for one record.
#[derive(Default)]
struct Received {
    records: Vec<DeliveredRecord>,
    why_broken: Option<&'static str>,
    summary: ResponseSummary,
    failure: Option<Failure>,
}

impl Retry {
    /// Selects the entry with this key, or without a key all open entries, at most `RETRIED_RECORDS_MAX`. `None` if
    /// there is no such key.
    ///
    /// # Errors
    ///
    /// The quarantine cannot be read.
    pub(crate) async fn begin(self, key: Option<&str>) -> Result<Option<RetryRun>, QuarantineError> {
        let mut queue = VecDeque::new();
        if let Some(key) = key {
            let Some((entry, _)) = self.quarantine.find(RepositoryId(&self.id), key).await? else {
                return Ok(None);
            };
            queue.push_back(self.candidate(key.to_owned(), &entry));
        } else {
            let mut query =
                QuarantineQuery { state: Some(QuarantineState::Open), ..QuarantineQuery::default() };
            loop {
                let entries = self.quarantine.list(RepositoryId(&self.id), query.clone()).await?;
                let room = RETRIED_RECORDS_MAX - queue.len();
                let (Some((last, _)), true) = (entries.last(), room > 0) else { break };
                query.after.clone_from(last);
                queue.extend(entries.into_iter().take(room).map(|(key, entry)| self.candidate(key, &entry)));
            }
        }
        let (has_begun, failures_in_a_row, results) = (false, 0, HashMap::new());
        Ok(Some(RetryRun { retry: self, queue, has_begun, failures_in_a_row, results }))
    }

    fn candidate(&self, key: String, entry: &QuarantineEntry) -> Candidate {
        Candidate {
            key,
            identifier: entry.plain_identifier().map(|identifier| identifier.into_owned()),
            prefix: entry.format().map(|prefix| prefix.into_owned()).or_else(|| self.prefix.clone()),
            is_converted: Unconverted::from_name(&entry.why).is_some(),
        }
    }

    /// Stores a record that came whole in the mirror. Returns why it is not there yet.
    async fn store(&self, prefix: &str, record: &DeliveredRecord) -> Option<String> {
        let error = store_recovered(self.mirror.as_ref()?, prefix, record.clone()).await.err()?;
        Some(format!("it is not in the mirror yet, and the next harvest stores it: {error}"))
    }

    async fn receive(&self, name: &RecordName) -> Received {
        let request = Request::get_record(&name.identifier, &name.prefix);
        let echo = Arc::new(request.to_echo(&self.base_url));
        let via = self.via.clone();
        let request = RepositoryRequest {
            request,
            echo,
            via,
            harvester: HarvesterTraits::default(),
            in_one_piece: false,
            reports_records: true,
        };
        let repository = match &self.with_crosswalks {
            Ok(with_crosswalks) if name.is_converted => with_crosswalks,
            Err(failure) if name.is_converted => {
                return Received { failure: Some(failure.clone()), ..Received::default() };
            }
            _ => &self.source,
        };
        let mut events = repository.answer(request);
        let mut received = Received::default();
        while let Some(event) = events.next().await {
            match event {
                Event::Records(records) => received.records.extend(records),
                Event::Quarantined(records) => received.why_broken = records.last().map(|record| record.why),
                Event::End(summary) => received.summary = *summary,
                Event::Failed(failure, summary) => {
                    (received.summary, received.failure) = (*summary, Some(failure));
                }
                Event::Head(_) | Event::Body(_) => {}
            }
        }
        received
    }

    /// Marks the entries of a record that came whole. The repository has done so already, unless it has too many open
    /// entries.
    async fn resolve(&self, name: &RecordName) -> Result<u64, QuarantineError> {
        let whole = WholeRecords {
            repository: self.id.clone(),
            headers_only: false,
            metadata_prefix: Some(name.prefix.clone()),
            identifiers: vec![name.identifier.clone()],
            received_at: clock::utc_datetime(self.clock.now()),
        };
        self.quarantine.resolve(whole).await
    }
}

impl RetryRun {
    /// The next line; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<RetryLine> {
        if !std::mem::replace(&mut self.has_begun, true) {
            return Some(RetryLine::Started { records: self.queue.len() as u64 });
        }
        if self.failures_in_a_row >= FAILURES_IN_A_ROW_MAX && !self.queue.is_empty() {
            let left = std::mem::take(&mut self.queue).len() as u64;
            let why = "the source fails; retry when it works again".to_owned();
            return Some(RetryLine::Stopped { left, why });
        }
        let Candidate { key, identifier, prefix, is_converted } = self.queue.pop_front()?;
        let (outcome, details) = match (&identifier, prefix) {
            (Some(identifier), Some(prefix)) => {
                self.result(RecordName { identifier: identifier.clone(), prefix, is_converted }).await
            }
            (None, _) => {
                let details = "the record has no identifier, so it cannot be requested alone";
                (RetryOutcome::Failed, Some(details.to_owned()))
            }
            (Some(_), None) => {
                let details = "the format of the record is not known; name it with --prefix";
                (RetryOutcome::Failed, Some(details.to_owned()))
            }
        };
        Some(RetryLine::Retried(RetriedRecord { key, identifier, outcome, details }))
    }

    async fn result(&mut self, name: RecordName) -> (RetryOutcome, Option<String>) {
        if let Some(known) = self.results.get(&name) {
            return known.clone();
        }
        let received = self.retry.receive(&name).await;
        let (mut outcome, mut details) = judge(&name, &received);
        let has_source_failed =
            received.failure.as_ref().is_some_and(|failure| failure.reason.is_of_source());
        match outcome {
            // A crosswalk that is turned off, or a sheet that fails, says nothing about other records.
            RetryOutcome::Failed if name.is_converted && !has_source_failed => {}
            RetryOutcome::Failed => self.failures_in_a_row += 1,
            _ => self.failures_in_a_row = 0,
        }
        if outcome == RetryOutcome::Resolved
            && let Err(error) = self.retry.resolve(&name).await
        {
            (outcome, details) = (RetryOutcome::Failed, Some(error.to_string()));
        }
        // The mirror makes it of the record that it has.
        if outcome == RetryOutcome::Resolved
            && !name.is_converted
            && let [record] = received.records.as_slice()
            && let Some(why) = self.retry.store(&name.prefix, record).await
        {
            details = Some(why);
        }
        self.results.insert(name, (outcome, details.clone()));
        (outcome, details)
    }
}

/// The result of a request for a record.
fn judge(name: &RecordName, received: &Received) -> (RetryOutcome, Option<String>) {
    let Received { records, why_broken, summary, failure } = received;
    let is_stored = failure.as_ref().is_none_or(|failure| failure.reason != Reason::Quarantine);
    if summary.items.quarantined() > 0 && is_stored {
        return (RetryOutcome::StillBroken, why_broken.map(str::to_owned));
    }
    if let Some(failure) = failure {
        if name.is_converted && failure.reason == Reason::Unrepairable {
            return (RetryOutcome::StillBroken, Some(failure.details.clone()));
        }
        return (RetryOutcome::Failed, Some(failure.details.clone()));
    }
    let details = match summary.page.error {
        Some(ErrorCode::IdDoesNotExist) => return (RetryOutcome::Gone, None),
        Some(ErrorCode::CannotDisseminateFormat) if name.is_converted => {
            format!(
                "no crosswalk of its mapping makes {}; a view or /_all may have one of its own",
                name.prefix
            )
        }
        Some(ErrorCode::CannotDisseminateFormat) => {
            let details = "the source does not have the record in this format";
            return (RetryOutcome::Gone, Some(details.to_owned()));
        }
        Some(code) => format!("the source answers with the error {}", code.name()),
        None => match records.as_slice() {
            [record] if record.identifier != name.identifier => {
                format!("the source sent another record, {}", record.identifier)
            }
            [record] => {
                let details = record.deleted.then(|| "the source has deleted the record".to_owned());
                return (RetryOutcome::Resolved, details);
            }
            // A record that is too long to be reported is sent only if it is valid.
            [] if summary.items.oversized() > 0 => return (RetryOutcome::Resolved, None),
            _ => format!("the source sent {} records", records.len()),
        },
    };
    (RetryOutcome::Failed, Some(details))
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_base::clock::SystemClock;
    use oaimend_oai::Argument;
    use oaimend_repository::EventStream;
    use oaimend_store::{QuarantineBatch, QuarantineSelection, QuarantinedRecord};
    use std::path::Path;
    use std::sync::Mutex;
    use tokio::sync::mpsc;

    /// A repository that answers the request for a record by the start of its identifier, and notes the requests.
    #[derive(Default)]
    struct Answers(Arc<Mutex<Vec<String>>>);

    impl Repository for Answers {
        fn answer(&self, request: RepositoryRequest) -> EventStream {
            let argument = |argument| request.request.argument(argument).unwrap_or_default().to_owned();
            let (identifier, prefix) = (argument(Argument::Identifier), argument(Argument::MetadataPrefix));
            self.0.lock().expect("no panic").push(format!("{identifier} {prefix}"));
            let (sender, events) = mpsc::channel(4);
            let session = async move {
                let mut summary = ResponseSummary::default();
                let failure = |reason| Failure::new(reason, "the disk or the source fails");
                let last = match identifier.split('-').next().unwrap_or_default() {
                    "down" => Event::Failed(failure(Reason::ConnectionRefused), Box::default()),
                    "full" => {
                        summary.items.add_quarantined(1);
                        Event::Failed(failure(Reason::Quarantine), Box::new(summary))
                    }
                    "strict" => Event::Failed(failure(Reason::Unrepairable), Box::default()),
                    "long" => {
                        summary.items.add_oversized(1);
                        Event::End(Box::new(summary))
                    }
                    name => {
                        let identifier = if name == "other" { "oai:x:9".to_owned() } else { identifier };
                        let record = DeliveredRecord {
                            identifier,
                            datestamp: String::new(),
                            deleted: false,
                            set_specs: Vec::new(),
                            xml: String::new(),
                            datestamp_at: 0..0,
                            repairs: oaimend_store::RecordRepairs::new(std::iter::empty()),
                        };
                        let _ = sender.send(Event::Records(vec![record])).await;
                        Event::End(Box::new(summary))
                    }
                };
                let _ = sender.send(last).await;
            };
            EventStream::new(events, Box::pin(session))
        }
    }

    /// The same with crosswalks.
    struct Converting(Arc<Mutex<Vec<String>>>);

    impl Repository for Converting {
        fn answer(&self, request: RepositoryRequest) -> EventStream {
            let noted = Arc::clone(&self.0);
            let mut inner = Answers::default().answer(request.clone());
            let identifier = request.request.argument(Argument::Identifier).unwrap_or_default().to_owned();
            let prefix = request.request.argument(Argument::MetadataPrefix).unwrap_or_default();
            noted.lock().expect("no panic").push(format!("crosswalks {identifier} {prefix}"));
            let (sender, events) = mpsc::channel(4);
            let session = async move {
                while let Some(mut event) = inner.next().await {
                    if identifier.starts_with("lacks") {
                        let Event::End(summary) = &mut event else { continue };
                        summary.page.error = Some(ErrorCode::CannotDisseminateFormat);
                    }
                    let _ = sender.send(event).await;
                }
            };
            EventStream::new(events, Box::pin(session))
        }
    }

    /// Quarantines records, retries them, and returns the lines, the requests and the number of open entries after
    /// that.
    async fn retry(
        data: &Path,
        records: &[(Option<&str>, &str)],
        prefix: Option<&str>,
    ) -> (Vec<RetryLine>, Vec<String>, usize) {
        retry_why(data, "mismatched-tags", records, prefix).await
    }

    /// The same for another reason.
    async fn retry_why(
        data: &Path,
        why: &'static str,
        records: &[(Option<&str>, &str)],
        prefix: Option<&str>,
    ) -> (Vec<RetryLine>, Vec<String>, usize) {
        let quarantine = oaimend_store_local::open(data).expect("it can be written to").quarantine;
        for (number, (identifier, request)) in records.iter().enumerate() {
            let record = QuarantinedRecord {
                identifier: identifier.map(str::to_owned),
                why,
                offset: 0,
                raw: number.to_string().into_bytes(),
            };
            let batch = QuarantineBatch {
                repository: "x".to_owned(),
                request: (*request).to_owned(),
                metadata_prefix: None,
                received_at: "2026-01-01T00:00:00Z".to_owned(),
                bytes_max: 1 << 20,
                records: vec![record],
            };
            quarantine.put(batch).await.expect("it fits");
        }
        let source = Answers::default();
        let requests = Arc::clone(&source.0);
        let retry = Retry {
            id: "x".to_owned(),
            source: Arc::new(source),
            with_crosswalks: Ok(Arc::new(Converting(Arc::clone(&requests)))),
            quarantine: Arc::clone(&quarantine),
            mirror: None,
            clock: Arc::new(SystemClock),
            via: String::new(),
            base_url: "http://x.example".to_owned(),
            prefix: prefix.map(str::to_owned),
        };
        let mut run = retry.begin(None).await.expect("readable").expect("no key was named");
        let mut lines = Vec::new();
        while let Some(line) = run.next().await {
            lines.push(line);
        }
        let open = QuarantineQuery { state: Some(QuarantineState::Open), ..QuarantineQuery::default() };
        let open = quarantine.list(RepositoryId("x"), open).await.expect("readable").len();
        let all = QuarantineSelection::ALL;
        assert_eq!(quarantine.remove(RepositoryId("x"), all).await.expect("writable"), records.len() as u64);
        let requests = requests.lock().expect("no panic").clone();
        (lines, requests, open)
    }

    #[tokio::test]
    async fn records_that_were_not_converted_are_converted_again() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let records = [(Some("oai:x:1"), LIST), (Some("lacks-1"), LIST)];
        let (lines, mut requests, open) =
            retry_why(data.path(), Unconverted::NothingRead.name(), &records, None).await;
        requests.sort();
        assert_eq!(requests, ["crosswalks lacks-1 oai_dc", "crosswalks oai:x:1 oai_dc"]);
        let mut found = outcomes(&lines);
        found.sort();
        assert_eq!((found[0].0, open), (RetryOutcome::Resolved, 1), "{found:?}");
        assert!(
            found[1].0 == RetryOutcome::Failed && found[1].1.contains("no crosswalk of its mapping"),
            "{found:?}"
        );
    }

    #[tokio::test]
    async fn crosswalks_that_are_turned_off_do_not_stop_a_retry() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let names: Vec<String> = (0..8).map(|number| format!("lacks-{number}")).collect();
        let records: Vec<_> = names.iter().map(|name| (Some(name.as_str()), LIST)).collect();
        let (lines, requests, open) =
            retry_why(data.path(), Unconverted::SheetFailed.name(), &records, None).await;
        assert_eq!((requests.len(), open, outcomes(&lines).len()), (8, 8, 8), "{lines:?}");
        let names: Vec<String> = (0..2).map(|number| format!("strict-{number}")).collect();
        let records: Vec<_> = names.iter().map(|name| (Some(name.as_str()), LIST)).collect();
        let (lines, ..) = retry_why(data.path(), Unconverted::SheetFailed.name(), &records, None).await;
        assert!(
            outcomes(&lines).iter().all(|(outcome, _)| *outcome == RetryOutcome::StillBroken),
            "{lines:?}"
        );
    }

    #[tokio::test]
    async fn source_that_fails_under_a_crosswalk_stops_a_retry() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let names: Vec<String> = (0..8).map(|number| format!("down-{number}")).collect();
        let records: Vec<_> = names.iter().map(|name| (Some(name.as_str()), LIST)).collect();
        let (lines, ..) = retry_why(data.path(), Unconverted::NothingRead.name(), &records, None).await;
        assert!(matches!(lines.last(), Some(RetryLine::Stopped { left: 3, .. })), "{lines:?}");
    }

    fn outcomes(lines: &[RetryLine]) -> Vec<(RetryOutcome, String)> {
        let retried = lines.iter().filter_map(|line| match line {
            RetryLine::Retried(record) => Some((record.outcome, record.details.clone().unwrap_or_default())),
            _ => None,
        });
        retried.collect()
    }

    const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";
    const TOKEN: &str = "verb=ListRecords&resumptionToken=a";

    #[tokio::test]
    async fn each_record_is_requested_once_in_its_format() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let records = [(Some("oai&amp;1"), LIST), (Some("oai&amp;1"), LIST), (Some("oai&amp;1"), TOKEN)];
        let (lines, requests, open) = retry(data.path(), &records, Some("marc21")).await;
        assert_eq!(lines[0], RetryLine::Started { records: 3 });
        assert!(outcomes(&lines).iter().all(|(outcome, _)| *outcome == RetryOutcome::Resolved), "{lines:?}");
        let mut requests = requests;
        requests.sort();
        assert_eq!((requests, open), (vec!["oai&1 marc21".to_owned(), "oai&1 oai_dc".to_owned()], 0));
    }

    #[tokio::test]
    async fn failures_are_explained_and_leave_entries_open() {
        for (identifier, request, outcome, details) in [
            (None, LIST, RetryOutcome::Failed, "no identifier"),
            (Some("oai:x:1"), TOKEN, RetryOutcome::Failed, "name it with --prefix"),
            (Some("other"), LIST, RetryOutcome::Failed, "sent another record, oai:x:9"),
            (Some("full"), LIST, RetryOutcome::Failed, "the disk or the source fails"),
            (Some("long"), LIST, RetryOutcome::Resolved, ""),
        ] {
            let data = tempfile::tempdir().expect("a temporary folder");
            let (lines, _, open) = retry(data.path(), &[(identifier, request)], None).await;
            let found = outcomes(&lines);
            assert!(found[0].0 == outcome && found[0].1.contains(details), "{identifier:?}: {found:?}");
            assert_eq!(open, usize::from(outcome != RetryOutcome::Resolved), "{identifier:?}");
        }
    }

    #[tokio::test]
    async fn retry_stops_if_the_source_fails() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let names: Vec<String> = (0..8).map(|number| format!("down-{number}")).collect();
        let records: Vec<_> = names.iter().map(|name| (Some(name.as_str()), LIST)).collect();
        let (lines, requests, open) = retry(data.path(), &records, None).await;
        assert_eq!((requests.len(), open), (FAILURES_IN_A_ROW_MAX as usize, 8));
        assert!(matches!(lines.last(), Some(RetryLine::Stopped { left: 3, .. })), "{lines:?}");
    }
}
