//! The state of repositories as JSON.

use crate::config::Mapping;
use crate::serve::background::notifications::reports::report_of;
use crate::serve::background::notifications::state::NoticeState;
use crate::serve::served::ServedRepositories;
use crate::serve::telemetry::Telemetry;
use oaimend_store::QuarantineError;
use serde_json::{Value, json};

/// All repositories.
pub(super) fn list(served: &ServedRepositories, telemetry: &Telemetry) -> Value {
    let mappings = served.repositories.all();
    let all: Vec<Value> =
        mappings.values().map(|mapping| repository_json(served, telemetry, mapping)).collect();
    json!({ "repositories": all })
}

/// One repository; `None` if no mapping has this id.
pub(super) fn state(served: &ServedRepositories, telemetry: &Telemetry, id: &str) -> Option<Value> {
    Some(repository_json(served, telemetry, &*served.repositories.find(id)?))
}

/// The last repairs of a repository; `None` if no mapping has this id.
pub(super) fn repairs(served: &ServedRepositories, telemetry: &Telemetry, id: &str) -> Option<Value> {
    served.repositories.find(id)?;
    Some(json!({ "repairs": telemetry.last(id).repairs }))
}

/// The report to the provider of a repository; `None` if no mapping has this id.
///
/// # Errors
///
/// The quarantine cannot be read.
pub(super) async fn report(
    served: &ServedRepositories,
    notices: &NoticeState,
    id: &str,
) -> Result<Option<Value>, QuarantineError> {
    let Some(mapping) = served.repositories.find(id) else { return Ok(None) };
    let report = report_of(served, notices, &mapping, served.clock.now_secs()).await?;
    Ok(Some(json!({ "text": report.map(|report| report.text) })))
}

fn repository_json(served: &ServedRepositories, telemetry: &Telemetry, mapping: &Mapping) -> Value {
    let mut value = json!(telemetry.last(mapping.id()));
    value["id"] = json!(mapping.id());
    value["url"] = json!(format!("{}/{}", served.public_url, mapping.id()));
    value["base_url"] = json!(mapping.shown_source());
    if mapping.source.static_file.is_some() {
        value["static_file"] = json!(served.sources.file_state(mapping.id()));
    }
    if mapping.source.tape_file.is_some() {
        value["tape_file"] = json!(served.sources.tape_state(mapping.id()));
    }
    value["set_collisions"] = json!(served.store.profiles.collisions(&mapping.source.source_key()));
    let learned = served.store.capabilities.detected(mapping.id(), &mapping.source.fingerprint());
    let pinned = mapping.source.quirks.version.map(|version| version.name().to_owned());
    value["version"] = json!(pinned.or(learned.version));
    let is_in_days = mapping.source.quirks.in_days || learned.refuses_seconds || learned.misses_seconds;
    value["requests_in_days"] = json!(is_in_days);
    let usage = served.sources.limit_usage(mapping.id(), served.clock.now());
    let now_secs = served.clock.now_secs();
    let oai_errors =
        served.store.activity.read(mapping.id(), |activity| activity.oai_errors(now_secs, OAI_ERROR_DAYS));
    value["oai_errors"] = json!(oai_errors);
    value["waiting_requests"] = json!(usage.map_or(0, |usage| usage.waiting));
    value["circuit_open_secs"] = json!(served.sources.circuit_open_secs(mapping.id(), served.clock.now()));
    value
}

/// The days whose OAI errors are counted in the state of a repository, today included.
const OAI_ERROR_DAYS: usize = 7;
