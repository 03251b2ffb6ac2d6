//! Everything that must survive a restart.
//!
//! `data_dir` locks the data folder, `redb` holds the stores that are databases, and `files` those
//! that are plain files. [`Store`] opens and closes all of them together, except the cached pages.

mod data_dir;
mod files;
mod redb;

pub use data_dir::DataDirLock;
pub use files::{
    BROKEN_PAGE_BYTES_MAX, BlockSums, BrokenPageInfo, BrokenPages, FileStamp, HotPage, NewStaticFile,
    PageEntry, PageKey, Pages, Part, Size, StaticFileInfo, StaticFiles, TokenKey,
};
pub use redb::{
    CapabilityStore, DeliveredPage, Ledger, LedgerError, ListFacts, ListPage, ListStatus, ProfileDates,
    ProfileUpdate, Quarantine, QuarantineEntry, QuarantineError, QuarantinedRecord, ReplayProgress,
    RepositoryProfiles, SetUsage, SourceCapabilities, TokenTarget,
};

use crate::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// All stores of one data folder. Clones share them.
#[derive(Clone, Debug)]
pub struct Store {
    /// Quarantined records.
    pub quarantine: Quarantine,
    /// The lists that harvesters follow: their tokens, and the items that they delivered.
    pub ledger: Ledger,
    /// Datestamps and sets of each repository.
    pub profiles: RepositoryProfiles,
    /// The detected capabilities of each source.
    pub capabilities: CapabilityStore,
    /// The key of our own tokens.
    pub token_key: TokenKey,
    /// Broken pages, as received.
    pub broken_pages: BrokenPages,
    /// Files of static repositories.
    pub static_files: StaticFiles,
    lock: Arc<Mutex<Option<DataDirLock>>>,
}

impl Store {
    /// Locks and opens a data folder, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or another process has it open.
    pub fn open(data: &Path) -> Result<Self, Error> {
        Self::open_locked(DataDirLock::take(data)?.ok_or_else(|| data_dir::in_use(data))?)
    }

    /// Opens a data folder that is locked already.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to.
    pub fn open_locked(lock: DataDirLock) -> Result<Self, Error> {
        let data = lock.path();
        let (quarantine, ledger) = (Quarantine::open(data)?, Ledger::open(data)?);
        let (token_key, broken_pages) = (TokenKey::open(data)?, BrokenPages::of(data));
        let (profiles, capabilities) = (RepositoryProfiles::open(data)?, CapabilityStore::open(data)?);
        let static_files = StaticFiles::of(data);
        let lock = Arc::new(Mutex::new(Some(lock)));
        Ok(Self { quarantine, ledger, profiles, capabilities, token_key, broken_pages, static_files, lock })
    }

    /// Closes the stores that two processes must not share, and releases the lock of the folder.
    /// Everything recorded before is on disk then; later writes are refused. Blocks on the disk.
    pub fn close(&self) {
        self.ledger.close();
        self.profiles.close();
        self.quarantine.close();
        self.capabilities.close();
        self.static_files.close();
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_folder_is_one_process_s_until_it_is_closed() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(data.path()).expect("it can be written to");
        let error = Store::open(data.path()).expect_err("it is open");
        assert!(error.to_string().contains("give each its own with --data"), "{error}");
        assert_eq!(error.exit_code(), 74);
        let clone = store.clone();
        store.close();
        let next = Store::open(data.path()).expect("it is closed, whoever holds a clone");
        assert!(matches!(clone.quarantine.list("x", 1), Err(QuarantineError::Closed)));
        assert!(matches!(clone.ledger.find("x", "ListRecords", "a"), Err(LedgerError::Closed)));
        assert!(next.quarantine.list("x", 1).expect("readable").is_empty());
    }

    #[test]
    fn what_a_killed_process_has_half_made_is_made_anew() {
        let data = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(data.path().join("quarantine")).expect("writable");
        for file in [
            "quarantine/index.redb.part",
            "ledger.redb.part",
            "holdings.redb.part",
            "repositories.redb.part",
            "token.key.part",
        ] {
            std::fs::write(data.path().join(file), [0; 5000]).expect("writable");
        }
        Store::open(data.path()).expect("nothing of it counts");
        let left: Vec<_> = std::fs::read_dir(data.path()).expect("readable").flatten().collect();
        assert!(left.iter().all(|file| file.path().extension().is_none_or(|e| e != "part")), "{left:?}");
    }
}
