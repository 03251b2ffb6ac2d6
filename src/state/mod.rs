//! What must survive a restart.

mod broken;
mod ledger;
mod pages;
mod quarantine;
mod token_key;

pub use broken::{AboutBroken, BROKEN_PAGE_BYTES_MAX, BrokenPages};
pub use ledger::{Ledger, LedgerError, ListFacts, Note, Place};
pub use pages::{BlockSums, Entry as PageEntry, HotPage, PageKey, Pages, Part, Size};
pub use quarantine::{Entry, PutAside, Quarantine, QuarantineError};
pub use token_key::TokenKey;

use crate::error::Error;
use redb::{Database, DatabaseError};
use std::path::Path;

/// All of it. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct State {
    /// Records put aside.
    pub quarantine: Quarantine,
    /// Tokens given out, and what their lists have delivered.
    pub ledger: Ledger,
    /// What makes tokens of ours ours.
    pub token_key: TokenKey,
    /// Broken pages as they came.
    pub broken: BrokenPages,
}

impl State {
    /// Opens or creates it in the data folder, which is created too.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or another process has it open.
    pub fn open(data: &Path) -> Result<Self, Error> {
        // First the one that makes the folder.
        let quarantine = Quarantine::open(data)?;
        let (ledger, token_key) = (Ledger::open(data)?, TokenKey::open(data)?);
        Ok(Self { quarantine, ledger, token_key, broken: BrokenPages::of(data) })
    }
}

/// Opens or creates a database; the error says what to do.
fn open_database(path: &Path, cache_bytes: usize) -> Result<Database, Error> {
    let database = Database::builder().set_cache_size(cache_bytes).create(path);
    database.map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => Error::State {
            path: path.to_owned(),
            message: "another oaimend has this data folder open; give each its own with --data".to_owned(),
        },
        DatabaseError::Storage(redb::StorageError::Io(error)) => Error::writing(path, error, WRITABLE),
        error => Error::State {
            path: path.to_owned(),
            message: format!("{error}; move the file away to begin with an empty one"),
        },
    })
}

/// What to do about a data folder that cannot be written to.
const WRITABLE: &str = "name a folder that can be written to with --data";
