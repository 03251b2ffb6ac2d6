//! An open index with its writer.

use super::compile::Compiler;
use super::document::IndexedRecord;
use super::error::IndexError;
use super::position::IndexPosition;
use super::queue::{QueuedDocument, WriteQueue};
use super::schema::{Fields, Mark, register_tokenizer, schema};
use super::snapshot::Snapshot;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tantivy::columnar::Column;
use tantivy::directory::MmapDirectory;
use tantivy::directory::error::OpenWriteError;
use tantivy::indexer::IndexWriterOptions;
use tantivy::schema::{IndexRecordOption, Schema};
use tantivy::{DocSet, Index, IndexReader, IndexWriter, ReloadPolicy, TERMINATED, TantivyError, Term};

/// Memory of a writer thread, in bytes: less makes many small segments.
const THREAD_BYTES: usize = 64 << 20;
/// Smallest memory of a writer thread that tantivy accepts, in bytes.
const THREAD_BYTES_MIN: usize = 16 << 20;
/// The part of the memory that documents may need which no writer thread has taken yet: one of so many.
const QUEUE_PART: usize = 8;
/// Maximum number of writer threads. Reading the mirror and analysing texts takes as much time.
const THREADS_MAX: usize = 4;

/// The settings of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSettings {
    /// Maximum memory of the writer, in bytes.
    pub memory_max_bytes: usize,
}

pub(super) struct Opened {
    index: Index,
    reader: IndexReader,
    schema: Schema,
    fields: Fields,
    writer: Mutex<Writer>,
    queue: Arc<WriteQueue>,
    snapshot: RwLock<Snapshot>,
}

struct Writer {
    /// One writer for the life of the index. Writers that open for each commit leave many small segments. `None` after it
    /// was closed.
    writer: Option<IndexWriter<QueuedDocument>>,
    /// The number of the last [`Writing`].
    turn: u64,
}

/// The right to write. A later one ends it, so work of a call that was dropped cannot write after the next call began.
#[derive(Clone, Debug)]
pub(super) struct Writing {
    opened: Arc<Opened>,
    turn: u64,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Opened").finish_non_exhaustive()
    }
}

impl Opened {
    /// Opens the index in a folder, or makes an empty one. An index of another format, and one whose position cannot be
    /// read, is removed first.
    pub(super) fn open(folder: &Path, settings: IndexSettings) -> tantivy::Result<Self> {
        match Self::open_existing(folder, settings) {
            Err(error) if is_locked(&error) || is_refused_by_disk(&error) => Err(error),
            Ok(Some(opened)) => Ok(opened),
            Ok(None) => Self::create(folder, settings),
            Err(error) => {
                tracing::warn!(%error, "the search index is damaged and is built again");
                Self::create(folder, settings)
            }
        }
    }

    fn open_existing(folder: &Path, settings: IndexSettings) -> tantivy::Result<Option<Self>> {
        if !folder.join("meta.json").is_file() {
            return Ok(None);
        }
        let index = Index::open_in_dir(folder)?;
        let payload = index.load_metas()?.payload;
        let position = payload.as_deref().and_then(IndexPosition::read);
        match position {
            Some(position) if index.schema() == schema().0 => Self::of(index, settings, position).map(Some),
            _ => {
                tracing::info!("the search index has another format and is built again");
                Ok(None)
            }
        }
    }

    fn create(folder: &Path, settings: IndexSettings) -> tantivy::Result<Self> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder)?;
        let directory = MmapDirectory::open(folder)?;
        let index = Index::create(directory, schema().0, tantivy::IndexSettings::default())?;
        Self::of(index, settings, IndexPosition::start())
    }

    fn of(index: Index, settings: IndexSettings, position: IndexPosition) -> tantivy::Result<Self> {
        register_tokenizer(&index);
        let threads = (settings.memory_max_bytes / THREAD_BYTES).clamp(1, THREADS_MAX);
        let queue_bytes = settings.memory_max_bytes / QUEUE_PART;
        let bytes = ((settings.memory_max_bytes - queue_bytes) / threads).max(THREAD_BYTES_MIN);
        let options = IndexWriterOptions::builder()
            .num_worker_threads(threads)
            .memory_budget_per_thread(bytes)
            .num_merge_threads(1)
            .build();
        let writer = index.writer_with_options(options)?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let (schema, fields) = schema();
        let snapshot = RwLock::new(Snapshot::of(reader.searcher(), &fields, position)?);
        Ok(Self {
            index,
            reader,
            schema,
            fields,
            writer: Mutex::new(Writer { writer: Some(writer), turn: 0 }),
            queue: Arc::new(WriteQueue::new(queue_bytes)),
            snapshot,
        })
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets searches see another position without a commit, because no record has changed.
    pub(super) fn set_position(&self, position: IndexPosition) {
        self.snapshot.write().unwrap_or_else(PoisonError::into_inner).position = Arc::new(position);
    }

    pub(super) fn compiler<'i>(&'i self, snapshot: &'i Snapshot) -> Compiler<'i> {
        Compiler {
            fields: &self.fields,
            schema: &self.schema,
            languages: &snapshot.languages,
            repositories: &snapshot.repositories,
            shows_all: snapshot.shows_all,
        }
    }

    pub(super) const fn fields(&self) -> &Fields {
        &self.fields
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the writer, and drops the changes since the last commit.
    pub(super) fn close(&self) {
        self.writer().writer.take();
    }

    /// Begins to write. `turn` is the number of the call: one that was dropped may get here after a later one began.
    /// `after_interruption` forgets everything since the last commit.
    pub(super) fn begin(
        self: &Arc<Self>,
        turn: u64,
        after_interruption: bool,
    ) -> Result<Writing, IndexError> {
        let mut locked = self.writer();
        if turn < locked.turn {
            return Err(other_call());
        }
        let writer = locked.writer.as_mut().ok_or(IndexError::Closed)?;
        if after_interruption {
            writer.rollback()?;
        }
        locked.turn = turn;
        Ok(Writing { opened: Arc::clone(self), turn })
    }

    /// Whether a record is the one that is shown for its item; `None` if it is not in the last commit.
    pub(super) fn is_shown(
        &self,
        repository: &str,
        prefix: &str,
        identifier: &str,
    ) -> tantivy::Result<Option<bool>> {
        let term: Term = self.fields.record(repository, prefix, identifier);
        for segment in self.snapshot().searcher.segment_readers() {
            let index = segment.inverted_index(self.fields.key)?;
            let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? else { continue };
            while postings.doc() != TERMINATED {
                if !segment.is_deleted(postings.doc()) {
                    let shown: Column<bool> = segment.fast_fields().bool(super::schema::columns::SHOWN)?;
                    return Ok(Some(shown.first(postings.doc()).unwrap_or_default()));
                }
                postings.advance();
            }
        }
        Ok(None)
    }

    /// Whether all files are as they were written. Reads all of them.
    pub(super) fn is_intact(&self) -> bool {
        self.index.validate_checksum().is_ok_and(|damaged| damaged.is_empty())
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.snapshot().searcher.space_usage().map_or(0, |usage| usage.total().get_bytes())
    }
}

impl Writing {
    pub(super) const fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    fn with_writer<T>(
        &self,
        write: impl FnOnce(&mut IndexWriter<QueuedDocument>) -> tantivy::Result<T>,
    ) -> Result<T, IndexError> {
        let mut locked = self.opened.writer();
        if locked.turn != self.turn {
            return Err(other_call());
        }
        Ok(write(locked.writer.as_mut().ok_or(IndexError::Closed)?)?)
    }

    pub(super) fn add(&self, record: &IndexedRecord<'_>) -> Result<(), IndexError> {
        let document = record.document(&self.opened.fields);
        let queued = self.opened.queue.add(document);
        self.with_writer(|writer| writer.add_document(queued).map(drop))
    }

    pub(super) fn remove(&self, repository: &str, prefix: &str, identifier: &str) -> Result<(), IndexError> {
        self.delete(self.opened.fields.record(repository, prefix, identifier))
    }

    pub(super) fn remove_collection(&self, repository: &str, prefix: &str) -> Result<(), IndexError> {
        self.delete(self.opened.fields.mark(Mark::Collection(repository, prefix)))
    }

    fn delete(&self, term: Term) -> Result<(), IndexError> {
        self.with_writer(|writer| {
            writer.delete_term(term);
            Ok(())
        })
    }

    /// Commits everything since the last commit with the position, and lets searches see it.
    pub(super) fn commit(&self, position: &IndexPosition) -> Result<(), IndexError> {
        let opened = &self.opened;
        self.with_writer(|writer| {
            let mut prepared = writer.prepare_commit()?;
            prepared.set_payload(&position.payload());
            prepared.commit()?;
            opened.reader.reload()?;
            let snapshot = Snapshot::of(opened.reader.searcher(), &opened.fields, position.clone())?;
            *opened.snapshot.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
            Ok(())
        })
    }
}

fn other_call() -> IndexError {
    IndexError::Unreadable("another call follows the mirror".to_owned())
}

fn is_locked(error: &TantivyError) -> bool {
    matches!(error, TantivyError::LockFailure(..))
}

/// Whether the disk refuses to be written to. The files may be as they were.
fn is_refused_by_disk(error: &TantivyError) -> bool {
    let error = match error {
        TantivyError::IoError(error) => error,
        TantivyError::OpenWriteError(OpenWriteError::IoError { io_error, .. }) => io_error,
        _ => return false,
    };
    matches!(
        error.kind(),
        ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::FileTooLarge
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::PermissionDenied
    )
}

/// Runs blocking work on a thread for it.
pub(super) async fn block<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, IndexError> + Send + 'static,
) -> Result<T, IndexError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(IndexError::Unreadable(error.to_string())))
}
