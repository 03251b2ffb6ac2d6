//! A search of a program: the results that `/_search.json` has, in pages of a chosen length.

use super::page::ApiPageRequest;
use super::repositories::is_listed;
use super::request::{search_list, unknown_repository_problem};
use crate::serve::pages::gateway::Gateway;
use crate::serve::pages::search::results_from;
use crate::serve::problem::problem;
use crate::serve::response::Response;
use crate::serve::search::searched_repositories;
use crate::serve::served::ServedRepositories;
use http::HeaderMap;
use oaimend_api::{
    ListCursor, ListPosition, SEARCH_LIMIT_DEFAULT, SearchHitDocument, SearchPage, SearchParameters,
};
use oaimend_html::fingerprint;
use oaimend_pages::search::{FacetKind, PAGE_ITEMS, PAGES_MAX, SearchAddress, SearchItem, SortOrder};
use oaimend_store::TokenUse;

/// The number of found records that pages can contain. The cost of a page rises with its place.
const FOUND_MAX: usize = PAGE_ITEMS * PAGES_MAX;

/// The response to a search whose page begins after this number of found records.
pub(crate) async fn answer(
    served: &ServedRepositories,
    gateway: &Gateway,
    parameters: &SearchParameters,
    offset: usize,
    headers: &HeaderMap,
) -> Response {
    let Some(search) = served.search() else {
        return problem(
            404,
            "this server has no search: no repository is mirrored, or search.enabled is false",
        );
    };
    if let Some(refusal) = parameters.repository.as_deref().and_then(|id| refusal_of(served, id)) {
        return refusal;
    }
    let count = parameters.limit.unwrap_or(SEARCH_LIMIT_DEFAULT).min(FOUND_MAX.saturating_sub(offset));
    let found = results_from(served, gateway, (&**search, &address_of(parameters)), (offset, count)).await;
    let results = match found {
        Ok(results) => results,
        Err(failure) => {
            return failure
                .response(|text| problem(400, text), |notice| problem(notice.status(), notice.sentence()));
        }
    };
    let end = offset + count;
    let has_more = (end as u64) < results.total && end < FOUND_MAX;
    let next = if has_more {
        let cursor = ListCursor { list: search_list(parameters), position: ListPosition::Offset(end) };
        served.store.token_key.seal(TokenUse::Api, &cursor)
    } else {
        None
    };
    let page = SearchPage {
        total: results.total,
        is_estimate: results.is_estimate,
        items: results.items.iter().map(|item| hit(item, &served.public_url)).collect(),
        next,
    };
    let document = serde_json::to_vec(&page).expect("a document is JSON");
    let version = fingerprint([document.as_slice()]);
    ApiPageRequest::versioned(document, &version, headers)
}

/// Why a repository cannot be searched: it does not exist, or none of its records is in the index. `None` if it can.
fn refusal_of(served: &ServedRepositories, id: &str) -> Option<Response> {
    if searched_repositories(&served.repositories).iter().any(|searched| searched == id) {
        return None;
    }
    let of_mirror = id.strip_prefix("_mirror/").and_then(|id| served.mirrored(id));
    if of_mirror.is_none() && !is_listed(served, id) {
        return Some(unknown_repository_problem());
    }
    Some(problem(
        400,
        "this repository is not searched; send the id of a mirrored repository whose records have pages (ID instead of \
         _mirror/ID), or leave repository out to search all of them",
    ))
}

fn address_of(parameters: &SearchParameters) -> SearchAddress {
    let SearchParameters { q, repository, r#type, year, language, access, sort, .. } = parameters;
    let chosen = [
        (FacetKind::Repository, repository),
        (FacetKind::Type, r#type),
        (FacetKind::Year, year),
        (FacetKind::Language, language),
        (FacetKind::Access, access),
    ];
    let chosen = chosen.into_iter().filter_map(|(kind, value)| Some((kind, value.clone()?))).collect();
    let sort = sort.as_deref().and_then(SortOrder::from_name).unwrap_or_default();
    let query = q.as_deref().unwrap_or_default().trim().to_owned();
    SearchAddress { query, chosen, sort, ..SearchAddress::default() }
}

fn hit(item: &SearchItem, public_url: &str) -> SearchHitDocument {
    let work = &item.work;
    SearchHitDocument {
        repository: item.repository.clone(),
        identifier: work.identifier.clone(),
        url: item.url(public_url),
        title: item.title.as_ref().map(|title| title.text.value.clone()),
        creators: work.core.creators.iter().map(|creator| creator.value.clone()).collect(),
        year: item.year(),
        language: work.language(),
        is_open_access: work.is_open_access,
        snippet: item.snippet.as_ref().map(|snippet| snippet.text.value.clone()),
        changed: item.changed.clone(),
    }
}
