//! The index. (Interface; every function blocks on the disk or the processor.)

use crate::query::QueryError;
use crate::results::{ListHits, ListedHits, RankedHits, SearchHits, ValueCount, Values};
use oaimend_repository::{Failure, Reason};
use oaimend_store::MirrorStore;
use std::path::Path;
use std::time::Duration;

/// The settings of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSettings {
    /// Maximum memory of the writer, in bytes.
    pub memory_max_bytes: usize,
}

/// Why the index does not answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The query is refused.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The index is being built, and there is no earlier one. The request can be repeated.
    #[error("the index is being built")]
    Building,
    /// Too many searches wait. The request can be repeated.
    #[error("too many searches wait")]
    Busy,
    /// Another process has taken over the data folder. The request can be repeated.
    #[error("another process has taken over the search index")]
    Closed,
    /// The disk has failed, or the index is damaged. It is built again.
    #[error("the search index cannot be read: {0}")]
    Unreadable(String),
}

impl IndexError {
    /// The failure of a request that needs the index; `None` if its query is refused.
    pub fn failure(&self) -> Option<Failure> {
        let reason = match self {
            Self::Query(_) => return None,
            Self::Building | Self::Busy => Reason::SearchBusy,
            Self::Closed => Reason::TakenOver,
            Self::Unreadable(_) => Reason::Search,
        };
        let failure = Failure::new(reason, self.to_string());
        Some(match self {
            Self::Building => failure.retried_after(BUILDING_RETRY),
            _ => failure,
        })
    }
}

/// When a request is repeated that came while the index was being built.
const BUILDING_RETRY: Duration = Duration::from_secs(60);

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
pub struct SearchIndex {}

impl SearchIndex {
    /// Opens the index in a folder. One of another format, or a damaged one, is built again.
    ///
    /// # Errors
    ///
    /// The folder cannot be used.
    pub fn open(_folder: &Path, _settings: IndexSettings) -> Result<Self, IndexError> {
        unimplemented!()
    }

    /// Indexes what the mirror has committed since the last call, and commits it with the position in the mirror.
    ///
    /// # Errors
    ///
    /// The mirror cannot be read, or the index cannot be written. The next call continues.
    pub async fn follow(&self, _mirror: &dyn MirrorStore) -> Result<(), IndexError> {
        unimplemented!()
    }

    /// The state.
    pub async fn status(&self, _mirror: &dyn MirrorStore) -> Result<IndexStatus, IndexError> {
        unimplemented!()
    }

    /// The best or the newest hits of a query.
    ///
    /// # Errors
    ///
    /// The query is refused, or the index cannot answer.
    pub fn search(&self, _request: &SearchHits) -> Result<RankedHits, IndexError> {
        unimplemented!()
    }

    /// The hits of a query in the order of the commits.
    ///
    /// # Errors
    ///
    /// As for [`SearchIndex::search`].
    pub fn list(&self, _request: &ListHits) -> Result<ListedHits, IndexError> {
        unimplemented!()
    }

    /// The values of a field in order.
    ///
    /// # Errors
    ///
    /// As for [`SearchIndex::search`].
    pub fn values(&self, _request: &Values) -> Result<Vec<ValueCount>, IndexError> {
        unimplemented!()
    }
    /// Ends the writer, so that the folder can be opened again, also by another process. Later calls of
    /// [`SearchIndex::follow`] fail with [`IndexError::Closed`]; searches still work. Blocks on the disk.
    pub fn close(&self) {
        unimplemented!()
    }
}
