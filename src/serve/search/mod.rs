//! The search of a server: the index in the data folder, and who writes to it.
//!
//! `indexing` follows the mirror in the background. Searches run through [`Searches::run`], which limits how many run at
//! once. Invariants: one task at a time writes to the index, and [`SearchService::close`] ends the writing before
//! another process may open the data folder.

#[cfg(test)]
mod building_tests;
mod indexing;
pub(crate) mod sru;
mod state;

pub(crate) use self::indexing::{SearchIndexing, settled_secs};
pub use self::state::{RebuildLine, SearchState};

use crate::config::{RecordPages, Repositories, SearchPolicy};
use oaimend_base::clock;
use oaimend_mirror::repository_index::INDEX_NAME;
use oaimend_oai::UnixSecs;
use oaimend_search::{IndexError, IndexSettings, IndexStatus, IndexedFormats, SearchIndex, Searches};
use oaimend_store::{MirrorError, MirrorStore, check_free_space};
use oaimend_views::odl::OdlBrowse;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

/// The folder of the index in the data folder.
const FOLDER: &str = "search";
/// Longest wait for the end of a write. The next process waits longer for the data folder.
const CLOSE_MAX: Duration = Duration::from_secs(20);

/// The search of a server.
#[derive(Debug)]
pub(crate) struct SearchService {
    pub(crate) policy: SearchPolicy,
    /// Runs searches.
    pub(crate) searches: Searches,
    /// The categories of ODL-Browse, over no repository.
    pub(crate) browse: OdlBrowse,
    folder: PathBuf,
    formats: Mutex<IndexedFormats>,
    /// Held by the task that writes to the index.
    turn: tokio::sync::Mutex<()>,
    /// Why the last write failed; `None` if it succeeded.
    last_error: Mutex<Option<String>>,
    /// The start of the last write that succeeded, or of the server, by the monotonic clock.
    last_success: Mutex<Duration>,
}

/// The repositories that pages and SRU search: the mirrored ones with pages of their records. The index may contain
/// others, which are not mirrored any more or were forgotten.
pub(crate) fn searched_repositories(repositories: &Repositories) -> Vec<String> {
    let mappings = repositories.all();
    let searched = mappings
        .iter()
        .filter(|(_, mapping)| mapping.mirror.is_some() && mapping.records != RecordPages::Off);
    searched.map(|(id, _)| id.clone()).collect()
}

/// The formats that the mirror serves, of the repositories that name some. Records in other formats are in the mirror if
/// they were mirrored before.
fn indexed_formats(repositories: &Repositories) -> IndexedFormats {
    let mappings = repositories.all();
    let prefixes = mappings.iter().filter_map(|(id, mapping)| {
        let prefixes = &mapping.mirror.as_ref()?.prefixes;
        (!prefixes.is_empty()).then(|| (id.clone(), prefixes.clone()))
    });
    // The index of the served repositories is stored beside them, and is no part of the search.
    prefixes.chain([(INDEX_NAME.to_owned(), Vec::new())]).collect()
}

/// A write to the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    /// What the mirror has committed since the last one.
    Changes,
    /// Everything again.
    All,
}

impl SearchService {
    /// The search in an index of this data folder, which is opened when it is first written to.
    pub(crate) fn new(policy: SearchPolicy, data: &Path, searches: Searches) -> Self {
        let browse = OdlBrowse::new(searches.clone(), policy.browse_categories());
        Self {
            policy,
            searches,
            browse,
            folder: data.join(FOLDER),
            formats: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            last_error: Mutex::default(),
            last_success: Mutex::new(clock::uptime()),
        }
    }

    /// Indexes the mirrored formats only, from the next write on.
    pub(crate) fn set_formats(&self, repositories: &Repositories) {
        *self.formats.lock().unwrap_or_else(PoisonError::into_inner) = indexed_formats(repositories);
    }

    /// Indexes what the mirror has committed since the last time. `settled_secs` is as in [`SearchIndex::follow`].
    ///
    /// # Errors
    ///
    /// The index is not complete. The next call continues.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        mirror: &Arc<dyn MirrorStore>,
        settled_secs: Option<UnixSecs>,
    ) -> Result<(), IndexError> {
        self.write(mirror, Write::Changes, settled_secs).await
    }

    /// Removes the index, and builds it again. Searches fail meanwhile. `settled_secs` is as in [`SearchIndex::follow`].
    ///
    /// # Errors
    ///
    /// The index is not complete. [`SearchService::follow`] continues.
    pub(crate) async fn rebuild(
        self: &Arc<Self>,
        mirror: &Arc<dyn MirrorStore>,
        settled_secs: Option<UnixSecs>,
    ) -> Result<(), IndexError> {
        self.write(mirror, Write::All, settled_secs).await
    }

    /// The state of the index, and why the last write failed. Opens the index if no task writes to it.
    ///
    /// # Errors
    ///
    /// The index or the mirror cannot be read.
    pub(crate) async fn status(&self, mirror: &dyn MirrorStore) -> Result<IndexStatus, IndexError> {
        let index = match (self.searches.index(), self.turn.try_lock()) {
            (Ok(index), _) => index,
            (Err(IndexError::Building), Ok(_turn)) if self.folder.exists() => match self.opened() {
                Ok(index) => index,
                Err(error) => {
                    self.note(Some(&error));
                    return Ok(IndexStatus::default());
                }
            },
            (Err(IndexError::Building), Ok(_)) => return Ok(IndexStatus::default()),
            (Err(IndexError::Building), Err(_)) => {
                return Ok(IndexStatus { is_building: true, ..IndexStatus::default() });
            }
            (Err(error), _) => return Err(error),
        };
        index.status(mirror).await
    }

    /// Why the last write failed; `None` if it succeeded.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The time since the index had everything that is in the mirror, or since the start of the server.
    pub(crate) fn lag(&self) -> Duration {
        let last = *self.last_success.lock().unwrap_or_else(PoisonError::into_inner);
        clock::uptime().saturating_sub(last)
    }

    /// Whether an index was ever opened.
    fn exists(&self) -> bool {
        self.folder.exists()
    }

    /// Asks the task that writes to the index to end, and refuses all later searches.
    pub(crate) fn begin_closing(&self) {
        self.searches.close();
    }

    /// Ends the writing, so that another process can open the index. Blocks on the disk.
    pub(crate) fn close(self: &Arc<Self>) {
        self.begin_closing();
        let (service, (ended, end)) = (Arc::clone(self), mpsc::channel());
        std::thread::spawn(move || {
            drop(service.turn.blocking_lock());
            // Nobody may wait any more; ignore.
            let _ = ended.send(());
        });
        if end.recv_timeout(CLOSE_MAX).is_err() {
            tracing::error!("the search index is not closed; the next process opens it later");
        }
    }

    /// Writes to the index, and notes whether that failed.
    async fn write(
        self: &Arc<Self>,
        mirror: &Arc<dyn MirrorStore>,
        write: Write,
        settled_secs: Option<UnixSecs>,
    ) -> Result<(), IndexError> {
        let began = clock::uptime();
        let (service, mirror) = (Arc::clone(self), Arc::clone(mirror));
        // A panic of the index fails the write alone.
        let work = tokio::spawn(async move { service.write_here(&*mirror, write, settled_secs).await });
        let result = work.await.unwrap_or_else(|error| Err(IndexError::Unreadable(error.to_string())));
        if result.is_ok() {
            *self.last_success.lock().unwrap_or_else(PoisonError::into_inner) = began;
        }
        self.note(result.as_ref().err());
        result
    }

    /// Notes why the index could not be opened or written to, or that it could.
    fn note(&self, error: Option<&IndexError>) {
        let error = error.map(ToString::to_string);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    async fn write_here(
        self: &Arc<Self>,
        mirror: &dyn MirrorStore,
        write: Write,
        settled_secs: Option<UnixSecs>,
    ) -> Result<(), IndexError> {
        let _turn = self.turn.lock().await;
        let service = Arc::clone(self);
        let prepared = tokio::task::spawn_blocking(move || service.prepared(write)).await;
        let index = prepared.map_err(|error| IndexError::Unreadable(error.to_string()))??;
        index.set_formats(self.formats.lock().unwrap_or_else(PoisonError::into_inner).clone());
        index.follow(mirror, settled_secs).await
    }

    /// The index for a write. The caller has the turn. Blocks on the disk.
    fn prepared(&self, write: Write) -> Result<SearchIndex, IndexError> {
        if write == Write::All {
            self.remove()?;
        }
        self.check_free_space()?;
        self.opened()
    }

    /// Leaves the last space of the disk to the other stores.
    fn check_free_space(&self) -> Result<(), IndexError> {
        let data = self.folder.parent().unwrap_or(&self.folder);
        match check_free_space(data) {
            Err(MirrorError::NoSpace { free_bytes, min_bytes, .. }) => Err(IndexError::Unreadable(format!(
                "the disk has {} MiB of free space, and the index grows only above {} MiB",
                free_bytes >> 20,
                min_bytes >> 20
            ))),
            _ => Ok(()),
        }
    }

    /// The index, ready to be written to. The caller has the turn.
    fn opened(&self) -> Result<SearchIndex, IndexError> {
        match self.searches.index() {
            Err(IndexError::Building) => {}
            known => return known,
        }
        let settings = IndexSettings { memory_max_bytes: self.policy.memory_max_bytes() };
        let index = SearchIndex::open(&self.folder, settings)?;
        self.searches.set_index(Some(index));
        self.searches.index()
    }

    /// Removes the index. The caller has the turn.
    fn remove(&self) -> Result<(), IndexError> {
        if let Ok(index) = self.searches.index() {
            self.searches.set_index(None);
            index.close();
        }
        match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(IndexError::Unreadable(error.to_string()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Mapping;
    use oaimend_mirror::settings::MirrorSettings;
    use oaimend_upstream::settings::Limits;

    #[test]
    fn mirrored_repositories_with_pages_are_searched() {
        let mut repositories = Repositories::new(None, Limits::default());
        assert_eq!(searched_repositories(&repositories), [""; 0]);
        for (id, is_mirrored, records) in [
            ("a", true, RecordPages::default()),
            ("live", false, RecordPages::default()),
            ("off", true, RecordPages::Off),
        ] {
            let mut mapping =
                Mapping::new(id, "http://source.example/oai", &Limits::default()).expect("legal");
            mapping.mirror = if is_mirrored { Some(MirrorSettings::default()) } else { None };
            mapping.records = records;
            repositories.add_fixed(mapping);
        }
        assert_eq!(searched_repositories(&repositories), ["a"]);
        let index = (INDEX_NAME.to_owned(), Vec::new());
        assert_eq!(indexed_formats(&repositories), [index.clone()].into(), "all formats of `a`");
        let mut mapping = Mapping::new("b", "http://source.example/oai", &Limits::default()).expect("legal");
        let prefixes = vec!["mods".to_owned()];
        mapping.mirror = Some(MirrorSettings { prefixes: prefixes.clone(), ..MirrorSettings::default() });
        repositories.add_fixed(mapping);
        assert_eq!(indexed_formats(&repositories), [index, ("b".to_owned(), prefixes)].into());
    }
}
