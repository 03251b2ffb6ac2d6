//! Follows the folders of all mappings.

use super::follower::{Follower, LOOK_INTERVAL};
use super::state_file::StateFile;
use crate::config::Mapping;
use crate::serve::context::ServerContext;
use async_trait::async_trait;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Publishes the files of the folders of all mappings until the server stops.
pub(crate) struct FolderService {
    pub(crate) context: Arc<ServerContext>,
    /// The data folder.
    pub(crate) data: PathBuf,
}

#[async_trait]
impl BackgroundService for FolderService {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let mut followers: BTreeMap<String, JoinHandle<()>> = BTreeMap::new();
        let mut known = None;
        loop {
            let mappings = self.context.served.repositories.all();
            followers.retain(|_, follower| !follower.is_finished());
            if known.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &mappings)) {
                let is_followed = |mapping: &Arc<Mapping>| followers.contains_key(mapping.id());
                // One that is still followed has had a folder before; its follower is about to end.
                if mappings.values().all(|mapping| folder_of(mapping).is_some() || !is_followed(mapping)) {
                    self.forget_others(&mappings);
                    known = Some(Arc::clone(&mappings));
                }
            }
            for (id, mapping) in mappings.iter() {
                // One of an earlier mapping ends at its next look.
                if !followers.contains_key(id)
                    && let Some(folder) = folder_of(mapping)
                {
                    let (context, mapping) = (Arc::clone(&self.context), Arc::clone(mapping));
                    let follower = Follower::new(context, mapping, (folder, self.data.clone()));
                    followers.insert(id.clone(), tokio::spawn(follower.run()));
                }
            }
            self.context
                .served
                .deposit
                .folders
                .retain(|id| mappings.get(id).is_some_and(|mapping| folder_of(mapping).is_some()));
            tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                _ = shutdown.changed() => break,
            }
        }
        followers.into_values().for_each(|follower| follower.abort());
    }
}

impl FolderService {
    /// Forgets what was published from folders that the mappings do not have any more.
    fn forget_others(&self, mappings: &BTreeMap<String, Arc<Mapping>>) {
        let is_other = |mapping: &&Arc<Mapping>| mapping.local.is_some() && folder_of(mapping).is_none();
        for mapping in mappings.values().filter(is_other) {
            if let Err(error) = StateFile::new(&self.data, mapping.id()).remove() {
                tracing::warn!(repo = mapping.id(), %error, "what its former folder has published cannot be removed");
            }
        }
    }
}

fn folder_of(mapping: &Mapping) -> Option<PathBuf> {
    mapping.local.as_ref()?.folder.clone()
}
