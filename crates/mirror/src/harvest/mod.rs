//! Harvests a repository into the store of the mirror.
//!
//! [`Harvester`] is the entry point. `harvester` asks the source for its description and harvests each format.
//! `format_harvest` harvests the lists of one format: it continues where the last harvest was interrupted. `windows`
//! divides the time into windows if a source cannot send all records in one list. `page` receives one page, and
//! `collection_writer` commits its records. `gaps` notes the items that are missing, and requests them again. `sweep`
//! finds records that have vanished. `compare` compares the store with the source. `identifier_list` reads the
//! identifiers for both. `duplicates` decides between records with one identifier in the lists, with `list_versions` for the
//! newest one and `listed_identifiers` for the others, and `unlisted` finds vanished records if it needs whole lists. `repeated_pages` detects
//! lists that go in circles. `damaged` fetches records again that were damaged on disk. `results` stores the results
//! for the schedule. `turns` lets harvests take turns, so that endless lists do not keep others from running.
//! `set_members` asks the source for the members of its sets.
//!
//! Invariants: a window counts as complete only if its list ended properly. A page, its tombstones and the place of
//! the next page are stored in one transaction.

mod catalog;
mod collection_writer;
mod compare;
mod damaged;
mod duplicates;
mod entry_sort;
mod format_harvest;
mod gaps;
mod harvester;
mod identifier_list;
mod list_versions;
mod listed_identifiers;
mod page;
mod repeated_pages;
mod results;
mod set_members;
mod settings;
mod sweep;
mod turns;
mod unlisted;
mod windows;

pub use catalog::{read_formats, read_sets};
pub(crate) use collection_writer::with_sets;
pub use compare::{Comparison, Difference};
pub use gaps::store_recovered;
pub use page::Harvester;
pub use repeated_pages::RepeatedPages;
pub use settings::{DeletionLimits, HarvestError, HarvestSettings, HarvestStatus, HarvestSummary};
pub use sweep::SWEEP_INTERVAL_SECS;
pub(crate) use sweep::tombstone;
pub use turns::{HarvestTurn, HarvestTurns};
