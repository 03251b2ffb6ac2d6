//! What the resolver found as JSON. docs/how-to/resolver.md describes it. Its texts are not escaped for HTML.

use super::result::{FoundFormat, FoundItem, ResolverResult, ServiceResult};
use serde_json::{Map, Value, json};

/// The result for one identifier. `public_url` has no slash at its end.
pub fn json_result(result: &ResolverResult, public_url: &str) -> Value {
    let mut json = json_of(result, public_url);
    json["incomplete"] = json!(result.incomplete);
    json["services"] = result.services.iter().map(json_service).collect();
    json
}

/// The results for many identifiers, in the order of the request. No service was requested for them.
pub fn json_results(results: &[ResolverResult], public_url: &str) -> Value {
    let mut incomplete: Vec<&String> = results.iter().flat_map(|result| &result.incomplete).collect();
    incomplete.sort_unstable();
    incomplete.dedup();
    let results: Vec<Value> = results.iter().map(|result| json_of(result, public_url)).collect();
    json!({"results": results, "incomplete": incomplete})
}

fn json_of(result: &ResolverResult, public_url: &str) -> Value {
    let items = |items: &[FoundItem]| -> Vec<Value> {
        items.iter().map(|item| json_item(item, public_url)).collect()
    };
    let meanings: Map<String, Value> =
        result.meanings.iter().map(|(kind, value)| ((*kind).to_owned(), json!(value))).collect();
    json!({
        "identifier": result.identifier,
        "meanings": meanings,
        "records": items(&result.identified),
        "namedBy": items(&result.named_by),
        "hasMore": result.has_more,
    })
}

fn json_item(item: &FoundItem, public_url: &str) -> Value {
    let format = |format: &FoundFormat| {
        json!({
            "metadataPrefix": format.prefix,
            "datestamp": format.stamp,
            "sourceDatestamp": format.source_datestamp,
            "isDeleted": format.is_deleted,
            "mirror": item.in_mirror(public_url, &format.prefix),
            "repository": item.in_repository(public_url, &format.prefix),
        })
    };
    json!({
        "repository": item.repository,
        "identifier": item.identifier,
        "url": item.page(public_url),
        "field": item.named_in,
        "formats": item.formats.iter().map(format).collect::<Vec<_>>(),
    })
}

fn json_service(service: &ServiceResult) -> Value {
    json!({"name": service.name, "state": service.state.name(), "url": service.url})
}

#[cfg(test)]
mod tests {
    use super::super::ServiceState;
    use super::*;

    #[test]
    fn a_result_has_a_fixed_shape() {
        let format = FoundFormat {
            prefix: "oai_dc".to_owned(),
            stamp: "2026-01-02T03:04:05Z".to_owned(),
            source_datestamp: "2001-01-01T00:00:00Z".to_owned(),
            is_deleted: false,
        };
        let item = FoundItem {
            repository: "x".to_owned(),
            identifier: "oai:x:1/<a>".to_owned(),
            has_page: true,
            named_in: Some("identifier"),
            formats: vec![format],
        };
        let service = ServiceResult {
            name: "Other".to_owned(),
            state: ServiceState::Found,
            url: Some("https://o.example/1".to_owned()),
        };
        let result = ResolverResult {
            identifier: "doi:10.1000/A".to_owned(),
            meanings: vec![("doi", "10.1000/a".to_owned())],
            named_by: vec![item],
            incomplete: vec!["y".to_owned()],
            services: vec![service],
            ..ResolverResult::default()
        };
        let expected = json!({
            "identifier": "doi:10.1000/A",
            "meanings": {"doi": "10.1000/a"},
            "records": [],
            "namedBy": [{
                "repository": "x",
                "identifier": "oai:x:1/<a>",
                "url": "https://e.org/x/record/oai%3Ax%3A1%2F%3Ca%3E",
                "field": "identifier",
                "formats": [{
                    "metadataPrefix": "oai_dc",
                    "datestamp": "2026-01-02T03:04:05Z",
                    "sourceDatestamp": "2001-01-01T00:00:00Z",
                    "isDeleted": false,
                    "mirror": "https://e.org/_mirror/x?verb=GetRecord&identifier=oai%3Ax%3A1%2F%3Ca%3E&metadataPrefix=oai_dc",
                    "repository": "https://e.org/x?verb=GetRecord&identifier=oai%3Ax%3A1%2F%3Ca%3E&metadataPrefix=oai_dc",
                }],
            }],
            "hasMore": false,
            "incomplete": ["y"],
            "services": [{"name": "Other", "state": "found", "url": "https://o.example/1"}],
        });
        assert_eq!(json_result(&result, "https://e.org"), expected);
        let many = json_results(&[result], "https://e.org");
        assert_eq!(many["results"][0]["meanings"]["doi"], "10.1000/a");
        assert!(many["results"][0].get("services").is_none());
        assert_eq!(many["incomplete"], json!(["y"]));
    }
}
