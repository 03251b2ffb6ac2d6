//! XSLT 1.0 sheets of operators, run by libxslt in a worker process without rights.
//!
//! A [`Sheet`] is a stylesheet whose text was checked. [`XsltWorker::transform`] turns a payload into another one with it.
//! libxslt runs in a process of its own, because a sheet is a program and a record is hostile: the process can open no
//! file and no connection, and it ends when a record takes too much time or memory. Then another process continues with
//! the next record. [`run_worker`] is what this process runs: `oaimend xslt-worker`, a command that only oaimend starts.
//!
//! A sheet has no parameters and sees one payload alone, so its output depends on these two and on the version of libxslt.
//! The exception is `generate-id()`, whose values older versions make of addresses.
//!
//! # For the crosswalks
//!
//! Read the file of `crosswalks.<prefix>` with [`Sheet::read`], which fails for faults that the text shows. Ask
//! [`XsltWorker::check`] whether libxslt compiles it. [`Sheet::id`] changes with each byte of the text, so a changed id is
//! a changed crosswalk. All sheets share one [`XsltWorker`]. It keeps the order of requests, so start the transformations
//! of a page together (`futures::stream::StreamExt::buffered`) instead of one after the other. [`SheetFailure::scope`]
//! says whether a failure goes to quarantine with the record, belongs to the configuration, or is a 503.

mod driver;
mod failure;
mod limits;
mod message;
mod payload;
mod process;
mod sheet;
mod transformer;
#[cfg(target_os = "linux")]
mod worker;

pub use failure::{FailureKind, FailureScope, SheetFailure};
pub use limits::{PAYLOAD_BYTES_MAX, SHEET_BYTES_MAX, XsltLimits};
pub use process::{COMMAND, WorkerProgram};
pub use sheet::{Sheet, SheetFault, SheetId};
pub use transformer::XsltWorker;
#[cfg(target_os = "linux")]
pub use worker::{Library, run_worker};
