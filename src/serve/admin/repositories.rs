//! The state of repositories as JSON.

use crate::config::Mapping;
use crate::serve::background::notifications::reports::report_of;
use crate::serve::context::ServerContext;
use oaimend_base::clock;
use oaimend_store::QuarantineError;
use serde_json::{Value, json};

/// All repositories.
pub(super) fn list(context: &ServerContext) -> Value {
    let mappings = context.repositories.all();
    let all: Vec<Value> = mappings.values().map(|mapping| repository_json(context, mapping)).collect();
    json!({ "repositories": all })
}

/// One repository; `None` if no mapping has this id.
pub(super) fn state(context: &ServerContext, id: &str) -> Option<Value> {
    Some(repository_json(context, &*context.repositories.find(id)?))
}

/// The last repairs of a repository; `None` if no mapping has this id.
pub(super) fn repairs(context: &ServerContext, id: &str) -> Option<Value> {
    context.repositories.find(id)?;
    Some(json!({ "repairs": context.telemetry.last(id).repairs }))
}

/// The report to the provider of a repository; `None` if no mapping has this id.
///
/// # Errors
///
/// The quarantine cannot be read.
pub(super) async fn report(context: &ServerContext, id: &str) -> Result<Option<Value>, QuarantineError> {
    let Some(mapping) = context.repositories.find(id) else { return Ok(None) };
    let now_secs = i64::try_from(clock::secs(context.clock.now())).unwrap_or(i64::MAX);
    let report = report_of(context, &mapping, now_secs).await?;
    Ok(Some(json!({ "text": report.map(|report| report.text) })))
}

fn repository_json(context: &ServerContext, mapping: &Mapping) -> Value {
    let mut value = json!(context.telemetry.last(mapping.id()));
    value["id"] = json!(mapping.id());
    value["url"] = json!(format!("{}/{}", context.public_url, mapping.id()));
    value["base_url"] = json!(mapping.source.shown_base_url());
    if mapping.source.static_file.is_some() {
        value["static_file"] = json!(context.clients.file_state(mapping.id()));
    }
    value["set_collisions"] = json!(context.store.profiles.collisions(&mapping.source.source_key()));
    let learned = context.store.capabilities.detected(mapping.id(), &mapping.source.fingerprint());
    let pinned = mapping.source.quirks.version.map(|version| version.name().to_owned());
    value["version"] = json!(pinned.or(learned.version));
    let is_in_days = mapping.source.quirks.in_days || learned.refuses_seconds || learned.misses_seconds;
    value["requests_in_days"] = json!(is_in_days);
    let usage = context.clients.limit_usage(mapping.id(), context.clock.now());
    let now_secs = i64::try_from(clock::secs(context.clock.now())).unwrap_or(i64::MAX);
    let oai_errors =
        context.store.activity.read(mapping.id(), |activity| activity.oai_errors(now_secs, OAI_ERROR_DAYS));
    value["oai_errors"] = json!(oai_errors);
    value["waiting_requests"] = json!(usage.map_or(0, |usage| usage.waiting));
    value["circuit_open_secs"] = json!(context.clients.circuit_open_secs(mapping.id(), context.clock.now()));
    value
}

/// The days whose OAI errors are counted in the state of a repository, today included.
const OAI_ERROR_DAYS: usize = 7;
