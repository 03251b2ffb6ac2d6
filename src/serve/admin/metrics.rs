//! The metrics, measured when they are read.

use super::mirror::measure_mirror;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use crate::serve::telemetry::Telemetry;

/// The metrics as Prometheus text.
pub(super) async fn metrics(served: &ServedRepositories, telemetry: &Telemetry) -> Response {
    if let Some(cache) = &served.cache {
        let size = cache.size();
        telemetry.metrics.cache_entries.set(size.entries.cast_signed());
        telemetry.metrics.cache_bytes.set(size.bytes.cast_signed());
    }
    let (mappings, now) = (served.repositories.all(), served.clock.now());
    let is_open = |id: &str| served.sources.circuit_open_secs(id, now).is_some();
    telemetry.set_circuits(mappings.keys().map(|id| (id.as_str(), is_open(id))));
    telemetry.set_stores(&served.store.databases.states());
    match served.store.quarantine.sizes().await {
        Ok(sizes) => {
            let is_mapped = |(id, _): &(String, _)| mappings.contains_key(id);
            telemetry.set_quarantine_sizes(sizes.into_iter().filter(is_mapped));
        }
        Err(error) => {
            tracing::warn!(%error, "the quarantine cannot be measured; its metrics are old");
        }
    }
    let folder = |id: &String| Some((id.clone(), served.deposit.folders.of(id)?));
    telemetry.set_folders(mappings.keys().filter_map(folder));
    if let Err(error) = measure_mirror(served, telemetry).await {
        tracing::warn!(%error, "the mirror cannot be measured; its metrics are old");
    }
    if let Some(search) = served.search() {
        match search.status(&*served.store.mirror).await {
            Ok(status) => telemetry.set_search_index(&status, search.lag()),
            Err(error) => tracing::warn!(%error, "the search index cannot be measured; its metrics are old"),
        }
    }
    Response::new(200, "text/plain; version=0.0.4; charset=utf-8", telemetry.metrics())
}
