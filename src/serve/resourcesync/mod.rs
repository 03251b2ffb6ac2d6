//! ResourceSync over the mirrored and local repositories that have pages: their lists, change lists and dumps.
//!
//! `answer` finds the documents, `indexes` keeps the last indexes of parts, and `resources` says what a record is as a resource:
//! exactly the bytes at its URL in the gateway.

mod answer;
mod indexes;
mod resources;

pub(crate) use answer::answer;
pub(crate) use indexes::SyncIndexes;
