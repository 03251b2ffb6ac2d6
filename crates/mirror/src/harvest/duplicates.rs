//! Applies [`Duplicates`] to the records of lists: which of several records with one identifier is stored, and as what.
//!
//! The newest version is decided in memory by [`ListVersions`]; after an interruption, and beyond its maximum, by the
//! stored records. The other rules need to know what each harvest has seen of each identifier. That is in the store,
//! [`Occurrences`], and is committed together with the page. So neither a restart nor a page that comes again changes
//! the result, and the memory does not depend on the number of records.
//!
//! Invariant: a record that is neither stored nor left out by the rule is a missing item.

use crate::harvest::collection_writer::{CollectionWriter, with_sets};
use crate::harvest::list_versions::ListedVersion;
use crate::harvest::page::{Interruption, ReceivedPage};
use memchr::memmem;
use oaimend_oai::{UnixSecs, escape};
use oaimend_repository::RecordView;
use oaimend_rules::{MissingItem, Sighting};
use oaimend_store::{
    CompleteHarvest, DuplicateCounts, DuplicateProgress, Duplicates, ListedContent, MirrorError, NewRecord,
    Occurrences, Placement, Prefix, RecordStatus, StoredRecord, content_hash, split_suffix, with_suffix,
};
use std::collections::HashMap;

/// The last version of a record that is not in memory.
#[derive(Clone, Copy, Debug)]
struct VersionElsewhere {
    datestamp_secs: UnixSecs,
    /// Whether the current harvest has received it.
    is_of_harvest: bool,
}

impl CollectionWriter<'_> {
    /// Begins or continues a harvest with this rule. Returns whether it must list all records.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub(crate) async fn begin_duplicates(&mut self, policy: Duplicates) -> Result<bool, MirrorError> {
        let before = self.progress.duplicates.unwrap_or_default();
        let has_other_rule = before.policy != policy;
        if has_other_rule {
            // The records so far were chosen by the other rule.
            (self.progress.open_list, self.progress.start, self.progress.reached) = (None, None, None);
            self.progress.sets_done.clear();
        }
        let continues = self.progress.open_list.is_some() || !self.progress.sets_done.is_empty();
        self.listed.is_continued = continues;
        // If its begin is unknown, the records that the harvest has stored count as those of an earlier one.
        if !continues || self.progress.duplicates.is_none() {
            let version = self.harvest.store.version(self.harvest.repository(), Prefix(self.prefix)).await?;
            let first_sequence = version.map_or(0, |version| version.next_sequence);
            self.progress.duplicates = Some(before.next_harvest(policy, first_sequence));
        }
        Ok(has_other_rule || policy.needs_whole_lists())
    }

    /// Notes that a list begins.
    pub(crate) fn begin_list(&mut self) {
        if let Some(duplicates) = &mut self.progress.duplicates {
            duplicates.begin_list();
        }
    }

    /// Notes that the current list begins again.
    pub(crate) fn begin_list_again(&mut self) {
        self.listed.versions.clear();
        // Those of earlier lists are in the store.
        self.listed.is_continued = true;
        if let Some(duplicates) = &mut self.progress.duplicates {
            duplicates.begin_list_again();
        }
    }

    /// The records of a part of a page of a list that are stored, with their identifiers in the mirror.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub(crate) async fn select(
        &mut self,
        records: Vec<NewRecord>,
        page: &mut ReceivedPage,
    ) -> Result<Vec<NewRecord>, Interruption> {
        match self.progress.duplicates {
            Some(progress) if progress.policy.needs_whole_lists() => {
                Ok(self.place(records, progress, page).await?)
            }
            progress => Ok(self.select_newest(records, progress.unwrap_or_default(), page).await?),
        }
    }

    /// A time of the source that is not after the begin of this harvest; `None` on its first page.
    fn changed_after_secs(&self) -> Option<UnixSecs> {
        let open = self.progress.open_list.as_ref().map(|open| open.reaches);
        let open = open.filter(|reaches| *reaches != CompleteHarvest::default());
        self.progress.reached.or(open).map(|reached| reached.from_secs)
    }

    async fn select_newest(
        &mut self,
        records: Vec<NewRecord>,
        progress: DuplicateProgress,
        page: &mut ReceivedPage,
    ) -> Result<Vec<NewRecord>, MirrorError> {
        let changed_after_secs = self.changed_after_secs();
        let mut elsewhere = self.versions_elsewhere(&records, progress.first_sequence).await?;
        let mut selected = Vec::with_capacity(records.len());
        for record in records {
            let secs = record.datestamp_secs;
            if let Some(known) = elsewhere.get_mut(&record.identifier) {
                if known.datestamp_secs > secs {
                    self.listed.versions.note_stored(&record.identifier, known.datestamp_secs);
                    if known.is_of_harvest {
                        page.duplicates.duplicates += 1;
                    } else {
                        let item = MissingItem::Named(record.identifier.clone());
                        self.progress.gaps.note(item, Sighting::Listed(None), self.before);
                        self.has_new_gaps = true;
                    }
                    continue;
                }
                *known = VersionElsewhere { datestamp_secs: secs, is_of_harvest: true };
            }
            let ListedVersion { is_outdated, is_same } =
                self.listed.versions.note(&record.identifier, secs, hash_of_content(&record));
            let may_be_change = !is_outdated && changed_after_secs.is_some_and(|after| secs >= after);
            page.duplicates.add(DuplicateCounts {
                duplicates: u64::from(is_same == Some(false) && !may_be_change),
                repetitions: u64::from(is_same == Some(true)),
            });
            if !is_outdated {
                selected.push(record);
            }
        }
        Ok(selected)
    }

    /// The versions of records that are not in memory: after an interruption, and in a very long list. This harvest has
    /// received them, or an earlier one. In the latter case only a request for the record alone shows whether it is
    /// current: the source may have been restored from a backup.
    async fn versions_elsewhere(
        &self,
        records: &[NewRecord],
        first_sequence: u64,
    ) -> Result<HashMap<String, VersionElsewhere>, MirrorError> {
        if !self.listed.is_continued && !self.listed.versions.is_full() {
            return Ok(HashMap::new());
        }
        let names = records.iter().map(|record| &record.identifier);
        let mut names: Vec<String> =
            names.filter(|name| !self.listed.versions.contains(name)).cloned().collect();
        names.sort_unstable();
        names.dedup();
        let store = &self.harvest.store;
        let stored = match store.headers(self.harvest.repository(), Prefix(self.prefix), &names).await {
            // Damaged records are fetched again after the lists.
            Err(MirrorError::Damaged) => Vec::new(),
            stored => stored?,
        };
        let version = |known: StoredRecord| VersionElsewhere {
            datestamp_secs: known.datestamp_secs,
            is_of_harvest: known.sequence >= first_sequence,
        };
        let mut versions: HashMap<String, VersionElsewhere> =
            stored.into_iter().flatten().map(|known| (known.identifier.clone(), version(known))).collect();
        for waiting in self.waiting_records() {
            if names.binary_search(&waiting.identifier).is_ok() {
                let (datestamp_secs, is_of_harvest) = (waiting.datestamp_secs, true);
                let version = VersionElsewhere { datestamp_secs, is_of_harvest };
                versions.insert(waiting.identifier.clone(), version);
            }
        }
        Ok(versions)
    }

    /// Places records among those with the same identifier.
    async fn place(
        &mut self,
        records: Vec<NewRecord>,
        progress: DuplicateProgress,
        page: &mut ReceivedPage,
    ) -> Result<Vec<NewRecord>, MirrorError> {
        let names = records.iter().flat_map(|record| {
            let base = split_suffix(&record.identifier).map(|(base, _)| base);
            std::iter::once(record.identifier.as_str()).chain(base)
        });
        let mut known = self.occurrences(names.map(str::to_owned).collect()).await?;
        let changed_after_secs = self.changed_after_secs();
        let mut placed = Vec::with_capacity(records.len());
        for record in records {
            if progress.policy == Duplicates::Suffix {
                self.make_way(&record.identifier, &mut known, progress, page);
            }
            let content = match record.status {
                RecordStatus::Live => ListedContent::Live(hash_of_content(&record)),
                RecordStatus::Deleted => ListedContent::Deleted,
            };
            let mut occurrences = known.get(&record.identifier).cloned().unwrap_or_default();
            let placement = loop {
                let before = occurrences.clone();
                let secs = record.datestamp_secs;
                // A record does not change within a page.
                let is_on_page = self.listed.of_page.contains_key(&record.identifier);
                let changed_after_secs = if is_on_page { None } else { changed_after_secs };
                let placement = occurrences.place(content, secs, changed_after_secs, &progress);
                let Placement::Stored(number @ 2..) = placement else { break placement };
                let is_given = before.suffixed(number).is_some_and(|item| item.reading > 0);
                let name = with_suffix(&record.identifier, number);
                if is_given || !self.is_listed_name(&name, &known).await? {
                    break placement;
                }
                occurrences = before;
                occurrences.set(number - 1, ListedContent::Foreign, 0);
            };
            page.duplicates.add(placement.counts());
            known.insert(record.identifier.clone(), occurrences.clone());
            self.listed.of_page.insert(record.identifier.clone(), occurrences);
            match placement {
                Placement::Stored(1) => placed.push(record),
                Placement::Stored(number) => {
                    let identifier = with_suffix(&record.identifier, number);
                    match with_identifier(&record, identifier) {
                        Some(renamed) => placed.push(renamed),
                        None => page.missing.add_unplaced(&record),
                    }
                }
                Placement::Beyond => page.missing.add_unplaced(&record),
                Placement::Repeated | Placement::LeftOut | Placement::Postponed => {}
            }
        }
        Ok(placed)
    }

    /// A record of the source takes an identifier that the mirror has given to another one. The other one is missing
    /// until the next harvest, which gives it another number.
    fn make_way(
        &mut self,
        identifier: &str,
        known: &mut HashMap<String, Occurrences>,
        progress: DuplicateProgress,
        page: &mut ReceivedPage,
    ) {
        let Some((base, number)) = split_suffix(identifier) else { return };
        let Some(occurrences) = known.get_mut(base) else { return };
        let Some(item) = occurrences.suffixed(number).copied() else { return };
        if occurrences.is_listed(number - 1, progress.harvest)
            && let ListedContent::Live(hash) = item.content
        {
            page.missing.add_displaced(hash);
        }
        occurrences.set(number - 1, ListedContent::Foreign, 0);
        self.listed.of_page.insert(base.to_owned(), occurrences.clone());
    }

    /// Whether the source has listed a record with this identifier.
    async fn is_listed_name(
        &self,
        name: &str,
        known: &HashMap<String, Occurrences>,
    ) -> Result<bool, MirrorError> {
        if let Some(occurrences) = known.get(name) {
            return Ok(!occurrences.items.is_empty());
        }
        let found = self.occurrences(vec![name.to_owned()]).await?;
        Ok(found.values().any(|occurrences| !occurrences.items.is_empty()))
    }

    /// The known records of these identifiers, with the changes that wait for a commit.
    pub(crate) async fn occurrences(
        &self,
        mut names: Vec<String>,
    ) -> Result<HashMap<String, Occurrences>, MirrorError> {
        names.sort_unstable();
        names.dedup();
        let mut known = HashMap::with_capacity(names.len());
        names.retain(|name| match self.listed.find(name) {
            Some(occurrences) => {
                known.insert(name.clone(), occurrences.clone());
                false
            }
            None => true,
        });
        if !names.is_empty() {
            let store = &self.harvest.store;
            let stored = store.occurrences(self.harvest.repository(), Prefix(self.prefix), &names).await?;
            known.extend(names.into_iter().zip(stored));
        }
        Ok(known)
    }
}

/// The hash of a record after its header.
fn hash_of_content(record: &NewRecord) -> u64 {
    // Only text of the header itself can be before this: the end of what is compared need not be exact.
    let end = memmem::find(&record.bytes, b"</header>").unwrap_or_default();
    content_hash(RecordStatus::Live, &[], &[record.bytes.get(end..).unwrap_or_default()])
}

/// A record with another identifier; `None` if its header has none.
pub(crate) fn with_identifier(record: &NewRecord, identifier: String) -> Option<NewRecord> {
    let text = std::str::from_utf8(&record.bytes).ok()?;
    let place = RecordView::read(text)?.identifier()?;
    let (before, after) = (text.get(..place.start)?, text.get(place.end..)?);
    let mut xml = String::with_capacity(text.len());
    xml.push_str(before);
    escape(&identifier, &mut xml);
    xml.push_str(after);
    let bytes = xml.into();
    let set_specs = record.set_specs.clone();
    Some(with_sets(NewRecord { identifier, bytes, ..record.clone() }, set_specs))
}

/// A stored record, to be stored again. Its repairs are not known.
pub(crate) fn to_store_again(stored: StoredRecord) -> NewRecord {
    let StoredRecord { identifier, datestamp_secs, set_specs, status, bytes, .. } = stored;
    let repairs = oaimend_store::RecordRepairs::default();
    let (of_header, content_hash) = (set_specs.to_vec(), 0);
    let record =
        NewRecord { identifier, datestamp_secs, set_specs: of_header, status, content_hash, bytes, repairs };
    with_sets(record, set_specs.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_store::RecordRepairs;

    fn record(identifier: &str, header: &str, content: &str) -> NewRecord {
        let bytes = format!("<record><header>{header}</header>{content}</record>").into();
        let record = NewRecord {
            identifier: identifier.to_owned(),
            datestamp_secs: UnixSecs(0),
            set_specs: vec!["a".to_owned()],
            status: RecordStatus::Live,
            content_hash: 0,
            bytes,
            repairs: RecordRepairs::default(),
        };
        with_sets(record, vec!["a".to_owned()])
    }

    #[test]
    fn only_the_identifier_of_the_header_is_replaced() {
        let content = "<metadata><identifier>x</identifier></metadata>";
        let header = "<identifier> x&amp;y </identifier><datestamp>2020-01-01</datestamp>";
        let renamed = with_identifier(&record("x&y", header, content), "x&y#2".to_owned()).expect("a header");
        let header = "<identifier>x&amp;y#2</identifier><datestamp>2020-01-01</datestamp>";
        assert_eq!(renamed, record("x&y#2", header, content));
        assert_eq!(with_identifier(&record("x", "", content), "x#2".to_owned()), None);
    }

    #[test]
    fn records_that_differ_in_their_headers_only_have_the_same_content() {
        let one = record("x", "<identifier>x</identifier><setSpec>a</setSpec>", "<metadata/>");
        let same = record("x", "<identifier>x</identifier><setSpec>b</setSpec>", "<metadata/>");
        let other = record("x", "<identifier>x</identifier><setSpec>a</setSpec>", "<metadata>1</metadata>");
        assert_eq!(hash_of_content(&one), hash_of_content(&same));
        assert_ne!(hash_of_content(&one), hash_of_content(&other));
    }
}
