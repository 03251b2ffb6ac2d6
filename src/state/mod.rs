//! What must survive a restart.

mod broken;
mod copies;
mod holdings;
mod ledger;
mod ledger_writer;
mod pages;
mod quarantine;
mod repositories;
mod store;
mod token_key;

pub use broken::{AboutBroken, BROKEN_PAGE_BYTES_MAX, BrokenPages};
pub use copies::{AboutCopy, Copies, CopyInTheMaking, CopyStamp};
pub use holdings::{Dates, Holdings, News, SetSeen};
pub use ledger::{Ending, Led, Ledger, LedgerError, ListFacts, Note, Place, Walk};
pub use pages::{BlockSums, Entry as PageEntry, HotPage, PageKey, Pages, Part, Size};
pub use quarantine::{Entry, PutAside, Quarantine, QuarantineError};
pub use repositories::{Learned, Repositories};
pub use token_key::TokenKey;

use crate::error::Error;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// All of it. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct State {
    /// Records put aside.
    pub quarantine: Quarantine,
    /// Tokens given out, and what their lists have delivered.
    pub ledger: Ledger,
    /// What was seen of each repository's records.
    pub holdings: Holdings,
    /// What was learned of each source.
    pub repositories: Repositories,
    /// What makes tokens of ours ours.
    pub token_key: TokenKey,
    /// Broken pages as they came.
    pub broken: BrokenPages,
    /// Files of static repositories.
    pub copies: Copies,
    held: Arc<Mutex<Option<Hold>>>,
}

/// The data folder, which is one process's at a time. Let go when this is
/// dropped, and by the kernel when the process is killed.
#[derive(Debug)]
pub struct Hold {
    _lock: File,
    data: PathBuf,
}

impl State {
    /// Opens or creates it in the data folder, which is created too.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or another process has it open.
    pub fn open(data: &Path) -> Result<Self, Error> {
        Self::open_held(Hold::take(data)?.ok_or_else(|| taken(data))?)
    }

    /// The same in a folder that is held already.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to.
    pub fn open_held(hold: Hold) -> Result<Self, Error> {
        let data = hold.data.as_path();
        let (quarantine, ledger) = (Quarantine::open(data)?, Ledger::open(data)?);
        let (token_key, broken) = (TokenKey::open(data)?, BrokenPages::of(data));
        let (holdings, repositories) = (Holdings::open(data)?, Repositories::open(data)?);
        let copies = Copies::of(data);
        let held = Arc::new(Mutex::new(Some(hold)));
        Ok(Self { quarantine, ledger, holdings, repositories, token_key, broken, copies, held })
    }

    /// Closes what two processes must not share, and lets go of the folder. What
    /// was noted is on disk then; what is to be noted or put aside later is
    /// refused. Blocks on the disk.
    pub fn close(&self) {
        self.ledger.close();
        self.holdings.close();
        self.quarantine.close();
        self.repositories.close();
        self.copies.close();
        self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Hold {
    /// Takes the data folder, which is made if it is not there; `None` when
    /// another process has it.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to.
    pub fn take(data: &Path) -> Result<Option<Self>, Error> {
        std::fs::create_dir_all(data).map_err(|error| Error::writing(data, error, WRITABLE))?;
        let path = data.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| Error::writing(&path, error, WRITABLE))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { _lock: lock, data: data.to_owned() })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(Error::writing(&path, error, WRITABLE)),
        }
    }
}

/// Another process has it.
fn taken(path: &Path) -> Error {
    let message = "another oaimend has this data folder open; give each its own with --data, or start with \
                   --upgrade to take over from it";
    Error::State { path: path.to_owned(), message: message.to_owned() }
}

/// What to do about a data folder that cannot be written to.
const WRITABLE: &str = "name a folder that can be written to with --data";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_folder_is_one_process_s_until_it_is_closed() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let state = State::open(data.path()).expect("it can be written to");
        let error = State::open(data.path()).expect_err("it is open");
        assert!(error.to_string().contains("give each its own with --data"), "{error}");
        assert_eq!(error.exit_code(), 74);
        let clone = state.clone();
        state.close();
        let next = State::open(data.path()).expect("it is closed, whoever holds a clone");
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
        State::open(data.path()).expect("nothing of it counts");
        let left: Vec<_> = std::fs::read_dir(data.path()).expect("readable").flatten().collect();
        assert!(left.iter().all(|file| file.path().extension().is_none_or(|e| e != "part")), "{left:?}");
    }
}
