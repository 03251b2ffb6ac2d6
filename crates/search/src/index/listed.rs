//! Collects the hits of a list in the order of the commits.

use super::ranked::HitColumns;
use super::snapshot::Repositories;
use std::collections::BinaryHeap;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};

/// The place of a hit in a list: stamp, repository and sequence. Repositories have odd numbers, so that one that the index
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

/// Collects the first hits after a place.
pub(super) struct ListCollector<'s> {
    pub(super) from_secs: i64,
    pub(super) until_secs: i64,
    pub(super) after: Option<ListPlace>,
    /// Maximum number of hits.
    pub(super) hits_max: usize,
    pub(super) repositories: &'s Repositories,
}

/// The first hits in order, and the number of hits of the whole list.
#[derive(Debug, Default)]
pub(super) struct CollectedList {
    pub(super) hits: Vec<(ListPlace, DocAddress)>,
    pub(super) total: u64,
}

pub(super) struct ListSegment {
    from_secs: i64,
    until_secs: i64,
    after: Option<ListPlace>,
    hits_max: usize,
    segment: SegmentOrdinal,
    columns: HitColumns,
    /// The last of the first hits is on top.
    first: BinaryHeap<(ListPlace, DocAddress)>,
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

impl SegmentCollector for ListSegment {
    type Fruit = CollectedList;

    fn collect(&mut self, doc: DocId, _score: Score) {
        let stamp = self.columns.stamp.first(doc).unwrap_or_default();
        if stamp < self.from_secs || stamp > self.until_secs {
            return;
        }
        self.total += 1;
        let is_full = self.first.len() >= self.hits_max;
        let is_before = self.after.is_some_and(|(after, ..)| stamp < after);
        if is_before || (is_full && self.first.peek().is_none_or(|((last, ..), _)| stamp > *last)) {
            return;
        }
        let repository = 2 * u64::from(self.columns.repository_rank(doc)) + 1;
        let place = (stamp, repository, self.columns.sequence.first(doc).unwrap_or_default());
        if self.after.is_some_and(|after| place <= after) {
            return;
        }
        self.first.push((place, DocAddress::new(self.segment, doc)));
        if is_full {
            self.first.pop();
        }
    }

    fn harvest(self) -> CollectedList {
        CollectedList { hits: self.first.into_vec(), total: self.total }
    }
}
