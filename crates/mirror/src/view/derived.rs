//! Collections of records that are made of stored ones, such as those of crosswalks.
//!
//! Such a collection changes as a whole when the function changes that makes its records, or the format that it reads.
//! This is a commit: it has a stamp, and the records of the collection have no lower datestamp from then on. So an
//! incremental harvester receives all of them again. No record is stored for it.
//!
//! Invariant: a list that does not show a change has a responseDate before its stamp. [`Stamps`] promises this for lists
//! that have a responseDate when the change begins. A list reads the version first and gets its responseDate later, so it
//! must ask [`DerivedVersions::is_current`] between its responseDate and its first byte.
//!
//! [`Stamps`]: crate::Stamps

use super::aggregate_versions::AGGREGATE_NAME;
use super::stores::ViewStores;
use oaimend_oai::UnixSecs;
use oaimend_store::{DerivedCollection, MirrorError, MirrorStore, RepositoryId, update_repository_state};
use std::sync::Arc;

/// The versions of the derived collections of a view.
#[derive(Clone, Debug)]
pub struct DerivedVersions {
    stores: ViewStores,
    /// The name of the view.
    view: String,
}

/// The version of a collection whose records are stored and not made.
const STORED: &str = "stored";

impl DerivedVersions {
    /// The versions of the collections of the view with this name.
    pub fn new(stores: ViewStores, view: String) -> Self {
        Self { stores, view }
    }

    /// The lowest datestamp of the records of a collection in this version; `None`: their datestamps are their stamps. If
    /// the version has changed, the change is stored first.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or the change cannot be stored. No response may show it then.
    pub async fn begin(&self, prefix: &str, version: &str) -> Result<Option<UnixSecs>, MirrorError> {
        match self.find(prefix).await? {
            Some(known) if known.version == version => Ok(known.since_secs),
            Some(_) => self.change(prefix, version).await.map(Some),
            None => {
                // No harvester has seen the collection.
                let collection = DerivedCollection { version: version.to_owned(), since_secs: None };
                save(&*self.stores.store, self.key(prefix), collection).await?;
                Ok(None)
            }
        }
    }

    /// The same for a list that has begun. It keeps its own lowest datestamp if the version has changed since.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn continue_list(&self, prefix: &str) -> Result<Option<UnixSecs>, MirrorError> {
        Ok(self.find(prefix).await?.and_then(|known| known.since_secs))
    }

    /// Notes that the records of a collection are stored from now on. If they are made again later, that is a change.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or the change cannot be stored.
    pub async fn note_stored(&self, prefix: &str) -> Result<(), MirrorError> {
        if self.find(prefix).await?.is_some_and(|known| known.version != STORED) {
            self.change(prefix, STORED).await?;
        }
        Ok(())
    }

    /// Whether a collection has this version.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn is_current(&self, prefix: &str, version: &str) -> Result<bool, MirrorError> {
        Ok(self.find(prefix).await?.is_some_and(|known| known.version == version))
    }

    async fn change(&self, prefix: &str, version: &str) -> Result<UnixSecs, MirrorError> {
        let (store, key, version) = (Arc::clone(&self.stores.store), self.key(prefix), version.to_owned());
        let change = move |stamp_secs: UnixSecs| async move {
            tracing::info!(
                collection = key,
                "a derived format has changed; its harvesters receive all records again"
            );
            save(&*store, key, DerivedCollection { version, since_secs: Some(stamp_secs) }).await?;
            Ok(stamp_secs)
        };
        self.stores.stamps.commit_change(self.stores.clock.now_secs(), change).await
    }

    async fn find(&self, prefix: &str) -> Result<Option<DerivedCollection>, MirrorError> {
        let mut state = self.stores.store.repository_state(RepositoryId(AGGREGATE_NAME)).await?;
        Ok(state.derived.remove(&self.key(prefix)))
    }

    /// The key of a collection. A metadataPrefix contains no blank.
    fn key(&self, prefix: &str) -> String {
        format!("{prefix} {}", self.view)
    }
}

async fn save(
    store: &dyn MirrorStore,
    key: String,
    collection: DerivedCollection,
) -> Result<(), MirrorError> {
    update_repository_state(store, RepositoryId(AGGREGATE_NAME), |state| {
        state.derived.insert(key.clone(), collection.clone());
    })
    .await
}
