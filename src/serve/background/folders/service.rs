//! Follows the folders of all mappings.

use super::follower::{Follower, LOOK_INTERVAL};
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
        loop {
            let mappings = self.context.served.repositories.all();
            followers.retain(|_, follower| !follower.is_finished());
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

fn folder_of(mapping: &Mapping) -> Option<PathBuf> {
    mapping.local.as_ref()?.folder.clone()
}
