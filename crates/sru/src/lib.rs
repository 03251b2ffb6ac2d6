//! SRU 1.1, 1.2 and 2.0 (Search/Retrieve via URL) with CQL, its query language.
//!
//! [`Request::parse`] reads the parameters of a request, in which a CQL query becomes an [`oaimend_search::Query`]. Its
//! [`Envelope`] writes what was found. Whatever is wrong is a [`Diagnostic`], which is a response as well.
//!
//! Pure: no I/O, no clock. Everything in a request and in a record is untrusted.

mod cql;
mod diagnostic;
mod explain;
mod parameters;
mod query;
mod request;
mod response;
mod schemas;

pub use diagnostic::{Diagnostic, DiagnosticCode};
pub use explain::Database;
pub use query::{Scan, Search};
pub use request::{Envelope, Operation, Refused, Request, Version};
pub use response::{FoundRecord, ResultList, ScannedTerm};
pub use schemas::RecordSchema;
