//! `oaimend quarantine retry`: requests quarantined records again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use oaimend::config::Mapping;
use oaimend::quarantine_retry::{RetriedRecord, Retry, RetryLine, RetryOutcome};
use oaimend_base::clock::SystemClock;
use oaimend_mirror::Stamps;
use oaimend_mirror::harvest::{HarvestTurn, Harvester};
use oaimend_repository::{ObservedRepository, Repository};
use oaimend_store::{MirrorError, Store};
use oaimend_upstream::{LiveRepository, SourceClients};
use tokio::runtime::Runtime;
use url::form_urlencoded;

use super::super::admin_client::AdminClient;
use super::super::exit::{Exit, Failure, print};
use super::super::progress::ProgressLine;
use super::messages::{failure, unknown_key, unreadable};

/// The records to request.
pub(super) struct RetrySelection<'s> {
    pub(super) mapping: &'s Arc<Mapping>,
    /// The key of an entry; `None`: all open entries.
    pub(super) key: Option<&'s str>,
    /// The format of records whose format is not known.
    pub(super) prefix: Option<String>,
}

/// Prints the results of a retry, and counts them.
struct Results<'s> {
    id: &'s str,
    progress: ProgressLine,
    records: u64,
    counts: BTreeMap<RetryOutcome, u64>,
    is_stopped: bool,
}

/// Requests records while no server runs.
pub(super) fn retry_here(
    store: &Store,
    runtime: &Runtime,
    selection: RetrySelection<'_>,
) -> Result<Exit, Failure> {
    let RetrySelection { mapping, key, prefix } = selection;
    let id = mapping.id();
    let client = SourceClients::new(store.static_files.clone()).client_for(&mapping.source);
    let client = client.map_err(|failure| Failure::incomplete(failure.details))?;
    let clock = Arc::new(SystemClock);
    let (mapping, activity) = (Arc::clone(mapping), store.activity.clone());
    let live = LiveRepository {
        mapping: Arc::clone(&mapping.source),
        client,
        store: store.clone(),
        clock: clock.clone(),
    };
    let source = ObservedRepository { id: id.to_owned(), repository: live, activity, clock: clock.clone() };
    let source: Arc<dyn Repository> = Arc::new(source);
    let mirror = match &mapping.mirror {
        Some(_) => Some(runtime.block_on(harvester(store, &mapping, &source)).map_err(mirror_failure)?),
        None => None,
    };
    let retry = Retry {
        id: id.to_owned(),
        source,
        quarantine: Arc::clone(&store.quarantine),
        mirror,
        clock,
        via: "1.1 oaimend".to_owned(),
        base_url: mapping.source.base_url.to_string(),
        prefix,
    };
    let mut results = Results::new(id);
    let exit = runtime.block_on(async {
        let run = retry.begin(key).await.map_err(|error| failure(&error))?;
        let mut run = run.ok_or_else(|| unknown_key(id, key.unwrap_or_default()))?;
        while let Some(line) = run.next().await {
            results.note(line)?;
        }
        results.finish()
    });
    store.activity.save_changed();
    exit
}

/// The harvester that stores the records that come whole.
async fn harvester(
    store: &Store,
    mapping: &Mapping,
    source: &Arc<dyn Repository>,
) -> Result<Harvester, MirrorError> {
    Ok(Harvester {
        id: mapping.id().to_owned(),
        source: Arc::clone(source),
        store: Arc::clone(&store.mirror),
        stamps: Arc::new(Stamps::open(Arc::clone(&store.mirror)).await?),
        clock: Arc::new(SystemClock),
        via: "1.1 oaimend".to_owned(),
        base_url: mapping.source.base_url.to_string(),
        turn: HarvestTurn::default(),
    })
}

fn mirror_failure(error: MirrorError) -> Failure {
    Failure::io("use", Path::new("the mirror"), &std::io::Error::other(error))
}

/// Requests records through the running server.
pub(super) fn retry_in_server(client: &AdminClient, selection: RetrySelection<'_>) -> Result<Exit, Failure> {
    let RetrySelection { mapping, key, prefix } = selection;
    let id = mapping.id();
    let place = key.map_or_else(String::new, |key| format!("/{}", url_part(key)));
    let query = prefix.map_or_else(String::new, |prefix| format!("?prefix={}", url_part(&prefix)));
    let response = client.open("POST", &format!("/-/repositories/{id}/quarantine{place}/retry{query}"))?;
    match response.status {
        200 => {}
        404 => return Err(unknown_key(id, key.unwrap_or_default())),
        _ => return Err(Failure::incomplete(format!("{id}: {}", response.into_error()?))),
    }
    let mut results = Results::new(id);
    response.for_each_line(|line| results.note(serde_json::from_slice(line).map_err(|_| unreadable())?))?;
    results.finish()
}

fn url_part(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
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
        let sums: Vec<String> =
            [RetryOutcome::Resolved, RetryOutcome::StillBroken, RetryOutcome::Gone, RetryOutcome::Failed]
                .map(|outcome| format!("{} {}", count(outcome), outcome.name()))
                .to_vec();
        let done: u64 = self.counts.values().sum();
        if done < self.records && !self.is_stopped {
            return Err(Failure::io(
                "use",
                Path::new("the admin listener"),
                &std::io::Error::other("the server ended before the retry; run it again"),
            ));
        }
        let records = if done == 1 { "record" } else { "records" };
        print(format!("{}: {done} {records} requested: {}\n", self.id, sums.join(", ")).as_bytes())?;
        let is_good = done == count(RetryOutcome::Resolved) && !self.is_stopped;
        Ok(if is_good { Exit::Success } else { Exit::Incomplete })
    }
}

fn describe(record: &RetriedRecord) -> String {
    let RetriedRecord { key, identifier, outcome, details } = record;
    // An identifier may contain characters that control the terminal.
    let identifier =
        identifier.as_ref().map_or_else(|| "unknown".to_owned(), |text| text.escape_debug().to_string());
    let details = details.as_ref().map(|text| format!(": {}", text.escape_debug())).unwrap_or_default();
    format!("{key}  {:12}  {identifier}{details}\n", outcome.name())
}
