//! Removes pages from the cache.

use crate::serve::oai::cache::PageVariant;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use oaimend_oai::Request;
use serde_json::json;

/// Removes pages from the cache: all pages of a repository, or with a query the one that answers it.
pub(super) async fn purge(served: &ServedRepositories, id: &str, query: Option<&str>) -> Response {
    let Some(cache) = served.cache.clone() else {
        return Response::json(409, &json!({"error": "the cache is off (cache.enabled)"}));
    };
    let Some(mapping) = served.repositories.find(id) else {
        let right = "PURGE /-/cache/ID, or /-/cache/ID?verb=... for one page; ID is a repository";
        return Response::json(404, &json!({"error": right}));
    };
    let page = match query.map(|query| Request::parse(query.as_bytes())).transpose() {
        Ok(None) => None,
        Ok(Some(request)) => match served.page_variant(&mapping, &request).await {
            PageVariant::Shared(variant) => Some((request, variant)),
            PageVariant::Unshared => return Response::json(200, &json!({ "purged": 0 })),
        },
        Err(refusal) => return Response::json(400, &json!({"error": refusal.text})),
    };
    let mut source = mapping.source.base_url.clone();
    source.set_query(None);
    let base_urls = [format!("{}/{id}", served.public_url), source.to_string()];
    // A purge removes files.
    let purge = move || match page {
        Some((request, variant)) => cache.purge(&mapping, &base_urls, Some(&request), variant.as_deref()),
        None => cache.purge(&mapping, &[], None, None),
    };
    match tokio::task::spawn_blocking(purge).await {
        Ok(purged) => Response::json(200, &json!({ "purged": purged })),
        Err(_) => Response::text(500, "the response could not be created; the log says why"),
    }
}
