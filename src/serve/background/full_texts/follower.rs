//! Follows the records of a repository, and fetches the full texts that are due.
//!
//! The place in the mirror up to which the records were examined is stored, so each record is examined once, and again when
//! it changes. A full text is fetched again only if its URLs have changed.

use super::fetcher::{Fetched, Fetcher, NotNow};
use crate::serve::served::ServedRepositories;
use crate::serve::telemetry::Telemetry;
use crate::serve::telemetry::labels::FullTextOutcome;
use oaimend_full_text::FullTextHosts;
use oaimend_oai::UnixSecs;
use oaimend_record::RecordDocument;
use oaimend_repository::{Failure, RecordView};
use oaimend_resolver::ResolvedSources;
use oaimend_store::{
    FollowedFullTexts, FullText, FullTextState, Identifier, ListFilter, ListQuery, MirrorError, Prefix,
    RecordStatus, RepositoryId, SaveError, StoredRecord,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use url::Url;

/// The format whose records are examined, if the repository has it.
const FORMAT: &str = "oai_dc";
/// Maximum number of records that are read at once.
const PAGE_RECORDS_MAX: usize = 100;
/// Bytes of records that are read at once. A single record may exceed it.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// Maximum number of pages of records in one step.
const PAGES_MAX: usize = 20;
/// Maximum number of items in one step whose time has come.
const DUE_MAX: usize = 20;
/// Maximum number of items whose full texts are fetched in one step, so that other repositories have their turns.
const FETCHED_MAX: usize = 20;
/// Maximum number of attempts at the full texts of an item.
const ATTEMPTS_MAX: u32 = 3;
/// How long an item waits after its first failure and after the next ones, unless the server wants another time.
const WAITS: [Duration; 2] = [Duration::from_secs(3_600), Duration::from_secs(86_400)];
/// Longest time that an item waits.
const WAIT_MAX: Duration = Duration::from_secs(30 * 86_400);

/// The full texts of one repository.
pub(super) struct Follower<'a> {
    pub(super) served: &'a ServedRepositories,
    pub(super) telemetry: &'a Telemetry,
    pub(super) sources: &'a Arc<ResolvedSources>,
    pub(super) repository: &'a str,
    pub(super) fetcher: Fetcher<'a>,
    /// The number of items whose full texts this step has fetched.
    pub(super) fetched: AtomicUsize,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// All that is due was fetched, or must wait for its host.
    Done,
    /// No PDF can be read on this machine.
    Unavailable,
}

/// Why a step stops.
enum Stop {
    NotNow(NotNow),
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<MirrorError> for Stop {
    fn from(error: MirrorError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<SaveError> for Stop {
    fn from(error: SaveError) -> Self {
        Self::Failed(MirrorError::Stopped(error.to_string()).into())
    }
}

impl Follower<'_> {
    /// Fetches some full texts.
    ///
    /// # Errors
    ///
    /// The mirror or a store cannot be used. The next step continues.
    pub(super) async fn step(&self) -> Result<Step, Failure> {
        let Some(prefix) = self.format().await? else { return Ok(Step::Done) };
        let stepped = match self.fetch_due(&prefix).await {
            Ok(()) => self.follow(&prefix).await,
            stopped => stopped,
        };
        match stepped {
            Ok(()) | Err(Stop::NotNow(NotNow::Pace)) => Ok(Step::Done),
            Err(Stop::NotNow(NotNow::Unavailable)) => Ok(Step::Unavailable),
            Err(Stop::Failed(failure)) => Err(failure),
        }
    }

    /// The number of records that were not examined, and of items that wait.
    ///
    /// # Errors
    ///
    /// The mirror or a store cannot be used.
    pub(super) async fn waiting(&self) -> Result<u64, Failure> {
        let stopped = |error: SaveError| Failure::from(MirrorError::Stopped(error.to_string()));
        let waiting = self.served.store.full_texts.waiting(self.repository).await.map_err(stopped)?;
        let Some(prefix) = self.format().await? else { return Ok(waiting) };
        let Some(version) = self.served.store.mirror.version(self.id(), Prefix(&prefix)).await? else {
            return Ok(waiting);
        };
        let followed = self.served.store.full_texts.followed(self.repository).await.map_err(stopped)?;
        let next = followed.map_or(0, |followed| self.next_sequence(&followed, version.collection));
        Ok(waiting + version.next_sequence.saturating_sub(next))
    }

    fn id(&self) -> RepositoryId<'_> {
        RepositoryId(self.repository)
    }

    /// The format whose records are examined: `oai_dc`, else the first one.
    async fn format(&self) -> Result<Option<String>, Failure> {
        let formats = self.served.store.mirror.catalog(self.id()).await?.formats;
        let prefixes: Vec<String> = formats.into_iter().map(|format| format.prefix).collect();
        let has_usual = prefixes.iter().any(|prefix| prefix == FORMAT);
        Ok(if has_usual { Some(FORMAT.to_owned()) } else { prefixes.into_iter().next() })
    }

    /// Where the records begin that were not examined.
    fn next_sequence(&self, followed: &FollowedFullTexts, collection: u64) -> u64 {
        let is_same = followed.collection == collection && followed.definition == self.definition();
        if is_same { followed.next_sequence } else { 0 }
    }

    /// The choice of full texts.
    fn definition(&self) -> String {
        self.fetcher.allowed.text()
    }

    /// Fetches full texts whose time has come again.
    async fn fetch_due(&self, prefix: &str) -> Result<(), Stop> {
        let (store, now_secs) = (&self.served.store, self.served.clock.now_secs());
        let due = store.full_texts.due(self.repository, now_secs, DUE_MAX).await?;
        let known = store.full_texts.find(self.repository, due.clone()).await?;
        for (identifier, known) in due.iter().zip(known) {
            let record = store.mirror.record(self.id(), Prefix(prefix), Identifier(identifier)).await;
            let record = match record {
                // It is harvested again.
                Err(MirrorError::Damaged) => continue,
                record => record?,
            };
            match (known, record.filter(is_live)) {
                (Some(known), Some(_)) => self.fetch(identifier, known).await?,
                _ => self.put(identifier, None).await?,
            }
        }
        Ok(())
    }

    /// Examines the records that have changed.
    async fn follow(&self, prefix: &str) -> Result<(), Stop> {
        let store = &self.served.store;
        let Some(version) = store.mirror.version(self.id(), Prefix(prefix)).await? else { return Ok(()) };
        let followed = store.full_texts.followed(self.repository).await?;
        let mut next_sequence =
            followed.map_or(0, |followed| self.next_sequence(&followed, version.collection));
        for _ in 0..PAGES_MAX {
            if next_sequence >= version.next_sequence {
                break;
            }
            let filter = ListFilter {
                repository: self.repository.to_owned(),
                prefix: prefix.to_owned(),
                sequences: Some(next_sequence..u64::MAX),
                ..ListFilter::default()
            };
            let (count_max, bytes_max) = (PAGE_RECORDS_MAX, PAGE_BYTES_MAX);
            let query = ListQuery { filter, after: None, count_max, bytes_max, with_bytes: true };
            let page = store.mirror.list(query).await?;
            let end = match (page.next, page.records.last()) {
                (Some(next), _) => next.sequence + 1,
                (None, last) => version.next_sequence.max(last.map_or(0, |last| last.sequence + 1)),
            };
            let examined = self.examine(page.records, &mut next_sequence).await;
            if examined.is_ok() {
                next_sequence = end;
            }
            let collection = version.collection;
            let followed = FollowedFullTexts { collection, next_sequence, definition: self.definition() };
            store.full_texts.follow(self.repository, followed).await?;
            examined?;
        }
        Ok(())
    }

    /// Examines records in order. `next_sequence` is the place after the last one that was.
    async fn examine(&self, records: Vec<StoredRecord>, next_sequence: &mut u64) -> Result<(), Stop> {
        let identifiers = records.iter().map(|record| record.identifier.clone()).collect();
        let known = self.served.store.full_texts.find(self.repository, identifiers).await?;
        let hosts = self.fetcher.allowed.clone();
        let found = tokio::task::spawn_blocking(move || {
            let found =
                |record: StoredRecord| (full_texts(&record, &hosts), record.identifier, record.sequence);
            records.into_iter().map(found).collect::<Vec<_>>()
        });
        let found = found.await.map_err(|error| MirrorError::Stopped(error.to_string()))?;
        for ((urls, identifier, sequence), known) in found.into_iter().zip(known) {
            match known {
                Some(known) if known.urls == urls => {}
                None if urls.is_empty() => {}
                Some(_) if urls.is_empty() => self.put(&identifier, None).await?,
                _ => {
                    let state = FullTextState::Waiting { attempts: 0, not_before_secs: UnixSecs(0) };
                    self.fetch(&identifier, FullText { urls, state }).await?;
                }
            }
            *next_sequence = sequence + 1;
        }
        Ok(())
    }

    /// Fetches the full text of an item, and stores what became of it.
    async fn fetch(&self, identifier: &str, known: FullText) -> Result<(), Stop> {
        let urls: Vec<Url> = known.urls.iter().filter_map(|url| Url::parse(url).ok()).collect();
        let attempts = match known.state {
            FullTextState::Waiting { attempts, .. } => attempts + 1,
            FullTextState::Read(_) | FullTextState::Refused(_) => return Ok(()),
        };
        if self.fetched.fetch_add(1, Ordering::Relaxed) >= FETCHED_MAX {
            return Err(Stop::NotNow(NotNow::Pace));
        }
        let (outcome, state, why) = match self.fetcher.fetch(&urls).await {
            Fetched::NotNow(why) => return Err(Stop::NotNow(why)),
            Fetched::Read(named) => (FullTextOutcome::Read, FullTextState::Read(named), String::new()),
            Fetched::Refused(outcome, why) => {
                (outcome, FullTextState::Refused(outcome.name().to_owned()), why)
            }
            Fetched::Later(outcome, _, why) if attempts >= ATTEMPTS_MAX => {
                let outcome =
                    if outcome == FullTextOutcome::Later { FullTextOutcome::Unreachable } else { outcome };
                (outcome, FullTextState::Refused(outcome.name().to_owned()), why)
            }
            Fetched::Later(outcome, wait, why) => {
                let usual = WAITS[(attempts as usize - 1).min(WAITS.len() - 1)];
                let wait = wait.unwrap_or(usual).min(WAIT_MAX).as_secs();
                let not_before_secs = self.served.clock.now_secs().plus(wait.cast_signed());
                (outcome, FullTextState::Waiting { attempts, not_before_secs }, why)
            }
        };
        self.telemetry.fetched_full_text(self.repository, outcome);
        let url = known.urls.first();
        if outcome == FullTextOutcome::Read {
            tracing::debug!(
                repo = self.repository,
                identifier,
                url,
                "the references of a full text were read"
            );
        } else {
            tracing::info!(
                repo = self.repository,
                identifier,
                url,
                outcome = outcome.name(),
                why,
                "a full text was not read"
            );
        }
        self.put(identifier, Some(FullText { urls: known.urls, state })).await
    }

    async fn put(&self, identifier: &str, full_text: Option<FullText>) -> Result<(), Stop> {
        let item = (self.repository, identifier);
        Ok(self.served.resolver.resolver.put_full_text(self.sources, item, full_text).await?)
    }
}

fn is_live(record: &StoredRecord) -> bool {
    record.status == RecordStatus::Live
}

/// The URLs of the full texts of a record. A deleted record has none, and so does one that cannot be read.
fn full_texts(record: &StoredRecord, hosts: &FullTextHosts) -> Vec<String> {
    if !is_live(record) {
        return Vec::new();
    }
    let xml = std::str::from_utf8(&record.bytes).unwrap_or_default();
    let document = RecordView::read(xml).and_then(|view| RecordDocument::read_for_conversion(&view).ok());
    let urls = document.map(|document| hosts.full_texts(&document)).unwrap_or_default();
    urls.into_iter().map(String::from).collect()
}
