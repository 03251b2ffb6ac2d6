//! Follows one folder.

use super::super::mappings_watch::MappingsWatch;
use super::file_access::{ReadError, list, read, sets_of_file};
use super::retries::{RefusalRetries, RetriedFiles};
use super::state_file::StateFile;
use crate::config::Mapping;
use crate::notify::FolderStatus;
use crate::serve::context::ServerContext;
use crate::serve::oai::mirror_views::view_stores;
use oaimend_base::clock;
use oaimend_deposit::{
    CollectionMark, CollectionMarks, Condition, Deposit, DepositError, FileKind, FileNaming, FileRecord,
    FileStamp, FolderListing, FolderState, FolderWork, LocalRepository, Publication, RecordName, WriteTerms,
    identifier_start, read_file,
};
use oaimend_store::{Identifier, MirrorError, Prefix, RecordStatus, RepositoryId};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time between two looks at a folder, and so the time in which a file that is read has not changed.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Time until the next look after the store refused a change.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of files whose records are in memory at a time.
const FILES_AT_ONCE: usize = 1_000;
/// After these bytes of files, their records are stored.
const BYTES_AT_ONCE: usize = 8 << 20;
/// Maximum number of records in a commit.
const RECORDS_AT_ONCE: usize = 1_000;
/// The format that other formats of an item may need.
const COMMON: &str = "oai_dc";
/// The terms of a folder, which is the only writer of its repository.
const TERMS: WriteTerms<'static> = WriteTerms { condition: &Condition::None, may_write: None };

/// Follows one folder as long as its mapping is the current one.
pub(super) struct Follower {
    context: Arc<ServerContext>,
    mapping: Arc<Mapping>,
    folder: PathBuf,
    state_file: StateFile,
    /// What was published; `None` before the first look.
    state: Option<FolderState>,
    /// Whether a change by the folder has failed or was killed, so that the store may have records of the folder that the
    /// state does not know.
    is_interrupted: bool,
    /// The number of the changes of the store after which nobody else has changed the repository.
    changes: Option<u64>,
    /// `None` while a look uses it, and after one that has failed.
    watch: Option<MappingsWatch>,
    before: Option<FolderListing>,
    /// Whether the last look has left nothing for the next one.
    is_settled: bool,
    reported: BTreeMap<String, String>,
    retries: RefusalRetries,
    retried: RetriedFiles,
    status: FolderStatus,
}

/// A file that was read.
struct FileRead {
    path: String,
    stamp: FileStamp,
    records: Result<Vec<FileRecord>, ReadError>,
}

/// What the records of files need.
#[derive(Clone)]
struct Reading {
    folder: PathBuf,
    identifier_start: String,
    mapping: Arc<Mapping>,
}

impl Follower {
    /// Follows this folder. What it has published is noted in the data folder, the second path.
    pub(super) fn new(
        context: Arc<ServerContext>,
        mapping: Arc<Mapping>,
        (folder, data): (PathBuf, PathBuf),
    ) -> Self {
        Self {
            state_file: StateFile::new(&data, mapping.id()),
            watch: None,
            context,
            mapping,
            folder,
            state: None,
            is_interrupted: false,
            changes: None,
            before: None,
            is_settled: false,
            reported: BTreeMap::new(),
            retries: RefusalRetries::default(),
            retried: RetriedFiles::default(),
            status: FolderStatus::default(),
        }
    }

    /// Looks at the folder at intervals.
    pub(super) async fn run(mut self) {
        loop {
            let current = self.context.served.repositories.find(self.mapping.id());
            if current.is_none_or(|current| !Arc::ptr_eq(&current, &self.mapping)) {
                return;
            }
            let mut wait = LOOK_INTERVAL;
            if !self.context.lifecycle.is_ending()
                && let Err(error) = self.look().await
            {
                let folder = self.folder.display();
                tracing::warn!(
                    repo = self.mapping.id(),
                    %folder,
                    error,
                    "the changes of the folder are not stored; nothing is lost, and it is tried again"
                );
                self.is_settled = false;
                wait = RETRY_INTERVAL;
            }
            self.context.served.deposit.folders.set(self.mapping.id(), self.status.clone());
            tokio::time::sleep(wait).await;
        }
    }

    /// Publishes what has changed since the look before.
    async fn look(&mut self) -> Result<(), String> {
        let mut state = match self.state.take() {
            Some(state) => state,
            None => self.saved_state().await?,
        };
        let done = self.look_with(&mut state).await;
        self.state = Some(state);
        done
    }

    async fn look_with(&mut self, state: &mut FolderState) -> Result<(), String> {
        self.note_others(state).await?;
        self.retry_refused(state).await?;
        let (watch, is_settled, folder) = (self.watch.take(), self.is_settled, self.folder.clone());
        let looked = blocking(move || {
            let mut watch = watch.unwrap_or_else(|| MappingsWatch::with_subfolders(&folder));
            let is_due = watch.is_due() || !is_settled;
            let listed = is_due.then(|| list(&folder));
            (watch, listed)
        });
        let (watch, listed) = looked.await?;
        self.watch = Some(watch);
        let mut listing = match listed {
            None => return Ok(()),
            Some(Ok(listing)) => listing,
            Some(Err(error)) => {
                self.note_unreadable(&error.to_string());
                return Ok(());
            }
        };
        listing.keep_emptied_mounts(state);
        match listing.work(state, self.before.as_ref()) {
            Ok(work) => self.publish(state, listing, &work).await,
            Err(problem) => {
                self.note_unreadable(&problem.to_string());
                Ok(())
            }
        }
    }

    async fn saved_state(&mut self) -> Result<FolderState, String> {
        let file = self.state_file.clone();
        let (mut state, is_interrupted) = blocking(move || file.read()).await?;
        self.is_interrupted = is_interrupted;
        state.is_compared &= !is_interrupted;
        // The mapping may be another one, so that it accepts what it refused before.
        state.forget_versions(|file| file.problem.is_some());
        let start = self.identifier_start();
        if state.identifier_start != start {
            state.forget_versions(|_| true);
            state.identifier_start = start;
        }
        Ok(state)
    }

    /// The start of the identifiers that come from the names of files.
    fn identifier_start(&self) -> String {
        identifier_start(&format!("{}/{}", self.context.served.public_url, self.mapping.id()))
    }

    /// Notes whether others have changed the repository: writers before it had a folder, `oaimend mirror forget`, or a backup
    /// that was restored. This is on disk before the folder changes anything.
    async fn note_others(&mut self, state: &mut FolderState) -> Result<(), String> {
        let failed = |error: MirrorError| error.to_string();
        let changes = self.context.served.store.mirror.changes().await.map_err(failed)?;
        if self.is_interrupted || self.changes == Some(changes) {
            return Ok(());
        }
        let marks = self.marks().await.map_err(failed)?;
        let is_first = state.place.is_none() && self.changes.is_none();
        if state.note_marks(marks) || is_first {
            let repo = self.mapping.id();
            tracing::info!(
                repo,
                "the folder did not write all records of its repository; its files are compared with them"
            );
            self.is_settled = false;
            self.save(state, false).await?;
        }
        self.changes = Some(changes);
        Ok(())
    }

    /// Lets this look read the files again whose records the repository has refused, if it may accept them now.
    async fn retry_refused(&mut self, state: &mut FolderState) -> Result<(), String> {
        let has_refused = state.refused().next().is_some();
        let changes = self.context.served.store.mirror.changes().await.map_err(|error| error.to_string())?;
        if self.retries.are_due(has_refused, changes, clock::uptime()) {
            self.retried.begin(state.refused());
            state.forget_versions(|file| file.is_refused);
            self.is_settled = false;
        }
        Ok(())
    }

    /// The collections of the repository that have records.
    async fn marks(&self) -> Result<CollectionMarks, MirrorError> {
        let (store, id) = (&self.context.served.store.mirror, RepositoryId(self.mapping.id()));
        let mut marks = CollectionMarks::new();
        for size in store.collections(id).await? {
            let version = store.version(id, Prefix(&size.prefix)).await?;
            if let Some(version) = version.filter(|version| version.next_sequence > 0) {
                let (number, next_sequence) = (version.collection, version.next_sequence);
                marks.insert(size.prefix, CollectionMark { number, next_sequence });
            }
        }
        Ok(marks)
    }

    /// Saves what was published. `is_end`: the state knows all records that the folder has stored.
    async fn save(&self, state: &FolderState, is_end: bool) -> Result<(), String> {
        let (file, state) = (self.state_file.clone(), state.clone());
        let saved = blocking(move || {
            file.save(&state)?;
            if is_end { file.end() } else { Ok(()) }
        });
        saved.await?.map_err(|error| format!("the data folder: {error}"))
    }

    /// Keeps everything as it is, because the folder may be a wrong one.
    fn note_unreadable(&mut self, problem: &str) {
        let text = format!("{}: {problem}", self.folder.display());
        if self.status.unreadable.as_ref() != Some(&text) {
            let repo = self.mapping.id();
            tracing::warn!(
                repo,
                problem = text,
                "the folder cannot be followed; its records stay as they are"
            );
        }
        self.status.unreadable = Some(text);
        self.before = None;
        self.is_settled = false;
    }

    async fn publish(
        &mut self,
        state: &mut FolderState,
        listing: FolderListing,
        work: &FolderWork,
    ) -> Result<(), String> {
        // The records of a repository may be older than its folder, and the state of the folder may be lost.
        if listing.files.is_empty() && state.files.is_empty() && self.has_records().await? {
            self.note_unreadable("it has no files, so nothing is deleted; check whether its disk is mounted");
            return Ok(());
        }
        if self.status.unreadable.take().is_some() {
            tracing::info!(repo = self.mapping.id(), "the folder is followed again");
        }
        self.note_left_out(&listing);
        let has_work = !work.read.is_empty() || !work.gone.is_empty();
        let is_whole = listing.unread.is_empty() && work.is_settled;
        let is_moved = state.place != Some(listing.place) || state.mounts != listing.mounts;
        self.is_settled = work.is_settled;
        let files = listing.files.clone();
        let (place, mounts) = (listing.place, listing.mounts.clone());
        self.before = Some(listing);
        if !has_work && !is_moved && (state.is_compared || !is_whole) {
            self.count_files(state);
            return Ok(());
        }
        let file = self.state_file.clone();
        blocking(move || file.begin()).await?.map_err(|error| format!("the data folder: {error}"))?;
        self.is_interrupted = true;
        let stores = view_stores(&self.context.served).await.map_err(|failure| failure.details)?.clone();
        let served = &self.context.served;
        let Some(repository) = served.deposit.repository(served, &stores, &self.mapping) else {
            return Ok(());
        };
        let mut publication = Publication::begin(state, work);
        for chunk in chunks(&work.read, &files) {
            self.store_files(&repository, &mut publication, chunk).await?;
        }
        let ended = publication.end();
        let mut next = FolderState { place: Some(place), mounts, ..ended.state };
        self.delete(&repository, &next, ended.deleted).await?;
        self.is_settled &= !ended.reads_again;
        if !next.is_compared && is_whole && self.is_settled && next.is_known() {
            let unpublished = self.unpublished(&next).await.map_err(|error| error.to_string())?;
            self.delete(&repository, &next, unpublished).await?;
            next.is_compared = true;
        }
        next.stored = self.marks().await.map_err(|error| error.to_string())?;
        *state = next;
        self.count_files(state);
        self.save(state, true).await?;
        self.is_interrupted = false;
        self.retried.end();
        Ok(())
    }

    /// Whether the repository has live records.
    async fn has_records(&self) -> Result<bool, String> {
        let store = &self.context.served.store.mirror;
        let sizes = store.collections(RepositoryId(self.mapping.id())).await;
        Ok(sizes.map_err(|error| error.to_string())?.iter().any(|size| size.records > 0))
    }

    /// Reads files, and stores their records.
    async fn store_files(
        &mut self,
        repository: &LocalRepository,
        publication: &mut Publication,
        chunk: Vec<(String, FileStamp)>,
    ) -> Result<(), String> {
        let reading = Reading {
            folder: self.folder.clone(),
            identifier_start: self.identifier_start(),
            mapping: Arc::clone(&self.mapping),
        };
        let mut rest = chunk;
        while !rest.is_empty() {
            let reading = reading.clone();
            let (read, left) = blocking(move || read_some(&reading, rest)).await?;
            rest = left;
            let mut records = Vec::new();
            for FileRead { path, stamp, records: of_file } in read {
                match of_file {
                    Err(ReadError::Changed) => {
                        publication.keep(&path, None, None);
                        self.is_settled = false;
                    }
                    Err(ReadError::Refused(problem)) => {
                        self.refuse(&path, &problem);
                        publication.keep(&path, Some(stamp), Some(problem));
                    }
                    Ok(of_file) => {
                        let names = of_file.iter().map(name_of).collect();
                        let others = publication.accept(&path, stamp, names);
                        if let Some((name, owner)) = others.first() {
                            let problem = format!("the record {} is in {owner} too", name.identifier);
                            self.refuse(&path, &problem);
                            publication.note_problem(&path, problem);
                        }
                        let is_own = |record: &FileRecord| {
                            let name = name_of(record);
                            others.iter().all(|(other, _)| *other != name)
                        };
                        records
                            .extend(of_file.into_iter().filter(is_own).map(|record| (path.clone(), record)));
                    }
                }
            }
            for (path, problem) in put(repository, records).await.map_err(|error| error.to_string())? {
                self.refuse(&path, &problem);
                publication.note_refusal(&path, problem);
            }
        }
        Ok(())
    }

    /// Deletes records, and items of which no file has a record any more.
    async fn delete(
        &self,
        repository: &LocalRepository,
        state: &FolderState,
        names: Vec<RecordName>,
    ) -> Result<(), String> {
        let failed = |error: MirrorError| error.to_string();
        let published = state.names();
        let mut tombstones = Vec::new();
        for name in &names {
            let is_live = match repository.record(&name.prefix, &name.identifier).await {
                Ok(stored) => stored.is_some_and(|stored| stored.status == RecordStatus::Live),
                Err(MirrorError::Damaged) => true,
                Err(error) => return Err(failed(error)),
            };
            if is_live {
                let deposit = Deposit::deleted(&name.identifier);
                tombstones.push((String::new(), FileRecord { prefix: name.prefix.clone(), deposit }));
            }
        }
        // Other formats may need oai_dc, which is deleted after them.
        let (common, others): (Vec<_>, Vec<_>) =
            tombstones.into_iter().partition(|(_, record)| record.prefix == COMMON);
        for tombstones in [others, common] {
            for (_, problem) in put(repository, tombstones).await.map_err(failed)? {
                tracing::warn!(
                    repo = self.mapping.id(),
                    problem,
                    "a record of a removed file is not deleted"
                );
            }
        }
        for name in names.iter().filter(|name| !published.has_item(&name.identifier)) {
            match repository.delete(None, &name.identifier, TERMS).await {
                Ok(_) | Err(DepositError::Unknown(_)) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// The stored records of the folder that no file has. Those of others are counted in the log.
    async fn unpublished(&self, state: &FolderState) -> Result<Vec<RecordName>, MirrorError> {
        let store = &self.context.served.store.mirror;
        let (id, published) = (RepositoryId(self.mapping.id()), state.names());
        let (mut unpublished, mut of_others) = (Vec::new(), 0);
        for (prefix, mark) in self.marks().await? {
            let mut after: Option<String> = None;
            loop {
                let last = after.as_deref().map(Identifier);
                let page = store.identifiers(id, Prefix(&prefix), last, RECORDS_AT_ONCE).await?;
                let Some(end) = page.last() else { break };
                after = Some(end.identifier.clone());
                let live = page.into_iter().filter(|entry| entry.status == RecordStatus::Live);
                let mut names =
                    live.map(|entry| RecordName { prefix: prefix.clone(), identifier: entry.identifier });
                let left: Vec<RecordName> = names.by_ref().filter(|name| !published.has(name)).collect();
                let identifiers: Vec<String> = left.iter().map(|name| name.identifier.clone()).collect();
                for (name, header) in
                    left.into_iter().zip(store.headers(id, Prefix(&prefix), &identifiers).await?)
                {
                    let is_of_folder = header
                        .is_some_and(|header| !state.is_of_others(&prefix, mark.number, header.sequence));
                    if is_of_folder {
                        unpublished.push(name);
                    } else {
                        of_others += 1;
                    }
                }
            }
        }
        if of_others > 0 {
            tracing::warn!(
                repo = self.mapping.id(),
                records = of_others,
                "the repository has records that are in no file and were not written by the folder; they stay. To delete one, put \
                 a list with it and status=\"deleted\" into the folder"
            );
        }
        Ok(unpublished)
    }

    /// Reports the paths that are left out, each once.
    fn note_left_out(&mut self, listing: &FolderListing) {
        for (path, reason) in &listing.left_out {
            if self.reported.get(path) != Some(reason) {
                self.refuse(path, reason);
            }
        }
        self.reported.clone_from(&listing.left_out);
    }

    fn refuse(&mut self, path: &str, problem: &str) {
        let path = if path.is_empty() { "." } else { path };
        if self.retried.is_news(path, problem) {
            tracing::warn!(repo = self.mapping.id(), path, problem, "a file of the folder is not published");
        }
        self.status.last_refused = format!("{path}: {problem}");
    }

    fn count_files(&mut self, state: &FolderState) {
        self.status.published_files = (state.files.len() - state.problems()) as u64;
        self.status.refused_files = (state.problems() + self.reported.len()) as u64;
        self.status.waiting_files = self.before.as_ref().map_or(0, |before| before.waiting(state)) as u64;
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| error.to_string())
}

fn name_of(record: &FileRecord) -> RecordName {
    RecordName { prefix: record.prefix.clone(), identifier: record.deposit.identifier.clone() }
}

/// The files to read, in parts that are in memory one after the other.
fn chunks<'a>(
    read: &'a [String],
    files: &'a BTreeMap<String, FileStamp>,
) -> impl Iterator<Item = Vec<(String, FileStamp)>> + 'a {
    read.chunks(FILES_AT_ONCE)
        .map(|paths| paths.iter().filter_map(|path| Some((path.clone(), *files.get(path)?))).collect())
}

/// Reads files until their records are many. Returns the files that are left too.
fn read_some(
    reading: &Reading,
    files: Vec<(String, FileStamp)>,
) -> (Vec<FileRead>, Vec<(String, FileStamp)>) {
    let (mut read_files, mut bytes) = (Vec::new(), 0);
    let mut files = files.into_iter();
    for (path, stamp) in files.by_ref() {
        let content = read(&reading.folder, &path, stamp);
        bytes += content.as_ref().map_or(0, Vec::len);
        let records = content.and_then(|content| records_of(reading, &path, &content));
        read_files.push(FileRead { path, stamp, records });
        if bytes >= BYTES_AT_ONCE {
            break;
        }
    }
    (read_files, files.collect())
}

fn records_of(reading: &Reading, path: &str, content: &[u8]) -> Result<Vec<FileRecord>, ReadError> {
    let Some(kind) = FileKind::of(Path::new(path)) else { return Ok(Vec::new()) };
    let set_specs = sets_of_file(path);
    let name = path.rsplit_once('.').map_or(path, |(name, _)| name);
    let naming = FileNaming {
        identifier_start: &reading.identifier_start,
        name,
        prefix: None,
        formats: reading.mapping.local.as_ref().map(|choices| &choices.formats),
        set_specs: &set_specs,
    };
    let records = read_file(kind, content, &naming).map_err(|error| ReadError::Refused(error.to_string()))?;
    let bytes_max = reading.mapping.source.limits.repair.record_bytes_max;
    match records.iter().find(|record| record.deposit.payload_bytes() > bytes_max) {
        Some(record) => {
            let identifier = &record.deposit.identifier;
            let text = format!("the record {identifier} has more than {bytes_max} bytes (record_bytes_max)");
            Err(ReadError::Refused(text))
        }
        None => Ok(records),
    }
}

/// Stores records of files. Returns the files with a record that the repository refuses, and why.
async fn put(
    repository: &LocalRepository,
    records: Vec<(String, FileRecord)>,
) -> Result<Vec<(String, String)>, MirrorError> {
    let mut refused = Vec::new();
    let mut by_prefix: BTreeMap<(bool, String), Vec<(String, Deposit)>> = BTreeMap::new();
    for (path, FileRecord { prefix, deposit }) in records {
        // Other formats may need oai_dc, which is stored before them.
        by_prefix.entry((prefix != COMMON, prefix)).or_default().push((path, deposit));
    }
    for ((_, prefix), records) in by_prefix {
        for batch in records.chunks(RECORDS_AT_ONCE) {
            let deposits = batch.iter().map(|(_, deposit)| deposit.clone()).collect();
            match repository.put(&prefix, deposits, TERMS).await {
                Ok(_) => continue,
                Err(DepositError::Store(error)) => return Err(error),
                Err(error @ DepositError::Unchecked(_)) => {
                    return Err(MirrorError::Stopped(error.to_string()));
                }
                Err(_) => {}
            }
            // One record that is refused does not stop the others.
            for (path, deposit) in batch {
                match repository.put(&prefix, vec![deposit.clone()], TERMS).await {
                    Ok(_) => {}
                    Err(DepositError::Store(error)) => return Err(error),
                    Err(error @ DepositError::Unchecked(_)) => {
                        return Err(MirrorError::Stopped(error.to_string()));
                    }
                    Err(error) => refused.push((path.clone(), error.to_string())),
                }
            }
        }
    }
    Ok(refused)
}
