//! The embedded store of the mirror: an append-only log of compressed blocks, with an index in redb.
//!
//! `data/mirror/` contains `index.redb` and the segments of the log. It is created by the first write, so a proxy
//! without a mirror has no such folder. docs/explanation/mirror-store.md gives the reasons; `block`, `directory`, `tables`
//! and `keys` describe the format on disk.
//!
//! - `commit` stores harvested pages; `read` and `block_reader` read lists and records.
//! - `compaction` rewrites segments, `verify` checks them, `forget` removes a repository.
//! - `block`, `directory` and `segments` are the files, `tables` and `keys` the index; `postings` are the records of each set.
//! - `versions` holds the versions of collections in memory, `kept_blocks` some blocks.
//!
//! Invariants: bytes of a segment are valid only if the index says so, and the index says so only after they are
//! synced. Valid bytes never change. Locks are taken in the order: maintenance, writer, index.

mod block;
mod block_reader;
mod commit;
mod compaction;
mod directory;
mod forget;
mod index;
mod kept_blocks;
mod keys;
mod new_blocks;
mod occurrences;
mod postings;
mod read;
mod repairs;
mod segments;
mod sets;
mod shared;
mod state;
mod tables;
mod varint;
mod verify;
mod versions;

use async_trait::async_trait;
use bytes::Bytes;
use index::IndexError;
use oaimend_base::error::Error;
use oaimend_oai::UnixSecs;
use oaimend_store::databases::Databases;
use oaimend_store::harvest_state::{Catalog, Committed, HarvestProgress, RepositoryState};
use oaimend_store::mirror::{
    CollectionSize, CollectionVersion, DiskUsage, Document, IdentifierEntry, ListFilter, ListQuery,
    ListedPage, MirrorError, MirrorStore, PageCommit, RecordStatus, StampMarks, StoredRecord, Verification,
};
use oaimend_store::record_repairs::RecordRepairs;
use oaimend_store::{ChosenRecords, Identifier, Occurrences, Prefix, RepositoryId};
use redb::ReadableTable as _;
use shared::{CollectionKey, Shared};
use std::collections::HashSet;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

/// The store. Clones share it.
#[derive(Clone, Debug)]
pub struct RecordLog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    databases: Databases,
    state: RwLock<State>,
    /// The automatic compaction that was started last.
    compaction: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
enum State {
    /// Nothing was ever written.
    Absent,
    Open(Arc<Shared>),
    Closed,
}

impl Inner {
    fn close(&self) {
        let state = std::mem::replace(
            &mut *self.state.write().unwrap_or_else(PoisonError::into_inner),
            State::Closed,
        );
        let State::Open(shared) = state else { return };
        shared.begin_to_close();
        let compaction = self.compaction.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(compaction) = compaction {
            // The thread logs why it fails.
            let _ = compaction.join();
        }
        shared.index.close();
    }

    /// The open store; `None` if nothing was ever written.
    fn shared(&self) -> Result<Option<Arc<Shared>>, MirrorError> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Absent => Ok(None),
            State::Open(shared) => Ok(Some(Arc::clone(shared))),
            State::Closed => Err(MirrorError::Closed),
        }
    }

    /// The open store, which is created if nothing was ever written.
    fn shared_or_create(&self) -> Result<Arc<Shared>, MirrorError> {
        if let Some(shared) = self.shared()? {
            return Ok(shared);
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Open(shared) => Ok(Arc::clone(shared)),
            State::Closed => Err(MirrorError::Closed),
            State::Absent => {
                let shared = open(&self.folder, &self.databases)
                    .map_err(|error| MirrorError::Database(Box::new(error)))?;
                *state = State::Open(Arc::clone(&shared));
                Ok(shared)
            }
        }
    }

    /// Starts a compaction, unless one runs.
    fn start_compaction(&self, shared: &Arc<Shared>, repository: String, prefix: String) {
        let mut running = self.compaction.lock().unwrap_or_else(PoisonError::into_inner);
        if running.as_ref().is_some_and(|running| !running.is_finished()) {
            return;
        }
        let shared = Arc::clone(shared);
        let run = move || match compact(&shared, RepositoryId(&repository), Some(&prefix), false)
            .map_err(MirrorError::from)
        {
            Ok(bytes) => tracing::debug!(repo = repository, prefix, bytes, "the mirror was compacted"),
            Err(MirrorError::Closed | MirrorError::Conflict) => {}
            Err(error) => tracing::warn!(repo = repository, prefix, %error, "the mirror is not compacted"),
        };
        match std::thread::Builder::new().name("compaction".to_owned()).spawn(run) {
            Ok(started) => *running = Some(started),
            Err(error) => tracing::warn!(%error, "the mirror is not compacted"),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

impl RecordLog {
    /// Opens `mirror/` in the data folder, if it is there. The caller holds the lock of the data folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be read or written to, or another version has written it.
    pub fn open(data: &Path) -> Result<Self, Error> {
        Self::open_among(data, &Databases::default())
    }

    /// Like [`RecordLog::open`], with the index among these databases.
    pub(crate) fn open_among(data: &Path, databases: &Databases) -> Result<Self, Error> {
        let folder = data.join("mirror");
        let state = if folder.join("index.redb").exists() {
            State::Open(open(&folder, databases)?)
        } else {
            State::Absent
        };
        let (databases, compaction) = (databases.clone(), Mutex::new(None));
        Ok(Self(Arc::new(Inner { folder, databases, state: RwLock::new(state), compaction })))
    }

    /// Runs `task` on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Inner) -> Result<T, IndexError> + Send + 'static,
    ) -> Result<T, MirrorError> {
        let inner = Arc::clone(&self.0);
        match tokio::task::spawn_blocking(move || task(&inner)).await {
            Ok(done) => Ok(done?),
            Err(error) => Err(MirrorError::Stopped(error.to_string())),
        }
    }

    /// Reads on a thread that may block. Nothing is there before the first write.
    async fn read<T: Default + Send + 'static>(
        &self,
        task: impl FnOnce(&Shared) -> Result<T, IndexError> + Send + 'static,
    ) -> Result<T, MirrorError> {
        self.blocking(move |inner| inner.shared()?.map_or_else(|| Ok(T::default()), |shared| task(&shared)))
            .await
    }

    /// Writes on a thread that may block.
    async fn write<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Shared) -> Result<T, IndexError> + Send + 'static,
    ) -> Result<T, MirrorError> {
        self.blocking(move |inner| task(inner.shared_or_create()?.as_ref())).await
    }
}

fn open(folder: &Path, databases: &Databases) -> Result<Arc<Shared>, Error> {
    let shared = Shared::open(folder, databases)?;
    let failed = |error: IndexError| shared.index.unreadable(&MirrorError::from(error));
    let version = shared.index.read(|reading| Ok(tables::format_version(reading)?)).map_err(failed)?;
    match version {
        None => {
            shared.index.write(|writing| Ok(tables::create_index(writing)?)).map_err(failed)?;
        }
        Some(tables::FORMAT_VERSION | tables::FORMAT_VERSION_1) => {
            if !shared.index.read(|reading| Ok(tables::has_all_tables(reading)?)).map_err(failed)? {
                shared.index.write(|writing| Ok(tables::create_tables(writing)?)).map_err(failed)?;
            }
        }
        Some(version) => {
            let message = format!(
                "the mirror has version {version} of its format, and this oaimend reads version {}; use a newer \
                 oaimend, or move the folder away to harvest again",
                tables::FORMAT_VERSION
            );
            return Err(Error::State { path: folder.to_owned(), message });
        }
    }
    let known = shared.index.read(|reading| {
        let segments = reading.open_table(tables::SEGMENTS)?;
        let known: Result<HashSet<_>, _> =
            segments.iter()?.map(|row| row.map(|(key, _)| key.value())).collect();
        Ok(known?)
    });
    shared.segments.remove_unknown(&known.map_err(failed)?).map_err(failed)?;
    Ok(Arc::new(shared))
}

/// The collections of a repository, or the one with this prefix.
fn keys(
    shared: &Shared,
    repository: RepositoryId<'_>,
    prefix: Option<&str>,
) -> Result<Vec<(u32, String)>, IndexError> {
    shared.index.read(|reading| {
        let Some(number) = shared::find_repository(reading, repository.0)? else { return Ok(Vec::new()) };
        let collections = shared::collections_of(reading, repository)?;
        let prefixes = collections.into_iter().map(|(prefix, _)| prefix);
        let wanted = prefixes.filter(|each| prefix.is_none_or(|prefix| prefix == each));
        Ok(wanted.map(|prefix| (number, prefix)).collect())
    })
}

fn compact(
    shared: &Shared,
    repository: RepositoryId<'_>,
    prefix: Option<&str>,
    is_thorough: bool,
) -> Result<u64, IndexError> {
    let mut freed = 0;
    for (number, prefix) in keys(shared, repository, prefix)? {
        let key = CollectionKey { repository: number, prefix: &prefix };
        let compacted = compaction::compact(shared, key, is_thorough);
        // It may have found damage.
        shared.versions.change(repository, Some(&prefix));
        freed += compacted?;
    }
    Ok(freed)
}

fn verify(shared: &Shared, repository: RepositoryId<'_>) -> Result<Verification, IndexError> {
    let _turn = shared.maintenance();
    let mut sum = Verification::default();
    for (number, prefix) in keys(shared, repository, None)? {
        let key = CollectionKey { repository: number, prefix: &prefix };
        let verification = verify::verify_collection(shared, key);
        shared.versions.change(repository, Some(&prefix));
        let verification = verification?;
        sum.records += verification.records;
        sum.damaged += verification.damaged;
    }
    shared.clear_suspicion(repository);
    Ok(sum)
}

/// Checks a repository, and accepts the loss of all its damaged records. Returns their number.
fn accept_loss(shared: &Shared, repository: RepositoryId<'_>) -> Result<u64, IndexError> {
    verify(shared, repository)?;
    let _turn = shared.maintenance();
    let mut accepted = 0;
    for (number, prefix) in keys(shared, repository, None)? {
        let key = CollectionKey { repository: number, prefix: &prefix };
        let done = shared::change_collection(shared, key, verify::accept_loss);
        shared.versions.change(repository, Some(&prefix));
        accepted += done?;
    }
    Ok(accepted)
}

#[async_trait]
impl MirrorStore for RecordLog {
    async fn commit(&self, page: PageCommit) -> Result<Committed, MirrorError> {
        self.blocking(move |inner| {
            let shared = inner.shared_or_create()?;
            let done = commit::commit(&shared, &page);
            // The index may contain a commit that reports an error.
            shared.versions.change(RepositoryId(&page.repository), Some(&page.prefix));
            let (committed, collection) = done?;
            if compaction::is_due(&collection) {
                inner.start_compaction(&shared, page.repository, page.prefix);
            }
            Ok(committed)
        })
        .await
    }

    async fn stamp_marks(&self) -> Result<StampMarks, MirrorError> {
        self.read(state::stamp_marks).await
    }

    async fn reserve_stamps(&self, until_secs: UnixSecs) -> Result<(), MirrorError> {
        self.write(move |shared| state::reserve_stamps(shared, until_secs)).await
    }

    async fn removals(&self) -> Result<u64, MirrorError> {
        self.read(state::removals).await
    }

    async fn changes(&self) -> Result<u64, MirrorError> {
        Ok(self.0.shared()?.map_or(0, |shared| shared.versions.changes()))
    }

    async fn changed_since(&self, changes: u64) -> Result<Vec<String>, MirrorError> {
        Ok(self.0.shared()?.map_or_else(Vec::new, |shared| shared.versions.changed_since(changes)))
    }

    async fn list(&self, query: ListQuery) -> Result<ListedPage, MirrorError> {
        self.read(move |shared| read::list(shared, &query)).await
    }

    async fn records_at(&self, chosen: ChosenRecords) -> Result<Vec<Option<StoredRecord>>, MirrorError> {
        let count = chosen.sequences.len();
        let records = self.read(move |shared| read::records_at(shared, &chosen)).await?;
        // Nothing is read from a store that was never written to.
        Ok(if records.is_empty() { vec![None; count] } else { records })
    }

    async fn count(&self, filter: ListFilter) -> Result<u64, MirrorError> {
        self.read(move |shared| read::count(shared, &filter)).await
    }

    async fn count_by_sequence(
        &self,
        filter: ListFilter,
        step: NonZeroU64,
    ) -> Result<Vec<(u64, u64)>, MirrorError> {
        self.read(move |shared| read::count_by_sequence(shared, &filter, step)).await
    }

    async fn record(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifier: Identifier<'_>,
    ) -> Result<Option<StoredRecord>, MirrorError> {
        let [repository, prefix, identifier] = [repository.0, prefix.0, identifier.0].map(str::to_owned);
        self.read(move |shared| {
            read::record(shared, RepositoryId(&repository), Prefix(&prefix), Identifier(&identifier))
        })
        .await
    }

    async fn repairs(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifier: Identifier<'_>,
    ) -> Result<RecordRepairs, MirrorError> {
        let [repository, prefix, identifier] = [repository.0, prefix.0, identifier.0].map(str::to_owned);
        self.read(move |shared| {
            repairs::read(shared, RepositoryId(&repository), Prefix(&prefix), Identifier(&identifier))
        })
        .await
    }

    async fn headers(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Option<StoredRecord>>, MirrorError> {
        let ([repository, prefix], identifiers) =
            ([repository.0, prefix.0].map(str::to_owned), identifiers.to_vec());
        let count = identifiers.len();
        let headers = self
            .read(move |shared| {
                read::headers(shared, RepositoryId(&repository), Prefix(&prefix), &identifiers)
            })
            .await?;
        // Nothing is read from a store that was never written to.
        Ok(if headers.is_empty() { vec![None; count] } else { headers })
    }

    async fn occurrences(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Occurrences>, MirrorError> {
        let ([repository, prefix], identifiers) =
            ([repository.0, prefix.0].map(str::to_owned), identifiers.to_vec());
        let count = identifiers.len();
        let found = self
            .read(move |shared| {
                occurrences::read(shared, RepositoryId(&repository), Prefix(&prefix), &identifiers)
            })
            .await?;
        // Nothing is read from a store that was never written to.
        Ok(if found.is_empty() { vec![Occurrences::default(); count] } else { found })
    }

    async fn formats_of_items(
        &self,
        repository: RepositoryId<'_>,
        identifiers: &[String],
    ) -> Result<Vec<Vec<(String, RecordStatus)>>, MirrorError> {
        let (repository, identifiers) = (repository.0.to_owned(), identifiers.to_vec());
        let count = identifiers.len();
        let find = move |shared: &_| read::formats_of_items(shared, RepositoryId(&repository), &identifiers);
        let mut found = self.read(find).await?;
        // Nothing is read from a store that was never written to.
        found.resize(count, Vec::new());
        Ok(found)
    }

    async fn identifiers(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        after: Option<Identifier<'_>>,
        count_max: usize,
    ) -> Result<Vec<IdentifierEntry>, MirrorError> {
        let [repository, prefix] = [repository.0, prefix.0].map(str::to_owned);
        let after = after.map(|after| after.0.to_owned());
        self.read(move |shared| {
            read::identifiers(
                shared,
                RepositoryId(&repository),
                Prefix(&prefix),
                after.as_deref().map(Identifier),
                count_max,
            )
        })
        .await
    }

    async fn damaged(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
        after: Option<Identifier<'_>>,
        count_max: usize,
    ) -> Result<Vec<String>, MirrorError> {
        let [repository, prefix] = [repository.0, prefix.0].map(str::to_owned);
        let after = after.map(|after| after.0.to_owned());
        self.read(move |shared| {
            state::damaged(
                shared,
                RepositoryId(&repository),
                Prefix(&prefix),
                after.as_deref().map(Identifier),
                count_max,
            )
        })
        .await
    }

    fn scratch_folder(&self) -> PathBuf {
        self.0.folder.clone()
    }

    async fn repositories(&self) -> Result<Vec<String>, MirrorError> {
        self.read(state::repositories).await
    }

    async fn version(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
    ) -> Result<Option<CollectionVersion>, MirrorError> {
        let Some(shared) = self.0.shared()? else { return Ok(None) };
        let before = match shared.versions.find(repository, prefix) {
            Ok(version) => return Ok(version),
            Err(before) => before,
        };
        let [repository, prefix] = [repository.0, prefix.0].map(str::to_owned);
        self.read(move |shared| {
            let version = state::version(shared, RepositoryId(&repository), Prefix(&prefix))?;
            shared.versions.keep(before, (repository, prefix), version);
            Ok(version)
        })
        .await
    }

    async fn collections(&self, repository: RepositoryId<'_>) -> Result<Vec<CollectionSize>, MirrorError> {
        let repository = repository.0.to_owned();
        self.read(move |shared| state::collections(shared, RepositoryId(&repository))).await
    }

    async fn disk_usage(&self) -> Result<DiskUsage, MirrorError> {
        self.read(state::disk_usage).await
    }

    async fn sets_in_use(&self, repository: RepositoryId<'_>) -> Result<Vec<String>, MirrorError> {
        let repository = repository.0.to_owned();
        self.read(move |shared| state::sets_in_use(shared, RepositoryId(&repository))).await
    }

    async fn catalog(&self, repository: RepositoryId<'_>) -> Result<Catalog, MirrorError> {
        let repository = repository.0.to_owned();
        self.read(move |shared| state::catalog(shared, RepositoryId(&repository))).await
    }

    async fn save_catalog(&self, repository: RepositoryId<'_>, catalog: Catalog) -> Result<(), MirrorError> {
        let repository = repository.0.to_owned();
        self.write(move |shared| state::save_catalog(shared, RepositoryId(&repository), &catalog)).await
    }

    async fn document(
        &self,
        repository: RepositoryId<'_>,
        document: Document,
    ) -> Result<Option<Bytes>, MirrorError> {
        let repository = repository.0.to_owned();
        self.read(move |shared| state::document(shared, RepositoryId(&repository), document)).await
    }

    async fn save_document(
        &self,
        repository: RepositoryId<'_>,
        document: Document,
        bytes: Bytes,
    ) -> Result<(), MirrorError> {
        let repository = repository.0.to_owned();
        self.write(move |shared| state::save_document(shared, RepositoryId(&repository), document, &bytes))
            .await
    }

    async fn progress(
        &self,
        repository: RepositoryId<'_>,
        prefix: Prefix<'_>,
    ) -> Result<HarvestProgress, MirrorError> {
        let [repository, prefix] = [repository.0, prefix.0].map(str::to_owned);
        self.read(move |shared| state::progress(shared, RepositoryId(&repository), Prefix(&prefix))).await
    }

    async fn repository_state(&self, repository: RepositoryId<'_>) -> Result<RepositoryState, MirrorError> {
        let repository = repository.0.to_owned();
        self.read(move |shared| state::repository_state(shared, RepositoryId(&repository))).await
    }

    async fn save_repository_state(
        &self,
        repository: RepositoryId<'_>,
        state: RepositoryState,
    ) -> Result<u64, MirrorError> {
        let repository = repository.0.to_owned();
        self.write(move |shared| state::save_repository_state(shared, RepositoryId(&repository), &state))
            .await
    }

    async fn verify(&self, repository: RepositoryId<'_>) -> Result<Verification, MirrorError> {
        let repository = repository.0.to_owned();
        self.read(move |shared| verify(shared, RepositoryId(&repository))).await
    }

    async fn verify_suspected(&self, repository: RepositoryId<'_>) -> Result<Verification, MirrorError> {
        let repository = repository.0.to_owned();
        self.read(move |shared| {
            if shared.is_suspected(RepositoryId(&repository)) {
                verify(shared, RepositoryId(&repository))
            } else {
                Ok(Verification::default())
            }
        })
        .await
    }

    async fn accept_loss(&self, repository: RepositoryId<'_>) -> Result<u64, MirrorError> {
        let repository = repository.0.to_owned();
        self.read(move |shared| accept_loss(shared, RepositoryId(&repository))).await
    }

    async fn compact(&self, repository: RepositoryId<'_>) -> Result<u64, MirrorError> {
        let repository = repository.0.to_owned();
        self.read(move |shared| {
            {
                let _turn = shared.maintenance();
                forget::remove_collections(shared)?;
            }
            compact(shared, RepositoryId(&repository), None, true)
        })
        .await
    }

    async fn forget(&self, repository: RepositoryId<'_>) -> Result<(), MirrorError> {
        let repository = repository.0.to_owned();
        self.read(move |shared| {
            let done = forget::forget(shared, RepositoryId(&repository));
            shared.versions.change(RepositoryId(&repository), None);
            done
        })
        .await
    }

    fn close(&self) {
        self.0.close();
    }
}
