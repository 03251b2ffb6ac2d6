//! The overview of all repositories, and the pages in place of a repository that is not served.

use super::description::known_name;
use super::summary::{mirror_status, summary};
use crate::config::Mapping;
use crate::serve::pages::records::record::with_policies;
use crate::serve::pages::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use crate::serve::validators::Validators;
use http::HeaderMap;
use oaimend_html::fingerprint;
use oaimend_pages::RecordForm;
use oaimend_pages::html::{OverviewPage, RemovedRepositoryPage, UnknownRepositoryPage};
use oaimend_pages::repository::RepositorySummary;
use oaimend_pages::route::OverviewTarget;
use std::sync::Arc;

/// Maximum number of repositories on the overview.
const ROWS_MAX: usize = 500;

/// The rows of the overview.
pub(crate) struct OverviewRows {
    pub(crate) repositories: Vec<RepositorySummary>,
    /// The number of repositories that match the filter.
    pub(crate) matching: usize,
    /// The number of all repositories.
    pub(crate) all: usize,
}

/// The overview of all repositories.
pub(crate) async fn overview(
    served: &ServedRepositories,
    gateway: &GatewayState,
    target: &OverviewTarget,
    headers: &HeaderMap,
) -> Response {
    let OverviewRows { repositories, matching, all } = rows(served, target).await;
    let (filter, operator) = (target.filter.as_str(), None);
    let page =
        OverviewPage { site: &gateway.site, filter, repositories: &repositories, matching, all, operator };
    changing(page.render(), headers)
}

/// The rows of the repositories that match.
pub(crate) async fn rows(served: &ServedRepositories, target: &OverviewTarget) -> OverviewRows {
    let mappings = served.repositories.all();
    let mut matching: Vec<(&Arc<Mapping>, Option<String>)> = Vec::new();
    for mapping in mappings.values() {
        // Without the store the row has the id in place of the name.
        let name = known_name(served, mapping).await.unwrap_or_default();
        if target.matches(&[mapping.id(), name.as_deref().unwrap_or_default()]) {
            matching.push((mapping, name));
        }
    }
    let count = matching.len();
    let mut repositories = Vec::new();
    for (mapping, name) in matching.into_iter().take(ROWS_MAX) {
        let status = mirror_status(served, mapping).await;
        repositories.push(summary(served, mapping, name, &status));
    }
    OverviewRows { repositories, matching: count, all: mappings.len() }
}

/// The page for a path that is in no repository: 410 if the mirror has records of it and a browser asks, else 404.
pub(crate) async fn unknown(
    served: &ServedRepositories,
    gateway: &GatewayState,
    repository: &str,
    is_browser: bool,
) -> Response {
    let content_type = RecordForm::Html.content_type();
    let page = if is_browser && is_stored(served, repository).await {
        Response::new(410, content_type, RemovedRepositoryPage { site: &gateway.site, repository }.render())
    } else {
        let mappings = served.repositories.all();
        let repositories: Vec<&str> = mappings.keys().map(String::as_str).collect();
        let page = UnknownRepositoryPage { site: &gateway.site, repositories: &repositories };
        Response::new(404, content_type, page.render())
    };
    with_policies(page.with("Cache-Control", "public, max-age=60".to_owned())).compressible()
}

/// Whether the mirror has records of a repository, although it is not served.
pub(crate) async fn is_stored(served: &ServedRepositories, repository: &str) -> bool {
    let stored = served.store.mirror.repositories().await;
    stored.is_ok_and(|stored| stored.iter().any(|stored| stored == repository))
}

/// A page that may change at any time. Clients ask whether it has changed before they show it again.
pub(crate) fn changing(html: String, headers: &HeaderMap) -> Response {
    let validators = Validators { tag: fingerprint([html.as_bytes()]), modified_secs: None };
    let content_type = RecordForm::Html.content_type();
    let page = if validators.are_known(headers) {
        Response::new(304, content_type, "")
    } else {
        Response::new(200, content_type, html)
    };
    let page = validators.add_to(page).with("Cache-Control", "no-cache".to_owned());
    with_policies(page).compressible()
}
