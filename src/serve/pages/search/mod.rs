//! Answers searches of people and programs: pages, JSON and feeds, from the index and the mirror.
//!
//! The index says which records match, and the mirror has their texts. A record that has changed since it was indexed is
//! shown as it is now, and one that was deleted or damaged since, or that the mirror does not serve, is left out.

mod browse;
mod failure;
mod feed;
mod items;
mod request;
mod suggestions;
mod view;

pub(crate) use browse::browse;
pub(crate) use failure::SearchFailure;
pub(crate) use feed::set_feed;
pub(crate) use suggestions::{description, suggest};
pub(crate) use view::{view, view_feed};

use self::items::Results;
use self::request::{all_records, filter_of, query_of, search_of};
use crate::serve::pages::gateway::Gateway;
use crate::serve::pages::records::record::{with_links, with_policies};
use crate::serve::pages::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::search::SearchService;
use crate::serve::served::ServedRepositories;
use crate::serve::validators::Validators;
use http::HeaderMap;
use oaimend_html::fingerprint;
use oaimend_pages::html::{SearchNotice, SearchNoticePage, SearchPage, Shown};
use oaimend_pages::search::{
    AtomFeed, FeedPlace, SearchAddress, SearchForm, SearchResults, SearchTarget, atom_feed, json_results,
};
use oaimend_pages::texts::search as texts;
use oaimend_search::{Query, SearchHits};
use serde_json::json;
use std::sync::Arc;
use url::Url;

/// The response to a request for a page of results.
pub(crate) async fn answer(
    served: &ServedRepositories,
    pages: &Gateway,
    target: &SearchTarget,
    form: SearchForm,
    headers: &HeaderMap,
) -> Response {
    let gateway = pages.current_for_pages(served);
    let request = Request { served, pages, gateway, target, form, headers };
    let Some(search) = served.search() else {
        return request.notice(SearchNotice::Off);
    };
    match request.results(search).await {
        Ok(response) => response,
        Err(failure) => failure.response(|text| request.refused(text), |notice| request.notice(notice)),
    }
}

/// A part of the results of a search: a number of them after this number of others, instead of a page.
///
/// # Errors
///
/// The query is wrong, or the index or the mirror cannot be read now.
pub(crate) async fn results_from(
    served: &ServedRepositories,
    pages: &Gateway,
    (search, address): (&SearchService, &SearchAddress),
    (offset, count_max): (usize, usize),
) -> Result<SearchResults, SearchFailure> {
    let query = query_of(address)?;
    let filter = filter_of(served, address)?;
    let hits = search_of(address, query.clone(), filter);
    let hits = SearchHits { offset, count_max, with_facets: false, ..hits };
    let found = search.searches.run(move |index| index.search(&hits)).await?;
    Ok(Results { served, rendering: &pages.rendering, query }.of(found).await?)
}

/// A request for a page of results.
struct Request<'a> {
    served: &'a ServedRepositories,
    pages: &'a Gateway,
    gateway: Arc<GatewayState>,
    target: &'a SearchTarget,
    form: SearchForm,
    headers: &'a HeaderMap,
}

impl Request<'_> {
    async fn results(&self, search: &SearchService) -> Result<Response, SearchFailure> {
        let address = &self.target.address;
        if let Some(fault) = self.target.fault {
            return Err(SearchFailure::Refused(texts::fault(fault)));
        }
        if self.form == SearchForm::Html && address.is_empty() {
            let filter = all_records(self.served);
            let count =
                SearchHits { count_max: 0, with_facets: false, ..search_of(address, Query::All, filter) };
            let found = search.searches.run(move |index| index.search(&count)).await?;
            return Ok(self.page(Shown::Invitation(found.total.records)));
        }
        let query = query_of(address)?;
        let filter = filter_of(self.served, address)?;
        let hits = search_of(address, query.clone(), filter);
        let found = search.searches.run(move |index| index.search(&hits)).await?;
        let results = Results { served: self.served, rendering: &self.pages.rendering, query };
        Ok(self.found(&results.of(found).await?))
    }

    /// The response with results.
    fn found(&self, results: &SearchResults) -> Response {
        let (site, address) = (&self.gateway.site, &self.target.address);
        let text = match self.form {
            SearchForm::Html => return self.page(Shown::Results(results)),
            SearchForm::Json => format!("{:#}\n", json_results(address, results, site.public_url())),
            SearchForm::Atom => atom_feed(&AtomFeed {
                title: &format!("{} – {}", texts::title(address), site.name()),
                site_name: site.name(),
                public_url: site.public_url(),
                place: FeedPlace::Search(address, results.total),
                hub: self.hub(),
                items: &results.items,
            }),
        };
        let response = self.respond(text);
        match self.hub() {
            Some(hub) if self.form == SearchForm::Atom => {
                let feed = address.url(site.public_url(), SearchForm::Atom.ending());
                with_links(response, format!("<{hub}>; rel=\"hub\", <{feed}>; rel=\"self\""))
            }
            _ => response,
        }
    }

    /// The hub, if it hears of the changes of this feed.
    fn hub(&self) -> Option<&str> {
        let hub = self.gateway.policy.hub.as_ref().map(Url::as_str);
        if self.target.address.is_recent() { hub } else { None }
    }

    fn page(&self, shown: Shown<'_>) -> Response {
        let (site, address) = (&self.gateway.site, &self.target.address);
        let feed = address.on_page(0).url(site.public_url(), SearchForm::Atom.ending());
        let link = format!("<{feed}>; rel=\"alternate\"; type=\"application/atom+xml\"");
        with_links(self.respond(SearchPage { site, address, shown }.render()), link)
    }

    /// A response that may change with each commit of the mirror.
    fn respond(&self, text: String) -> Response {
        let validators = Validators { tag: fingerprint([text.as_bytes()]), modified_secs: None };
        let is_known = validators.are_known(self.headers);
        let (status, text) = if is_known { (304, String::new()) } else { (200, text) };
        let page = validators.add_to(Response::new(status, self.form.content_type(), text));
        with_policies(page.with("Cache-Control", "no-cache".to_owned())).compressible()
    }

    /// The response that a request is refused.
    fn refused(&self, text: &str) -> Response {
        let (site, address) = (&self.gateway.site, &self.target.address);
        let page = match self.form {
            SearchForm::Html => {
                let page = SearchPage { site, address, shown: Shown::Fault(text) };
                Response::new(400, self.form.content_type(), page.render())
            }
            SearchForm::Json => Response::json(400, &json!({"error": text})),
            SearchForm::Atom => Response::text(400, text),
        };
        with_policies(page.with("Cache-Control", "public, max-age=60".to_owned()))
    }

    /// The response in place of results.
    fn notice(&self, notice: SearchNotice) -> Response {
        let status = notice.status();
        let page = match self.form {
            SearchForm::Html => {
                let page = SearchNoticePage { site: &self.gateway.site, notice };
                Response::new(status, self.form.content_type(), page.render())
            }
            SearchForm::Json => Response::json(status, &json!({"error": notice.sentence()})),
            SearchForm::Atom => Response::text(status, notice.sentence()),
        };
        with_policies(page.with("Cache-Control", "no-store".to_owned()))
    }
}
