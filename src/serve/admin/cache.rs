//! Removes pages from the cache.

use crate::serve::oai::cache::PageVariant;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use oaimend_oai::Request;
use serde_json::json;

/// Removes pages from the cache: all pages of a repository, or with a query the one that answers it. Blocks on
/// the disk.
pub(super) fn purge(served: &ServedRepositories, id: &str, query: Option<&str>) -> Response {
    let Some(cache) = &served.cache else {
        return Response::json(409, &json!({"error": "the cache is off (cache.enabled)"}));
    };
    let purged = match (served.repositories.find(id), query) {
        (Some(mapping), Some(query)) => {
            let mut own = mapping.source.base_url.clone();
            own.set_query(None);
            let base_urls = [format!("{}/{id}", served.public_url), own.to_string()];
            match Request::parse(query.as_bytes()) {
                Ok(request) => match served.page_variant(&mapping, &request) {
                    PageVariant::Shared(variant) => {
                        cache.purge(&mapping, &base_urls, Some(&request), variant.as_deref())
                    }
                    PageVariant::Unshared => 0,
                },
                Err(refusal) => return Response::json(400, &json!({"error": refusal.text})),
            }
        }
        (Some(mapping), None) => cache.purge(&mapping, &[], None, None),
        (None, _) => {
            let right = "PURGE /-/cache/ID, or /-/cache/ID?verb=... for one page; ID is a repository";
            return Response::json(404, &json!({"error": right}));
        }
    };
    Response::json(200, &json!({ "purged": purged }))
}
