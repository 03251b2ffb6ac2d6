//! The page of a view of chosen records, and the feed of its newest records.

use super::feed::feed_response;
use super::items::{Results, UnshownResults};
use crate::config::ViewFile;
use crate::serve::oai::mirror_views::newest_of_view;
use crate::serve::pages::gateway::Gateway;
use crate::serve::pages::repositories::overview::changing;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use http::HeaderMap;
use oaimend_html::fingerprint;
use oaimend_pages::html::ViewPage;
use oaimend_pages::search::{AtomFeed, FeedPlace, PAGE_ITEMS, SearchItem};
use oaimend_pages::texts::plain;
use oaimend_repository::{Failure, Reason};
use oaimend_search::{Hit, Query, RankedHits};

/// The page of a view.
pub(crate) async fn view(
    served: &ServedRepositories,
    pages: &Gateway,
    view: &ViewFile,
    headers: &HeaderMap,
) -> Response {
    let gateway = pages.current_for_pages(served);
    let newest = newest(served, pages, view).await.ok();
    let page = ViewPage {
        site: &gateway.site,
        path: &path(view),
        name: name(view),
        description: view.description.as_deref(),
        query: view.query.as_deref(),
        prefix: view.formats.first().map_or("oai_dc", String::as_str),
        newest: newest.as_deref(),
    };
    let html = page.render();
    let version = fingerprint([html.as_bytes()]);
    changing(served, html, &version, headers)
}

/// The feed of the newest records of a view.
pub(crate) async fn view_feed(
    served: &ServedRepositories,
    pages: &Gateway,
    view: &ViewFile,
    headers: &HeaderMap,
) -> Response {
    let gateway = pages.current_for_pages(served);
    let items = match newest(served, pages, view).await {
        Ok(items) => items,
        Err(failure) => {
            return Response::text(503, plain::UNREADABLE_VIEW)
                .with("Retry-After", failure.retry_after_secs.to_string())
                .with("Proxy-Status", failure.proxy_status());
        }
    };
    let public_url = gateway.site.public_url();
    let page = format!("{public_url}/{}", path(view));
    let feed = format!("{page}.atom");
    let feed = AtomFeed {
        title: name(view),
        site_name: gateway.site.name(),
        public_url,
        place: FeedPlace::Alone { feed: &feed, page: &page },
        hub: None,
        items: &items,
    };
    feed_response(&feed, headers)
}

fn path(view: &ViewFile) -> String {
    format!("_view/{}", view.name)
}

fn name(view: &ViewFile) -> &str {
    view.repository_name.as_deref().unwrap_or(&view.name)
}

/// The newest records of a view that have pages.
async fn newest(
    served: &ServedRepositories,
    pages: &Gateway,
    view: &ViewFile,
) -> Result<Vec<SearchItem>, Failure> {
    let members = newest_of_view(served, view, PAGE_ITEMS).await?;
    let hits = members.into_iter().map(|member| Hit {
        repository: member.repository,
        prefix: member.prefix,
        identifier: member.identifier,
        stamp_secs: member.position.secs,
        sequence: member.position.sequence,
        score: 0.0,
    });
    let found = RankedHits { hits: hits.collect(), ..RankedHits::default() };
    let results = Results { served, rendering: &pages.rendering, query: Query::All };
    let unshown = |error| match error {
        UnshownResults::Mirror(_) => Failure::new(Reason::Mirror, plain::UNREADABLE_MIRROR),
        UnshownResults::Rendering(error) => Failure::new(Reason::Search, error.to_string()),
    };
    Ok(results.of(found).await.map_err(unshown)?.items)
}
