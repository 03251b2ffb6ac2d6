//! Everything that must survive a restart.
//!
//! `ledger`, `quarantine`, `repository_profile`, `capabilities`, `activity` and `notices` define the stores as traits,
//! which a SQL database can implement too. `redb` implements them. `files` contains the stores that are plain files, among them the key of
//! our own tokens, which is read once at start and needs no trait. `mirror` is the store of the mirror as a trait, and
//! `record_log` implements it. `data_dir` locks the data folder. [`Store`] opens
//! and closes all of them together, except the cached pages.

mod activity;
mod capabilities;
mod data_dir;
mod files;
mod harvest_state;
mod ledger;
mod mirror;
mod mirror_error;
mod notices;
mod quarantine;
mod record_log;
mod record_repairs;
mod redb;
mod repository_profile;
mod save_error;

pub use activity::{
    ACTIVITY_DAYS_MAX, ActivityLog, ActivityStore, ActivityUpdate, DayCounts, FAILURES_MAX, FrequentRepair,
    OaiErrorResponse, RepairExample, RepositoryActivity, SourceFailure, SourceResult,
};
pub use capabilities::{
    CapabilityStore, DetectedCapabilities, Detection, IdentifierDecoding, SourceCapabilities,
};
pub use data_dir::DataDirLock;
pub(crate) use files::TokenUse;
pub use files::{
    BROKEN_PAGE_BYTES_MAX, BlockSums, BrokenPageInfo, BrokenPages, CheckReports, DiskWait, FileStamp,
    HotPage, NewBody, NewStaticFile, PageCoding, PageEntry, PageKey, Pages, Part, Size, StaticFileInfo,
    StaticFiles, TokenKey,
};
pub use harvest_state::{
    AggregateState, Catalog, Committed, CompleteHarvest, HarvestNote, HarvestProgress, HarvestStart,
    ListSpan, ListedFormat, ListedSet, MemberState, OpenList, RepositoryState, SETS_MAX, ScheduleState,
    SetMembers, Sweep, TimeSpan,
};
pub use ledger::{
    DeliveredPage, LedgerError, ListFacts, ListLedger, ListPage, ListStatus, RecordedPart, ReplayProgress,
    ReplayShortcuts, TokenOrigin, TokenTarget,
};
pub use mirror::{
    CollectionSize, CollectionVersion, DiskUsage, Document, IdentifierEntry, ListFilter, ListOrder,
    ListQuery, ListedPage, MirrorError, MirrorStore, NewRecord, PageCommit, Position, RecordStatus,
    StampMarks, StoredRecord, Verification, content_hash, update_repository_state,
};
pub use notices::{NoticeStore, WatchedRepository};
pub use quarantine::{
    QUARANTINE_LISTED_MAX, Quarantine, QuarantineBatch, QuarantineEntry, QuarantineError, QuarantineQuery,
    QuarantineSelection, QuarantineSize, QuarantineSizes, QuarantineState, QuarantinedRecord, WholeRecords,
};
pub(crate) use record_log::check_record;
pub use record_log::{EntrySort, RecordLog, SortedEntries};
pub use record_repairs::{Excerpt, RECORD_REPAIRS_MAX, RecordRepair, RecordRepairs};
pub use redb::Databases;
pub use repository_profile::{
    ProfileDates, ProfileStore, ProfileUpdate, RepositoryProfiles, SavedProfile, SetUsage,
};
pub use save_error::SaveError;

use crate::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// All stores of one data folder. Clones share them.
#[derive(Clone, Debug)]
pub struct Store {
    /// Quarantined records.
    pub quarantine: Arc<dyn Quarantine>,
    /// The lists that harvesters follow: their tokens, and the items that they delivered.
    pub ledger: Arc<dyn ListLedger>,
    /// Datestamps and sets of each repository.
    pub profiles: RepositoryProfiles,
    /// The detected capabilities of each source.
    pub capabilities: DetectedCapabilities,
    /// The activity of each repository.
    pub activity: ActivityLog,
    /// What operators were told.
    pub notices: Arc<dyn NoticeStore>,
    /// The results of `oaimend check`.
    pub check_reports: CheckReports,
    /// The key of our own tokens.
    pub token_key: TokenKey,
    /// Broken pages, as received.
    pub broken_pages: BrokenPages,
    /// Files of static repositories.
    pub static_files: StaticFiles,
    /// The records of mirrored repositories.
    pub mirror: Arc<dyn MirrorStore>,
    /// The databases of the stores above, and whether they can be used.
    pub databases: Databases,
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
        let databases = Databases::default();
        let quarantine = Arc::new(redb::RedbQuarantine::open(data, &databases)?);
        let ledger = Arc::new(redb::RedbLedger::open(data, &databases)?);
        let token_key = TokenKey::open(data)?;
        let profiles = redb::open_profiles(data, &databases)?;
        let capabilities = redb::open_capabilities(data, &databases)?;
        let (activity, check_reports) = (redb::open_activity(data, &databases)?, CheckReports::new(data));
        let notices = redb::open_notices(data, &databases)?;
        let (broken_pages, static_files) = (BrokenPages::new(data), StaticFiles::new(data));
        let mirror = Arc::new(RecordLog::open_among(data, &databases)?);
        let lock = Arc::new(Mutex::new(Some(lock)));
        Ok(Self {
            quarantine,
            ledger,
            profiles,
            capabilities,
            activity,
            notices,
            check_reports,
            token_key,
            broken_pages,
            static_files,
            mirror,
            databases,
            lock,
        })
    }

    /// Closes the stores that two processes must not share, and releases the lock of the folder.
    /// Everything recorded before is on disk then; later writes are refused. Blocks on the disk.
    pub fn close(&self) {
        self.ledger.close();
        self.profiles.close();
        self.quarantine.close();
        self.capabilities.close();
        self.activity.close();
        self.notices.close();
        self.static_files.close();
        self.mirror.close();
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_data_folder_belongs_to_one_process_until_it_is_closed() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let store = Store::open(data.path()).expect("it can be written to");
        let error = Store::open(data.path()).expect_err("it is open");
        assert!(error.to_string().contains("give each its own with --data"), "{error}");
        assert_eq!(error.exit_code(), 74);
        let clone = store.clone();
        store.close();
        let next = Store::open(data.path()).expect("it is closed, although clones exist");
        assert!(matches!(
            clone.quarantine.list("x", QuarantineQuery::default()).await,
            Err(QuarantineError::Closed)
        ));
        assert!(matches!(clone.ledger.token_target("x", "ListRecords", "a").await, Err(LedgerError::Closed)));
        assert!(next.quarantine.list("x", QuarantineQuery::default()).await.expect("readable").is_empty());
    }

    #[test]
    fn unfinished_files_of_a_killed_process_are_replaced() {
        let data = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(data.path().join("quarantine")).expect("writable");
        for file in [
            "quarantine/index.redb.part",
            "ledger.redb.part",
            "holdings.redb.part",
            "repositories.redb.part",
            "activity.redb.part",
            "notices.redb.part",
            "token.key.part",
        ] {
            std::fs::write(data.path().join(file), [0; 5000]).expect("writable");
        }
        Store::open(data.path()).expect("unfinished files are ignored");
        let left: Vec<_> = std::fs::read_dir(data.path()).expect("readable").flatten().collect();
        assert!(left.iter().all(|file| file.path().extension().is_none_or(|e| e != "part")), "{left:?}");
    }
}
