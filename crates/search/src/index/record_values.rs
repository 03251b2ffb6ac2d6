//! Lists the values of a field in a few records, from their texts.

use super::values::Grouped;
use crate::RecordTexts;
use crate::results::{ValueCount, Values};
use crate::text::{fold_value, spelling};
use oaimend_record::RecordDocument;
use oaimend_repository::RecordView;
use oaimend_store::StoredRecord;
use std::collections::{BTreeMap, HashSet};

/// Counts the values of a field in records. The result is that of [`SearchIndex::values`](super::SearchIndex::values) for
/// the same records. Pure; the memory depends on the number and the length of the different values, of at most 200 bytes
/// each.
#[derive(Clone, Debug)]
pub struct ValueCounts {
    request: Values,
    /// The field in the index.
    name: String,
    /// The folded start.
    start: String,
    /// By folded text and spelling, as the terms of the index are ordered.
    counts: BTreeMap<(String, String), u64>,
}

impl ValueCounts {
    /// The values of no record. The filter of the request has chosen the records that are added.
    pub fn new(request: Values) -> Self {
        let (name, start) = (request.field.key(), fold_value(&request.start));
        Self { request, name, start, counts: BTreeMap::new() }
    }

    /// Adds a live record of a repository. One that cannot be read has no values.
    pub fn add(&mut self, repository: &str, record: &StoredRecord) {
        let view = std::str::from_utf8(&record.bytes).ok().and_then(RecordView::read);
        let Some(document) = view.and_then(|view| RecordDocument::read_content(&view).ok()) else { return };
        let mut known = HashSet::new();
        for text in RecordTexts::of(repository, &record.identifier, &document).texts {
            if let Some((folded, written)) = text.value
                && text.name == self.name
                && folded.starts_with(&self.start)
                && self.request.after.as_ref().is_none_or(|after| folded > *after)
                && known.insert(folded.clone())
            {
                let spelling = spelling(&folded, &written);
                *self.counts.entry((folded, spelling)).or_default() += 1;
            }
        }
    }

    /// The values in order.
    pub fn into_values(self) -> Vec<ValueCount> {
        let mut grouped = Grouped::default();
        for ((folded, spelling), records) in self.counts {
            if grouped.values.len() == self.request.count_max && grouped.is_new(&folded) {
                break;
            }
            grouped.add(&folded, &spelling, records);
        }
        grouped.values
    }
}
