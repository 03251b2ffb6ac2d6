//! The list of the repositories that this server has.

use super::page::ApiPageRequest;
use crate::config::FEDERATION_NAME;
use crate::serve::problem::problem;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use http::HeaderMap;
use oaimend_api::{ListCursor, ListPosition, Operation, RepositoryList, RepositorySummary};
use oaimend_html::fingerprint;
use oaimend_mirror::repository_index::RepositoryKind;
use oaimend_mirror::view::AggregateRepository;
use oaimend_store::TokenUse;

/// The kind of the view of all mirrored repositories.
pub(crate) const KIND_OF_ALL: &str = "all";

/// A page of the repositories, after this id.
pub(crate) fn list(
    served: &ServedRepositories,
    limit: usize,
    after: Option<&str>,
    headers: &HeaderMap,
) -> Response {
    let mut repositories = all(served);
    repositories.retain(|repository| after.is_none_or(|after| repository.id.as_str() > after));
    let has_more = repositories.len() > limit;
    repositories.truncate(limit);
    let last = if has_more { repositories.last() } else { None };
    let cursor = last.map(|last| {
        let list = ListCursor::digest_of(&Operation::Repositories.name());
        let cursor = ListCursor { list, position: ListPosition::After(last.id.clone()) };
        served.store.token_key.seal(TokenUse::Api, &cursor)
    });
    let next = match cursor {
        Some(None) => return problem(502, "the id of a repository is too long for a cursor"),
        cursor => cursor.flatten(),
    };
    let document = serde_json::to_vec(&RepositoryList { repositories, next }).expect("a document is JSON");
    let version = fingerprint([document.as_slice()]);
    ApiPageRequest::versioned(document, &version, headers)
}

/// Whether the list has a repository with this id.
pub(super) fn is_listed(served: &ServedRepositories, id: &str) -> bool {
    all(served).iter().any(|repository| repository.id == id)
}

/// All repositories, in the order of their ids.
fn all(served: &ServedRepositories) -> Vec<RepositorySummary> {
    let mappings = served.repositories.all();
    let mut found: Vec<(String, &'static str)> =
        mappings.iter().map(|(id, mapping)| (id.clone(), mapping.kind().name())).collect();
    if served.mirror.policy().aggregate && served.has_mirrored() {
        found.push((AggregateRepository::NAME.to_owned(), KIND_OF_ALL));
    }
    if !mappings.is_empty() {
        found.push((FEDERATION_NAME.to_owned(), RepositoryKind::Federation.name()));
    }
    let federations = served.federations.all();
    found.extend(federations.values().map(|file| (file.path.clone(), RepositoryKind::Federation.name())));
    let views = served.views.all();
    found.extend(views.values().map(|view| (format!("_view/{}", view.name), RepositoryKind::View.name())));
    found.sort();
    let described = found.into_iter().map(|(id, kind)| RepositorySummary {
        base_url: format!("{}/{id}", served.public_url),
        id,
        kind,
    });
    described.collect()
}
