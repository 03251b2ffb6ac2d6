//! The stores that are databases of redb, one file each. Calls that block on the disk run on threads for that.

mod activity;
mod capabilities;
mod database;
mod full_texts;
mod identifiers;
mod ledger;
mod notices;
mod quarantine;
mod repository_profile;
mod views;
mod watched_file;

pub(super) use activity::open_activity;
pub(super) use capabilities::open_capabilities;
pub(super) use database::{SharedDatabase, Unavailable};
pub(super) use full_texts::open_full_texts;
pub(super) use identifiers::open_identifiers;
pub(super) use ledger::RedbLedger;
pub(super) use notices::open_notices;
pub(super) use quarantine::RedbQuarantine;
pub(super) use repository_profile::open_profiles;
pub(super) use views::open_views;
