//! Counts facets.

use super::ranked::{HitColumns, Sample};
use super::schema::columns;
use super::snapshot::{Snapshot, names_of_column};
use crate::results::{FacetCount, Facets};
use std::collections::HashMap;
use tantivy::Searcher;

/// Maximum number of values of a facet.
const VALUES_MAX: usize = 50;

/// The facets of a sample of hits.
pub(super) fn count(snapshot: &Snapshot, sample: &Sample) -> tantivy::Result<Facets> {
    let searcher = &snapshot.searcher;
    let texts = |name: &str| count_texts(searcher, sample, name);
    Ok(Facets {
        repositories: count_repositories(snapshot, sample)?,
        types: texts(columns::WORK_TYPE)?,
        years: count_years(searcher, sample)?,
        languages: texts(columns::LANGUAGE)?,
        access: texts(columns::ACCESS)?,
        is_estimate: sample.mask > 0,
    })
}

/// The documents of the sample, by segment.
fn by_segment(sample: &Sample) -> impl Iterator<Item = (u32, impl Iterator<Item = u32> + '_)> + '_ {
    let parts = sample.docs.chunk_by(|(left, _), (right, _)| left == right);
    parts.filter_map(|part| Some((part.first()?.0, part.iter().map(|(_, doc)| *doc))))
}

/// Their names are known already, and there may be thousands.
fn count_repositories(snapshot: &Snapshot, sample: &Sample) -> tantivy::Result<Vec<FacetCount>> {
    let repositories = &snapshot.repositories;
    let mut counts = vec![0_u64; repositories.names.len()];
    for (segment, docs) in by_segment(sample) {
        let ranks = repositories.ranks.get(segment as usize).cloned().unwrap_or_default();
        let columns = HitColumns::of(snapshot.searcher.segment_reader(segment), ranks)?;
        for doc in docs {
            if let Some(count) = counts.get_mut(columns.repository_rank(doc) as usize) {
                *count += 1;
            }
        }
    }
    let counts = repositories.names.iter().cloned().zip(counts).filter(|(_, count)| *count > 0);
    Ok(most_frequent(counts.collect(), sample))
}

fn count_texts(searcher: &Searcher, sample: &Sample, name: &str) -> tantivy::Result<Vec<FacetCount>> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    for (segment, docs) in by_segment(sample) {
        let reader = searcher.segment_reader(segment);
        let Some(column) = reader.fast_fields().str(name)? else { continue };
        let names = names_of_column(reader, name)?;
        let mut by_number = vec![0_u64; names.len()];
        for doc in docs {
            for number in column.term_ords(doc) {
                if let Some(count) = usize::try_from(number).ok().and_then(|number| by_number.get_mut(number))
                {
                    *count += 1;
                }
            }
        }
        for (name, count) in names.into_iter().zip(by_number).filter(|(_, count)| *count > 0) {
            *counts.entry(name).or_default() += count;
        }
    }
    Ok(most_frequent(counts, sample))
}

fn count_years(searcher: &Searcher, sample: &Sample) -> tantivy::Result<Vec<FacetCount>> {
    let mut counts: HashMap<u64, u64> = HashMap::new();
    for (segment, docs) in by_segment(sample) {
        let column = searcher.segment_reader(segment).fast_fields().u64(columns::YEAR)?;
        for year in docs.filter_map(|doc| column.first(doc)) {
            *counts.entry(year).or_default() += 1;
        }
    }
    let counts = counts.into_iter().map(|(year, count)| (year.to_string(), count)).collect();
    Ok(most_frequent(counts, sample))
}

fn most_frequent(counts: HashMap<String, u64>, sample: &Sample) -> Vec<FacetCount> {
    let factor = u64::from(sample.mask) + 1;
    let mut counts: Vec<FacetCount> =
        counts.into_iter().map(|(value, count)| FacetCount { value, records: factor * count }).collect();
    counts.sort_unstable_by(|left, right| {
        right.records.cmp(&left.records).then_with(|| left.value.cmp(&right.value))
    });
    counts.truncate(VALUES_MAX);
    counts
}
