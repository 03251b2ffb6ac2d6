//! Answers requests for the pages of the admin listener.

mod quarantine;
mod status;

use crate::config::Mapping;
use crate::serve::context::ServerContext;
use crate::serve::pages::answer;
use crate::serve::pages::overview::{OverviewRows, rows};
use crate::serve::pages::record::with_policies;
use crate::serve::pages::repository::details;
use crate::serve::response::Response;
use oaimend_html::Site;
use oaimend_pages::RecordForm;
use oaimend_pages::html::{OverviewPage, RepositoryPage, UnknownOperatorPage};
use oaimend_pages::repository::OperatorDetails;
use oaimend_pages::route::OverviewTarget;
use std::collections::BTreeMap;

/// The site as the admin listener shows it. Its pages exist even if the public listener has none.
fn site(context: &ServerContext) -> Site {
    context.gateway().site.for_operators()
}

/// The requests in flight, the limits of sources, and the queue of harvests.
pub(super) fn status(context: &ServerContext) -> Response {
    status::status(context, &site(context))
}

/// The plot of the plan of all harvests.
pub(super) async fn plan_chart(context: &ServerContext) -> Response {
    status::chart(context).await
}

/// The style sheet at this path.
pub(super) fn style_sheet(context: &ServerContext, path: &str) -> Response {
    answer::style_sheet(site(context).style_sheets(), path)
}

/// The quarantined records of a repository.
pub(super) async fn quarantine(context: &ServerContext, id: &str) -> Response {
    let site = site(context);
    match context.repositories.find(id) {
        Some(mapping) => quarantine::list(context, &site, &mapping).await,
        None => no_repository(&site),
    }
}

/// A quarantined record.
pub(super) async fn quarantined_record(context: &ServerContext, id: &str, key: &str) -> Response {
    let site = site(context);
    match context.repositories.find(id) {
        Some(mapping) => quarantine::record(context, &site, &mapping, key).await,
        None => no_repository(&site),
    }
}

/// The overview of all repositories.
pub(super) async fn overview(context: &ServerContext, query: Option<&str>) -> Response {
    let (site, target) = (&site(context), OverviewTarget::read(query.unwrap_or_default()));
    let OverviewRows { mut repositories, matching, all } = rows(context, &target).await;
    let mut operator = BTreeMap::new();
    for repository in &mut repositories {
        repository.has_record_pages &= context.gateway().policy.enabled;
        if let Some(mapping) = context.repositories.find(&repository.id) {
            operator.insert(repository.id.clone(), operator_details(context, &mapping));
        }
    }
    let (filter, operator) = (target.filter.as_str(), Some(&operator));
    html(200, OverviewPage { site, filter, repositories: &repositories, matching, all, operator }.render())
}

/// A repository.
pub(super) async fn repository(context: &ServerContext, id: &str) -> Response {
    let site = &site(context);
    let Some(mapping) = &context.repositories.find(id) else { return no_repository(site) };
    let mut details = details(context, mapping).await;
    details.summary.has_record_pages &= context.gateway().policy.enabled;
    let operator = operator_details(context, mapping);
    html(200, RepositoryPage { site, details: &details, operator: Some(&operator) }.render())
}

fn operator_details(context: &ServerContext, mapping: &Mapping) -> OperatorDetails {
    OperatorDetails {
        source_base_url: mapping.source.shown_base_url(),
        circuit_open_secs: context.clients.circuit_open_secs(mapping.id(), context.clock.now()),
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
