//! The full texts of mirrored items, as a trait: which ones were fetched, and the works that their references name.
//!
//! The texts themselves are not stored. An item whose full texts have other URLs is fetched again, and no other one, so a
//! row stays until its item is deleted or its repository is forgotten.
//!
//! All operations can be expressed in SQL: each is one transaction over a table of repositories and one of items, with an
//! index by the time of the next attempt.

use super::save_error::SaveError;
use async_trait::async_trait;
use oaimend_oai::UnixSecs;
use serde::{Deserialize, Serialize};

/// The store of the full texts. It is empty at first.
#[async_trait]
pub trait FullTextStore: std::fmt::Debug + Send + Sync {
    /// The place in a repository up to which its records were examined; `None` at first.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn followed(&self, repository: &str) -> Result<Option<FollowedFullTexts>, SaveError>;

    /// Replaces this place.
    ///
    /// # Errors
    ///
    /// Nothing is stored.
    async fn follow(&self, repository: &str, followed: FollowedFullTexts) -> Result<(), SaveError>;

    /// The full texts of each of these items; `None` if nothing is known of them.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn find(
        &self,
        repository: &str,
        identifiers: Vec<String>,
    ) -> Result<Vec<Option<FullText>>, SaveError>;

    /// Stores what is known of the full texts of an item; `None` removes it.
    ///
    /// # Errors
    ///
    /// Nothing is stored.
    async fn put(
        &self,
        repository: &str,
        identifier: &str,
        full_text: Option<FullText>,
    ) -> Result<(), SaveError>;

    /// The items that wait for another attempt whose time has come, the earliest ones first, at most `count_max`.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn due(
        &self,
        repository: &str,
        now_secs: UnixSecs,
        count_max: usize,
    ) -> Result<Vec<String>, SaveError>;

    /// The number of items that wait for another attempt.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    async fn waiting(&self, repository: &str) -> Result<u64, SaveError>;

    /// Removes everything of a repository.
    ///
    /// # Errors
    ///
    /// A part may be removed.
    async fn forget(&self, repository: &str) -> Result<(), SaveError>;

    /// Closes it; later calls fail with [`SaveError::Closed`]. Blocks on the disk.
    fn close(&self);
}

/// The place in a repository up to which its records were examined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedFullTexts {
    /// The number of the collection in the mirror.
    pub collection: u64,
    /// All changes with lower sequences were examined.
    pub next_sequence: u64,
    /// The choice of full texts. Another one examines all records again.
    pub definition: String,
}

/// The full texts of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullText {
    /// Their URLs, the best one first.
    pub urls: Vec<String>,
    /// The result so far.
    pub state: FullTextState,
}

/// The result for the full texts of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FullTextState {
    /// One was read. It names these works in its list of references, each with the name of its kind and the identifier.
    Read(Vec<(String, String)>),
    /// None can be read, for this reason. It is not fetched again.
    Refused(String),
    /// It is fetched later.
    Waiting {
        /// The number of attempts so far.
        attempts: u32,
        /// The earliest time of the next one, in seconds since 1970.
        not_before_secs: UnixSecs,
    },
}

impl Default for FullTextState {
    fn default() -> Self {
        Self::Read(Vec::new())
    }
}

impl FullText {
    /// The works that the full text names.
    pub fn references(&self) -> &[(String, String)] {
        match &self.state {
            FullTextState::Read(references) => references,
            FullTextState::Refused(_) | FullTextState::Waiting { .. } => &[],
        }
    }

    /// The earliest time of the next attempt; `None` if there is none.
    pub fn not_before_secs(&self) -> Option<UnixSecs> {
        match self.state {
            FullTextState::Waiting { not_before_secs, .. } => Some(not_before_secs),
            FullTextState::Read(_) | FullTextState::Refused(_) => None,
        }
    }
}
