//! What was learned of each source by asking it.
//!
//! `data/repositories.redb`. Little is known of a source, and it changes seldom: all of it is
//! held in memory, and written when it changes. What was learned belongs to a mapping as it
//! was, and is forgotten with it.

use super::database::ClosableDatabase;
use crate::error::Error;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is known of all sources. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct CapabilityStore(Arc<Open>);

#[derive(Debug)]
struct Open {
    store: ClosableDatabase,
    known: Mutex<HashMap<String, Entry>>,
}

/// What was learned of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCapabilities {
    /// The version of OAI-PMH that its answers are of: `1.0`, `1.1` or `2.0`.
    pub version: Option<String>,
    /// Whether it says that its granularity is seconds, and refuses them.
    pub refuses_seconds: bool,
    /// When it was last asked whether it does, in seconds since 1970.
    #[serde(default)]
    pub seconds_asked_at: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    /// [`fingerprint`](crate::config::Mapping::fingerprint) of the mapping that it was learned with.
    mapping: String,
    learned: SourceCapabilities,
}

const TABLE: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("repositories");
const CACHE_BYTES: usize = 1 << 20;

impl CapabilityStore {
    /// Opens or creates it in the data folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or another process has it open.
    pub fn open(data: &Path) -> Result<Self, Error> {
        let path = data.join("repositories.redb");
        let store = ClosableDatabase::open(&path, CACHE_BYTES)?;
        let known = store.with(redb::Error::DatabaseAlreadyOpen, read).map_err(|error| Error::State {
            path,
            message: format!("{error}; move the file away to begin with an empty one"),
        })?;
        Ok(Self(Arc::new(Open { store, known: Mutex::new(known) })))
    }

    /// Closes it; what is learned from now on is known to this process alone.
    pub(in crate::store) fn close(&self) {
        self.0.store.close();
    }

    /// What is known of a repository with a mapping of that fingerprint.
    pub fn learned(&self, repository: &str, mapping: &str) -> SourceCapabilities {
        let known = self.known();
        let entry = known.get(repository).filter(|entry| entry.mapping == mapping);
        entry.map(|entry| entry.learned.clone()).unwrap_or_default()
    }

    /// Remembers a lesson, and gives what is known with it. Blocks on the disk; what cannot be written is
    /// known until the end of the process.
    pub fn learn(
        &self,
        repository: &str,
        mapping: &str,
        lesson: impl FnOnce(&mut SourceCapabilities),
    ) -> SourceCapabilities {
        let learned = {
            // What another request learns at the same time stays.
            let mut known = self.known();
            let entry = known.remove(repository).filter(|entry| entry.mapping == mapping);
            let mut learned = entry.map(|entry| entry.learned).unwrap_or_default();
            lesson(&mut learned);
            let entry = Entry { mapping: mapping.to_owned(), learned: learned.clone() };
            known.insert(repository.to_owned(), entry);
            learned
        };
        let json = || self.known().get(repository).and_then(|entry| serde_json::to_vec(entry).ok());
        let written = self.0.store.with(None, |database| write(database, repository, json).map_err(Some));
        match written {
            Ok(()) => {}
            Err(None) => tracing::debug!(repo = repository, "another oaimend has the state of sources"),
            Err(Some(error)) => {
                tracing::warn!(repo = repository, %error, "what was learned of a source is not written down");
            }
        }
        learned
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(database: &Database) -> Result<HashMap<String, Entry>, redb::Error> {
    let reading = database.begin_read()?;
    let table = match reading.open_table(TABLE) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(HashMap::new()),
        table => table?,
    };
    let mut known = HashMap::new();
    for row in table.iter()? {
        let (repository, json) = row?;
        // What another version wrote is learned again.
        if let Ok(entry) = serde_json::from_slice(json.value()) {
            known.insert(repository.value().to_owned(), entry);
        }
    }
    Ok(known)
}

fn write(
    database: &Database,
    repository: &str,
    now_known: impl FnOnce() -> Option<Vec<u8>>,
) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    // Writers take turns from here on: what is known now is no older than what stands there.
    let json = now_known().unwrap_or_default();
    transaction.open_table(TABLE)?.insert(repository, json.as_slice())?;
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_survives_a_restart_and_not_another_mapping() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let learned = SourceCapabilities {
            version: Some("1.1".into()),
            refuses_seconds: true,
            ..SourceCapabilities::default()
        };
        let repositories = CapabilityStore::open(data.path()).expect("it can be written to");
        assert_eq!(repositories.learned("x", "a"), SourceCapabilities::default());
        repositories.learn("x", "a", |known| known.version.clone_from(&learned.version));
        assert_eq!(repositories.learn("x", "a", |known| known.refuses_seconds = true), learned);
        repositories.close();
        repositories.learn("y", "a", |known| known.clone_from(&learned));
        assert_eq!(repositories.learned("y", "a"), learned, "known to this process");
        let again = CapabilityStore::open(data.path()).expect("it is closed");
        assert_eq!(again.learned("x", "a"), learned);
        assert_eq!(again.learned("x", "b"), SourceCapabilities::default());
        assert_eq!(again.learned("y", "a"), SourceCapabilities::default());
    }
}
