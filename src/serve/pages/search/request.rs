//! The request to the index for a page of results.

use super::failure::SearchFailure;
use crate::serve::search::searched_repositories;
use crate::serve::served::ServedRepositories;
use oaimend_pages::search::{FacetKind, PAGE_ITEMS, ResultList, SearchAddress, SortOrder};
use oaimend_search::query::{QueryLanguage, parse};
use oaimend_search::{Query, Ranking, RecordFilter, SearchHits};

/// The query of a search: its words, and the chosen values other than the repository.
pub(super) fn query_of(address: &SearchAddress) -> Result<Query, SearchFailure> {
    let mut required = Vec::new();
    if !address.query.is_empty() {
        required.push(parse(QueryLanguage::Odl, &address.query)?);
    }
    for (kind, value) in &address.chosen {
        required.push(match kind {
            FacetKind::Repository => continue,
            FacetKind::Type => Query::Type(value.clone()),
            FacetKind::Year => {
                let (from, until) = address.years().unzip();
                Query::Years { from, until }
            }
            FacetKind::Language => Query::Language(value.clone()),
            FacetKind::Access => Query::Access(value.clone()),
        });
    }
    Ok(match required.len() {
        0 => Query::All,
        1 => required.remove(0),
        _ => Query::Boolean { required, optional: Vec::new(), excluded: Vec::new() },
    })
}

/// The records that a search considers: one for each item of the searched repositories, or of the chosen one.
pub(super) fn filter_of(served: &ServedRepositories, address: Option<&SearchAddress>) -> RecordFilter {
    let mut repositories = searched_repositories(&served.repositories);
    if let Some(chosen) = address.and_then(|address| address.chosen.get(&FacetKind::Repository)) {
        repositories.retain(|id| id == chosen);
    }
    RecordFilter { repositories: Some(repositories), prefix: None }
}

/// The request for the hits of a page.
pub(super) fn search_of(address: &SearchAddress, query: Query, filter: RecordFilter) -> SearchHits {
    let ranking = match (address.list, address.sort) {
        (ResultList::Recent, _) => Ranking::Recent,
        (ResultList::Search, SortOrder::Relevance) if address.query.is_empty() => Ranking::Recent,
        (ResultList::Search, SortOrder::Relevance) => Ranking::Relevance,
        (ResultList::Search, SortOrder::Newest) => Ranking::Newest,
        (ResultList::Search, SortOrder::Oldest) => Ranking::Oldest,
    };
    SearchHits { query, filter, ranking, offset: address.offset(), count_max: PAGE_ITEMS, with_facets: true }
}
