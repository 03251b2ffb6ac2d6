//! What all writes to local repositories share.

use super::schemas::DepositSchemas;
use crate::config::{LocalChoices, Mapping};
use crate::serve::background::folders::FolderStatuses;
use crate::serve::served::ServedRepositories;
use oaimend_deposit::{LocalRepository, LocalSettings};
use oaimend_mirror::view::ViewStores;
use oaimend_store::{MirrorError, MirrorStore};
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
    schemas: DepositSchemas,
    /// Held while a body is in memory.
    bodies: Semaphore,
    /// Held by the one writer that stores records.
    turn: Arc<Mutex<()>>,
    /// `None` before the first request.
    described: Mutex<Option<Described>>,
}

/// The mappings whose local repositories say in the store what they are.
#[derive(Debug)]
struct Described {
    mappings: Arc<BTreeMap<String, Arc<Mapping>>>,
    has_local: bool,
    /// The changes of the store after which nothing was removed from it.
    changes: u64,
    /// The number of repositories that were removed from the store before.
    removals: u64,
}

impl Described {
    /// Whether this holds for these mappings, and the store still has it: `oaimend mirror forget` removes it.
    async fn is_current(
        &mut self,
        mappings: &Arc<BTreeMap<String, Arc<Mapping>>>,
        store: &dyn MirrorStore,
    ) -> Result<bool, MirrorError> {
        if !Arc::ptr_eq(&self.mappings, mappings) {
            return Ok(false);
        }
        if !self.has_local {
            return Ok(true);
        }
        let changes = store.changes().await?;
        if self.changes != changes && self.removals == store.removals().await? {
            self.changes = changes;
        }
        Ok(self.changes == changes)
    }
}

/// Maximum number of bodies that are in memory at once. Other writers wait.
const BODIES_MAX: usize = 4;

impl DepositState {
    /// The tokens are in this folder.
    pub(crate) fn new(data: &Path) -> Self {
        Self {
            tokens: WriteTokens::new(data),
            folders: FolderStatuses::default(),
            schemas: DepositSchemas::default(),
            bodies: Semaphore::new(BODIES_MAX),
            turn: Arc::default(),
            described: Mutex::default(),
        }
    }

    /// Waits until a body may be in memory.
    pub(crate) async fn body_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.bodies.acquire().await.ok()
    }

    /// Stores what the local repositories say of themselves, if their mappings have changed or the store has lost it.
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
        let store = stores.store.as_ref();
        if let Some(described) = described.as_mut()
            && described.is_current(&mappings, store).await?
        {
            return Ok(());
        }
        let (changes, removals) = (store.changes().await?, store.removals().await?);
        for mapping in mappings.values() {
            if let Some(repository) = self.repository(served, stores, mapping) {
                repository.describe().await?;
            }
        }
        let has_local = mappings.values().any(|mapping| mapping.local.is_some());
        *described = Some(Described { mappings, has_local, changes, removals });
        Ok(())
    }

    /// The local repository of a mapping; `None` if it has a source.
    pub(crate) fn repository(
        &self,
        served: &ServedRepositories,
        stores: &ViewStores,
        mapping: &Arc<Mapping>,
    ) -> Option<LocalRepository> {
        let settings = Arc::new(settings(mapping, mapping.local.as_ref()?, &served.public_url));
        let (now_secs, turn) = (served.clock.now_secs(), Arc::clone(&self.turn));
        let repository = LocalRepository::new(stores.clone(), settings, now_secs, turn);
        Some(match self.schemas.of(mapping) {
            Some(check) => repository.with_check(check),
            None => repository,
        })
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
        set_names: choices.set_names.clone(),
        id,
    }
}
