//! ResourceSync over the mirrored and local repositories that have pages: their lists, change lists and dumps.
//!
//! `answer` finds the documents, and `resources` says what a record is as a resource: exactly the bytes at its URL in the
//! gateway.

mod answer;
mod resources;

pub(crate) use answer::answer;
