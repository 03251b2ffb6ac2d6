//! Atom feeds: those of views, and those of sets, which need no index.

use super::items::Results;
use crate::config::Mapping;
use crate::serve::pages::gateway::Gateway;
use crate::serve::pages::records::collection::{SourceFacts, set_names};
use crate::serve::pages::records::lists::ListRequest;
use crate::serve::pages::records::newest::newest;
use crate::serve::pages::records::record::with_policies;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use crate::serve::validators::Validators;
use http::HeaderMap;
use oaimend_html::fingerprint;
use oaimend_pages::html::ListNotice;
use oaimend_pages::list::{ListAddress, ListPart, SetFeedAddress};
use oaimend_pages::search::{AtomFeed, FeedPlace, PAGE_ITEMS, SearchForm, SearchItem, atom_feed};
use oaimend_search::{Hit, Query, RankedHits};
use oaimend_store::{ListFilter, StoredRecord};

/// The feed of the newest records of a set.
pub(crate) async fn set_feed(
    served: &ServedRepositories,
    pages: &Gateway,
    mapping: &Mapping,
    address: &SetFeedAddress,
    headers: &HeaderMap,
) -> Response {
    let gateway = pages.current_for_pages(served);
    let (store, rendering) = (&*served.store.mirror, &pages.rendering);
    let request = ListRequest { store, gateway: &gateway, mapping, headers, rendering };
    let name = SourceFacts::read(store, mapping.id()).await.name;
    match newest_of_set(served, pages, &request, &address.set).await {
        Ok((set_name, items)) => {
            let public_url = gateway.site.public_url();
            let (repository, set) = (address.repository.clone(), Some(address.set.clone()));
            let page = ListAddress { repository, set, part: ListPart::Months };
            feed_response(
                &AtomFeed {
                    title: &format!("{set_name} – {name}"),
                    site_name: gateway.site.name(),
                    public_url,
                    place: FeedPlace::Alone { feed: &address.url(public_url), page: &page.url(public_url) },
                    hub: None,
                    items: &items,
                },
                headers,
            )
        }
        Err(notice) => request.notice(&name, notice),
    }
}

/// The name of a set, and its newest records that are not deleted.
async fn newest_of_set(
    served: &ServedRepositories,
    pages: &Gateway,
    request: &ListRequest<'_>,
    set: &str,
) -> Result<(String, Vec<SearchItem>), ListNotice> {
    let collection = request.collection().await?;
    let names = set_names(request.store, request.mapping.id()).await?;
    let name = request.known_set(&collection, &names, set).await?.to_owned();
    let filter = ListFilter { set: Some(set.to_owned()), ..collection.live() };
    let records = newest(request.store, filter, PAGE_ITEMS).await?;
    let hit = |record: StoredRecord| Hit {
        repository: collection.repository.clone(),
        prefix: collection.prefix.clone(),
        identifier: record.identifier,
        stamp_secs: record.stamp_secs,
        sequence: record.sequence,
        score: 0.0,
    };
    let found = RankedHits { hits: records.into_iter().map(hit).collect(), ..RankedHits::default() };
    let results = Results { served, rendering: &pages.rendering, query: Query::All };
    let items = results.of(found).await.map_err(|_| ListNotice::Unreadable)?.items;
    Ok((name, items))
}

/// The response with a feed that may change with each commit of the mirror.
pub(super) fn feed_response(feed: &AtomFeed<'_>, headers: &HeaderMap) -> Response {
    let text = atom_feed(feed);
    let validators = Validators { tag: fingerprint([text.as_bytes()]), modified_secs: None };
    let (status, text) = if validators.are_known(headers) { (304, String::new()) } else { (200, text) };
    let response = validators.add_to(Response::new(status, SearchForm::Atom.content_type(), text));
    with_policies(response.with("Cache-Control", "no-cache".to_owned())).compressible()
}
