//! The overview and the pages of repositories, with what only operators may know.

use super::page::{html, no_repository, site};
use crate::config::Mapping;
use crate::serve::pages::gateway::Gateway;
use crate::serve::pages::repositories::overview::{OverviewRows, ROWS_MAX, rows};
use crate::serve::pages::repositories::repository::details;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use oaimend_pages::html::{OverviewPage, RepositoryPage};
use oaimend_pages::repository::OperatorDetails;
use oaimend_pages::route::OverviewTarget;
use std::collections::BTreeMap;

/// The overview of all repositories.
pub(crate) async fn overview(
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
    let (target, repositories, rows_max, operator) = (&target, &repositories, ROWS_MAX, Some(&operator));
    html(200, OverviewPage { site, target, repositories, rows_max, matching, all, operator }.render())
}

/// A repository.
pub(crate) async fn repository(served: &ServedRepositories, gateway: &Gateway, id: &str) -> Response {
    let site = &site(gateway);
    let Some(mapping) = &served.repositories.find(id) else { return no_repository(site) };
    let mut details = details(served, mapping).await;
    details.summary.has_record_pages &= gateway.current().policy.enabled;
    let operator = operator_details(served, mapping);
    html(200, RepositoryPage { site, details: &details, operator: Some(&operator) }.render())
}

fn operator_details(served: &ServedRepositories, mapping: &Mapping) -> OperatorDetails {
    OperatorDetails {
        source_base_url: mapping.shown_source(),
        circuit_open_secs: served.sources.circuit_open_secs(mapping.id(), served.clock.now()),
        configuration: mapping.to_toml(&mapping.source.shown_base_url()),
    }
}
