//! The databases of a data folder, and whether their stores can be used.

use super::save_error::SaveError;
use oaimend_oai::named_enum;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

named_enum! {
    /// A store that has a database, in the order in which they are opened.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StoreName {
        /// Records that could not be repaired.
        Quarantine = "quarantine",
        /// The earlier pages of lists.
        Ledger = "ledger",
        /// The learned properties of sources, such as their dates.
        Profiles = "profiles",
        /// What sources were found to support.
        Capabilities = "capabilities",
        /// The counts of the last days.
        Activity = "activity",
        /// Which events operators were told of.
        Notices = "notices",
        /// The members of views.
        Views = "views",
        /// The identifiers of mirrored records.
        Identifiers = "identifiers",
        /// The full texts of mirrored items.
        FullTexts = "full_texts",
        /// The records of the mirror.
        Mirror = "mirror",
    }
}

/// A database of a store, which cannot be used from an error of the disk until it is recovered.
pub trait StoreDatabase: Debug + Send + Sync {
    /// The store.
    fn store(&self) -> StoreName;

    /// Whether its disk has failed.
    fn is_unusable(&self) -> bool;

    /// Tries to write to it. Blocks on the disk.
    fn recover(&self);

    /// Runs a task while no transaction writes, so that copies of its file have the state of the last one. Blocks on the
    /// disk.
    ///
    /// # Errors
    ///
    /// It cannot be used; the task did not run.
    fn while_frozen(&self, task: &mut dyn FnMut()) -> Result<(), SaveError>;
}

/// All databases of a data folder. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Databases(Arc<Mutex<Vec<Arc<dyn StoreDatabase>>>>);

impl Databases {
    /// Adds a database.
    pub fn add(&self, database: Arc<dyn StoreDatabase>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(database);
    }

    /// Each store that has a database, and whether it can be used: a store is unusable from an error of the disk until
    /// [`Databases::recover`] has written to it.
    pub fn states(&self) -> Vec<(StoreName, bool)> {
        self.all().iter().map(|database| (database.store(), !database.is_unusable())).collect()
    }

    /// The stores that cannot be used.
    pub fn unusable(&self) -> Vec<StoreName> {
        let unusable = |(store, is_usable)| if is_usable { None } else { Some(store) };
        self.states().into_iter().filter_map(unusable).collect()
    }

    /// Tries to write to the stores that cannot be used. Blocks on the disk.
    pub fn recover(&self) {
        for database in self.all().iter().filter(|database| database.is_unusable()) {
            database.recover();
        }
    }

    /// Runs a task while no transaction writes to any of them: copies of their files are of one moment. Readers continue,
    /// and writers wait. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// One of them cannot be used; the task did not run.
    pub fn while_frozen(&self, task: &mut dyn FnMut()) -> Result<(), SaveError> {
        freeze_each(&self.all(), task)
    }

    fn all(&self) -> Vec<Arc<dyn StoreDatabase>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Freezes the databases one inside the other.
fn freeze_each(databases: &[Arc<dyn StoreDatabase>], task: &mut dyn FnMut()) -> Result<(), SaveError> {
    let Some((first, rest)) = databases.split_first() else {
        task();
        return Ok(());
    };
    let mut inner = Ok(());
    first.while_frozen(&mut || inner = freeze_each(rest, task))?;
    inner
}
