//! Why the index does not answer.

use crate::query::QueryError;
use oaimend_repository::{Failure, Reason};
use oaimend_store::MirrorError;
use std::time::Duration;

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

impl From<tantivy::TantivyError> for IndexError {
    fn from(error: tantivy::TantivyError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

impl From<MirrorError> for IndexError {
    fn from(error: MirrorError) -> Self {
        Self::Unreadable(format!("the mirror cannot be read: {error}"))
    }
}
