//! References in the full texts of records: which URLs of a record are full texts, the text of a PDF, and the works that the
//! list of references in it names.
//!
//! [`FullTextHosts`] chooses the URLs of a record, and [`references_in`] reads identifiers from a text. Both are pure.
//! [`TextExtractor`] runs pdftotext of poppler for one PDF in a process of its own, because a PDF is hostile: the process
//! reads no file but programs and libraries, opens no connection over TCP, and ends when it takes too much time or memory.
//! [`run_worker`] is what this process runs at first: `oaimend full-text-worker`, a command that only oaimend starts.

mod extractor;
mod hosts;
mod references;
#[cfg(target_os = "linux")]
mod worker;

pub use extractor::{COMMAND, PDFTOTEXT, TextExtractor, TextFailure, TextLimits, find_program};
pub use hosts::{AllowedHost, FullTextHosts, URLS_MAX};
pub use references::{REFERENCES_BYTES_MAX, REFERENCES_MAX, references_in};
#[cfg(target_os = "linux")]
pub use worker::run_worker;
