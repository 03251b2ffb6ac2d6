//! The messages of failed commands.

use oaimend_store::QuarantineError;

use super::super::exit::Failure;

pub(super) fn unknown_key(id: &str, key: &str) -> Failure {
    let key = key.escape_debug();
    Failure::incomplete(format!("the quarantine of {id} has no record {key}; run oaimend quarantine ls {id}"))
}

pub(super) fn failure(error: &QuarantineError) -> Failure {
    Failure::incomplete(error)
}

pub(super) fn unreadable() -> Failure {
    Failure::incomplete("the response of the server cannot be read; it may be of another version of oaimend")
}
