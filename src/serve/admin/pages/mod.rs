//! Answers requests for the pages of the admin listener.

mod quarantine;
mod status;

use crate::config::Mapping;
use crate::serve::context::ServerContext;
use crate::serve::pages::answer::style_sheet;
use crate::serve::pages::overview::{OverviewRows, rows};
use crate::serve::pages::record::with_policies;
use crate::serve::pages::repository::details;
use crate::serve::response::Response;
use oaimend_html::Site;
use oaimend_pages::RecordForm;
use oaimend_pages::html::{OverviewPage, RepositoryPage, UnknownOperatorPage};
use oaimend_pages::operator_route::OperatorTarget;
use oaimend_pages::repository::OperatorDetails;
use oaimend_pages::route::OverviewTarget;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A page of the admin listener. It exists even if the public listener has no pages.
pub(crate) async fn operator_page(context: &ServerContext, target: &OperatorTarget) -> Response {
    let gateway = context.gateway();
    let site = gateway.site.for_operators();
    let mapping = |id: &str| context.repositories.find(id);
    match target {
        OperatorTarget::Overview(target) => overview(context, &site, target).await,
        OperatorTarget::Status => status::status(context, &site),
        OperatorTarget::PlanChart => status::chart(context).await,
        OperatorTarget::StyleSheet(path) => style_sheet(site.style_sheets(), path),
        OperatorTarget::Repository(id) => match mapping(id) {
            Some(mapping) => repository(context, &site, &mapping).await,
            None => no_repository(&site),
        },
        OperatorTarget::Quarantine(id) => match mapping(id) {
            Some(mapping) => quarantine::list(context, &site, &mapping).await,
            None => no_repository(&site),
        },
        OperatorTarget::QuarantinedRecord { repository, key } => match mapping(repository) {
            Some(mapping) => quarantine::record(context, &site, &mapping, key).await,
            None => no_repository(&site),
        },
    }
}

async fn overview(context: &ServerContext, site: &Site, target: &OverviewTarget) -> Response {
    let OverviewRows { mut repositories, matching, all } = rows(context, target).await;
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

async fn repository(context: &ServerContext, site: &Site, mapping: &Arc<Mapping>) -> Response {
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
