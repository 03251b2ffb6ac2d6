//! How an attempt at a page ends.

use crate::page::resume::Unproven;
use oaimend_oai::ErrorCode;
use oaimend_repository::{Failure, Reason, Stop};

/// The end of an attempt. What follows is [decided](super::decision::decide) from it.
pub(crate) enum AttemptEnd {
    /// The response is complete.
    Whole,
    /// The response is an error of ours, and was sent.
    Refused,
    /// The page contains nothing new but a token: the list continues with the next page.
    NextPage(String),
    /// The source responded with an error. Nothing was sent of it.
    Error { code: Option<ErrorCode>, response: Vec<u8>, meaning: Meaning },
    /// The attempt failed. `lost` counts the items that were lost after a part of the response was sent.
    Failed { failure: Failure, lost: u64 },
}

/// The meaning of an error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The source does not know its token any more.
    ExpiredToken,
    /// It may be another error, or the source may need another form of the request.
    Doubtful,
    /// It means what it says.
    AsReceived,
}

impl AttemptEnd {
    /// A failure that has lost no item.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self::Failed { failure, lost: 0 }
    }

    /// The end with an error response that says that the token has expired.
    pub(crate) fn expired(response: Vec<u8>) -> Self {
        let code = Some(ErrorCode::BadResumptionToken);
        Self::Error { code, response, meaning: Meaning::ExpiredToken }
    }

    /// Notes that an error response means what it says.
    pub(crate) fn take_as_received(&mut self) {
        if let Self::Error { meaning, .. } = self {
            *meaning = Meaning::AsReceived;
        }
    }
}

/// Why an attempt was halted before the end of its page.
pub(crate) enum Halt {
    /// The page is not proven to be the one that was sent in part.
    Unproven(Unproven),
    /// The session ends.
    Stop(Stop),
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Stop(failure.into())
    }
}

impl From<Unproven> for Halt {
    fn from(why: Unproven) -> Self {
        Self::Unproven(why)
    }
}

/// The failure of an attempt that is not proven to be the same page.
pub(crate) fn unproven_failure(name: &str, why: Unproven) -> Failure {
    let what = match why {
        Unproven::Head => "begins differently",
        Unproven::Items => "does not contain the delivered items",
        Unproven::Facts => "is read again with more known of its repository",
        Unproven::Held => "cannot be compared with it within the limits",
    };
    let details = format!("{name} truncated a page, and the page that it sends now {what}");
    Failure::new(Reason::NotResumable, details)
}
