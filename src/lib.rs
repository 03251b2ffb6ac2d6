//! The program oaimend: a transparent repair proxy for OAI-PMH.
//!
//! The crates in `crates/` are its parts; ARCHITECTURE.md describes how a page passes through them. This library connects
//! them to the program of `oaimend serve`, and the binary is the command line.

pub mod config;
pub mod demo;
pub mod log;
pub mod notify;
pub mod onboard;
pub mod provider_report;
pub mod quarantine_retry;
pub mod serve;
