//! The databases of a data folder, and whether their stores can be used.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// A database of a store, which cannot be used from an error of the disk until it is recovered.
pub trait StoreDatabase: Debug + Send + Sync {
    /// The name of the store.
    fn store(&self) -> &'static str;

    /// Whether its disk has failed.
    fn is_unusable(&self) -> bool;

    /// Tries to write to it. Blocks on the disk.
    fn recover(&self);
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
    pub fn states(&self) -> Vec<(&'static str, bool)> {
        self.all().iter().map(|database| (database.store(), !database.is_unusable())).collect()
    }

    /// The stores that cannot be used.
    pub fn unusable(&self) -> Vec<&'static str> {
        let unusable = |(store, is_usable)| if is_usable { None } else { Some(store) };
        self.states().into_iter().filter_map(unusable).collect()
    }

    /// Tries to write to the stores that cannot be used. Blocks on the disk.
    pub fn recover(&self) {
        for database in self.all().iter().filter(|database| database.is_unusable()) {
            database.recover();
        }
    }

    fn all(&self) -> Vec<Arc<dyn StoreDatabase>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
