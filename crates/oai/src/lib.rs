//! The vocabulary of OAI-PMH 2.0: requests, datestamps, setSpecs, error codes and error responses.
//!
//! [`Request`] reads and writes requests, and its [`RequestError`] becomes a response by [`error_response`].
//! [`datestamp`] and [`set_spec`] read the values that requests and responses share. The crate is pure: it has no
//! I/O, no clock and no async code. It reads no responses.
//!
//! ```
//! use oaimend_oai::{Argument, Request, Verb};
//!
//! let request = Request::parse(b"verb=GetRecord&identifier=oai:a:1&metadataPrefix=oai_dc").expect("a legal request");
//! assert_eq!(request.verb(), Verb::GetRecord);
//! assert_eq!(request.argument(Argument::Identifier), Some("oai:a:1"));
//! ```
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

pub mod datestamp;
mod envelope;
mod errors;
mod named;
pub mod path_segment;
mod request;
mod request_echo;
pub mod set_spec;
mod unix_secs;

pub use envelope::{escape, is_xml_char, response_head};
pub use errors::{ErrorCode, error_response};
pub use named::Named;
pub use request::window::Window;
pub use request::{Argument, Request, RequestError, Verb, query_pairs};
pub use request_echo::RequestEcho;
pub use unix_secs::UnixSecs;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
