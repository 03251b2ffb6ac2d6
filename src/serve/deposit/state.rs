//! What all writes to local repositories share.

use crate::config::{LocalChoices, Mapping};
use crate::serve::background::folders::FolderStatuses;
use crate::serve::served::ServedRepositories;
use oaimend_deposit::{LocalRepository, LocalSettings};
use oaimend_mirror::view::ViewStores;
use oaimend_store::MirrorError;
use oaimend_write_tokens::WriteTokens;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

/// What all writes to local repositories share.
#[derive(Debug)]
pub(crate) struct DepositState {
    /// The tokens of those who may write.
    pub(super) tokens: WriteTokens,
    /// What operators must know of the folders of repositories.
    pub(crate) folders: FolderStatuses,
    /// Held while a body is in memory.
    bodies: Semaphore,
    /// Held by the one writer that stores records.
    turn: Arc<Mutex<()>>,
    /// The mappings whose local repositories say in the store what they are; `None` before the first request.
    described: Mutex<Option<KnownMappings>>,
}

/// All mappings at one time.
type KnownMappings = Arc<BTreeMap<String, Arc<Mapping>>>;

/// Maximum number of bodies that are in memory at once. Other writers wait.
const BODIES_MAX: usize = 4;

impl DepositState {
    /// The tokens are in this folder.
    pub(crate) fn new(data: &Path) -> Self {
        Self {
            tokens: WriteTokens::new(data),
            folders: FolderStatuses::default(),
            bodies: Semaphore::new(BODIES_MAX),
            turn: Arc::default(),
            described: Mutex::default(),
        }
    }

    /// Waits until a body may be in memory.
    pub(crate) async fn body_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.bodies.acquire().await.ok()
    }

    /// Stores what the local repositories say of themselves, if their mappings have changed.
    ///
    /// # Errors
    ///
    /// The store cannot be read or written.
    pub(crate) async fn describe(
        &self,
        served: &ServedRepositories,
        stores: &ViewStores,
    ) -> Result<(), MirrorError> {
        let mappings = served.repositories.all();
        let mut described = self.described.lock().await;
        if described.as_ref().is_some_and(|described| Arc::ptr_eq(described, &mappings)) {
            return Ok(());
        }
        for mapping in mappings.values() {
            if let Some(repository) = self.repository(served, stores, mapping) {
                repository.describe().await?;
            }
        }
        *described = Some(mappings);
        Ok(())
    }

    /// The local repository of a mapping; `None` if it has a source.
    pub(crate) fn repository(
        &self,
        served: &ServedRepositories,
        stores: &ViewStores,
        mapping: &Mapping,
    ) -> Option<LocalRepository> {
        let settings = Arc::new(settings(mapping, mapping.local.as_ref()?, &served.public_url));
        Some(LocalRepository::new(stores.clone(), settings, served.clock.now_secs(), Arc::clone(&self.turn)))
    }
}

fn settings(mapping: &Mapping, choices: &LocalChoices, public_url: &str) -> LocalSettings {
    let id = mapping.id().to_owned();
    let identify = &mapping.source.identify;
    LocalSettings {
        repository_name: identify.repository_name.clone().unwrap_or_else(|| id.clone()),
        admin_emails: identify.admin_email.iter().cloned().collect(),
        base_url: format!("{public_url}/{id}"),
        dc_required: choices.dc_required,
        foreign_identifiers: choices.foreign_identifiers,
        formats: choices.formats.clone(),
        id,
    }
}
