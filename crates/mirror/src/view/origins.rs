//! What provenance says of the sources, in memory until the mirror changes.

use oaimend_oai::datestamp::Granularity;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the provenance of a record says of its source.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) granularity: Granularity,
    /// The namespace of each format.
    pub(super) namespaces: HashMap<String, String>,
}

/// The facts of all sources since the last change of the mirror. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownOrigins(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The changes of the mirror before the facts were read.
    changes: u64,
    /// By repository.
    origins: HashMap<String, Arc<Origin>>,
}

impl KnownOrigins {
    /// The facts of a repository, if they were read since the last one of these changes.
    pub(super) fn find(&self, changes: u64, repository: &str) -> Option<Arc<Origin>> {
        let known = self.known();
        if known.changes == changes { known.origins.get(repository).cloned() } else { None }
    }

    /// Keeps the facts of a repository that were read after these changes.
    pub(super) fn keep(&self, changes: u64, repository: &str, origin: &Arc<Origin>) {
        let mut known = self.known();
        if known.changes != changes {
            *known = Known { changes, origins: HashMap::new() };
        }
        known.origins.insert(repository.to_owned(), Arc::clone(origin));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
