//! The metrics, measured when they are read.

use super::mirror::measure_mirror;
use crate::serve::context::ServerContext;
use crate::serve::response::Response;

/// The metrics as Prometheus text.
pub(super) async fn metrics(context: &ServerContext) -> Response {
    if let Some(cache) = &context.cache {
        let size = cache.size();
        context.telemetry.cache_entries.set(size.entries.cast_signed());
        context.telemetry.cache_bytes.set(size.bytes.cast_signed());
    }
    let (mappings, now) = (context.repositories.all(), context.clock.now());
    let is_open = |id: &str| context.clients.circuit_open_secs(id, now).is_some();
    context.telemetry.set_circuits(mappings.keys().map(|id| (id.as_str(), is_open(id))));
    context.telemetry.set_stores(&context.store.databases.states());
    match context.store.quarantine.sizes().await {
        Ok(sizes) => {
            let is_mapped = |(id, _): &(String, _)| mappings.contains_key(id);
            context.telemetry.set_quarantine_sizes(sizes.into_iter().filter(is_mapped));
        }
        Err(error) => {
            tracing::warn!(%error, "the quarantine cannot be measured; its metrics are old");
        }
    }
    if let Err(error) = measure_mirror(context).await {
        tracing::warn!(%error, "the mirror cannot be measured; its metrics are old");
    }
    Response::new(200, "text/plain; version=0.0.4; charset=utf-8", context.telemetry.metrics())
}
