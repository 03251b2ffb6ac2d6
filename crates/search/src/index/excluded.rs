//! Queries whose records are left out.

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader};

/// A query for `Occur::MustNot`. tantivy 0.27 calls `seek_danger` of an excluded phrase with documents before its own, and
/// its debug assertions refuse that. This one only seeks.
#[derive(Debug)]
pub(super) struct ExcludedQuery(pub(super) Box<dyn Query>);

impl Clone for ExcludedQuery {
    fn clone(&self) -> Self {
        Self(self.0.box_clone())
    }
}

struct ExcludedWeight(Box<dyn Weight>);

struct ExcludedScorer(Box<dyn Scorer>);

impl Query for ExcludedQuery {
    fn weight(&self, enable_scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(ExcludedWeight(self.0.weight(enable_scoring)?)))
    }
}

impl Weight for ExcludedWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(Box::new(ExcludedScorer(self.0.scorer(reader, boost)?)))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.0.explain(reader, doc)
    }
}

impl DocSet for ExcludedScorer {
    fn advance(&mut self) -> DocId {
        self.0.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.0.seek(target)
    }

    fn doc(&self) -> DocId {
        self.0.doc()
    }

    fn size_hint(&self) -> u32 {
        self.0.size_hint()
    }
}

impl Scorer for ExcludedScorer {
    fn score(&mut self) -> Score {
        self.0.score()
    }
}
