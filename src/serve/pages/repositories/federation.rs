//! The page of a federation.

use super::description::{known_lists, known_name};
use super::overview::{ROWS_MAX, changing};
use super::summary::{mirror_status, summary};
use crate::config::{FEDERATION_NAME, FederationFile};
use crate::serve::oai::federation_view::{federation_members, federation_title};
use crate::serve::pages::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use http::HeaderMap;
use oaimend_html::fingerprint;
use oaimend_pages::html::FederationPage;
use oaimend_pages::texts::plain;
use oaimend_store::ListedFormat;
use std::sync::Arc;

/// The page of a federation; without a file that of all repositories.
pub(crate) async fn federation(
    served: &ServedRepositories,
    gateway: &GatewayState,
    file: Option<&Arc<FederationFile>>,
    headers: &HeaderMap,
) -> Response {
    let all = match federation_members(served, file).await {
        Ok(members) => members,
        Err(failure) => {
            return Response::text(503, plain::UNREADABLE_MIRROR)
                .with("Retry-After", failure.retry_after_secs.to_string())
                .with("Proxy-Status", failure.proxy_status());
        }
    };
    let (mut members, mut formats): (Vec<_>, Vec<ListedFormat>) = Default::default();
    for mapping in all.iter().filter_map(|member| served.repositories.find(&member.id)).take(ROWS_MAX) {
        // Without the store the row has the id in place of the name, and its formats are not known.
        let name = known_name(served, &mapping).await.unwrap_or_default();
        let status = mirror_status(served, &mapping).await;
        members.push(summary(served, &mapping, name, &status));
        let known = known_lists(served, &mapping).await.ok().and_then(|lists| lists.formats);
        for format in known.into_iter().flatten() {
            // Of a prefix that several have, the first counts.
            if !formats.iter().any(|other| other.prefix == format.prefix) {
                formats.push(format);
            }
        }
    }
    let html = FederationPage {
        site: &gateway.site,
        path: file.map_or(FEDERATION_NAME, |file| &file.path),
        name: &federation_title(served, file.map(Arc::as_ref)),
        description: file.and_then(|file| file.description.as_deref()),
        members: &members,
        members_count: all.len(),
        formats: &formats,
    }
    .render();
    let version = fingerprint([html.as_bytes()]);
    changing(served, html, &version, headers)
}
