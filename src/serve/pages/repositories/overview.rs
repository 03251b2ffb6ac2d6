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
use oaimend_pages::html::{OverviewPage, RemovedRepositoryPage, UnknownPath, UnknownPathPage};
use oaimend_pages::repository::RepositorySummary;
use oaimend_pages::route::OverviewTarget;
use std::sync::Arc;

/// Maximum number of repositories on a page of the overview.
pub(crate) const ROWS_MAX: usize = 500;
/// How often the counters of a page become a new version of it, in seconds.
const COUNTERS_SECS: i64 = 300;

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
    let (rows_max, operator) = (ROWS_MAX, None);
    let page = OverviewPage {
        site: &gateway.site,
        target,
        repositories: &repositories,
        rows_max,
        matching,
        all,
        operator,
    };
    let html = page.render();
    let shown: Vec<RepositorySummary> = repositories.into_iter().map(without_counters).collect();
    changing(served, html, &(&gateway.version, target, matching, all, shown), headers)
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
    for (mapping, name) in
        matching.into_iter().skip((target.page - 1).saturating_mul(ROWS_MAX)).take(ROWS_MAX)
    {
        let status = mirror_status(served, mapping).await;
        repositories.push(summary(served, mapping, name, &status));
    }
    OverviewRows { repositories, matching: count, all: mappings.len() }
}

/// A summary without what each request changes.
pub(crate) fn without_counters(summary: RepositorySummary) -> RepositorySummary {
    RepositorySummary { days: Vec::new(), last_success_at: None, ..summary }
}

/// The page for a path that leads nowhere: 410 if it is that of a removed repository and a browser asks, else 404.
pub(crate) async fn unknown(
    served: &ServedRepositories,
    gateway: &GatewayState,
    path: &str,
    is_browser: bool,
) -> Response {
    let repository = path.split('/').next().unwrap_or_default();
    let is_served = served.repositories.find(repository).is_some();
    if is_browser && !is_served && is_stored(served, path).await {
        let page = RemovedRepositoryPage { site: &gateway.site, repository }.render();
        return nowhere(410, page);
    }
    let path = match path.strip_prefix("_mirror/") {
        _ if is_served => UnknownPath::PageOf(repository),
        Some(id) if served.repositories.find(id).is_some() => UnknownPath::ListOf(id),
        None if path.starts_with(['_', '-']) => UnknownPath::Page,
        _ => UnknownPath::Repository,
    };
    unknown_path(served, gateway, path)
}

/// The page for a path that leads nowhere.
pub(crate) fn unknown_path(
    served: &ServedRepositories,
    gateway: &GatewayState,
    path: UnknownPath<'_>,
) -> Response {
    let mappings = served.repositories.all();
    let repositories: Vec<&str> = mappings.keys().map(String::as_str).collect();
    nowhere(404, UnknownPathPage { site: &gateway.site, path, repositories: &repositories }.render())
}

fn nowhere(status: u16, html: String) -> Response {
    let page = Response::new(status, RecordForm::Html.content_type(), html);
    with_policies(page.with("Cache-Control", "public, max-age=60".to_owned())).compressible()
}

/// Whether the mirror has records of a repository, although it is not served.
pub(crate) async fn is_stored(served: &ServedRepositories, repository: &str) -> bool {
    let stored = served.store.mirror.repositories().await;
    stored.is_ok_and(|stored| stored.iter().any(|stored| stored == repository))
}

/// A page that may change at any time. Clients ask whether it has changed before they show it again.
///
/// `facts` is what it shows without the counters that each request changes. Those become a new version of the page every
/// [`COUNTERS_SECS`] only; otherwise the page of a busy server would be another one for each of its readers.
pub(crate) fn changing(
    served: &ServedRepositories,
    html: String,
    facts: &impl std::fmt::Debug,
    headers: &HeaderMap,
) -> Response {
    let counted_at = served.clock.now_secs().0.div_euclid(COUNTERS_SECS);
    let version = format!("{:?}", (counted_at, facts));
    let validators = Validators { tag: fingerprint([version.as_bytes()]), modified_secs: None };
    let content_type = RecordForm::Html.content_type();
    let page = if validators.are_known(headers) {
        Response::new(304, content_type, "")
    } else {
        Response::new(200, content_type, html)
    };
    // The tag is weak, because pages with other counters have the same one.
    let page = page.with("ETag", format!("W/{}", validators.entity_tag()));
    with_policies(page.with("Cache-Control", "no-cache".to_owned())).compressible()
}
