//! oaimend: a transparent repair proxy for OAI-PMH.
//!
//! [`repair`](mod@repair) is the core: it reads the bytes of a broken response and writes the bytes of a valid
//! one, with a journal of every change. [`oai`] is the vocabulary of the protocol, [`schedule`]
//! computes the times of harvests, and [`mirror::rules`] keeps incremental harvests complete. They
//! are pure (no I/O, no clock, no async) and can be used as a library with
//! `default-features = false`. [`stream`] repairs what a reader or a writer of `std::io` passes on.
//! The other modules form the program; ARCHITECTURE.md describes how a page passes through them.

// The rust-version of the package is that of the core. The dependencies of the program need a newer one.
#![cfg_attr(feature = "program", allow(clippy::incompatible_msrv))]

pub mod mirror;
pub mod oai;
pub mod repair;
pub mod schedule;
pub mod stream;

pub use repair::repair;

#[cfg(feature = "program")]
pub mod certificate;
#[cfg(feature = "program")]
pub mod check;
#[cfg(feature = "program")]
pub mod clock;
#[cfg(feature = "program")]
pub mod config;
#[cfg(feature = "program")]
pub mod credentials;
#[cfg(feature = "program")]
pub mod demo;
#[cfg(feature = "program")]
pub mod error;
#[cfg(feature = "program")]
pub mod gateway;
#[cfg(feature = "program")]
pub mod log;
#[cfg(feature = "program")]
pub mod notify;
#[cfg(feature = "program")]
pub mod provider_report;
#[cfg(feature = "program")]
mod proxy;
#[cfg(feature = "program")]
pub mod quarantine_retry;
#[cfg(feature = "program")]
pub mod report;
#[cfg(feature = "program")]
pub mod repository;
#[cfg(feature = "program")]
pub mod server;
#[cfg(feature = "program")]
pub mod store;
#[cfg(feature = "program")]
pub mod suggestions;
#[cfg(feature = "program")]
pub mod telemetry;
#[cfg(feature = "program")]
pub mod upstream;

// Compiles and runs the example of the how-to guide with the other doc tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/how-to/library-example.md")]
struct LibraryExample;
