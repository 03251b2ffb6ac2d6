//! Derived collections of repositories whose datestamps are those of a store.

use async_trait::async_trait;
use oaimend_repository::{Failure, Repository};

/// The collections that crosswalks make of a repository whose datestamps are the times of commits. Another version of a
/// collection is a commit to all its records.
#[async_trait]
pub trait DerivedCollections: std::fmt::Debug + Send + Sync {
    /// The repository for a request that begins with this version of a collection. Its datestamps are not below the
    /// change to this version.
    async fn begin(&self, prefix: &str, version: &str) -> Result<Box<dyn Repository>, Failure>;

    /// The repository for a list that has begun.
    async fn continue_list(&self, prefix: &str) -> Result<Box<dyn Repository>, Failure>;

    /// Whether this is still the version of a collection. It is asked after the responseDate of a list is known.
    async fn is_current(&self, prefix: &str, version: &str) -> Result<bool, Failure>;

    /// Notes that the repository has a format itself, which a crosswalk may have made before.
    async fn note_native(&self, prefix: &str) -> Result<(), Failure>;
}
