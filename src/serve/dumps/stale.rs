//! Removes the dumps of a state that is gone: records that were removed from the store, or are not served any more.

use super::build::blocking;
use crate::serve::served::ServedRepositories;
use oaimend_dumps::{DumpError, Manifest, Place, Position, StaleReason, StoreState};
use oaimend_store::{Prefix, RepositoryId};
use std::sync::{Arc, PoisonError};

/// Removes them, once for each epoch of the store.
pub(super) async fn remove_stale(served: &ServedRepositories, state: &StoreState) -> Result<(), DumpError> {
    let swept = || served.dumps.swept_epoch.lock().unwrap_or_else(PoisonError::into_inner);
    if *swept() == Some(state.epoch) {
        return Ok(());
    }
    let folder = Arc::clone(&served.dumps.folder);
    for manifest in blocking(move || folder.manifests()).await? {
        if is_stale(served, state, &manifest).await? {
            let folder = Arc::clone(&served.dumps.folder);
            blocking(move || folder.remove(&manifest)).await?;
        }
    }
    *swept() = Some(state.epoch);
    Ok(())
}

async fn is_stale(
    served: &ServedRepositories,
    state: &StoreState,
    manifest: &Manifest,
) -> Result<bool, DumpError> {
    let Ok(position) = manifest.position.parse::<Position>() else { return Ok(true) };
    let collection = match position.place {
        Place::EndOf(_) => {
            let selection = &manifest.selection;
            let (id, prefix) = (RepositoryId(&selection.repository), Prefix(&selection.prefix));
            served.store.mirror.version(id, prefix).await?.map(|version| version.collection)
        }
        Place::End | Place::After { .. } => None,
    };
    let checked = position.check(state, collection);
    Ok(matches!(checked, Err(StaleReason::OtherStore | StaleReason::Forgotten)))
}
