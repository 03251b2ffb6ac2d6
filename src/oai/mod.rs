//! The vocabulary of OAI-PMH 2.0: requests, datestamps, setSpecs, error codes, our own answers.
//!
//! Pure: no I/O, no clock, no async. Knows nothing of broken XML, that is
//! [`repair`](crate::repair)'s work.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

pub mod datestamp;
mod error;
mod request;
mod request_echo;
pub mod set_spec;
mod window;

#[cfg(feature = "program")]
pub(crate) use error::is_xml_char;
pub use error::{ErrorCode, error_response};
pub use request::{Argument, Refusal, Request, Verb};
pub use request_echo::RequestEcho;
pub use window::Window;
