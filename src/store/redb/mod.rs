//! The stores that are databases of redb, one file each.

mod capabilities;
mod database;
mod ledger;
mod quarantine;
mod repository_profile;

pub use capabilities::{CapabilityStore, SourceCapabilities};
pub use ledger::{
    DeliveredPage, Ledger, LedgerError, ListFacts, ListPage, ListStatus, ReplayProgress, TokenTarget,
};
pub use quarantine::{Quarantine, QuarantineEntry, QuarantineError, QuarantinedRecord};
pub use repository_profile::{ProfileDates, ProfileUpdate, RepositoryProfiles, SetUsage};
