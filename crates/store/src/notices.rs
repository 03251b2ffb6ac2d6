//! The notifications that operators and providers received about each repository, so that a restart neither repeats nor
//! forgets one.

use super::keys::RepositoryId;
use super::save_error::SaveError;
use async_trait::async_trait;
use oaimend_oai::UnixSecs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where it is saved.
#[async_trait]
pub trait NoticeStore: std::fmt::Debug + Send + Sync {
    /// What was saved, by repository.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    async fn watched(&self) -> Result<BTreeMap<String, WatchedRepository>, SaveError>;

    /// Saves which notifications operators received about all repositories, in place of what was saved before.
    ///
    /// # Errors
    ///
    /// Nothing is saved.
    async fn save_watched(&self, watched: BTreeMap<String, WatchedRepository>) -> Result<(), SaveError>;

    /// When the last report to the provider of a repository was sent, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    async fn report_sent_secs(&self, repository: RepositoryId<'_>) -> Result<Option<UnixSecs>, SaveError>;

    /// Saves when the last report to the provider of a repository was sent; `None`: never. It is on disk then.
    ///
    /// # Errors
    ///
    /// Nothing is saved.
    async fn save_report_sent(
        &self,
        repository: RepositoryId<'_>,
        sent_secs: Option<UnixSecs>,
    ) -> Result<(), SaveError>;

    /// Closes it; later calls fail with [`SaveError::Closed`]. Blocks on the disk.
    fn close(&self);
}

/// The notifications that operators received about a repository. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchedRepository {
    /// Since when the source is down, if they were notified of it.
    pub down_since_secs: Option<UnixSecs>,
    /// Whether they were notified that the quarantine is nearly full.
    pub is_quarantine_nearly_full: bool,
    /// Whether they were notified that deletions wait for a confirmation.
    pub has_held_deletions: bool,
    /// Whether they were notified that the folder of its records cannot be followed.
    pub is_folder_unreadable: bool,
    /// The files of its folder that are not published, of which they were notified.
    pub refused_files: u64,
    /// The records in quarantine, when they were last counted.
    pub quarantined: Option<u64>,
    /// The records that were quarantined since the last event about them.
    pub lost: u64,
    /// When the first of these was found.
    pub lost_since_secs: Option<UnixSecs>,
    /// The time of the last event about lost records.
    #[serde(rename = "lost_told_at_secs")]
    pub lost_reported_at_secs: Option<UnixSecs>,
    /// The end of the certificate of which they were notified.
    pub certificate_expiring_secs: Option<UnixSecs>,
}
