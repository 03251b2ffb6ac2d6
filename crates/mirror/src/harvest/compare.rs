//! Compares the identifiers and datestamps of the store with those of the source. It changes nothing.

use crate::harvest::entry_sort::{EntrySort, SortedEntries};
use crate::harvest::identifier_list::IdentifierList;
use crate::harvest::listed_identifiers::place_of;
use crate::harvest::page::{Harvester, Interruption};
use crate::harvest::settings::{HarvestError, HarvestSettings};
use oaimend_store::{
    Duplicates, Identifier, IdentifierEntry, MirrorError, Prefix, RecordStatus, split_suffix,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Identifiers that are read from the store at a time. Each has at most 16 KiB.
const BATCH: usize = 1_000;

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
    pub vanished: Difference,
    /// Whether the lists of the source ended by themselves: else the vanished records may still exist.
    pub is_conclusive: bool,
}

/// The records with one kind of difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Their number.
    pub count: u64,
    /// The identifiers of the first ones, at most `NAMED_MAX`.
    pub identifiers: Vec<String>,
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
        Ok(compare(self, settings, prefix).await?.0)
    }
}

/// [`Harvester::compare`], for harvests: the second value has all entries that have vanished.
///
/// The list of the source is sorted like the entries of the store, and both are merged, so that the memory does not
/// depend on their number.
pub(crate) async fn compare(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
) -> Result<(Comparison, SortedEntries), Interruption> {
    let mut comparison = Comparison { is_conclusive: true, ..Comparison::default() };
    let listed = list_source(harvest, settings, prefix, &mut comparison.is_conclusive).await?;
    let vanished = EntrySort::new(&harvest.store.scratch_folder());
    let compares_datestamps = !settings.duplicates.needs_whole_lists();
    let mut merge = blocking(move || Merge::new(comparison, listed, vanished, compares_datestamps)).await?;
    let mut after = None::<String>;
    loop {
        let stored = harvest
            .store
            .identifiers(harvest.repository(), Prefix(prefix), after.as_deref().map(Identifier), BATCH)
            .await?;
        let Some(last) = stored.last() else { break };
        after = Some(last.identifier.clone());
        let stored = without_suffixes(harvest, settings, prefix, stored).await?;
        merge = blocking(move || merge.add_stored(stored)).await?;
    }
    Ok(blocking(move || merge.end()).await?)
}

/// The stored identifiers without those that the mirror has given a suffix.
async fn without_suffixes(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
    mut stored: Vec<IdentifierEntry>,
) -> Result<Vec<IdentifierEntry>, MirrorError> {
    if settings.duplicates != Duplicates::Suffix {
        return Ok(stored);
    }
    let bases = stored.iter().filter_map(|entry| split_suffix(&entry.identifier));
    let bases: Vec<String> = bases.map(|(base, _)| base.to_owned()).collect();
    let found = harvest.store.occurrences(harvest.repository(), Prefix(prefix), &bases).await?;
    let known: HashMap<_, _> = bases.into_iter().zip(found).collect();
    stored.retain(|entry| place_of(&entry.identifier, &known).1 == 0);
    Ok(stored)
}

/// All identifiers that the source lists. `is_conclusive` becomes false if a list does not end by itself.
async fn list_source(
    harvest: &Harvester,
    settings: &HarvestSettings,
    prefix: &str,
    is_conclusive: &mut bool,
) -> Result<SortedEntries, Interruption> {
    let mut listed = EntrySort::new(&harvest.store.scratch_folder());
    let compares_datestamps = !settings.duplicates.needs_whole_lists();
    let whole = [String::new()];
    let sets = if settings.sets.is_empty() { whole.as_slice() } else { settings.sets.as_slice() };
    for set in sets {
        let set = Some(set.as_str()).filter(|set| !set.is_empty());
        let mut list = IdentifierList::new(harvest, settings, prefix, set);
        while let Some(records) = list.next_page().await? {
            let entries = records.into_iter().map(|record| IdentifierEntry {
                identifier: record.identifier,
                datestamp_secs: record.datestamp_secs,
                status: record.status,
            });
            // A deleted record hides no live one with the same identifier, unless the newest one counts.
            let is_compared =
                |entry: &IdentifierEntry| compares_datestamps || entry.status == RecordStatus::Live;
            let entries: Vec<IdentifierEntry> = entries.filter(is_compared).collect();
            listed = blocking(move || listed.add(entries).map(|()| listed)).await?;
        }
        *is_conclusive &= list.is_conclusive();
    }
    Ok(blocking(move || listed.sorted()).await?)
}

/// Runs a task that may block on the disk.
async fn blocking<T: Send + 'static>(
    task: impl FnOnce() -> Result<T, MirrorError> + Send + 'static,
) -> Result<T, MirrorError> {
    let result = tokio::task::spawn_blocking(task).await;
    result.unwrap_or_else(|error| Err(MirrorError::Stopped(error.to_string())))
}

/// Merges the entries of the source with those of the store, which come in the same order.
struct Merge {
    comparison: Comparison,
    listed: SortedEntries,
    /// The next entry of the source.
    next: Option<IdentifierEntry>,
    vanished: EntrySort,
    /// Whether the datestamp that is listed with an identifier must be that of the stored record.
    compares_datestamps: bool,
}

impl Merge {
    fn new(
        comparison: Comparison,
        mut listed: SortedEntries,
        vanished: EntrySort,
        compares_datestamps: bool,
    ) -> Result<Self, MirrorError> {
        let next = listed.next_entry()?;
        Ok(Self { comparison, listed, next, vanished, compares_datestamps })
    }

    fn add_stored(mut self, stored: Vec<IdentifierEntry>) -> Result<Self, MirrorError> {
        for mut entry in stored {
            while let Some(listed) = self.take_listed(|listed| *listed < entry.identifier)? {
                self.comparison.add_listed(listed);
            }
            match self.take_listed(|listed| *listed == entry.identifier)? {
                Some(listed) if listed.status == RecordStatus::Live => {
                    if !self.compares_datestamps {
                        entry.datestamp_secs = listed.datestamp_secs;
                    }
                    self.comparison.add_both(entry, listed);
                }
                _ if entry.status == RecordStatus::Live => {
                    self.comparison.stored += 1;
                    self.comparison.vanished.add(entry.identifier.clone());
                    self.vanished.add([entry])?;
                }
                _ => {}
            }
        }
        Ok(self)
    }

    /// The next entry of the source, if its identifier is wanted.
    fn take_listed(
        &mut self,
        is_wanted: impl FnOnce(&String) -> bool,
    ) -> Result<Option<IdentifierEntry>, MirrorError> {
        match self.next.take_if(|listed| is_wanted(&listed.identifier)) {
            Some(listed) => {
                self.next = self.listed.next_entry()?;
                Ok(Some(listed))
            }
            None => Ok(None),
        }
    }

    fn end(mut self) -> Result<(Comparison, SortedEntries), MirrorError> {
        while let Some(listed) = self.take_listed(|_| true)? {
            self.comparison.add_listed(listed);
        }
        Ok((self.comparison, self.vanished.sorted()?))
    }
}

impl Comparison {
    /// Whether the mirror has the same records as the source.
    pub fn is_equal(&self) -> bool {
        [&self.missing, &self.changed, &self.vanished].iter().all(|difference| difference.count == 0)
    }

    /// An entry of the source that the store does not have.
    fn add_listed(&mut self, listed: IdentifierEntry) {
        if listed.status == RecordStatus::Live {
            self.listed += 1;
            self.missing.add(listed.identifier);
        }
    }

    /// An entry of the store that the source has too, not deleted.
    fn add_both(&mut self, stored: IdentifierEntry, listed: IdentifierEntry) {
        self.listed += 1;
        match stored.status {
            RecordStatus::Deleted => self.missing.add(stored.identifier),
            RecordStatus::Live => {
                self.stored += 1;
                if listed.datestamp_secs != stored.datestamp_secs {
                    self.changed.add(stored.identifier);
                }
            }
        }
    }
}

impl Difference {
    /// Maximum number of identifiers that are named.
    pub(crate) const NAMED_MAX: usize = 1_000;

    fn add(&mut self, identifier: String) {
        self.count += 1;
        if self.identifiers.len() < Self::NAMED_MAX {
            self.identifiers.push(identifier);
        }
    }
}
