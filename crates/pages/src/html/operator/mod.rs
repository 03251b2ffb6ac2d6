//! The pages that only operators see.

mod hex_dump;
mod quarantine_page;
mod quarantined_record_page;
mod status_page;
mod unknown_page;

pub use quarantine_page::QuarantinePage;
pub use quarantined_record_page::QuarantinedRecordPage;
pub use status_page::{HarvestRow, HarvestState, RequestRow, SourceRow, StatusPage};
pub use unknown_page::UnknownOperatorPage;

/// Longest identifier that is shown, in bytes.
const IDENTIFIER_BYTES_MAX: usize = 1_000;
