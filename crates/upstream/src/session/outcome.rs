//! How an attempt at a page ends.

use crate::page::resume::Unproven;
use oaimend_oai::ErrorCode;
use oaimend_repository::{Failure, Reason, Stop};

/// The end of an attempt after which the session continues or is complete.
pub(crate) enum AttemptEnd {
    /// The response is complete.
    Whole,
    /// The response is an error of ours, and was sent.
    Refused,
    /// The page contains nothing new but a token: the list continues with the next page.
    NextPage(String),
    /// The source does not know its token any more. Contains its error response.
    Expired(Vec<u8>),
    /// The source responded with an error that may mean another one.
    Doubtful { code: Option<ErrorCode>, response: Vec<u8> },
    /// The attempt failed, and may be repeated.
    Retry(Failure),
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
