//! The databases of a data folder, and whether their stores can be used.

use super::database::SharedDatabase;
use crate::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// All databases of a data folder. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Databases(Arc<Mutex<Vec<Arc<SharedDatabase>>>>);

impl Databases {
    /// Opens or creates the database of a store.
    pub(in crate::store) fn open(
        &self,
        store: &'static str,
        path: &Path,
        cache_bytes: usize,
    ) -> Result<Arc<SharedDatabase>, Error> {
        let database = Arc::new(SharedDatabase::open(store, path, cache_bytes)?);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&database));
        Ok(database)
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

    fn all(&self) -> Vec<Arc<SharedDatabase>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
