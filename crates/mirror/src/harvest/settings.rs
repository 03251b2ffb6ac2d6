//! The settings and the result of a harvest.

use crate::harvest::page::Interruption;
use crate::settings::{MirrorSettings, SetMembership};
use oaimend_repository::Failure;
use oaimend_store::{Committed, DuplicateCounts, Duplicates, MirrorError};
use std::collections::BTreeMap;
use std::time::Duration;

/// How a repository is harvested.
#[derive(Clone, Debug, PartialEq)]
pub struct HarvestSettings {
    /// The formats; empty: every format that the source lists.
    pub prefixes: Vec<String>,
    /// The sets; empty: the whole repository.
    pub sets: Vec<String>,
    /// Whether the members of each set are listed, in addition to the sets in the headers.
    pub harvests_sets: bool,
    /// Which records are stored if a list contains an identifier with different contents.
    pub duplicates: Duplicates,
    /// The pause between two requests.
    pub request_gap: Duration,
    /// Deletions that are found by comparison and need no confirmation.
    pub deletions: DeletionLimits,
    /// Accept all deletions that this harvest finds.
    pub accepts_deletions: bool,
}

/// How many vanished records are deleted without confirmation: more of them may be a broken source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeletionLimits {
    /// The share of the records of a format, 0 to 1.
    pub share_max: f64,
    /// This number of records is deleted in any case.
    pub records_min: u64,
}

impl Default for HarvestSettings {
    fn default() -> Self {
        Self {
            prefixes: Vec::new(),
            sets: Vec::new(),
            harvests_sets: false,
            duplicates: Duplicates::default(),
            request_gap: Duration::ZERO,
            deletions: DeletionLimits { share_max: 0.05, records_min: 10 },
            accepts_deletions: false,
        }
    }
}

impl HarvestSettings {
    /// The settings of a repository in the configuration; the defaults if it has none.
    pub fn of(settings: Option<&MirrorSettings>) -> Self {
        let Some(settings) = settings.cloned() else { return Self::default() };
        let MirrorSettings { prefixes, sets, set_membership, duplicates, request_gap, .. } = settings;
        let harvests_sets = set_membership == SetMembership::Harvest;
        Self { prefixes, sets, harvests_sets, duplicates, request_gap, ..Self::default() }
    }
}

/// The progress of a harvest, for its observer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HarvestStatus {
    /// The metadataPrefix.
    pub prefix: String,
    /// Records of the current list so far.
    pub records: u64,
    /// Records of the whole list, if the source says so.
    pub total: Option<u64>,
}

/// The result of a harvest.
#[derive(Debug, Default)]
pub struct HarvestSummary {
    /// The effects on the store.
    pub counts: Committed,
    /// Items that are missing in the mirror after the harvest, whichever harvest met them: in quarantine, too long, or
    /// vanished without a proof.
    pub missing: u64,
    /// The missing items whose bytes stay unreadable. The others are fetched again with the next harvest.
    pub unrepairable: u64,
    /// The records whose identifier came before in the lists.
    pub duplicates: DuplicateCounts,
    /// The records of the source by its own count (`totalElements`), by format. Without the formats for which it names
    /// none, or of which only some sets are harvested.
    pub total_elements: BTreeMap<String, u64>,
    /// Deletions that wait for confirmation, by format.
    pub held_deletions: Vec<(String, u64)>,
    /// The formats that were harvested completely.
    pub complete: Vec<String>,
    /// The formats that were not, and why.
    pub incomplete: Vec<(String, HarvestError)>,
}

/// Why a harvest is not complete.
#[derive(Debug, thiserror::Error)]
pub enum HarvestError {
    /// The source failed.
    #[error("{}", .0.details)]
    Source(Failure),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] MirrorError),
}

impl From<Interruption> for HarvestError {
    fn from(interruption: Interruption) -> Self {
        match interruption {
            Interruption::Source(failure) => Self::Source(failure),
            Interruption::Store(error) => Self::Store(error),
        }
    }
}

impl HarvestSummary {
    /// Whether the lists of every format ended properly. Items of them may be missing.
    pub fn has_whole_lists(&self) -> bool {
        self.incomplete.is_empty() && !self.complete.is_empty()
    }

    /// Whether every format was harvested completely: no item is missing that may still be fetched.
    pub fn is_complete(&self) -> bool {
        self.has_whole_lists() && self.missing <= self.unrepairable
    }

    /// Whether it is complete, no item is unrepairable, and no deletion waits for confirmation.
    pub fn is_success(&self) -> bool {
        self.is_complete() && self.missing == 0 && self.held_deletions.is_empty()
    }

    /// One line for operators.
    pub fn describe(&self) -> String {
        let counts = self.counts;
        let mut line = format!(
            "{} stored, {} deleted, {} unchanged, {} missing",
            counts.stored,
            counts.deleted,
            counts.unchanged + counts.touched,
            self.missing
        );
        if self.unrepairable > 0 {
            line.push_str(&format!(" ({} of them unrepairable)", self.unrepairable));
        }
        let DuplicateCounts { duplicates, .. } = self.duplicates;
        if duplicates > 0 {
            line.push_str(&format!(
                "; {duplicates} duplicates: their identifier was listed before, with another content"
            ));
        }
        if counts.surplus_sets > 0 {
            line.push_str(&format!("; {} setSpecs of records are beyond the limits", counts.surplus_sets));
        }
        for (prefix, held) in &self.held_deletions {
            line.push_str(&format!(
                "; {held} records of {prefix} have vanished and wait: --accept-deletions deletes them"
            ));
        }
        for (prefix, error) in &self.incomplete {
            line.push_str(&format!("; {prefix} is incomplete: {error}"));
        }
        line
    }
}
