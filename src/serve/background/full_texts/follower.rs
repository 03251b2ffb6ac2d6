//! Follows the records of a repository, and fetches the full texts that are due.
//!
//! The place in the mirror up to which the records were examined is stored, so each record is examined once, and again when
//! it changes. A full text is fetched again only if its URLs have changed.

use super::fetcher::{Fetched, Fetcher, NotNow, WAIT_SHORT};
use crate::serve::served::ServedRepositories;
use crate::serve::telemetry::Telemetry;
use crate::serve::telemetry::labels::FullTextOutcome;
use oaimend_full_text::FullTextHosts;
use oaimend_oai::UnixSecs;
use oaimend_record::RecordDocument;
use oaimend_repository::{Failure, RecordView};
use oaimend_resolver::ResolvedSources;
use oaimend_store::{
    CollectionVersion, FollowedFullTexts, FullText, FullTextState, Identifier, ListFilter, ListQuery,
    MirrorError, Prefix, RecordStatus, RepositoryId, SaveError, StoredRecord,
};
use std::sync::Arc;
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
/// Maximum number of items that one step looks at, whose time has come.
const DUE_MAX: usize = 500;
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
    /// The formats of the mirror; empty: all of the source.
    pub(super) prefixes: &'a [String],
    /// What else determines which full texts can be read.
    pub(super) definition: String,
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
        let stepped = match self.follow(&prefix).await {
            Ok(()) => self.fetch_due(&prefix).await,
            stopped => stopped,
        };
        match stepped {
            Ok(()) | Err(Stop::NotNow(NotNow::Pace(_) | NotNow::Changed)) => Ok(Step::Done),
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
        let next = followed.map_or(0, |followed| self.next_sequence(&followed, &version));
        Ok(waiting + version.next_sequence.saturating_sub(next))
    }

    fn id(&self) -> RepositoryId<'_> {
        RepositoryId(self.repository)
    }

    /// The format of the mirror whose records are examined: `oai_dc`, else the first one.
    async fn format(&self) -> Result<Option<String>, Failure> {
        let formats = self.served.store.mirror.catalog(self.id()).await?.formats;
        let prefixes = formats.into_iter().map(|format| format.prefix);
        let is_mirrored = |prefix: &String| self.prefixes.is_empty() || self.prefixes.contains(prefix);
        let prefixes: Vec<String> = prefixes.filter(is_mirrored).collect();
        let has_usual = prefixes.iter().any(|prefix| prefix == FORMAT);
        Ok(if has_usual { Some(FORMAT.to_owned()) } else { prefixes.into_iter().next() })
    }

    /// Where the records begin that were not examined.
    fn next_sequence(&self, followed: &FollowedFullTexts, version: &CollectionVersion) -> u64 {
        // A mirror that was restored from a backup has fewer changes than were examined.
        let is_same = followed.collection == version.collection
            && followed.definition == self.definition
            && followed.next_sequence <= version.next_sequence;
        if is_same { followed.next_sequence } else { 0 }
    }

    /// Fetches full texts whose time has come, and leaves those for later whose host may not be requested.
    async fn fetch_due(&self, prefix: &str) -> Result<(), Stop> {
        let (store, now_secs) = (&self.served.store, self.served.clock.now_secs());
        let due = store.full_texts.due(self.repository, now_secs, DUE_MAX).await?;
        let known = store.full_texts.find(self.repository, due.clone()).await?;
        let mut fetched = 0;
        for (identifier, known) in due.iter().zip(known) {
            let Some(FullText { urls, state: FullTextState::Waiting { attempts, .. } }) = known else {
                self.put(identifier, None).await?;
                continue;
            };
            let parsed: Vec<Url> = urls.iter().filter_map(|url| Url::parse(url).ok()).collect();
            let wait = match self.fetcher.prepare(&parsed).await {
                Ok(()) => None,
                Err(NotNow::Pace(wait)) if wait <= WAIT_SHORT => continue,
                Err(NotNow::Pace(wait)) => Some(wait),
                Err(why) => return Err(Stop::NotNow(why)),
            };
            if let Some(wait) = wait {
                self.put(identifier, Some(self.waiting_text(urls, attempts, wait))).await?;
                continue;
            }
            match store.mirror.record(self.id(), Prefix(prefix), Identifier(identifier)).await {
                // It is harvested again.
                Err(MirrorError::Damaged) => {
                    self.put(identifier, Some(self.waiting_text(urls, attempts, WAITS[0]))).await?;
                }
                Ok(Some(record)) if is_live(&record) => {
                    self.fetch(identifier, (urls, &parsed), attempts).await?;
                    fetched += 1;
                }
                Ok(_) => self.put(identifier, None).await?,
                Err(error) => return Err(error.into()),
            }
            if fetched == FETCHED_MAX {
                break;
            }
        }
        Ok(())
    }

    fn waiting_text(&self, urls: Vec<String>, attempts: u32, wait: Duration) -> FullText {
        let wait = wait.min(WAIT_MAX).as_secs().cast_signed();
        let not_before_secs = self.served.clock.now_secs().plus(wait);
        FullText { urls, state: FullTextState::Waiting { attempts, not_before_secs } }
    }

    /// Examines the records that have changed.
    async fn follow(&self, prefix: &str) -> Result<(), Stop> {
        let store = &self.served.store;
        let Some(version) = store.mirror.version(self.id(), Prefix(prefix)).await? else { return Ok(()) };
        let followed = store.full_texts.followed(self.repository).await?;
        let mut next_sequence = followed.map_or(0, |followed| self.next_sequence(&followed, &version));
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
            let followed =
                FollowedFullTexts { collection, next_sequence, definition: self.definition.clone() };
            store.full_texts.follow(self.repository, followed).await?;
            examined?;
        }
        Ok(())
    }

    /// Examines records in order, without a request. `next_sequence` is the place after the last one that was.
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
                Some(known) if known.urls == urls && !may_be_allowed(&known) => {}
                None if urls.is_empty() => {}
                Some(_) if urls.is_empty() => self.put(&identifier, None).await?,
                _ => {
                    let state = FullTextState::Waiting { attempts: 0, not_before_secs: UnixSecs(0) };
                    self.put(&identifier, Some(FullText { urls, state })).await?;
                }
            }
            *next_sequence = sequence + 1;
        }
        Ok(())
    }

    /// Fetches the full text of an item, and stores what became of it.
    async fn fetch(
        &self,
        identifier: &str,
        (urls, parsed): (Vec<String>, &[Url]),
        before: u32,
    ) -> Result<(), Stop> {
        let attempts = before + 1;
        let usual = WAITS[(before as usize).min(WAITS.len() - 1)];
        // An attempt that ends this program counts, too. The references of former URLs are gone by now.
        self.put(identifier, Some(self.waiting_text(urls.clone(), attempts, usual))).await?;
        let fetched = if attempts > ATTEMPTS_MAX {
            let why = format!("oaimend has ended during {ATTEMPTS_MAX} attempts");
            Fetched::Refused(FullTextOutcome::Crashed, why)
        } else {
            self.fetcher.fetch(parsed).await
        };
        let is_forgotten = {
            let known = self.served.store.full_texts.find(self.repository, vec![identifier.to_owned()]);
            known.await?.into_iter().flatten().next().is_none()
        };
        if is_forgotten {
            return Ok(());
        }
        let (outcome, state, why) = match fetched {
            Fetched::NotNow(why) => {
                self.put(identifier, Some(self.waiting_text(urls, before, Duration::ZERO))).await?;
                return Err(Stop::NotNow(why));
            }
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
                let wait = usual.max(wait.unwrap_or_default());
                (outcome, self.waiting_text(Vec::new(), attempts, wait).state, why)
            }
        };
        self.telemetry.fetched_full_text(self.repository, outcome);
        let url = urls.first();
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
        self.put(identifier, Some(FullText { urls, state })).await
    }

    async fn put(&self, identifier: &str, full_text: Option<FullText>) -> Result<(), Stop> {
        let item = (self.repository, identifier);
        Ok(self.served.resolver.resolver.put_full_text(self.sources, item, full_text).await?)
    }
}

/// Whether the mapping may allow a full text that it refused before. Records are examined again when it changes.
fn may_be_allowed(known: &FullText) -> bool {
    let of_mapping = [FullTextOutcome::Redirect, FullTextOutcome::TooLarge, FullTextOutcome::Address];
    let FullTextState::Refused(outcome) = &known.state else { return false };
    of_mapping.iter().any(|of| of.name() == outcome)
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
