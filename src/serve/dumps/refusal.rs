//! Why a request for a dump or for changes is refused: problem details (RFC 9457).

use crate::serve::problem::problem;
use crate::serve::response::Response;
use oaimend_dumps::{DumpError, StaleReason};
use oaimend_repository::Failure;
use oaimend_store::MirrorError;

/// Why a request is refused.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The request is not legal.
    Illegal(String),
    /// There is no such repository.
    Unknown(String),
    /// Nothing can follow the position.
    Stale(StaleReason),
    /// The dump of this position is not kept.
    NotKept,
    /// The dump is being written, and has this number of records.
    Building(u64),
    /// As many dumps are written, or as many listeners follow the feed, as may at once.
    Busy(&'static str),
    /// There is no dump.
    Failed(DumpError),
}

/// When to ask again for a dump that is being written, in seconds.
const BUILDING_SECS: u64 = 5;
/// When to try again after a failure that may pass, in seconds.
const RETRY_SECS: u64 = 60;

impl From<DumpError> for Refusal {
    fn from(error: DumpError) -> Self {
        Self::Failed(error)
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.into())
    }
}

impl From<MirrorError> for Refusal {
    fn from(error: MirrorError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<StaleReason> for Refusal {
    fn from(reason: StaleReason) -> Self {
        Self::Stale(reason)
    }
}

impl Refusal {
    /// The status, the text, and when to try again, in seconds.
    pub(super) fn parts(&self) -> (u16, String, Option<u64>) {
        match self {
            Self::Illegal(text) => (400, text.clone(), None),
            Self::Unknown(text) => (404, text.clone(), None),
            Self::Stale(reason) => (410, reason.text().to_owned(), None),
            Self::NotKept => {
                let text =
                    "the dump of this position is not kept any more; request the dump without `position`";
                (410, text.to_owned(), None)
            }
            Self::Building(records) => {
                let text =
                    format!("the dump is being written and has {records} records; send the request again");
                (503, text, Some(BUILDING_SECS))
            }
            Self::Busy(text) => (503, (*text).to_owned(), Some(RETRY_SECS)),
            Self::Failed(error) => of_error(error),
        }
    }

    /// The response to a client.
    pub(super) fn response(&self) -> Response {
        let (status, text, retry_after_secs) = self.parts();
        let page = problem(status, &text);
        match retry_after_secs {
            Some(secs) => page.with("Retry-After", secs.to_string()),
            None => page,
        }
    }
}

fn of_error(error: &DumpError) -> (u16, String, Option<u64>) {
    match error {
        DumpError::Refused(text) => (400, text.clone(), None),
        DumpError::TooLarge { .. } | DumpError::Collision => (400, error.to_string(), None),
        DumpError::Failed(failure) => (failure.status(), failure.text(), failure.retry_after()),
        DumpError::Forgotten => (503, error.to_string(), Some(1)),
        DumpError::TooManyChanges => (503, error.to_string(), Some(RETRY_SECS)),
        DumpError::Record { .. } | DumpError::NoSpace { .. } | DumpError::Disk(_) => {
            tracing::error!(%error, "a dump is not written");
            let text = "oaimend cannot write the dump now; its log says why. Send the request again later";
            (503, text.to_owned(), Some(RETRY_SECS))
        }
    }
}
