//! Answers OpenURLs: leads from the description of a work to its record, or to what the OpenURL wants of the record.
//!
//! The identifiers of the description are resolved first. Without one, or if no mirrored record has any of them, the
//! search finds the work by its description.

use super::{Request, resolve};
use crate::config::Mapping;
use crate::serve::pages::gateway::Gateway;
use crate::serve::pages::records::collection::served_formats;
use crate::serve::pages::records::item::ItemRecords;
use crate::serve::pages::records::record::with_policies;
use crate::serve::response::Response;
use crate::serve::search::searched_repositories;
use crate::serve::served::ServedRepositories;
use http::HeaderMap;
use oaimend_crosswalks::CrosswalkChoice;
use oaimend_openurl::{ContextObject, Referent, RequestedService, Service};
use oaimend_pages::resolver::{FoundItem, ResolverAddress};
use oaimend_pages::search::SearchAddress;
use oaimend_pages::texts::openurl as texts;
use oaimend_repository::Failure;
use oaimend_resolver::{PlacesMax, Resolved};
use oaimend_search::{IndexError, Ranking, RecordFilter, SearchHits};
use oaimend_store::{Identifier, MirrorError, RepositoryId};
use url::Url;

/// Maximum number of records of a search whose identifiers are listed.
const HITS_MAX: usize = 100;
/// The format of the service `getDIDL`.
const DIDL: &str = "didl";

/// The response to an OpenURL: its query string, with the form of a POST appended.
pub(crate) async fn answer_openurl(
    served: &ServedRepositories,
    pages: &Gateway,
    query: &[u8],
    headers: &HeaderMap,
) -> Response {
    let request = Request::new(served, pages, headers);
    let context = match ContextObject::parse(query) {
        Ok(context) => context,
        Err(refusal) => return request.refused(refusal.status(), &refusal.to_string()),
    };
    let service = match context.service {
        RequestedService::Page => None,
        RequestedService::Known(service) => Some(service),
        RequestedService::Unknown(name) => return request.refused(404, &texts::unknown_service(&name)),
    };
    let link = Link { served, request };
    match link.find(&context.referent).await {
        Ok(found) => link.lead(found, service).await.unwrap_or_else(|failure| failed(&failure)),
        Err(failure) => failed(&failure),
    }
}

fn failed(failure: &Failure) -> Response {
    with_policies(Response::failed(failure).with("Cache-Control", "no-store".to_owned()))
}

/// The records that an OpenURL describes.
enum Found {
    /// Those that have or name this identifier.
    Identified(String, Resolved),
    /// The only record that the search found.
    One(Place),
    /// Several records that the search found, and the search as a text.
    Several(Vec<Place>, String),
    /// None, and these repositories may have it.
    Unknown(Vec<String>),
    /// None. The text says what was searched, if the description was enough for a search.
    Nothing(Option<String>),
}

/// A record.
#[derive(Clone)]
struct Place {
    repository: String,
    identifier: String,
    /// The metadataPrefix.
    prefix: String,
}

/// A request that leads somewhere.
struct Link<'a> {
    served: &'a ServedRepositories,
    request: Request<'a>,
}

impl Link<'_> {
    async fn find(&self, referent: &Referent) -> Result<Found, Failure> {
        let candidates = referent.candidates();
        // A vague description finds nothing in complete repositories either.
        let is_vague = candidates.is_empty() && referent.search().is_none();
        // Before the search: a harvest that ends meanwhile may have brought the record too late for it.
        let sources = self.served.resolver.sources(&self.served.repositories);
        let incomplete = self.served.resolver.resolver.incomplete(&sources).await;
        let found = self.find_known(candidates, referent).await?;
        if is_vague || !matches!(found, Found::Nothing(_)) {
            return Ok(found);
        }
        let incomplete = incomplete?;
        Ok(if incomplete.is_empty() { found } else { Found::Unknown(incomplete) })
    }

    async fn find_known(&self, candidates: Vec<String>, referent: &Referent) -> Result<Found, Failure> {
        let mut deleted = None;
        for candidate in candidates {
            let resolved = resolve(self.served, &candidate, PlacesMax::ONE).await?;
            if resolved.best().is_some() {
                return Ok(Found::Identified(candidate, resolved));
            }
            if deleted.is_none() && !resolved.is_empty() {
                deleted = Some(Found::Identified(candidate, resolved));
            }
        }
        match deleted {
            Some(deleted) => Ok(deleted),
            None => self.search(referent).await,
        }
    }

    async fn search(&self, referent: &Referent) -> Result<Found, Failure> {
        let (Some(search), Some(service)) = (referent.search(), self.served.search()) else {
            return Ok(Found::Nothing(None));
        };
        let hits = SearchHits {
            query: search.query,
            filter: RecordFilter {
                repositories: Some(searched_repositories(&self.served.repositories)),
                prefix: None,
            },
            ranking: Ranking::Relevance,
            offset: 0,
            count_max: HITS_MAX,
            with_facets: false,
        };
        let found = match service.searches.run(move |index| index.search(&hits)).await {
            Ok(found) => found.hits,
            Err(IndexError::Query(_)) => Vec::new(),
            Err(error) => return error.failure().map_or(Ok(Found::Nothing(None)), Err),
        };
        let place = |hit: oaimend_search::Hit| Place {
            repository: hit.repository,
            identifier: hit.identifier,
            prefix: hit.prefix,
        };
        let mut places: Vec<Place> = found.into_iter().map(place).collect();
        Ok(match places.len() {
            0 => Found::Nothing(Some(search.text)),
            1 => Found::One(places.remove(0)),
            _ => Found::Several(places, search.text),
        })
    }

    async fn lead(&self, found: Found, service: Option<Service>) -> Result<Response, Failure> {
        if service == Some(Service::Identifiers) {
            return Ok(self.identifiers(found));
        }
        let base = self.request.gateway.site.base_path();
        let place = match &found {
            Found::Nothing(searched) => {
                return Ok(self.request.refused(404, &texts::nothing(searched.as_deref())));
            }
            Found::Unknown(incomplete) => return Ok(self.request.incomplete(incomplete)),
            Found::Several(_, text) => {
                let address = SearchAddress { query: text.clone(), ..SearchAddress::default() };
                return Ok(see_other(address.url(base, ""), texts::SEVERAL));
            }
            Found::Identified(identifier, _) if is_locate(service) => {
                return Ok(see_other(ResolverAddress { identifier }.page(base), texts::PLACES));
            }
            Found::Identified(_, resolved) => match (place_of(resolved), service) {
                (Some(place), Some(_)) => place,
                _ => return Ok(self.request.best_record(resolved)),
            },
            Found::One(place) => place.clone(),
        };
        match service {
            Some(Service::Locate | Service::LocateSru) => {
                let address = ResolverAddress { identifier: &place.identifier };
                Ok(see_other(address.page(base), texts::PLACES))
            }
            Some(Service::Didl | Service::DidlXml) => Ok(self.didl(&place)),
            Some(Service::Datastream) => Ok(self.datastream(&place).await?),
            Some(Service::Identifiers) | None => {
                let item = self.item(&place);
                let url = item.page(base).unwrap_or_else(|| item.in_mirror(base, &place.prefix));
                Ok(see_other(url, texts::RECORD))
            }
        }
    }

    fn item(&self, place: &Place) -> FoundItem {
        FoundItem {
            repository: place.repository.clone(),
            identifier: place.identifier.clone(),
            has_page: self.request.gateway.policy.enabled,
            ..FoundItem::default()
        }
    }

    /// The identifiers of the records as text.
    fn identifiers(&self, found: Found) -> Response {
        let mut identifiers: Vec<String> = match found {
            Found::Nothing(searched) => {
                return self.request.refused(404, &texts::nothing(searched.as_deref()));
            }
            Found::Unknown(incomplete) => return self.request.incomplete(&incomplete),
            Found::Identified(_, resolved) => {
                let items = resolved.identified.into_iter().chain(resolved.named_by);
                items.map(|item| item.identifier).collect()
            }
            Found::One(place) => vec![place.identifier],
            Found::Several(places, _) => places.into_iter().map(|place| place.identifier).collect(),
        };
        let mut known = std::collections::BTreeSet::new();
        identifiers.retain(|identifier| known.insert(identifier.clone()));
        let page = Response::text(200, &identifiers.join("\n"));
        with_policies(page.with("Cache-Control", "no-cache".to_owned())).compressible()
    }

    /// The record in the format `didl`, if its repository has it or makes it.
    fn didl(&self, place: &Place) -> Response {
        let is_made = |mapping: &Mapping| mapping.crosswalks.0.get(DIDL) == Some(&CrosswalkChoice::BuiltIn);
        let mapping = self.served.mirrored(&place.repository);
        if place.prefix != DIDL && !mapping.is_some_and(|mapping| is_made(&mapping)) {
            return self.request.refused(404, texts::NO_DIDL);
        }
        let base = self.request.gateway.site.base_path();
        see_other(self.item(place).in_mirror(base, DIDL), texts::RECORD)
    }

    /// The full text that the record names, at its source.
    async fn datastream(&self, place: &Place) -> Result<Response, MirrorError> {
        let Some(mapping) = self.served.mirrored(&place.repository) else {
            return Ok(self.request.refused(404, texts::NO_FULL_TEXT));
        };
        let store = &*self.served.store.mirror;
        let formats = served_formats(store, &mapping).await?;
        let (repository, identifier) = (RepositoryId(&place.repository), Identifier(&place.identifier));
        let records = ItemRecords::read(store, repository, &formats, identifier).await?;
        let work = records.and_then(|records| records.describe());
        let links = work.into_iter().flat_map(|work| work.links.full_texts);
        // The record may name anything.
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https");
        let url = links.filter_map(|link| Url::parse(&link.url).ok()).find(is_web);
        Ok(match url {
            Some(url) => see_other(url.into(), texts::FULL_TEXT),
            None => self.request.refused(404, texts::NO_FULL_TEXT),
        })
    }
}

fn is_locate(service: Option<Service>) -> bool {
    matches!(service, Some(Service::Locate | Service::LocateSru))
}

/// The best record; `None` if all are deleted.
fn place_of(resolved: &Resolved) -> Option<Place> {
    let best = resolved.best()?;
    let live = best.formats.iter().filter(|format| !format.is_deleted);
    let prefix = live.min_by_key(|format| format.prefix != DIDL).map(|format| format.prefix.clone());
    Some(Place { repository: best.repository.clone(), identifier: best.identifier.clone(), prefix: prefix? })
}

fn see_other(url: String, text: &str) -> Response {
    let page = Response::text(303, text).with("Location", url);
    with_policies(page.with("Cache-Control", "no-cache".to_owned()))
}
