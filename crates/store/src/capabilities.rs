//! The capabilities of each source, as the proxy has detected them.
//!
//! There are few of them and they seldom change, so all of them are held in memory and saved when they change. They
//! are detected for one version of a mapping, and discarded when the mapping changes. They are a snapshot: what was
//! saved when the store was opened, and what this process has detected since.

use super::save_error::SaveError;
use async_trait::async_trait;
use oaimend_oai::UnixSecs;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Mutex as AsyncMutex;

/// Where detected capabilities are saved.
#[async_trait]
pub trait CapabilityStore: std::fmt::Debug + Send + Sync {
    /// Saves the capabilities of one repository in place of older ones. The caller runs one save at a time.
    ///
    /// # Errors
    ///
    /// They are not saved.
    async fn save(&self, repository: &str, detection: Detection) -> Result<(), SaveError>;

    /// Closes it; later calls fail with [`SaveError::Closed`]. Blocks on the disk.
    fn close(&self);
}

/// The capabilities of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCapabilities {
    /// The version of OAI-PMH of its responses: `1.0`, `1.1` or `2.0`.
    pub version: Option<String>,
    /// Whether it announces a granularity of seconds, and refuses requests with seconds.
    pub refuses_seconds: bool,
    /// When this was last checked by a request.
    #[serde(default, rename = "seconds_asked_at")]
    pub seconds_checked_at: UnixSecs,
    /// Whether it announces a granularity of days, and answers requests with seconds as if no record matched.
    #[serde(default)]
    pub misses_seconds: bool,
    /// Its earliestDatestamp when it refused a date before that; `None`: it has refused none.
    #[serde(default)]
    pub refuses_dates_before: Option<String>,
    /// Whether a request with a resumptionToken needs the metadataPrefix of its list.
    #[serde(default)]
    pub needs_prefix_with_token: bool,
    /// How it reads identifiers in requests.
    #[serde(default)]
    pub identifiers: IdentifierDecoding,
}

/// How a source reads percent-encoded identifiers in requests, as far as its responses have shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentifierDecoding {
    /// It returned a record with an encoded colon in its identifier.
    pub decodes_colons: bool,
    /// It returned a record with an encoded slash in its identifier.
    pub decodes_slashes: bool,
    /// It knew an item by literal colons and slashes only.
    pub needs_literals: bool,
}

impl IdentifierDecoding {
    /// Whether the source may miss this identifier because it does not decode it.
    pub fn is_doubtful(self, identifier: &str) -> bool {
        let is_unproven = |mark: char, is_decoded: bool| !is_decoded && identifier.contains(mark);
        !self.needs_literals
            && (is_unproven(':', self.decodes_colons) || is_unproven('/', self.decodes_slashes))
    }

    /// The same after the source has returned the record with this encoded identifier.
    #[must_use]
    pub fn after_hit(self, identifier: &str) -> Self {
        Self {
            decodes_colons: self.decodes_colons || identifier.contains(':'),
            decodes_slashes: self.decodes_slashes || identifier.contains('/'),
            ..self
        }
    }
}

/// Capabilities, and the mapping that they were detected with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Detection {
    /// The fingerprint of the mapping of the source.
    mapping: String,
    #[serde(rename = "learned")]
    capabilities: SourceCapabilities,
}

/// The capabilities of all sources. Clones share them.
#[derive(Clone, Debug)]
pub struct DetectedCapabilities(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Arc<dyn CapabilityStore>,
    known: Mutex<HashMap<String, Detection>>,
    /// Held during a save, so that the last save has the latest values.
    saving: AsyncMutex<()>,
}

impl DetectedCapabilities {
    /// Starts with what was saved before.
    pub fn new(store: Arc<dyn CapabilityStore>, saved: HashMap<String, Detection>) -> Self {
        Self(Arc::new(Inner { store, known: Mutex::new(saved), saving: AsyncMutex::new(()) }))
    }

    /// Closes the store; later changes are known to this process alone.
    pub fn close(&self) {
        self.0.store.close();
    }

    /// The capabilities of a repository whose mapping has this fingerprint.
    pub fn detected(&self, repository: &str, mapping: &str) -> SourceCapabilities {
        let known = self.known();
        let detection = known.get(repository).filter(|detection| detection.mapping == mapping);
        detection.map(|detection| detection.capabilities.clone()).unwrap_or_default()
    }

    /// Changes and saves the capabilities of a repository, and returns them. What cannot be saved is known until
    /// the process ends.
    pub async fn update(
        &self,
        repository: &str,
        mapping: &str,
        change: impl FnOnce(&mut SourceCapabilities),
    ) -> SourceCapabilities {
        let capabilities = {
            // Concurrent changes by other requests are kept.
            let mut known = self.known();
            let detection = known.remove(repository).filter(|detection| detection.mapping == mapping);
            let mut capabilities = detection.map(|detection| detection.capabilities).unwrap_or_default();
            change(&mut capabilities);
            let detection = Detection { mapping: mapping.to_owned(), capabilities: capabilities.clone() };
            known.insert(repository.to_owned(), detection);
            capabilities
        };
        let (all, repository) = (self.clone(), repository.to_owned());
        // In a task of its own, which a cancelled request does not cancel. A task that panics has logged why.
        let _ = tokio::spawn(async move { all.save(&repository).await }).await;
        capabilities
    }

    async fn save(&self, repository: &str) {
        let _turn = self.0.saving.lock().await;
        let Some(detection) = self.known().get(repository).cloned() else { return };
        match self.0.store.save(repository, detection).await {
            Ok(()) => {}
            Err(SaveError::Closed) => {
                tracing::debug!(repo = repository, "another oaimend has the capabilities of sources");
            }
            Err(error) => {
                tracing::warn!(repo = repository, %error, "the capabilities of a source are not saved");
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Detection>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
