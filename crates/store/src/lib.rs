//! Everything that must survive a restart: the stores as traits, their types, and the policy that all stores share.
//!
//! `ledger`, `quarantine`, `repository_profile`, `capabilities`, `activity`, `notices`, `views`, `identifiers`, `full_texts` and
//! `mirror` define the stores as traits, which a SQL database can implement too. What a store decides is a pure function here, so that an
//! implementation only reads and writes. `oaimend_store_local` implements all of them on the disk of this machine. Each
//! implementation passes the contract of `oaimend_store_contract`.
//!
//! The stores that are plain files are in `oaimend_files`. The key of our own tokens is a file too: it is read once at
//! start and needs no trait. [`Store`] contains all stores, except the cached pages, and closes them together.

pub mod activity;
pub mod capabilities;
mod chosen_records;
mod collisions;
pub mod databases;
mod duplicates;
pub mod full_texts;
pub mod harvest_state;
pub mod identifiers;
mod keys;
pub mod ledger;
pub mod mirror;
mod mirror_error;
mod mirror_sizes;
pub mod notices;
pub mod quarantine;
mod record_layout;
pub mod record_limits;
pub mod record_repairs;
pub mod repository_profile;
pub mod save_error;
mod sealed_token;
mod token_key;
pub mod views;

pub use activity::{
    ActivityLog, ActivityStore, ActivityUpdate, DayCounts, FAILURES_MAX, FrequentRepair, OaiErrorResponse,
    RepairExample, RepositoryActivity, SourceFailure, SourceResult,
};
pub use capabilities::{
    CapabilityStore, DetectedCapabilities, Detection, IdentifierDecoding, SourceCapabilities,
};
pub use chosen_records::ChosenRecords;
pub use collisions::Collisions;
pub use databases::{Databases, StoreDatabase, StoreName};
pub use duplicates::{
    DuplicateCounts, DuplicateProgress, Duplicates, ListedContent, OCCURRENCES_MAX, Occurrence, Occurrences,
    Placement, split_suffix, with_suffix,
};
pub use full_texts::{FollowedFullTexts, FullText, FullTextState, FullTextStore};
pub use harvest_state::{
    AggregateState, Catalog, Committed, CompleteHarvest, DerivedCollection, HarvestNote, HarvestProgress,
    HarvestStart, ListSpan, ListedFormat, ListedSet, MemberState, OpenList, RepositoryState, SETS_MAX,
    ScheduleState, SetMembers, Sweep, TimeSpan,
};
pub use identifiers::{
    IdentifiedCollection, IdentifiedRecord, IdentifierChanges, IdentifierKey, IdentifierPlace,
    IdentifierStore,
};
pub use keys::{Identifier, Prefix, RepositoryId};
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
    plain_identifier,
};
pub use record_layout::{RecordLayout, ServedHeader, Sha256, served_hash};
pub use record_limits::{
    IDENTIFIER_BYTES_MAX, TIME_BIAS, check_free_space, check_record, check_size, clamp_time, free_space,
};
pub use record_repairs::{Excerpt, RECORD_REPAIRS_MAX, RecordRepair, RecordRepairs};
pub use repository_profile::{
    ProfileDates, ProfileStore, ProfileUpdate, RepositoryProfiles, SavedProfile, SetUsage,
};
pub use save_error::SaveError;
pub use sealed_token::TokenUse;
pub use token_key::TokenKey;
pub use views::{
    FollowedChanges, FollowedCollection, Generation, MemberQuery, ViewMember, ViewState, ViewStore,
    WITHOUT_RECORD,
};

use oaimend_files::{BrokenPages, CheckReports, DataDirLock, StaticFiles};
use std::path::PathBuf;
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
    /// The notifications that operators received.
    pub notices: Arc<dyn NoticeStore>,
    /// The members of views.
    pub views: Arc<dyn ViewStore>,
    /// The identifiers of mirrored records.
    pub identifiers: Arc<dyn IdentifierStore>,
    /// The full texts of mirrored items.
    pub full_texts: Arc<dyn FullTextStore>,
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
    /// The lock of the data folder, until the stores are closed.
    pub lock: Arc<Mutex<Option<DataDirLock>>>,
}

impl Store {
    /// Closes the stores that two processes must not share, and releases the lock of the folder.
    /// Everything recorded before is on disk then; later writes are refused. Blocks on the disk.
    pub fn close(&self) {
        self.ledger.close();
        self.profiles.close();
        self.quarantine.close();
        self.capabilities.close();
        self.activity.close();
        self.notices.close();
        self.views.close();
        self.identifiers.close();
        self.full_texts.close();
        self.static_files.close();
        self.mirror.close();
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// The data folder, until the stores are closed.
    pub fn data_folder(&self) -> Option<PathBuf> {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        lock.as_ref().map(|lock| lock.path().to_owned())
    }
}
