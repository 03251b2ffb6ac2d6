//! Compares the identifiers and datestamps of the store with those of the source. It changes nothing.

use crate::mirror::harvest::identifier_list::{IdentifierList, check_count};
use crate::mirror::harvest::page::{Harvester, Interruption};
use crate::mirror::harvest::settings::{HarvestError, HarvestSettings};
use crate::store::{IdentifierEntry, RecordStatus};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Identifiers that are read from the store at a time.
const BATCH: usize = 10_000;

/// The differences between the store and the source in one format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The number of records that the source lists, without deleted ones.
    pub listed: u64,
    /// The number of records of the mirror, without deleted ones.
    pub stored: u64,
    /// Records that the source lists and the mirror does not have.
    pub missing: Difference,
    /// Records with another datestamp.
    pub changed: Difference,
    /// Records that the mirror has and the source does not list.
    pub vanished: Vec<IdentifierEntry>,
    /// Whether the lists of the source ended by themselves: else the vanished records may still exist.
    pub is_conclusive: bool,
}

/// The records with one kind of difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Their number.
    pub count: u64,
    /// The identifiers of the first ones, at most [`Self::NAMED_MAX`].
    pub identifiers: Vec<String>,
}

/// The last thing that the source lists of a record.
#[derive(Clone, Copy)]
struct Listed {
    datestamp_secs: i64,
    is_deleted: bool,
}

impl Harvester {
    /// Compares the records of a format with the lists of identifiers of the source. The store stays unchanged.
    ///
    /// # Errors
    ///
    /// The source does not list all its identifiers, or the store cannot be read.
    pub async fn compare(
        &self,
        settings: &HarvestSettings,
        prefix: &str,
    ) -> Result<Comparison, HarvestError> {
        Ok(compare(self, settings, prefix).await?)
    }
}

/// [`Harvester::compare`], for harvests.
pub(crate) async fn compare(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
) -> Result<Comparison, Interruption> {
    let hasher = RandomState::new();
    let mut comparison = Comparison { is_conclusive: true, ..Comparison::default() };
    let mut listed: HashMap<u64, Listed> = HashMap::new();
    let whole = [String::new()];
    let sets = if settings.sets.is_empty() { whole.as_slice() } else { settings.sets.as_slice() };
    for set in sets {
        let set = Some(set.as_str()).filter(|set| !set.is_empty());
        let mut list = IdentifierList::new(harvest, settings, prefix, set);
        while let Some(records) = list.next_page().await? {
            check_count(harvest, listed.len() + records.len())?;
            for record in records {
                let is_deleted = record.status == RecordStatus::Deleted;
                let row = Listed { datestamp_secs: record.datestamp_secs, is_deleted };
                let is_new = listed.insert(hasher.hash_one(&record.identifier), row).is_none();
                if is_new && !is_deleted {
                    comparison.listed += 1;
                    if !is_stored_live(harvest, prefix, &record.identifier).await? {
                        comparison.missing.add(record.identifier);
                    }
                }
            }
        }
        comparison.is_conclusive &= list.is_conclusive();
    }
    let mut after = None::<String>;
    loop {
        let batch = harvest.store.identifiers(&harvest.id, prefix, after.as_deref(), BATCH).await?;
        let Some(last) = batch.last() else { return Ok(comparison) };
        after = Some(last.identifier.clone());
        for entry in batch.into_iter().filter(|entry| entry.status == RecordStatus::Live) {
            let found = listed.get(&hasher.hash_one(&entry.identifier)).copied();
            comparison.add_stored(entry, found);
        }
    }
}

async fn is_stored_live(harvest: &Harvester, prefix: &str, identifier: &str) -> Result<bool, Interruption> {
    let formats = harvest.store.formats_of_item(&harvest.id, identifier).await?;
    Ok(formats.iter().any(|(format, status)| format == prefix && *status == RecordStatus::Live))
}

impl Comparison {
    /// Whether the mirror has the same records as the source.
    pub fn is_equal(&self) -> bool {
        self.missing.count == 0 && self.changed.count == 0 && self.vanished.is_empty()
    }

    fn add_stored(&mut self, stored: IdentifierEntry, listed: Option<Listed>) {
        self.stored += 1;
        match listed.filter(|listed| !listed.is_deleted) {
            None => self.vanished.push(stored),
            Some(listed) if listed.datestamp_secs != stored.datestamp_secs => {
                self.changed.add(stored.identifier);
            }
            Some(_) => {}
        }
    }
}

impl Difference {
    /// Most identifiers that are named.
    pub const NAMED_MAX: usize = 1_000;

    fn add(&mut self, identifier: String) {
        self.count += 1;
        if self.identifiers.len() < Self::NAMED_MAX {
            self.identifiers.push(identifier);
        }
    }
}
