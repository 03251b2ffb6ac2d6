//! Answers requests for the pages of the admin listener.

mod quarantine;
mod status;

use crate::config::Mapping;
use crate::serve::oai::live_requests::LiveRequests;
use crate::serve::pages::answer;
use crate::serve::pages::gateway::Gateway;
use crate::serve::pages::records::record::with_policies;
use crate::serve::pages::repositories::overview::{OverviewRows, rows};
use crate::serve::pages::repositories::repository::details;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use oaimend_html::Site;
use oaimend_pages::RecordForm;
use oaimend_pages::html::{OverviewPage, RepositoryPage, UnknownOperatorPage};
use oaimend_pages::repository::OperatorDetails;
use oaimend_pages::route::OverviewTarget;
use std::collections::BTreeMap;

/// The site as the admin listener shows it. Its pages exist even if the public listener has none.
fn site(gateway: &Gateway) -> Site {
    gateway.current().site.for_operators()
}

/// The requests in flight, the limits of sources, and the queue of harvests.
pub(super) fn status(
    served: &ServedRepositories,
    live_requests: &LiveRequests,
    gateway: &Gateway,
) -> Response {
    status::status(served, live_requests, &site(gateway))
}

/// The plot of the plan of all harvests.
pub(super) async fn plan_chart(served: &ServedRepositories) -> Response {
    status::chart(served).await
}

/// The style sheet at this path.
pub(super) fn style_sheet(gateway: &Gateway, path: &str) -> Response {
    answer::style_sheet(site(gateway).style_sheets(), path)
}

/// The quarantined records of a repository.
pub(super) async fn quarantine(served: &ServedRepositories, gateway: &Gateway, id: &str) -> Response {
    let site = site(gateway);
    match served.repositories.find(id) {
        Some(mapping) => quarantine::list(served, &site, &mapping).await,
        None => no_repository(&site),
    }
}

/// A quarantined record.
pub(super) async fn quarantined_record(
    served: &ServedRepositories,
    gateway: &Gateway,
    id: &str,
    key: &str,
) -> Response {
    let site = site(gateway);
    match served.repositories.find(id) {
        Some(mapping) => quarantine::record(served, &site, &mapping, key).await,
        None => no_repository(&site),
    }
}

/// The overview of all repositories.
pub(super) async fn overview(
    served: &ServedRepositories,
    gateway: &Gateway,
    query: Option<&str>,
) -> Response {
    let (site, target) = (&site(gateway), OverviewTarget::read(query.unwrap_or_default()));
    let OverviewRows { mut repositories, matching, all } = rows(served, &target).await;
    let mut operator = BTreeMap::new();
    for repository in &mut repositories {
        repository.has_record_pages &= gateway.current().policy.enabled;
        if let Some(mapping) = served.repositories.find(&repository.id) {
            operator.insert(repository.id.clone(), operator_details(served, &mapping));
        }
    }
    let (filter, operator) = (target.filter.as_str(), Some(&operator));
    html(200, OverviewPage { site, filter, repositories: &repositories, matching, all, operator }.render())
}

/// A repository.
pub(super) async fn repository(served: &ServedRepositories, gateway: &Gateway, id: &str) -> Response {
    let site = &site(gateway);
    let Some(mapping) = &served.repositories.find(id) else { return no_repository(site) };
    let mut details = details(served, mapping).await;
    details.summary.has_record_pages &= gateway.current().policy.enabled;
    let operator = operator_details(served, mapping);
    html(200, RepositoryPage { site, details: &details, operator: Some(&operator) }.render())
}

fn operator_details(served: &ServedRepositories, mapping: &Mapping) -> OperatorDetails {
    OperatorDetails {
        source_base_url: mapping.source.shown_base_url(),
        circuit_open_secs: served.sources.circuit_open_secs(mapping.id(), served.clock.now()),
        configuration: mapping.to_toml(&mapping.source.shown_base_url()),
    }
}

fn no_repository(site: &Site) -> Response {
    let text = "No mapping has this id. The overview lists the repositories of this server.";
    html(404, UnknownOperatorPage { site, title: "No such repository", text }.render())
}

/// A page that no one stores, because it contains what only operators may know.
fn html(status: u16, html: String) -> Response {
    let page = Response::new(status, RecordForm::Html.content_type(), html);
    with_policies(page.with("Cache-Control", "no-store".to_owned()))
}
