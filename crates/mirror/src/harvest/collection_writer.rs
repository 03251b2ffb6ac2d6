//! Receives the records of one format of a repository, and commits several pages at a time.
//!
//! A commit syncs the disk three times, and all pages change the same rows of the index. So the pages of a fast source
//! share a commit. Those of a slow source are committed one by one: a kill costs little time.
//!
//! Invariant: the progress never reaches beyond the records that are stored with it or before it.

use crate::harvest::listed_identifiers::ListedIdentifiers;
use crate::harvest::page::{Harvester, Interruption, ReceivedPage, stopped, to_new_record};
use oaimend_oai::set_spec::is_within;
use oaimend_oai::{Request, UnixSecs, Verb};
use oaimend_repository::{Event, RecordView};
use oaimend_rules::HarvestMark;
use oaimend_store::{
    Committed, CompleteHarvest, HarvestProgress, MirrorError, NewRecord, PageCommit, Prefix, RecordStatus,
    check_record, content_hash,
};
use std::time::{Duration, SystemTime};

/// Records after which a commit is due.
const COMMIT_RECORDS: usize = 4_000;
/// Bytes of XML after which a commit is due.
const COMMIT_BYTES: usize = 8 << 20;
/// Maximum number of bytes of XML that wait for a commit, except for one record: a page may be longer.
const HELD_BYTES_MAX: usize = 16 << 20;
/// The time after a commit after which a page is committed at once.
const COMMIT_INTERVAL: Duration = Duration::from_secs(5);

/// Collects the records of one format, and commits them.
pub(crate) struct CollectionWriter<'a> {
    pub(crate) harvest: &'a Harvester,
    pub(crate) prefix: &'a str,
    /// The progress that the next commit stores.
    pub(crate) progress: HarvestProgress,
    /// The state that the current harvest continues from; `None` if it requests all records. Gaps are noted with it.
    pub(crate) before: Option<HarvestMark>,
    /// Whether the known gaps differ from the stored ones.
    pub(crate) has_new_gaps: bool,
    /// The effects of the commits.
    pub(crate) counts: Committed,
    records: Vec<NewRecord>,
    /// Whether a live record without a set was received.
    pub(crate) has_records_without_sets: bool,
    /// Whether the stored records name sets that are not in their headers.
    names_harvested_sets: bool,
    /// The bytes of XML in `records`.
    bytes: usize,
    /// The time of the last commit.
    committed_at: SystemTime,
    pub(crate) listed: ListedIdentifiers,
}

impl<'a> CollectionWriter<'a> {
    /// Continues with the stored progress.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub(crate) async fn open(harvest: &'a Harvester, prefix: &'a str) -> Result<Self, MirrorError> {
        let progress = harvest.store.progress(harvest.repository(), Prefix(prefix)).await?;
        let before = progress.last_complete.map(CompleteHarvest::mark);
        let members = harvest.store.catalog(harvest.repository()).await?.set_members.remove(prefix);
        let names_harvested_sets = members.is_some_and(|members| members.is_harvested);
        Ok(Self {
            harvest,
            prefix,
            progress,
            before,
            has_new_gaps: false,
            counts: Committed::default(),
            records: Vec::new(),
            bytes: 0,
            committed_at: harvest.clock.now(),
            listed: ListedIdentifiers::default(),
            has_records_without_sets: false,
            names_harvested_sets,
        })
    }

    /// Adds a record to the next commit.
    pub(crate) fn push(&mut self, record: NewRecord) {
        self.bytes += record.bytes.len();
        self.records.push(record);
    }

    /// Receives a page, and adds its records to the next commit. Parts of a very long page are committed with the
    /// unchanged progress. No record of a page that failed waits for a commit. `window` is the requested one, in
    /// seconds since 1970. Missing items become known gaps. A page of which all items are missing is no failure.
    ///
    /// # Errors
    ///
    /// The source fails, or the store.
    pub(crate) async fn receive_page(
        &mut self,
        request: Request,
        window: (Option<UnixSecs>, Option<UnixSecs>),
    ) -> Result<ReceivedPage, Interruption> {
        let mut page = ReceivedPage::new(self.harvest.now_secs());
        let is_single = request.verb() == Verb::GetRecord;
        page.missing.are_unnamed = self.needs_whole_lists();
        let requested = request.clone();
        let mut held_before = self.records.len();
        let mut events = self.harvest.source.answer(self.harvest.request(request, true));
        while let Some(event) = events.next().await {
            match event {
                Event::Records(records) => {
                    let mut received = Vec::with_capacity(records.len());
                    for record in records {
                        page.note_record(&record.identifier);
                        self.has_records_without_sets |= record.set_specs.is_empty() && !record.deleted;
                        let record = to_new_record(record);
                        page.outside.note(record.datestamp_secs, window);
                        received.push(record);
                    }
                    if !is_single {
                        received = self.select(received, &mut page).await?;
                    }
                    self.push_fitting(received, &mut page);
                    if self.bytes >= HELD_BYTES_MAX {
                        self.keep_stored_sets(held_before).await?;
                        self.listed.keep_page();
                        self.commit().await?;
                        held_before = 0;
                    }
                }
                Event::Quarantined(items) => page.missing.add_quarantined(items),
                Event::End(summary) => {
                    page.summary = *summary;
                    page.note_oversized();
                    self.end_page(&requested, &page);
                    self.keep_stored_sets(held_before).await?;
                    return Ok(page);
                }
                Event::Failed(failure, summary) => {
                    self.truncate(held_before);
                    let are_items_known =
                        is_single && page.missing.count() > 0 || summary.end.has_only_quarantined;
                    if !are_items_known {
                        return Err(Interruption::Source(failure));
                    }
                    page.summary = *summary;
                    self.end_page(&requested, &page);
                    return Ok(page);
                }
                Event::Head(_) | Event::Body(_) => {}
            }
        }
        self.truncate(held_before);
        Err(Interruption::Source(stopped(&self.harvest.id)))
    }

    /// The records that wait for a commit.
    pub(crate) fn waiting_records(&self) -> impl Iterator<Item = &NewRecord> {
        self.records.iter()
    }

    /// Whether the records of the current harvest are chosen by their places in whole lists.
    pub(crate) fn needs_whole_lists(&self) -> bool {
        self.progress.duplicates.is_some_and(|duplicates| duplicates.policy.needs_whole_lists())
    }

    /// Adds the records that the store can contain to the next commit. The other ones are missing.
    fn push_fitting(&mut self, records: Vec<NewRecord>, page: &mut ReceivedPage) {
        for record in records {
            match check_record(&record) {
                Ok(()) => {
                    if self.progress.gaps.contains(&record.identifier) {
                        page.recovered.push(record.identifier.clone());
                    }
                    self.push(record);
                }
                Err(limit) => page.missing.add_unfit(&self.harvest.id, record, &limit),
            }
        }
    }

    /// Notes what a page that was received says about gaps and duplicates.
    fn end_page(&mut self, request: &Request, page: &ReceivedPage) {
        self.note_gaps(request, page);
        self.listed.keep_page();
        let has_all = !page.summary.end.has_concluded_end && page.missing.count() == 0;
        if let Some(duplicates) = &mut self.progress.duplicates
            && request.verb() != Verb::GetRecord
        {
            duplicates.counts.add(page.duplicates);
            duplicates.is_conclusive &= has_all;
        }
    }

    /// Adds the tombstone of a vanished record to the next commit.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub(crate) async fn push_tombstone(&mut self, tombstone: NewRecord) -> Result<(), MirrorError> {
        let first = self.records.len();
        self.push(tombstone);
        self.keep_stored_sets(first).await
    }

    /// Adds sets of the stored versions to the records that wait, from the `first` on. A deletion without setSpec must
    /// reach the harvesters of the sets, and a header does not name the sets that the source was asked for.
    async fn keep_stored_sets(&mut self, first: usize) -> Result<(), MirrorError> {
        let names_all = self.names_harvested_sets;
        let is_affected = |record: &NewRecord| {
            names_all || (record.status == RecordStatus::Deleted && record.set_specs.is_empty())
        };
        let new = self.records.get_mut(first..).unwrap_or_default();
        let affected: Vec<&mut NewRecord> = new.iter_mut().filter(|record| is_affected(record)).collect();
        if affected.is_empty() {
            return Ok(());
        }
        let identifiers: Vec<String> = affected.iter().map(|record| record.identifier.clone()).collect();
        let stored =
            self.harvest.store.headers(self.harvest.repository(), Prefix(self.prefix), &identifiers).await?;
        for (record, stored) in affected.into_iter().zip(stored) {
            let mut set_specs = record.set_specs.clone();
            for set in stored.iter().flat_map(|stored| stored.set_specs.iter()) {
                if !set_specs.iter().any(|set_spec| is_within(set_spec, set)) {
                    set_specs.push(set.clone());
                }
            }
            if set_specs != record.set_specs {
                *record = with_sets(record.clone(), set_specs);
            }
        }
        Ok(())
    }

    /// Removes all but the first `count` records that wait: their page has failed.
    fn truncate(&mut self, count: usize) {
        self.listed.drop_page();
        self.records.truncate(count);
        self.bytes = self.records.iter().map(|record| record.bytes.len()).sum();
    }

    /// Commits the records if there are enough of them, or if the last commit was long ago.
    ///
    /// # Errors
    ///
    /// Those of [`Self::commit`].
    pub(crate) async fn commit_if_due(&mut self) -> Result<(), Interruption> {
        // The clock may have been set back.
        let age = self.harvest.clock.now().duration_since(self.committed_at).unwrap_or(COMMIT_INTERVAL);
        let count = self.records.len().max(self.listed.waiting());
        let is_large = count >= COMMIT_RECORDS || self.bytes >= COMMIT_BYTES;
        if is_large || age >= COMMIT_INTERVAL { self.flush().await } else { Ok(()) }
    }

    /// Stores the records together with the progress, and updates its revision.
    ///
    /// # Errors
    ///
    /// The store fails, or another harvest has changed the progress.
    pub(crate) async fn commit(&mut self) -> Result<(), Interruption> {
        let page = PageCommit {
            repository: self.harvest.id.clone(),
            prefix: self.prefix.to_owned(),
            stamp_secs: UnixSecs(0),
            records: std::mem::take(&mut self.records),
            occurrences: self.listed.take_changed(),
            progress: self.progress.clone(),
        };
        self.bytes = 0;
        let committed = self.harvest.stamps.commit(page, self.harvest.now_secs()).await?;
        self.progress.revision = committed.revision;
        self.has_new_gaps = false;
        self.counts.add(committed);
        self.committed_at = self.harvest.clock.now();
        Ok(())
    }

    /// Commits the records that wait and the known gaps, if they have changed.
    ///
    /// # Errors
    ///
    /// Those of [`Self::commit`].
    pub(crate) async fn flush(&mut self) -> Result<(), Interruption> {
        let is_unchanged = self.records.is_empty() && self.listed.waiting() == 0 && !self.has_new_gaps;
        if is_unchanged { Ok(()) } else { self.commit().await }
    }
}

/// A record in these sets.
pub(crate) fn with_sets(record: NewRecord, set_specs: Vec<String>) -> NewRecord {
    let text = String::from_utf8_lossy(&record.bytes);
    let datestamp_at = RecordView::read(&text).and_then(|record| record.datestamp());
    let datestamp_at = datestamp_at.unwrap_or(text.len()..text.len());
    let content = [text.get(..datestamp_at.start), text.get(datestamp_at.end..)];
    let content = content.map(|part| part.unwrap_or_default().as_bytes());
    let content_hash = content_hash(record.status, &set_specs, &content);
    NewRecord { set_specs, content_hash, ..record }
}
