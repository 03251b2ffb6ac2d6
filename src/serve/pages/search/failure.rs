//! Why a search has no results.

use super::items::UnshownResults;
use crate::serve::pages::rendering::RenderingFailed;
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
    /// The found records could not be rendered.
    Rendering(RenderingFailed),
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

impl From<UnshownResults> for SearchFailure {
    fn from(error: UnshownResults) -> Self {
        match error {
            UnshownResults::Mirror(error) => error.into(),
            UnshownResults::Rendering(error) => Self::Rendering(error),
        }
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
            Self::Rendering(error) => {
                (SearchNotice::Unreadable, Some(Failure::new(Reason::Search, error.to_string())))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_are_not_rendered_are_a_failure() {
        let failure = SearchFailure::from(UnshownResults::from(RenderingFailed));
        let response = failure.response(
            |text| Response::text(400, text),
            |notice| Response::text(notice.status(), notice.sentence()),
        );
        assert_eq!(response.status, 503);
        assert!(response.headers.iter().any(|(name, _)| *name == "Retry-After"), "{:?}", response.headers);
    }
}
