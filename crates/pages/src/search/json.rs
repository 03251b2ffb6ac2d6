//! Results as JSON. Its texts are not escaped for HTML or XML.

use super::address::SearchAddress;
use super::form::SearchForm;
use super::results::{Facet, SearchItem, SearchResults};
use serde_json::{Map, Value, json};

/// The document. `public_url` has no slash at its end.
pub fn json_results(address: &SearchAddress, results: &SearchResults, public_url: &str) -> Value {
    let url = |address: SearchAddress| address.url(public_url, SearchForm::Json.ending());
    let facets: Map<String, Value> = results.facets.iter().map(facet).collect();
    let items = results.items.iter().map(|item| json_item(item, public_url));
    json!({
        "query": address.query,
        "total": results.total,
        "isEstimate": results.is_estimate,
        "items": items.collect::<Vec<_>>(),
        "facets": facets,
        "facetsAreEstimates": results.facets_are_estimates,
        "previous": address.previous().map(url),
        "next": address.next(results.total).map(url),
    })
}

fn facet(facet: &Facet) -> (String, Value) {
    let values = facet.values.iter().map(|value| json!({"value": value.value, "records": value.records}));
    (facet.kind.name().to_owned(), Value::Array(values.collect()))
}

fn json_item(item: &SearchItem, public_url: &str) -> Value {
    let work = &item.work;
    let texts = |texts: &[oaimend_record::Text]| -> Vec<String> {
        texts.iter().map(|text| text.value.clone()).collect()
    };
    json!({
        "repository": item.repository,
        "identifier": work.identifier,
        "url": item.url(public_url),
        "title": item.title.as_ref().map(|title| &title.text.value),
        "creators": texts(&work.core.creators),
        "year": item.year(),
        "type": work.work_type.label(),
        "language": work.language(),
        "isOpenAccess": work.is_open_access,
        "links": work.links.identifying.iter().map(|link| &link.url).collect::<Vec<_>>(),
        "snippet": item.snippet.as_ref().map(|snippet| &snippet.text.value),
        "changed": item.changed,
    })
}
