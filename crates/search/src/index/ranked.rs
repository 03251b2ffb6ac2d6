//! Collects the best hits of a search in one pass, with a sample of all hits for the facets.

use super::schema::columns;
use super::snapshot::Repositories;
use crate::results::Ranking;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Column, StrColumn};
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader};

/// Maximum number of hits over which facets are counted. Of more hits, a sample is counted.
pub(super) const FACET_HITS_MAX: usize = 100_000;

/// The place of a hit in the order; the best one is the greatest. Ties are decided by what stays the same when segments
/// are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    first: u64,
    pub(super) stamp_secs: i64,
    repository: Reverse<u32>,
    pub(super) sequence: u64,
    address: Reverse<DocAddress>,
}

/// A hit among the best ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankedHit {
    pub(super) place: Place,
    pub(super) score: Score,
    pub(super) address: DocAddress,
}

impl PartialEq for RankedHit {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl Eq for RankedHit {}

impl PartialOrd for RankedHit {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RankedHit {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.place.cmp(&other.place)
    }
}

/// The columns that every result needs.
pub(super) struct HitColumns {
    pub(super) stamp: Column<i64>,
    pub(super) sequence: Column<u64>,
    repository: Option<StrColumn>,
    ranks: Arc<Vec<u32>>,
}

impl HitColumns {
    pub(super) fn of(segment: &SegmentReader, ranks: Arc<Vec<u32>>) -> tantivy::Result<Self> {
        let columns = segment.fast_fields();
        Ok(Self {
            stamp: columns.i64(columns::STAMP)?,
            sequence: columns.u64(columns::SEQUENCE)?,
            repository: columns.str(columns::REPOSITORY)?,
            ranks,
        })
    }

    pub(super) fn repository_rank(&self, doc: DocId) -> u32 {
        let number = self.repository.as_ref().and_then(|column| column.term_ords(doc).next());
        let rank = number.and_then(|number| self.ranks.get(usize::try_from(number).ok()?));
        rank.copied().unwrap_or(u32::MAX)
    }
}

/// Collects the best hits.
pub(super) struct RankedCollector<'s> {
    pub(super) ranking: Ranking,
    /// Maximum number of hits.
    pub(super) hits_max: usize,
    pub(super) with_facets: bool,
    pub(super) repositories: &'s Repositories,
}

/// The hits of one segment, and then of all.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// The best hits, the best one first.
    pub(super) best: Vec<RankedHit>,
    /// The number of all hits.
    pub(super) total: u64,
    pub(super) sample: Sample,
}

/// Hits for the facets: all of them, or one of `mask + 1`.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) docs: Vec<(SegmentOrdinal, DocId)>,
    pub(super) mask: u32,
}

impl Sample {
    fn is_chosen(doc: DocId, mask: u32) -> bool {
        // Neighbours are not independent, as the formats of an item are.
        (doc.wrapping_mul(0x9E37_79B1) >> 7) & mask == 0
    }

    fn add(&mut self, segment: SegmentOrdinal, doc: DocId) {
        if Self::is_chosen(doc, self.mask) {
            self.docs.push((segment, doc));
            self.bound();
        }
    }

    fn bound(&mut self) {
        while self.docs.len() > FACET_HITS_MAX && self.mask < u32::MAX >> 7 {
            self.mask = 2 * self.mask + 1;
            let mask = self.mask;
            self.docs.retain(|(_, doc)| Self::is_chosen(*doc, mask));
        }
    }

    fn merge(&mut self, other: Self) {
        self.mask = self.mask.max(other.mask);
        self.docs.extend(other.docs);
        let mask = self.mask;
        self.docs.retain(|(_, doc)| Self::is_chosen(*doc, mask));
        self.bound();
    }
}

pub(super) struct RankedSegment {
    ranking: Ranking,
    hits_max: usize,
    with_facets: bool,
    segment: SegmentOrdinal,
    columns: HitColumns,
    year: Column<u64>,
    /// The worst of the best hits is on top.
    best: BinaryHeap<Reverse<RankedHit>>,
    total: u64,
    sample: Sample,
}

impl Collector for RankedCollector<'_> {
    type Fruit = Collected;
    type Child = RankedSegment;

    fn for_segment(&self, segment: SegmentOrdinal, reader: &SegmentReader) -> tantivy::Result<RankedSegment> {
        let ranks = self.repositories.ranks.get(segment as usize).cloned().unwrap_or_default();
        Ok(RankedSegment {
            ranking: self.ranking,
            hits_max: self.hits_max,
            with_facets: self.with_facets,
            segment,
            columns: HitColumns::of(reader, ranks)?,
            year: reader.fast_fields().u64(columns::YEAR)?,
            best: BinaryHeap::new(),
            total: 0,
            sample: Sample::default(),
        })
    }

    fn requires_scoring(&self) -> bool {
        self.ranking == Ranking::Relevance
    }

    fn merge_fruits(&self, segments: Vec<Collected>) -> tantivy::Result<Collected> {
        let mut all = Collected::default();
        for segment in segments {
            all.best.extend(segment.best);
            all.total += segment.total;
            all.sample.merge(segment.sample);
        }
        all.best.sort_unstable_by(|left, right| right.cmp(left));
        all.best.truncate(self.hits_max);
        Ok(all)
    }
}

impl SegmentCollector for RankedSegment {
    type Fruit = Collected;

    fn collect(&mut self, doc: DocId, score: Score) {
        self.total += 1;
        if self.with_facets {
            self.sample.add(self.segment, doc);
        }
        let first = self.first(doc, score);
        let is_full = self.best.len() >= self.hits_max;
        // Most hits are not among the best ones, so the columns of ties are not read.
        if is_full && self.best.peek().is_none_or(|Reverse(worst)| first < worst.place.first) {
            return;
        }
        let hit = self.hit(doc, first, score);
        if is_full {
            if self.best.peek().is_some_and(|Reverse(worst)| *worst < hit) {
                self.best.pop();
                self.best.push(Reverse(hit));
            }
        } else {
            self.best.push(Reverse(hit));
        }
    }

    fn harvest(self) -> Collected {
        let best = self.best.into_iter().map(|Reverse(hit)| hit).collect();
        Collected { best, total: self.total, sample: self.sample }
    }
}

impl RankedSegment {
    /// What decides the order before ties.
    fn first(&self, doc: DocId, score: Score) -> u64 {
        match self.ranking {
            // Scores are not negative, and the bits of such numbers are in their order.
            Ranking::Relevance => u64::from(score.to_bits()),
            Ranking::Newest => self.year.first(doc).map_or(0, |year| year + 1),
            Ranking::Oldest => self.year.first(doc).map_or(0, |year| u64::MAX - year),
            Ranking::Recent => 0,
        }
    }

    fn hit(&self, doc: DocId, first: u64, score: Score) -> RankedHit {
        let address = DocAddress::new(self.segment, doc);
        let place = Place {
            first,
            stamp_secs: self.columns.stamp.first(doc).unwrap_or_default(),
            repository: Reverse(self.columns.repository_rank(doc)),
            sequence: self.columns.sequence.first(doc).unwrap_or_default(),
            address: Reverse(address),
        };
        RankedHit { place, score, address }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facets_of_many_hits_are_counted_in_a_sample() {
        let mut all = Sample::default();
        for segment in 0..4 {
            let mut part = Sample::default();
            (0..60_000).for_each(|doc| part.add(segment, doc));
            assert_eq!((part.docs.len(), part.mask), (60_000, 0));
            all.merge(part);
        }
        let estimated = all.docs.len() * (all.mask as usize + 1);
        assert!(all.docs.len() <= FACET_HITS_MAX && all.mask > 0);
        assert!((230_000..250_000).contains(&estimated), "{estimated}");
        // Both formats of an item are as frequent in the sample.
        let even = all.docs.iter().filter(|(_, doc)| doc % 2 == 0).count();
        assert!((45..55).contains(&(100 * even / all.docs.len())), "{even}");
    }
}
