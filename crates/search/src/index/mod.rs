//! The index of tantivy. Every function but those that follow the mirror blocks on the disk or the processor.

mod compile;
mod document;
mod error;
mod excluded;
mod facets;
mod follow;
mod listed;
mod opened;
mod position;
mod queue;
mod ranked;
mod record_values;
mod schema;
mod snapshot;
mod values;

use crate::query::{FieldName, Query, QueryError};
use crate::results::{
    FoundValues, Hit, HitCount, IndexedFormats, ListHits, ListedHits, ListedRepository, RankedHits, Ranking,
    RecordFilter, SearchHits, ValueCount, Values,
};
pub use error::IndexError;
use follow::{Follower, Following, is_indexed};
use listed::{ListCollector, ListedHit, lowest_datestamps, repository_number};
use oaimend_oai::UnixSecs;
use oaimend_store::{MirrorStore, Prefix, RepositoryId};
pub use opened::IndexSettings;
use opened::{Opened, block};
use position::IndexPosition;
use ranked::RankedCollector;
pub use record_values::ValueCounts;
use snapshot::Snapshot;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tantivy::schema::Value;
use tantivy::{DocAddress, TantivyDocument};

/// Maximum number of hits of one request.
pub const HITS_MAX: usize = 1_000;
/// The last hit that a search ranks. A list has no such limit.
pub const RANK_MAX: usize = 10_000;
/// Largest index whose checksums are verified when it opens, in bytes. A larger one is verified when a read fails.
const VERIFIED_BYTES_MAX: u64 = 1 << 30;

/// The state of the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStatus {
    /// The number of indexed records.
    pub records: u64,
    /// The number of commits to the mirror that are not indexed yet.
    pub behind: u64,
    /// The disk space, in bytes.
    pub disk_bytes: u64,
    /// Whether it is being built for the first time or again.
    pub is_building: bool,
}

/// The index of all mirrored records. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SearchIndex {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    settings: IndexSettings,
    /// `None` while it is opened again, and after it was closed.
    opened: RwLock<Option<Arc<Opened>>>,
    following: tokio::sync::Mutex<Following>,
    formats: RwLock<Arc<IndexedFormats>>,
    /// The number of calls that have followed the mirror.
    turns: AtomicU64,
    /// Whether the writer has failed, so that the index is opened again before the next commit is followed.
    has_failed_writer: AtomicBool,
    /// Whether the checksums are verified before the next commit is followed.
    is_suspect: AtomicBool,
    /// Whether searches wait until the checksums are verified: the index has just been opened.
    is_unverified: AtomicBool,
    is_closed: AtomicBool,
}

impl SearchIndex {
    /// Opens the index in a folder. One of another format, or a damaged one, is built again. The files of a small index
    /// are verified by the first call of [`SearchIndex::follow`], and searches fail with [`IndexError::Building`] until then.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, for example because another process has opened it.
    pub fn open(folder: &Path, settings: IndexSettings) -> Result<Self, IndexError> {
        let opened = Opened::open(folder, settings)?;
        let is_suspect = opened.disk_bytes() <= VERIFIED_BYTES_MAX;
        let following = Following::from(IndexPosition::clone(&opened.snapshot().position));
        let shared = Shared {
            folder: folder.to_owned(),
            settings,
            opened: RwLock::new(Some(Arc::new(opened))),
            following: tokio::sync::Mutex::new(following),
            formats: RwLock::default(),
            turns: AtomicU64::new(0),
            has_failed_writer: AtomicBool::new(false),
            is_suspect: AtomicBool::new(is_suspect),
            is_unverified: AtomicBool::new(is_suspect),
            is_closed: AtomicBool::new(false),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Indexes these formats only, from the next call of [`SearchIndex::follow`] on.
    pub fn set_formats(&self, formats: IndexedFormats) {
        *self.shared.formats.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(formats);
    }

    fn formats(&self) -> Arc<IndexedFormats> {
        Arc::clone(&self.shared.formats.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Indexes what the mirror has committed since the last call, and commits it with the position in the mirror. Large
    /// amounts are committed in parts.
    ///
    /// `settled_secs` is a responseDate that was issued before the call: no later commit has a stamp up to it. It becomes
    /// [`SearchIndex::complete_until_secs`], which stays as it is without one.
    ///
    /// If the returned future is dropped, the next call continues after the last commit.
    ///
    /// # Errors
    ///
    /// The mirror cannot be read, or the index cannot be written. The next call continues after the last commit.
    pub async fn follow(
        &self,
        mirror: &dyn MirrorStore,
        settled_secs: Option<UnixSecs>,
    ) -> Result<(), IndexError> {
        let mut following = self.shared.following.lock().await;
        let opened = self.verified(&mut following).await?;
        let after_interruption = std::mem::replace(&mut following.is_interrupted, true);
        let (begun, turn) = (Arc::clone(&opened), self.shared.turns.fetch_add(1, Ordering::AcqRel) + 1);
        let begun = block(move || begun.begin(turn, after_interruption)).await;
        let writing = begun.inspect_err(|_| {
            // The last commit still answers searches.
            opened.close();
            self.shared.has_failed_writer.store(true, Ordering::Release);
        })?;
        if after_interruption {
            *following = Following::from(IndexPosition::clone(&writing.opened().snapshot().position));
            following.is_interrupted = true;
        }
        let formats = self.formats();
        let mut follower = Follower { writing, following: &mut following, mirror, formats: &formats };
        follower.follow(settled_secs).await?;
        following.is_interrupted = false;
        Ok(())
    }

    /// The index with intact files. A damaged one is removed.
    async fn verified(&self, following: &mut Following) -> Result<Arc<Opened>, IndexError> {
        if self.shared.is_closed.load(Ordering::Acquire) {
            return Err(IndexError::Closed);
        }
        let suspect = self.shared.is_suspect.load(Ordering::Acquire);
        let has_failed_writer = self.shared.has_failed_writer.load(Ordering::Acquire);
        if let Some(opened) = self.opened()
            && (suspect || !has_failed_writer)
        {
            let intact = Arc::clone(&opened);
            if !suspect {
                return Ok(opened);
            }
            // A call that is dropped before it knows leaves the index as suspect as it was.
            let is_intact = block(move || Ok(intact.is_intact())).await?;
            if is_intact {
                self.trust();
                return Ok(opened);
            }
            tracing::warn!("the search index is damaged and is built again");
            self.set_opened(None);
            opened.close();
        }
        if suspect {
            // Until the damaged files are gone, none are opened.
            let folder = self.shared.folder.clone();
            block(move || match std::fs::remove_dir_all(folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(tantivy::TantivyError::from(error).into())
                }
                _ => Ok(()),
            })
            .await?;
            self.trust();
        }
        let (folder, settings) = (self.shared.folder.clone(), self.shared.settings);
        let opened = Arc::new(block(move || Ok(Opened::open(&folder, settings)?)).await?);
        *following = Following::from(IndexPosition::clone(&opened.snapshot().position));
        self.set_opened(Some(Arc::clone(&opened)));
        self.shared.has_failed_writer.store(false, Ordering::Release);
        Ok(opened)
    }

    /// Notes that the files are intact, or new.
    fn trust(&self) {
        self.shared.is_suspect.store(false, Ordering::Release);
        self.shared.is_unverified.store(false, Ordering::Release);
    }

    fn opened(&self) -> Option<Arc<Opened>> {
        self.shared.opened.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_opened(&self, opened: Option<Arc<Opened>>) {
        *self.shared.opened.write().unwrap_or_else(PoisonError::into_inner) = opened;
    }

    /// Ends the writer, so that the folder can be opened again, also by another process. Later calls of
    /// [`SearchIndex::follow`] fail with [`IndexError::Closed`]; searches still work. Blocks on the disk.
    pub fn close(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
        if let Some(opened) = self.opened() {
            opened.close();
        }
    }

    /// The state.
    ///
    /// # Errors
    ///
    /// The mirror cannot be read.
    pub async fn status(&self, mirror: &dyn MirrorStore) -> Result<IndexStatus, IndexError> {
        let Some(opened) = self.opened() else {
            return Ok(IndexStatus { is_building: true, ..Default::default() });
        };
        let snapshot = opened.snapshot();
        let (mut behind, formats) = (0, self.formats());
        for repository in mirror.repositories().await? {
            for size in mirror.collections(RepositoryId(&repository)).await? {
                if !is_indexed(&formats, &repository, &size.prefix) {
                    continue;
                }
                let version = mirror.version(RepositoryId(&repository), Prefix(&size.prefix)).await?;
                let Some(version) = version else { continue };
                let known = snapshot.position.of(&repository, &size.prefix);
                let indexed = known.filter(|known| known.number == version.collection);
                behind +=
                    version.next_sequence.saturating_sub(indexed.map_or(0, |known| known.next_sequence));
            }
        }
        let records = snapshot.searcher.num_docs();
        let is_building = !snapshot.position.is_built;
        Ok(IndexStatus { records, behind, disk_bytes: opened.disk_bytes(), is_building })
    }

    /// The names of the fields that queries can use, in order: the elements of Dublin Core, and those of indexed records
    /// in other formats.
    pub fn fields(&self) -> Vec<FieldName> {
        let names = self.opened().map(|opened| opened.snapshot().names);
        names.iter().flat_map(|names| names.iter()).map(|name| FieldName(name.clone())).collect()
    }

    /// Answers a request from the last commit.
    fn answer<T>(
        &self,
        answer: impl FnOnce(&Opened, &Snapshot) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let opened = self.opened().ok_or(IndexError::Building)?;
        let snapshot = opened.snapshot();
        if !snapshot.position.is_built || self.shared.is_unverified.load(Ordering::Acquire) {
            return Err(IndexError::Building);
        }
        // tantivy panics where files are damaged.
        let answered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| answer(&opened, &snapshot)));
        let answered =
            answered.unwrap_or_else(|_| Err(IndexError::Unreadable("a read has failed".to_owned())));
        if matches!(answered, Err(IndexError::Unreadable(_))) {
            self.shared.is_suspect.store(true, Ordering::Release);
        }
        answered
    }

    /// The best or the newest hits of a query, up to the 10,000th.
    ///
    /// # Errors
    ///
    /// The query is refused, or the index cannot answer.
    pub fn search(&self, request: &SearchHits) -> Result<RankedHits, IndexError> {
        self.answer(|opened, snapshot| {
            check(&request.query, snapshot)?;
            let query = opened.compiler(snapshot).filtered(&request.query, &request.filter)?;
            let collector = RankedCollector {
                ranking: request.ranking,
                hits_max: request.offset.saturating_add(request.count_max.min(HITS_MAX)).min(RANK_MAX),
                with_facets: request.with_facets,
                repositories: &snapshot.repositories,
            };
            let collected = snapshot.searcher.search(&query, &collector)?;
            let mut hits = Vec::new();
            for hit in collected.best.iter().skip(request.offset) {
                let score = if request.ranking == Ranking::Relevance { hit.score } else { 0.0 };
                let place = (hit.place.stamp_secs, hit.place.sequence);
                hits.push(Hit { score, ..read_hit(opened, snapshot, hit.address, place)? });
            }
            let facets =
                if request.with_facets { Some(facets::count(snapshot, &collected.sample)?) } else { None };
            Ok(RankedHits { hits, total: HitCount { records: collected.total, is_estimate: false }, facets })
        })
    }

    /// Checks a query for [`SearchIndex::list`].
    ///
    /// # Errors
    ///
    /// As for [`SearchIndex::search`].
    pub fn check(&self, query: &Query) -> Result<(), IndexError> {
        self.answer(|_, snapshot| Ok(check(query, snapshot)?))
    }

    /// The index contains all commits with stamps up to this one, in seconds since 1970. A list must not end later.
    /// `None`: there is no such stamp yet.
    ///
    /// # Errors
    ///
    /// The index cannot answer.
    pub fn complete_until_secs(&self) -> Result<Option<UnixSecs>, IndexError> {
        self.answer(|_, snapshot| Ok(snapshot.position.complete_until_secs()))
    }

    /// The hits of a query in the order of their datestamps.
    ///
    /// # Errors
    ///
    /// As for [`SearchIndex::search`].
    pub fn list(&self, request: &ListHits) -> Result<ListedHits, IndexError> {
        self.answer(|opened, snapshot| {
            check(&request.query, snapshot)?;
            let listed = request.repositories.as_deref();
            let names = |listed: &[ListedRepository]| listed.iter().map(|one| one.name.clone()).collect();
            let filter =
                RecordFilter { repositories: listed.map(names), prefix: Some(request.prefix.clone()) };
            let query = opened.compiler(snapshot).filtered(&request.query, &filter)?;
            let after = request.after.as_ref().map(|(datestamp, repository, sequence)| {
                (datestamp.0, repository_number(&snapshot.repositories, repository), *sequence)
            });
            let collector = ListCollector {
                from_secs: request.from_secs.map_or(i64::MIN, |secs| secs.0),
                until_secs: request.until_secs.map_or(i64::MAX, |secs| secs.0),
                after,
                lowest_secs: listed.and_then(|listed| lowest_datestamps(&snapshot.repositories, listed)),
                hits_max: request.count_max.min(HITS_MAX),
                repositories: &snapshot.repositories,
            };
            let collected = snapshot.searcher.search(&query, &collector)?;
            let mut hits = Vec::new();
            for ListedHit { place: (_, _, sequence), stamp_secs, address } in collected.hits {
                hits.push(read_hit(opened, snapshot, address, (stamp_secs, sequence))?);
            }
            let complete_until_secs = snapshot.position.complete_until_secs();
            Ok(ListedHits { hits, total: collected.total, complete_until_secs })
        })
    }

    /// The values of a field in order. Texts of more than 200 bytes are no values.
    ///
    /// # Errors
    ///
    /// As for [`SearchIndex::search`]; [`QueryError::TooLarge`] if too many values of other records are between those of
    /// the filter.
    pub fn values(&self, request: &Values) -> Result<Vec<ValueCount>, IndexError> {
        self.answer(|opened, snapshot| {
            check_field(&request.field, snapshot)?;
            values::list(snapshot, opened.compiler(snapshot), request)
        })
    }

    /// As [`SearchIndex::values`], but a filter with few records gets these records if the index has many terms. So the
    /// cost depends on the number of these records, and no request for their values is refused.
    ///
    /// # Errors
    ///
    /// As for [`SearchIndex::values`].
    pub fn values_or_records(&self, request: &Values) -> Result<FoundValues, IndexError> {
        self.answer(|opened, snapshot| {
            check_field(&request.field, snapshot)?;
            let compiler = opened.compiler(snapshot);
            let Some(few) = values::few_records(snapshot, compiler, &request.filter)? else {
                return Ok(FoundValues::Values(values::list(snapshot, compiler, request)?));
            };
            if let Some(values) = values::list_instead_of(few.len(), snapshot, compiler, request)? {
                return Ok(FoundValues::Values(values));
            }
            let hits = few.into_iter().map(|(address, place)| read_hit(opened, snapshot, address, place));
            Ok(FoundValues::Records(hits.collect::<Result<_, _>>()?))
        })
    }

    /// All years of publication with the numbers of their records, the latest first.
    ///
    /// # Errors
    ///
    /// The index cannot answer.
    pub fn years(&self, filter: &RecordFilter) -> Result<Vec<(u64, u64)>, IndexError> {
        self.answer(|opened, snapshot| values::years(snapshot, opened.compiler(snapshot), filter))
    }

    /// The most frequent values of a field, the most frequent one first: suggestions while somebody types. If very many
    /// begin so, only the first of them in order are compared.
    ///
    /// # Errors
    ///
    /// As for [`SearchIndex::search`].
    pub fn suggest(&self, request: &Values) -> Result<Vec<ValueCount>, IndexError> {
        self.answer(|opened, snapshot| {
            check_field(&request.field, snapshot)?;
            let mut found = values::suggest(snapshot, opened.compiler(snapshot), request)?;
            found.sort_by_key(|value| Reverse(value.records));
            found.truncate(request.count_max);
            Ok(found)
        })
    }
}

fn check(query: &Query, snapshot: &Snapshot) -> Result<(), QueryError> {
    query.check()?;
    query.fields().into_iter().try_for_each(|field| check_field(field, snapshot))
}

fn check_field(field: &FieldName, snapshot: &Snapshot) -> Result<(), QueryError> {
    if snapshot.names.contains(&field.key()) {
        Ok(())
    } else {
        Err(QueryError::UnknownField(field.0.clone()))
    }
}

/// Reads the key of a hit.
fn read_hit(
    opened: &Opened,
    snapshot: &Snapshot,
    address: DocAddress,
    (stamp, sequence): (i64, u64),
) -> Result<Hit, IndexError> {
    let document: TantivyDocument = snapshot.searcher.doc(address)?;
    let key = document.get_first(opened.fields().key).and_then(|value| value.as_str());
    let mut parts = key.unwrap_or_default().split(schema::END).map(str::to_owned);
    let (Some(identifier), Some(prefix), Some(repository)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(IndexError::Unreadable("a record without a key".to_owned()));
    };
    Ok(Hit { repository, prefix, identifier, stamp_secs: UnixSecs(stamp), sequence, score: 0.0 })
}
