//! Why a search has no results.

use crate::serve::response::Response;
use oaimend_pages::html::SearchNotice;
use oaimend_pages::texts::plain;
use oaimend_repository::{Failure, Reason};
use oaimend_search::{IndexError, QueryError};
use oaimend_store::MirrorError;

/// Why there are no results.
pub(crate) enum SearchFailure {
    /// The request is refused. The text says what to change.
    Refused(String),
    Index(IndexError),
    Mirror,
}

impl From<QueryError> for SearchFailure {
    fn from(error: QueryError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<IndexError> for SearchFailure {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Query(error) => error.into(),
            error => Self::Index(error),
        }
    }
}

impl From<MirrorError> for SearchFailure {
    fn from(_: MirrorError) -> Self {
        Self::Mirror
    }
}

impl SearchFailure {
    /// The response. `refused` makes the one to a wrong request, and `notice` the one in place of results.
    pub(crate) fn response(
        self,
        refused: impl FnOnce(&str) -> Response,
        notice: impl FnOnce(SearchNotice) -> Response,
    ) -> Response {
        let (shown, failure) = match self {
            Self::Refused(text) => return refused(&text),
            Self::Mirror => {
                (SearchNotice::Unreadable, Some(Failure::new(Reason::Mirror, plain::UNREADABLE_MIRROR)))
            }
            Self::Index(error) => {
                let shown = match error {
                    IndexError::Building => SearchNotice::Building,
                    IndexError::Busy => SearchNotice::Busy,
                    _ => SearchNotice::Unreadable,
                };
                (shown, error.failure())
            }
        };
        let response = notice(shown);
        match failure {
            Some(failure) => response
                .with("Retry-After", failure.retry_after_secs.to_string())
                .with("Proxy-Status", failure.proxy_status()),
            None => response,
        }
    }
}
