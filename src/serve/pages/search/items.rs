//! The texts of found records, from the mirror.

use crate::serve::pages::records::collection::{ServedFormats, SourceFacts};
use crate::serve::pages::records::item::ItemRecords;
use crate::serve::pages::rendering::{RenderLimits, RenderingFailed};
use crate::serve::served::ServedRepositories;
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_pages::search::{Facet, FacetKind, FacetValue, MarkedText, SearchItem, SearchResults};
use oaimend_record::{Text, WorkDescription};
use oaimend_search::{FacetCount, Facets, Highlighter, Query, RankedHits, Snippet};
use oaimend_store::{Identifier, MirrorError, RepositoryId};
use std::collections::BTreeMap;

/// What the results of a query are made from.
pub(super) struct Results<'a> {
    pub(super) served: &'a ServedRepositories,
    pub(super) rendering: &'a RenderLimits,
    pub(super) query: Query,
}

/// Why results cannot be shown now. It is never an empty list.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnshownResults {
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    #[error(transparent)]
    Rendering(#[from] RenderingFailed),
}

/// A found item as the mirror has it now.
struct StoredItem {
    repository: String,
    repository_name: String,
    records: ItemRecords,
    /// The stamp of the found record.
    stamp_secs: UnixSecs,
}

impl Results<'_> {
    /// The results of these hits: items as their pages describe them. Those that were deleted or damaged since they were
    /// indexed are left out, and those that the mirror serves in no format.
    pub(super) async fn of(self, found: RankedHits) -> Result<SearchResults, UnshownResults> {
        let (mut names, mut stored, mut bytes) = (BTreeMap::new(), Vec::new(), 0);
        let mut formats = ServedFormats::default();
        for hit in found.hits {
            let Some(mapping) = self.served.mirrored(&hit.repository) else { continue };
            let store = &*self.served.store.mirror;
            let (repository, identifier) = (RepositoryId(&hit.repository), Identifier(&hit.identifier));
            // The index may show the record of a format whose first harvest has not ended.
            let served = formats.of(store, &mapping).await?;
            let records = match ItemRecords::read(store, repository, served, identifier).await {
                Ok(Some(records)) => records,
                Ok(None) | Err(MirrorError::Damaged) => continue,
                Err(error) => return Err(error.into()),
            };
            let repository_name = self.name(&hit.repository, &mut names).await;
            bytes += records.bytes();
            stored.push(StoredItem {
                repository: hit.repository,
                repository_name,
                records,
                stamp_secs: hit.stamp_secs,
            });
        }
        let (facets, facets_are_estimates) = match found.facets {
            Some(facets) => (self.facets(&facets, &mut names).await, facets.is_estimate),
            None => (Vec::new(), false),
        };
        let mut highlighter = Highlighter::of(&self.query);
        let items = self
            .rendering
            .run(bytes, move || stored.into_iter().filter_map(|item| item.read(&mut highlighter)).collect());
        Ok(SearchResults {
            total: found.total.records,
            is_estimate: found.total.is_estimate,
            items: items.await?,
            facets,
            facets_are_estimates,
        })
    }

    /// The name of a repository. `names` contains those that were read before.
    async fn name(&self, repository: &str, names: &mut BTreeMap<String, String>) -> String {
        if let Some(name) = names.get(repository) {
            return name.clone();
        }
        let name = SourceFacts::read(&*self.served.store.mirror, repository).await.name;
        names.insert(repository.to_owned(), name.clone());
        name
    }

    /// The facets that divide the results.
    async fn facets(&self, facets: &Facets, names: &mut BTreeMap<String, String>) -> Vec<Facet> {
        let mut found = Vec::new();
        for (kind, counts) in [
            (FacetKind::Repository, &facets.repositories),
            (FacetKind::Type, &facets.types),
            (FacetKind::Year, &facets.years),
            (FacetKind::Language, &facets.languages),
            (FacetKind::Access, &facets.access),
        ] {
            let mut values = Vec::new();
            for FacetCount { value, records } in counts {
                let name = match kind {
                    FacetKind::Repository => Some(self.name(value, names).await),
                    _ => None,
                };
                values.push(FacetValue { value: value.clone(), name, records: *records });
            }
            if !values.is_empty() {
                found.push(Facet { kind, values });
            }
        }
        found
    }
}

impl StoredItem {
    /// The item; `None` if the XML of the record is damaged.
    fn read(self, highlighter: &mut Highlighter) -> Option<SearchItem> {
        let work = self.records.describe()?;
        let language = work.language();
        let tag = |text: &Text| text.language.clone().or_else(|| language.clone());
        let title = work.core.titles.first().map(|text| MarkedText {
            text: text.clone(),
            marks: highlighter.places("title", &text.value, tag(text).as_deref()),
        });
        let snippet = snippet(&work, highlighter, tag);
        Some(SearchItem {
            repository: self.repository,
            repository_name: self.repository_name,
            title,
            snippet,
            work,
            changed: from_secs(self.stamp_secs.max(self.records.stamp_secs()), Granularity::Second),
        })
    }
}

/// Maximum number of texts of a record in which the words of the query are searched.
const TEXTS_MAX: usize = 50;

/// The part of the record that shows best why it was found: of the first description or subject with a word of the
/// query, else the start of the first one.
fn snippet(
    work: &WorkDescription,
    highlighter: &mut Highlighter,
    tag: impl Fn(&Text) -> Option<String>,
) -> Option<MarkedText> {
    let descriptions = work.core.descriptions.iter().map(|text| ("description", text));
    let texts = descriptions.chain(work.core.subjects.iter().map(|text| ("subject", text)));
    let mut first = None;
    for (field, text) in texts.take(TEXTS_MAX) {
        let shown = highlighter.snippet(field, &text.value, tag(text).as_deref());
        if !shown.places.is_empty() {
            return Some(marked(text, &shown));
        }
        first.get_or_insert_with(|| marked(text, &shown));
    }
    first
}

/// A part of a text, with ellipses in place of what is left out.
fn marked(text: &Text, shown: &Snippet) -> MarkedText {
    let (before, after) =
        (if shown.is_cut_before { "…" } else { "" }, if shown.is_cut_after { "…" } else { "" });
    let marks = shown.places.iter().map(|place| place.start + before.len()..place.end + before.len());
    MarkedText {
        text: Text { value: format!("{before}{}{after}", shown.text), left_out_bytes: 0, ..text.clone() },
        marks: marks.collect(),
    }
}
