//! The vocabulary of OAI-PMH 2.0: requests, datestamps, error codes.
//!
//! Pure: no I/O, no clock, no async. Knows nothing of broken XML, that is
//! [`repair`](crate::repair)'s work.
