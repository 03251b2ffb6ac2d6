//! The request to the index for a page of results.

use super::failure::SearchFailure;
use crate::serve::search::searched_repositories;
use crate::serve::served::ServedRepositories;
use oaimend_pages::search::{FacetKind, PAGE_ITEMS, ResultList, SearchAddress, SortOrder};
use oaimend_pages::texts::search as texts;
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

/// The records of all searched repositories: one for each item.
pub(super) fn all_records(served: &ServedRepositories) -> RecordFilter {
    RecordFilter { repositories: Some(searched_repositories(&served.repositories)), prefix: None }
}

/// The records that a search considers: one for each item of the searched repositories, or of the chosen one.
///
/// # Errors
///
/// The chosen repository is not searched. An empty result would claim that the repository has no such record.
pub(super) fn filter_of(
    served: &ServedRepositories,
    address: &SearchAddress,
) -> Result<RecordFilter, SearchFailure> {
    let filter = all_records(served);
    let Some(chosen) = address.chosen.get(&FacetKind::Repository) else { return Ok(filter) };
    let is_searched = filter.repositories.iter().flatten().any(|id| id == chosen);
    if !is_searched {
        return Err(SearchFailure::Refused(texts::not_searched(chosen)));
    }
    Ok(RecordFilter { repositories: Some(vec![chosen.clone()]), ..filter })
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
