//! Collects the hits of a list in the order of their datestamps.

use super::ranked::HitColumns;
use super::snapshot::Repositories;
use crate::results::ListedRepository;
use std::collections::BinaryHeap;
use std::sync::Arc;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};

/// The place of a hit in a list: datestamp, repository and sequence. Repositories have odd numbers, so that one that the index
/// does not contain has a place between them.
pub(super) type ListPlace = (i64, u64, u64);

/// The number of a repository in a [`ListPlace`].
pub(super) fn repository_number(repositories: &Repositories, name: &str) -> u64 {
    let number = |rank: usize| 2 * rank as u64;
    match repositories.names.binary_search_by(|known| known.as_str().cmp(name)) {
        Ok(rank) => number(rank) + 1,
        Err(rank) => number(rank),
    }
}

/// The lowest datestamps of these repositories, by the ranks of those of the index. `None`: there are none.
pub(super) fn lowest_datestamps(
    repositories: &Repositories,
    listed: &[ListedRepository],
) -> Option<Arc<Vec<i64>>> {
    let mut lowest = vec![i64::MIN; repositories.names.len()];
    let mut has_any = false;
    for ListedRepository { name, lowest_secs } in listed {
        if let (Some(secs), Ok(rank)) = (lowest_secs, repositories.names.binary_search(name))
            && let Some(of_repository) = lowest.get_mut(rank)
        {
            *of_repository = secs.0;
            has_any = true;
        }
    }
    has_any.then(|| Arc::new(lowest))
}

/// Collects the first hits after a place.
pub(super) struct ListCollector<'s> {
    /// The first datestamp.
    pub(super) from_secs: i64,
    /// The last datestamp.
    pub(super) until_secs: i64,
    pub(super) after: Option<ListPlace>,
    /// The lowest datestamps of repositories, by their ranks.
    pub(super) lowest_secs: Option<Arc<Vec<i64>>>,
    /// Maximum number of hits.
    pub(super) hits_max: usize,
    pub(super) repositories: &'s Repositories,
}

/// The first hits in order, and the number of hits of the whole list.
#[derive(Debug, Default)]
pub(super) struct CollectedList {
    pub(super) hits: Vec<ListedHit>,
    pub(super) total: u64,
}

/// A hit of a list. No two have the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListedHit {
    pub(super) place: ListPlace,
    pub(super) stamp_secs: i64,
    pub(super) address: DocAddress,
}

pub(super) struct ListSegment {
    from_secs: i64,
    until_secs: i64,
    after: Option<ListPlace>,
    lowest_secs: Option<Arc<Vec<i64>>>,
    hits_max: usize,
    segment: SegmentOrdinal,
    columns: HitColumns,
    /// The last of the first hits is on top.
    first: BinaryHeap<ListedHit>,
    total: u64,
}

impl Collector for ListCollector<'_> {
    type Fruit = CollectedList;
    type Child = ListSegment;

    fn for_segment(&self, segment: SegmentOrdinal, reader: &SegmentReader) -> tantivy::Result<ListSegment> {
        let ranks = self.repositories.ranks.get(segment as usize).cloned().unwrap_or_default();
        Ok(ListSegment {
            from_secs: self.from_secs,
            until_secs: self.until_secs,
            after: self.after,
            lowest_secs: self.lowest_secs.clone(),
            hits_max: self.hits_max,
            segment,
            columns: HitColumns::of(reader, ranks)?,
            first: BinaryHeap::new(),
            total: 0,
        })
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(&self, segments: Vec<CollectedList>) -> tantivy::Result<CollectedList> {
        let mut all = CollectedList::default();
        for segment in segments {
            all.hits.extend(segment.hits);
            all.total += segment.total;
        }
        all.hits.sort_unstable();
        all.hits.truncate(self.hits_max);
        Ok(all)
    }
}

impl ListSegment {
    /// The lowest datestamp of the repository of a hit.
    fn lowest_of(&self, doc: DocId) -> Option<i64> {
        let lowest = self.lowest_secs.as_ref()?;
        lowest.get(self.columns.repository_rank(doc) as usize).copied()
    }
}

impl SegmentCollector for ListSegment {
    type Fruit = CollectedList;

    fn collect(&mut self, doc: DocId, _score: Score) {
        let stamp_secs = self.columns.stamp.first(doc).unwrap_or_default();
        let datestamp = self.lowest_of(doc).map_or(stamp_secs, |lowest| lowest.max(stamp_secs));
        if datestamp < self.from_secs || datestamp > self.until_secs {
            return;
        }
        self.total += 1;
        let is_full = self.first.len() >= self.hits_max;
        let is_before = self.after.is_some_and(|(after, ..)| datestamp < after);
        if is_before || (is_full && self.first.peek().is_none_or(|last| datestamp > last.place.0)) {
            return;
        }
        let repository = 2 * u64::from(self.columns.repository_rank(doc)) + 1;
        let place = (datestamp, repository, self.columns.sequence.first(doc).unwrap_or_default());
        if self.after.is_some_and(|after| place <= after) {
            return;
        }
        let address = DocAddress::new(self.segment, doc);
        self.first.push(ListedHit { place, stamp_secs, address });
        if is_full {
            self.first.pop();
        }
    }

    fn harvest(self) -> CollectedList {
        CollectedList { hits: self.first.into_vec(), total: self.total }
    }
}
