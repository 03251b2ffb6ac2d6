//! Answers requests to the identifier resolver: pages, JSON, and redirects to the best record.
//!
//! Repositories whose records have no pages, or which are not mirrored any more, are left out, as in the search.

mod list;
mod openurl;

pub(crate) use list::{LIST_BYTES_MAX, answer_list};
pub(crate) use openurl::answer_openurl;

use super::answer::accept_of;
use super::gateway::Gateway;
use super::identifier_failure::{failure_json, with_retry};
use super::records::record::with_policies;
use super::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use crate::serve::validators::Validators;
use http::HeaderMap;
use oaimend_html::fingerprint;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_pages::html::{ResolverContent, ResolverPage};
use oaimend_pages::resolver::{FoundFormat, FoundItem, ResolverResult, ResolverTarget, json_result};
use oaimend_pages::search::SearchForm;
use oaimend_pages::texts::resolver as texts;
use oaimend_repository::{Failure, Reason};
use oaimend_resolver::{
    ContentIdentifier, PlacesMax, Resolved, ResolvedFormat, ResolvedItem, repaired_request,
};
use serde_json::json;
use std::sync::Arc;

/// The response to a request to the resolver. `target` is `None` if it is not text in UTF-8. A crawler does not make other
/// services work.
pub(crate) async fn answer(
    served: &ServedRepositories,
    pages: &Gateway,
    target: Option<&ResolverTarget>,
    headers: &HeaderMap,
    is_crawler: bool,
) -> Response {
    let request = Request::new(served, pages, headers);
    let is_json = request.is_json;
    let Some(target) = target else {
        return request.refused(400, texts::NOT_TEXT);
    };
    if target.identifier.is_empty() {
        let form = || request.page(200, ResolverContent::Form);
        return if is_json { request.refused(400, texts::NO_IDENTIFIER) } else { form() };
    }
    let identifier = repaired_request(&target.identifier);
    let resolved = match resolve(served, &identifier, PlacesMax::ONE).await {
        Ok(resolved) => resolved,
        Err(failure) => return request.failed(&failure),
    };
    if target.leads_to_record {
        return request.best_record(&resolved);
    }
    let requested = if is_crawler { None } else { identifier_for_services(&identifier, &resolved) };
    let services = served.broker.ask(served, requested.as_deref()).await;
    let result = ResolverResult { services, ..result(&identifier, resolved, request.gateway.policy.enabled) };
    let status = if result.is_unknown() { 404 } else { 200 };
    if is_json {
        let json = json_result(&result, request.gateway.site.public_url());
        request.respond(status, "application/json", format!("{json:#}\n"))
    } else {
        request.page(status, ResolverContent::Result(&result))
    }
}

/// The records that have or name an identifier, in the repositories whose records have pages.
async fn resolve(
    served: &ServedRepositories,
    identifier: &str,
    places_max: PlacesMax,
) -> Result<Resolved, Failure> {
    let sources = served.resolver.sources(&served.repositories);
    served.resolver.resolver.resolve(&sources, identifier, places_max).await
}

/// The identifier by which services may know the record: the requested one, or that of the best record which names it.
/// `None` if none can be requested.
fn identifier_for_services(requested: &str, resolved: &Resolved) -> Option<String> {
    let best = if resolved.identified.is_empty() { resolved.named_by.first() } else { None };
    let identifier = best.map_or(requested, |best| &best.identifier);
    (!identifier.contains(char::is_control)).then(|| identifier.to_owned())
}

/// What pages and JSON show.
fn result(identifier: &str, resolved: Resolved, has_pages: bool) -> ResolverResult {
    let Resolved { identifiers, identified, named_by, has_more, incomplete } = resolved;
    let format = |format: ResolvedFormat| FoundFormat {
        prefix: format.prefix,
        stamp: from_secs(format.stamp_secs, Granularity::Second),
        source_datestamp: from_secs(format.datestamp_secs, Granularity::Second),
        is_deleted: format.is_deleted,
    };
    let item = |item: ResolvedItem| FoundItem {
        repository: item.repository,
        identifier: item.identifier,
        has_page: has_pages,
        named_in: item.named_in.map(|field| field.name()),
        formats: item.formats.into_iter().map(format).collect(),
    };
    let meaning = |ContentIdentifier { kind, value }: ContentIdentifier| (kind.name(), value);
    ResolverResult {
        identifier: identifier.to_owned(),
        meanings: identifiers.into_iter().map(meaning).collect(),
        identified: identified.into_iter().map(item).collect(),
        named_by: named_by.into_iter().map(item).collect(),
        has_more,
        incomplete,
        services: Vec::new(),
    }
}

/// A request for one identifier.
struct Request<'a> {
    gateway: Arc<GatewayState>,
    headers: &'a HeaderMap,
    is_json: bool,
}

impl<'a> Request<'a> {
    fn new(served: &ServedRepositories, pages: &Gateway, headers: &'a HeaderMap) -> Self {
        let gateway = pages.current_for_pages(served);
        let is_json =
            !gateway.policy.enabled || SearchForm::accepted(&accept_of(headers)) == SearchForm::Json;
        Self { gateway, headers, is_json }
    }

    fn page(&self, status: u16, shown: ResolverContent<'_>) -> Response {
        let page = ResolverPage { site: &self.gateway.site, shown };
        self.respond(status, SearchForm::Html.content_type(), page.render())
    }

    /// A response that may change with each commit of the mirror.
    fn respond(&self, status: u16, content_type: &'static str, text: String) -> Response {
        let validators = Validators { tag: fingerprint([text.as_bytes()]), modified_secs: None };
        let page = match (status, validators.are_known(self.headers)) {
            (200, true) => validators.add_to(Response::new(304, content_type, "")),
            (200, false) => validators.add_to(Response::new(200, content_type, text)),
            _ => Response::new(status, content_type, text),
        };
        with_policies(page.with("Cache-Control", "no-cache".to_owned())).compressible()
    }

    /// The response that leads to the best record. It is a path of this server.
    fn best_record(&self, resolved: &Resolved) -> Response {
        let Some(best) = resolved.best() else {
            if !resolved.incomplete.is_empty() {
                return self.incomplete(&resolved.incomplete);
            }
            let (status, text) =
                if resolved.is_empty() { (404, texts::NO_RECORD) } else { (410, texts::ALL_DELETED) };
            return self.refused(status, text);
        };
        let base = self.gateway.site.base_path();
        let live = best.formats.iter().find(|format| !format.is_deleted);
        let prefix = live.map_or("", |format| &format.prefix);
        let item = FoundItem {
            repository: best.repository.clone(),
            identifier: best.identifier.clone(),
            has_page: self.gateway.policy.enabled,
            ..FoundItem::default()
        };
        let url = item.page(base).unwrap_or_else(|| item.in_mirror(base, prefix));
        let page = Response::text(303, texts::BEST_RECORD).with("Location", url);
        with_policies(page.with("Cache-Control", "no-cache".to_owned()))
    }

    fn refused(&self, status: u16, text: &str) -> Response {
        let page = if self.is_json {
            Response::json(status, &json!({"error": text}))
        } else {
            Response::text(status, text)
        };
        with_policies(page.with("Cache-Control", "no-store".to_owned()))
    }

    /// The response if no record is found, and these repositories may have it.
    fn incomplete(&self, repositories: &[String]) -> Response {
        let text = texts::incomplete(repositories);
        let failure = Failure::new(Reason::MirrorIncomplete, &text);
        let page = if self.is_json {
            Response::json(503, &json!({"error": text}))
        } else {
            Response::text(503, &text)
        };
        with_retry(with_policies(page), &failure)
    }

    /// The response while the identifiers are not known.
    fn failed(&self, failure: &Failure) -> Response {
        let shown = match failure.reason {
            Reason::MirrorIncomplete => ResolverContent::Building,
            _ => ResolverContent::Unreadable,
        };
        let page = if self.is_json {
            failure_json(failure)
        } else {
            let page = ResolverPage { site: &self.gateway.site, shown };
            Response::new(503, SearchForm::Html.content_type(), page.render())
        };
        with_retry(with_policies(page), failure)
    }
}
