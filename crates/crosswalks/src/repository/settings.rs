//! What the crosswalks of a repository need.

use super::collections::DerivedCollections;
use super::converted_records::ConvertedRecords;
use super::formats::FormatsCache;
use super::quarantine::QuarantineSettings;
use crate::table::Crosswalk;
use oaimend_base::clock::Clock;
use oaimend_store::TokenKey;
use std::sync::Arc;

/// What the crosswalks of a repository need.
#[derive(Clone, Debug)]
pub struct CrosswalkSettings {
    /// The name of the repository, in tokens and in the quarantine.
    pub repository: String,
    /// The crosswalks that are turned on.
    pub crosswalks: Vec<Crosswalk>,
    /// The formats of the wrapped repository, if a request for them is expensive.
    pub known_formats: Option<FormatsCache>,
    /// The collections that crosswalks make; `None` if the datestamps of the wrapped repository are not ours.
    pub collections: Option<Arc<dyn DerivedCollections>>,
    /// The records that were converted before.
    pub converted: ConvertedRecords,
    /// Where records go that cannot be converted.
    pub quarantine: QuarantineSettings,
    /// Maximum number of bytes of a page that is held for a client of HTTP/1.0.
    pub spool_bytes_max: usize,
    /// The key of tokens.
    pub token_key: TokenKey,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}
