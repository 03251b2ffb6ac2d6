//! What browsers need to offer the search: its description, and suggestions while a person types.

use super::failure::SearchFailure;
use super::request::all_records;
use crate::serve::pages::records::record::{CACHE_CONTROL, with_policies};
use crate::serve::pages::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::search::SearchService;
use crate::serve::served::ServedRepositories;
use oaimend_pages::html::SearchNotice;
use oaimend_pages::search::{open_search_description, suggestions};
use oaimend_pages::texts::common::number_of_records;
use oaimend_pages::texts::search as texts;
use oaimend_search::{FieldName, ValueCount, Values};

/// Maximum number of suggestions.
const SUGGESTIONS_MAX: usize = 10;
/// Shortest text with suggestions, in characters.
const CHARS_MIN: usize = 2;
/// The fields whose values are suggested.
const FIELDS: [&str; 3] = ["title", "subject", "creator"];

/// The OpenSearch description.
pub(crate) fn description(served: &ServedRepositories, gateway: &GatewayState) -> Response {
    if served.search().is_none() {
        return line(SearchNotice::Off);
    }
    let site = &gateway.site;
    let xml = open_search_description(site.name(), &texts::description(site.name()), site.public_url());
    let page = Response::new(200, "application/opensearchdescription+xml; charset=UTF-8", xml);
    with_policies(page.with("Cache-Control", CACHE_CONTROL.to_owned())).compressible()
}

/// The suggestions for the start of a query.
pub(crate) async fn suggest(served: &ServedRepositories, query: &str) -> Response {
    let Some(search) = served.search() else {
        return line(SearchNotice::Off);
    };
    match find(served, search, query).await {
        Ok(found) => {
            let json = format!("{}\n", suggestions(query, &found));
            let page = Response::new(200, "application/x-suggestions+json", json);
            with_policies(page.with("Cache-Control", CACHE_CONTROL.to_owned())).compressible()
        }
        Err(failure) => failure.response(|text| Response::text(400, text), line),
    }
}

/// A notice for programs.
fn line(notice: SearchNotice) -> Response {
    Response::text(notice.status(), notice.sentence())
}

/// The most frequent values that begin so, as phrases, with the numbers of their records.
async fn find(
    served: &ServedRepositories,
    search: &SearchService,
    query: &str,
) -> Result<Vec<(String, String)>, SearchFailure> {
    // A suggestion is a phrase, so it is completed after its quotation mark too.
    let start = query.trim().trim_start_matches('"');
    if start.chars().count() < CHARS_MIN {
        return Ok(Vec::new());
    }
    let filter = all_records(served);
    let values = FIELDS.map(|field| Values {
        field: FieldName(field.to_owned()),
        filter: filter.clone(),
        start: start.to_owned(),
        after: None,
        count_max: SUGGESTIONS_MAX,
    });
    let found = search.searches.run(move |index| {
        let mut found: Vec<ValueCount> = Vec::new();
        for request in &values {
            found.extend(index.suggest(request)?);
        }
        Ok(found)
    });
    let mut found = found.await?;
    found.sort_by(|one, other| (&one.folded, other.records).cmp(&(&other.folded, one.records)));
    found.dedup_by(|one, other| one.folded == other.folded);
    found.sort_by_key(|value| std::cmp::Reverse(value.records));
    let phrase = |text: &str| format!("\"{}\"", text.replace('"', " "));
    let found = found.into_iter().take(SUGGESTIONS_MAX);
    Ok(found.map(|value| (phrase(&value.value), number_of_records(value.records))).collect())
}
