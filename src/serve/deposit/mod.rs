//! Writes to local repositories: PutRecord of XOAI, and requests to the URLs of records.
//!
//! The router reads a [`DepositRequest`] from the head of a request. [`answer`] and [`answer_put_record`] check the token,
//! then read the body, and write. A writer is answered after the change is on disk.

mod answer;
mod problem;
mod put_record;
mod request;
mod schemas;
mod state;
mod writer;

pub(crate) use answer::{answer, refuse_source};
pub(crate) use put_record::{PutRecord, answer_put_record};
pub(crate) use request::DepositRequest;
pub(crate) use state::DepositState;
pub(crate) use writer::writer_of;
