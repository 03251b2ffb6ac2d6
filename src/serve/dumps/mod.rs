//! Dumps of repositories, and the feed of changes: `/_dump` and `/_changes`.
//!
//! `source` finds the repository of a request. `state` has the dumps that are written now, each once for all who wait for
//! it, `build` writes one, and `stale` removes those of removed repositories. `answer` responds with a dump or a part of it, and `changes` with the feed.

mod answer;
mod build;
mod changes;
mod refusal;
mod source;
mod stale;
mod state;

pub(crate) use answer::{DumpRequest, answer_dump, answer_operator};
pub(crate) use changes::{ChangesRequest, answer_changes};
pub(crate) use state::DumpState;
