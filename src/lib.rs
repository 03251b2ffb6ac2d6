//! oaimend: a transparent repair proxy for OAI-PMH.
//!
//! [`repair`] is the heart: bytes of a broken response in, bytes of a valid
//! one and a journal of every change out. [`oai`] is the protocol's
//! vocabulary. Both are pure (no I/O, no clock, no async) and can be used as a
//! library with `default-features = false`. Everything else is the program
//! around them; see ARCHITECTURE.md for the way of a page of bytes through it.

#[cfg(feature = "program")]
pub mod demo;
pub mod oai;
pub mod repair;
#[cfg(feature = "program")]
pub mod report;
