//! Finds the response to a request for a page.

use super::gateway::Gateway;
use super::identifier_failure::failed_links;
use super::records::collection::served_formats;
use super::records::item::live_formats;
use super::records::lists::{ListRequest, list_notice_page};
use super::records::record::{CACHE_CONTROL, Missing, RecordRequest, notice, with_policies};
use super::records::related::{NoLinks, related};
use super::records::sitemaps;
use super::records::source_list::source_list;
use super::repositories::aggregate::aggregate;
use super::repositories::description::known_name;
use super::repositories::federation::federation;
use super::repositories::overview::{is_stored, overview, unknown, unknown_path};
use super::repositories::repository::repository;
use super::search;
use super::state::GatewayState;
use super::target::PageTarget;
use crate::config::{Mapping, RecordPages, ViewFile};
use crate::serve::oai::mirror_views::record_of_view;
use crate::serve::resourcesync;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use http::{HeaderMap, header};
use oaimend_html::StyleSheet;
use oaimend_pages::RecordForm;
use oaimend_pages::html::{ListNotice, NoRecordPage, NoRecordReason, UnknownPath};
use oaimend_pages::list::ListTarget;
use oaimend_pages::record::RecordAddress;
use oaimend_pages::route::RecordTarget;
use oaimend_pages::search::SearchForm;
use oaimend_pages::sitemap::SitemapAddress;
use oaimend_pages::texts::plain;
use oaimend_pages::texts::related as texts;
use oaimend_repository::Failure;
use oaimend_store::{Identifier, MirrorError, RepositoryId};
use oaimend_views::{FoundMember, LiveMember};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The response to a request for a page.
pub(crate) struct GatewayResponse {
    pub(crate) page: Response,
    /// The repository for the log and for metrics; `None` if the page belongs to none that is served.
    pub(crate) repository: Option<String>,
}

impl From<Response> for GatewayResponse {
    fn from(page: Response) -> Self {
        Self { page, repository: None }
    }
}

/// Answers a request for a page.
pub(crate) async fn answer(
    served: &ServedRepositories,
    pages: &Gateway,
    target: &PageTarget,
    headers: &HeaderMap,
) -> GatewayResponse {
    let gateway = pages.current_for_pages(served);
    let mappings = served.repositories.all();
    match target {
        PageTarget::Overview(target) => overview(served, &gateway, target, headers).await.into(),
        PageTarget::Repository(id) => match served.repositories.find(id) {
            Some(mapping) => GatewayResponse {
                page: repository(served, &gateway, &mapping, headers).await,
                repository: Some(mapping.id().to_owned()),
            },
            None => unknown(served, &gateway, id, is_html_named(headers)).await.into(),
        },
        PageTarget::Aggregate => aggregate(served, &gateway, headers).await.into(),
        PageTarget::Federation(None) => federation(served, &gateway, None, headers).await.into(),
        PageTarget::Federation(Some(name)) => match served.federations.all().get(name) {
            Some(file) => federation(served, &gateway, Some(file), headers).await.into(),
            None => unknown(served, &gateway, name, false).await.into(),
        },
        PageTarget::View(name) => match served.views.all().get(name) {
            Some(view) => search::view(served, pages, view, headers).await.into(),
            None => unknown(served, &gateway, name, false).await.into(),
        },
        PageTarget::ViewFeed(name) => match served.views.all().get(name) {
            Some(view) => search::view_feed(served, pages, view, headers).await.into(),
            None => unknown(served, &gateway, name, false).await.into(),
        },
        PageTarget::Unknown(name) => unknown(served, &gateway, name, is_html_named(headers)).await.into(),
        PageTarget::StyleSheet(path) => style_sheet(gateway.site.style_sheets(), path).into(),
        PageTarget::Sitemap(address) => GatewayResponse {
            page: sitemaps::answer(served, &gateway, address, headers).await,
            repository: match address {
                SitemapAddress::Records { repository, .. } if mappings.contains_key(repository) => {
                    Some(repository.clone())
                }
                _ => None,
            },
        },
        PageTarget::Sync(target) => {
            let known = |id: &str| mappings.contains_key(id).then(|| id.to_owned());
            GatewayResponse {
                page: Box::pin(resourcesync::answer(served, target, headers)).await,
                repository: target.repository().and_then(known),
            }
        }
        PageTarget::Search(target) => {
            let form = target.form.unwrap_or_else(|| SearchForm::accepted(&accept_of(headers)));
            search::answer(served, pages, target, form, headers).await.into()
        }
        PageTarget::SearchDescription => search::description(served, &gateway).into(),
        PageTarget::Suggestions(query) => search::suggest(served, query).await.into(),
        PageTarget::Record(target) => match find_mirrored(served, &mappings, &target.repository).await {
            Mirrored::Served(mapping) => GatewayResponse {
                page: record(served, pages, mapping, target, headers).await,
                repository: Some(mapping.id().to_owned()),
            },
            Mirrored::Removed => {
                let why = (410, NoRecordReason::RepositoryRemoved);
                no_page(&gateway, target, form_of(target, headers), why).into()
            }
            Mirrored::Never if mappings.contains_key(&target.repository) => {
                no_page(&gateway, target, form_of(target, headers), (404, NoRecordReason::PagesOff)).into()
            }
            Mirrored::Never => unknown(served, &gateway, &target.repository, false).await.into(),
        },
        PageTarget::ViewRecord(target) => match served.views.all().get(&target.repository) {
            Some(view) => view_record(served, pages, view, target, headers).await,
            None => unknown(served, &gateway, &target.repository, false).await.into(),
        },
        PageTarget::List(target)
            if let Some(mapping) = mappings.get(target.repository())
                && mapping.has_source_list() =>
        {
            GatewayResponse {
                page: list_of_source(served, &gateway, mapping, target, headers).await,
                repository: Some(mapping.id().to_owned()),
            }
        }
        PageTarget::Browse(address) => match (served.mirrored(&address.repository), served.search()) {
            (Some(mapping), Some(search)) if mapping.records != RecordPages::Off => GatewayResponse {
                page: search::browse(served, &gateway, address, search).await,
                repository: Some(mapping.id().to_owned()),
            },
            _ => unknown(served, &gateway, &address.repository, false).await.into(),
        },
        PageTarget::List(target) => match find_mirrored(served, &mappings, target.repository()).await {
            Mirrored::Served(mapping) => GatewayResponse {
                page: list(served, pages, mapping, target, headers).await,
                repository: Some(mapping.id().to_owned()),
            },
            Mirrored::Removed => {
                let repository = target.repository();
                list_notice_page(&gateway, repository, repository, ListNotice::RepositoryRemoved).into()
            }
            Mirrored::Never if mappings.contains_key(target.repository()) => {
                unknown_path(served, &gateway, UnknownPath::ListOf(target.repository())).into()
            }
            Mirrored::Never => unknown(served, &gateway, target.repository(), false).await.into(),
        },
    }
}

/// A repository, as far as the mirror is concerned.
enum Mirrored<'m> {
    /// It is mirrored.
    Served(&'m Arc<Mapping>),
    /// The mirror has records of it, although it is not served or not mirrored any more.
    Removed,
    /// The mirror knows nothing of it.
    Never,
}

async fn find_mirrored<'m>(
    served: &ServedRepositories,
    mappings: &'m BTreeMap<String, Arc<Mapping>>,
    repository: &str,
) -> Mirrored<'m> {
    if let Some(mapping) = mappings.get(repository).filter(|mapping| mapping.mirror.is_some()) {
        return Mirrored::Served(mapping);
    }
    if is_stored(served, repository).await { Mirrored::Removed } else { Mirrored::Never }
}

/// A list of a mirrored repository.
async fn list(
    served: &ServedRepositories,
    pages: &Gateway,
    mapping: &Mapping,
    target: &ListTarget,
    headers: &HeaderMap,
) -> Response {
    let gateway = &*pages.current_for_pages(served);
    let (store, rendering) = (&*served.store.mirror, &pages.rendering);
    let request = ListRequest { store, gateway, mapping, headers, rendering };
    match target {
        ListTarget::Records(address) => request.list(address).await,
        ListTarget::Sets(address) => request.sets(address).await,
        ListTarget::Feed(address) => search::set_feed(served, pages, mapping, address, headers).await,
        ListTarget::Moved(address) => moved(&address.url(gateway.site.base_path())),
    }
}

/// A list of a repository that is not mirrored.
async fn list_of_source(
    served: &ServedRepositories,
    gateway: &GatewayState,
    mapping: &Arc<Mapping>,
    target: &ListTarget,
    headers: &HeaderMap,
) -> Response {
    // Without it the page has the id in place of the name.
    let name = known_name(served, mapping).await.unwrap_or_default();
    let name = name.as_deref().unwrap_or(mapping.id());
    match target {
        ListTarget::Records(address) => source_list(served, gateway, (mapping, name), address, headers),
        ListTarget::Moved(address) => moved(&address.url(gateway.site.base_path())),
        ListTarget::Sets(_) | ListTarget::Feed(_) => {
            list_notice_page(gateway, mapping.id(), name, ListNotice::Unknown)
        }
    }
}

/// The response that a page has another URL.
fn moved(url: &str) -> Response {
    let page = Response::text(301, plain::LIST_MOVED).with("Location", url.to_owned());
    page.with("Cache-Control", CACHE_CONTROL.to_owned())
}

/// A style sheet. One at another path is from an older page.
pub(crate) fn style_sheet(sheets: &[StyleSheet], path: &str) -> Response {
    let found = sheets.iter().find(|sheet| sheet.path == path);
    let other = || sheets.iter().find(|sheet| sheet.is_other_version(path));
    let (sheet, cache_control) = match (found, other()) {
        (Some(sheet), _) => (sheet, "public, max-age=31536000, immutable"),
        (None, Some(sheet)) => (sheet, "no-cache"),
        (None, None) => return Response::text(404, plain::UNKNOWN_STYLE_SHEET),
    };
    let page = Response::new(200, "text/css; charset=UTF-8", sheet.css.clone());
    let page = page.with("Vary", "Accept-Encoding".to_owned());
    page.with("Cache-Control", cache_control.to_owned()).compressible()
}

pub(super) fn form_of(target: &RecordTarget, headers: &HeaderMap) -> RecordForm {
    target.form.unwrap_or_else(|| RecordForm::accepted(&accept_of(headers)))
}

/// Whether the client is a browser, which names HTML in its `Accept` header.
pub(crate) fn is_html_named(headers: &HeaderMap) -> bool {
    RecordForm::is_html_named(&accept_of(headers))
}

pub(super) fn accept_of(headers: &HeaderMap) -> String {
    let accept = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accept.collect::<Vec<_>>().join(",")
}

/// The page of a record of a mirrored repository.
async fn record(
    served: &ServedRepositories,
    pages: &Gateway,
    mapping: &Arc<Mapping>,
    target: &RecordTarget,
    headers: &HeaderMap,
) -> Response {
    let gateway = &pages.current_for_pages(served);
    let request = |target| RecordRequest {
        store: &*served.store.mirror,
        gateway,
        mapping,
        target,
        form: form_of(target, headers),
    };
    let named = request(target);
    if mapping.records == RecordPages::Off {
        return named.missing(&Missing::NotShown(NoRecordReason::PagesOff)).await;
    }
    let (cache, store) = (&pages.record_cache, &*served.store.mirror);
    if let Some(page) = cache.find(store, gateway, mapping, &named.page_name()).await {
        return page.respond(headers);
    }
    let versions = named.versions().await;
    let kept = versions.map(|versions| (cache, versions));
    match named.find().await {
        Ok(mut found) => match related(served, mapping, target, named.form).await {
            Ok(links) => {
                found.related = links;
                named.show(found, headers, &pages.rendering, kept).await
            }
            Err(none) => without_links(&none),
        },
        Err(missing) => {
            let whole = if missing == Missing::Unknown { target.with_ending_in_identifier() } else { None };
            if let Some(whole) = whole.as_ref().map(request)
                && let Ok(found) = whole.find().await
            {
                return whole.show(found, headers, &pages.rendering, None).await;
            }
            named.missing(&missing).await
        }
    }
}

/// The response in place of links.
fn without_links(none: &NoLinks) -> Response {
    match none {
        NoLinks::NotAPlace => with_policies(Response::json(400, &json!({"error": texts::NOT_A_PLACE}))),
        NoLinks::Failed(failure) => failed_links(failure),
    }
}

/// The page of a record that a view shows: that of its repository, in a format of the view.
async fn view_record(
    served: &ServedRepositories,
    pages: &Gateway,
    view: &ViewFile,
    target: &RecordTarget,
    headers: &HeaderMap,
) -> GatewayResponse {
    let mut found = record_of_view(served, view, &target.identifier).await;
    let mut target = Cow::Borrowed(target);
    if let (Ok(FoundMember::Never), Some(whole)) = (&found, target.with_ending_in_identifier()) {
        found = record_of_view(served, view, &whole.identifier).await;
        target = Cow::Owned(whole);
    }
    let no_page = |status, reason| {
        let gateway = pages.current_for_pages(served);
        no_page(&gateway, &target, form_of(&target, headers), (status, reason))
    };
    match found {
        Ok(FoundMember::Live(live)) => match target_in_repository(served, &target, live).await {
            Ok(Some((mapping, target))) => GatewayResponse {
                page: record(served, pages, &mapping, &target, headers).await,
                repository: Some(mapping.id().to_owned()),
            },
            Ok(None) => no_page(404, NoRecordReason::NotInView).into(),
            Err(error) => view_unreadable(&no_page, &error.into()).into(),
        },
        Ok(FoundMember::Left) => no_page(410, NoRecordReason::LeftView).into(),
        Ok(FoundMember::Never) => no_page(404, NoRecordReason::NotInView).into(),
        Err(failure) => view_unreadable(&no_page, &failure).into(),
    }
}

fn view_unreadable(no_page: &impl Fn(u16, NoRecordReason) -> Response, failure: &Failure) -> Response {
    no_page(503, NoRecordReason::ViewUnreadable)
        .with("Retry-After", failure.retry_after_secs.to_string())
        .with("Proxy-Status", failure.proxy_status())
}

/// The record of a view in its repository; `None` if it is not in the view in the format that was requested. Without a
/// format, the richest one of the view describes the item.
async fn target_in_repository(
    served: &ServedRepositories,
    target: &RecordTarget,
    live: LiveMember,
) -> Result<Option<(Arc<Mapping>, RecordTarget)>, MirrorError> {
    let LiveMember { repository, formats } = live;
    let Some(mapping) = served.mirrored(&repository) else { return Ok(None) };
    let is_in_view = |wanted: &str| formats.iter().any(|(prefix, _)| prefix == wanted);
    let format = match &target.format {
        Some(named) if is_in_view(named) => Some(named.clone()),
        Some(_) => return Ok(None),
        None => {
            let store = &*served.store.mirror;
            let richest = served_formats(store, &mapping).await?;
            let (repository, identifier) = (RepositoryId(&repository), Identifier(&target.identifier));
            let live = live_formats(store, repository, &richest, identifier).await?;
            // The page of the repository shows the first one by default.
            let shown = live.iter().find(|prefix| is_in_view(prefix));
            if shown == live.first() { None } else { shown.map(|prefix| (*prefix).clone()) }
        }
    };
    Ok(Some((mapping, RecordTarget { repository, format, ..target.clone() })))
}

/// The page of a record of a repository that has no pages of records, with its status and the reason.
fn no_page(
    gateway: &GatewayState,
    target: &RecordTarget,
    form: RecordForm,
    (status, reason): (u16, NoRecordReason),
) -> Response {
    let RecordTarget { repository, identifier, .. } = target;
    let address = RecordAddress { repository, identifier, format: None };
    let html = || NoRecordPage { site: &gateway.site, repository_name: repository, address, reason }.render();
    notice(status, form, reason.title(), html)
}
