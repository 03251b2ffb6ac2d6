//! Dumps of repositories, and the feed of changes: `/_dump` and `/_changes`.
//!
//! `source` finds the repository of a request. `state` has the dumps that are written now, each once for all who wait for
//! it, `build` writes one, and `stale` removes those of removed repositories. `answer` responds with a dump or a part of it,
//! `changes` with the feed. `listeners` counts those who follow it, and `store_watch` wakes them.

mod answer;
mod build;
mod changes;
mod listeners;
mod refusal;
mod source;
mod stale;
mod state;
mod store_watch;

pub(crate) use answer::{DumpRequest, answer_dump, answer_operator};
pub(crate) use changes::{ChangesRequest, answer_changes};
pub(crate) use state::DumpState;
