//! The page of the view of all mirrored repositories.

use super::overview::changing;
use crate::serve::oai::mirror_views::aggregate_name;
use crate::serve::pages::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use http::HeaderMap;
use oaimend_mirror::view::AggregateRepository;
use oaimend_pages::html::AggregatePage;
use oaimend_store::RepositoryId;

/// The page of the view of all mirrored repositories. Repositories that the mirror cannot read are left out.
pub(crate) async fn aggregate(
    served: &ServedRepositories,
    gateway: &GatewayState,
    headers: &HeaderMap,
) -> Response {
    let (mut repositories, mut records) = (0, 0);
    for mapping in served.repositories.all().values().filter(|mapping| mapping.mirror.is_some()) {
        let Ok(sizes) = served.store.mirror.collections(RepositoryId(mapping.id())).await else { continue };
        repositories += 1;
        records += sizes.iter().map(|size| size.records).max().unwrap_or_default();
    }
    let (name, path) = (&aggregate_name(served), AggregateRepository::NAME);
    let html = AggregatePage { site: &gateway.site, path, name, repositories, records }.render();
    changing(served, html, &(&gateway.version, name, repositories, records), headers)
}
