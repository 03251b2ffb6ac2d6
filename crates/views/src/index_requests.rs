//! Searches whose query a client wrote.

use oaimend_repository::{Failure, Reason};
use oaimend_search::{IndexError, SearchIndex, Searches};

/// The result of a search.
pub(crate) enum Answered<T> {
    /// The result.
    Found(T),
    /// The text of a `badArgument`: the query is refused.
    Refused(String),
}

/// Runs a search.
///
/// # Errors
///
/// The index does not answer now.
pub(crate) async fn run<T: Send + 'static>(
    searches: &Searches,
    search: impl FnOnce(&SearchIndex) -> Result<T, IndexError> + Send + 'static,
) -> Result<Answered<T>, Failure> {
    match searches.run(search).await {
        Ok(found) => Ok(Answered::Found(found)),
        Err(error) => match error.failure() {
            Some(failure) => Err(failure),
            None => Ok(Answered::Refused(error.to_string())),
        },
    }
}

impl<T> Answered<T> {
    /// The result of a query that was checked before.
    ///
    /// # Errors
    ///
    /// The query is refused now, because the index has changed.
    pub(crate) fn found(self) -> Result<T, Failure> {
        match self {
            Self::Found(found) => Ok(found),
            Self::Refused(text) => Err(Failure::new(Reason::Search, text)),
        }
    }
}
