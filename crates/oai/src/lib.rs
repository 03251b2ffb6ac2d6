//! The vocabulary of OAI-PMH 2.0: requests, datestamps, setSpecs, error codes and error responses.
//!
//! Pure: no I/O, no clock, no async. Broken XML is the subject of [`repair`](mod@oaimend_repair), not of
//! this module.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

pub mod datestamp;
mod envelope;
mod errors;
mod request;
mod request_echo;
pub mod set_spec;

pub use envelope::{escape, is_xml_char, response_head};
pub use errors::{ErrorCode, error_response};
pub use request::window::Window;
pub use request::{Argument, Request, RequestError, Verb};
pub use request_echo::RequestEcho;
