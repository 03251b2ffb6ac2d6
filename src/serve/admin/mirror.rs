//! The pages of the admin listener about the mirror.

use crate::serve::background::harvests::runs::{HarvestRequest, RepositoryRuns, RunningHarvest, state_of};
use crate::serve::net::lifecycle::Lifecycle;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use crate::serve::telemetry::{MirrorSize, Telemetry};
use oaimend_mirror::maintenance::stored_repositories;
use oaimend_mirror::status::{FormatStatus, repository_status};
use oaimend_mirror::view::identify::StoredIdentify;
use oaimend_mirror::view::sets::KnownSets;
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_store::{Catalog, Document, ListFilter, MirrorError, RepositoryId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of sets of one repository whose records are counted for a page.
const SETS_COUNTED_MAX: usize = 1_000;

/// All mirrored and stored repositories.
pub(super) async fn list(served: &ServedRepositories) -> Result<Option<Value>, MirrorError> {
    let stored = stored_repositories(served.store.mirror.as_ref()).await?;
    let mappings = served.repositories.all();
    let mirrored = mappings.values().filter(|mapping| mapping.mirror.is_some());
    let ids = mirrored.map(|mapping| mapping.id());
    let ids: BTreeSet<&str> = ids.chain(stored.iter().map(String::as_str)).collect();
    let mut repositories = Vec::new();
    for id in ids {
        repositories.push(mirrored_json(served, id).await?);
    }
    Ok(Some(json!({ "repositories": repositories })))
}

/// One repository, with its sets; `None` if it is neither mirrored nor stored.
pub(super) async fn repository(served: &ServedRepositories, id: &str) -> Result<Option<Value>, MirrorError> {
    let stored = stored_repositories(served.store.mirror.as_ref()).await?;
    if served.mirrored(id).is_none() && !stored.iter().any(|stored| stored == id) {
        return Ok(None);
    }
    let mut value = mirrored_json(served, id).await?;
    value["sets"] = sets_json(served, id).await?;
    Ok(Some(value))
}

/// The harvests of a repository; `None` if it is not mirrored.
pub(super) fn harvest(served: &ServedRepositories, id: &str) -> Option<Value> {
    served.mirrored(id).map(|_| harvest_json(&served.mirror.runs.of(id)))
}

/// What the source says about itself: its name, addresses, formats and sets. `None` if nothing is stored.
pub(super) async fn description(served: &ServedRepositories, id: &str) -> Result<Option<Value>, MirrorError> {
    let store = &served.store.mirror;
    if store.collections(RepositoryId(id)).await?.is_empty() {
        return Ok(None);
    }
    let document = store.document(RepositoryId(id), Document::Identify).await?;
    let identify = document.and_then(|document| StoredIdentify::read(&String::from_utf8_lossy(&document)));
    let granularity = identify.as_ref().map_or(Granularity::Second, |identify| identify.granularity);
    let Catalog { formats, sets, .. } = store.catalog(RepositoryId(id)).await?;
    Ok(Some(json!({
        "base_url": served.harvested(id).map(|mapping| mapping.source.shown_base_url()),
        "name": identify.as_ref().and_then(StoredIdentify::name),
        "admin_emails": identify.map(|identify| identify.admin_emails()).unwrap_or_default(),
        "granularity": granularity.name(),
        "formats": formats,
        "sets": sets,
    })))
}

async fn mirrored_json(served: &ServedRepositories, id: &str) -> Result<Value, MirrorError> {
    let is_mirrored = served.mirrored(id).is_some();
    let status = repository_status(served.store.mirror.as_ref(), id).await?;
    let runs = served.mirror.runs.of(id);
    let state = state_of(&status, &runs);
    let lag_secs = status.lag_secs(served.clock.now_secs());
    let mut value = json!(status);
    value["state"] = json!(state);
    value["lag_secs"] = json!(lag_secs);
    value["url"] = json!(is_mirrored.then(|| format!("{}/_mirror/{id}", served.public_url)));
    value["harvest"] = json!(runs.running.as_ref().map(running_json));
    let waits = is_mirrored && runs.running.is_none();
    let next = if waits { runs.next_due_secs } else { None };
    value["next_harvest_at"] = json!(next.map(to_datestamp));
    Ok(value)
}

/// The number of records in each set and format, deleted ones included; null where the members are not known.
async fn sets_json(served: &ServedRepositories, id: &str) -> Result<Value, MirrorError> {
    let store = &served.store.mirror;
    let names: BTreeMap<String, String> =
        store.catalog(RepositoryId(id)).await?.sets.into_iter().map(|set| (set.set_spec, set.name)).collect();
    let used = store.sets_in_use(RepositoryId(id)).await?;
    let all: BTreeSet<&String> = names.keys().chain(&used).collect();
    let prefixes: Vec<String> =
        store.collections(RepositoryId(id)).await?.into_iter().map(|size| size.prefix).collect();
    let mut known = Vec::new();
    for prefix in prefixes {
        known.push((KnownSets::read(&**store, id, &prefix).await?, prefix));
    }
    let mut sets = Vec::new();
    for set_spec in all.into_iter().take(SETS_COUNTED_MAX) {
        let mut records = BTreeMap::new();
        for (known_sets, prefix) in &known {
            if known_sets.check(id, set_spec).is_err() {
                records.insert(prefix.clone(), None);
                continue;
            }
            let (repository, prefix) = (id.to_owned(), prefix.clone());
            let set = Some(set_spec.clone());
            let filter = ListFilter { repository, prefix: prefix.clone(), set, ..ListFilter::default() };
            records.insert(prefix, Some(store.count(filter).await?));
        }
        sets.push(json!({ "set_spec": set_spec, "name": names.get(set_spec), "records": records }));
    }
    Ok(json!(sets))
}

/// Sets the metrics of all stored repositories.
pub(super) async fn measure_mirror(
    served: &ServedRepositories,
    telemetry: &Telemetry,
) -> Result<(), MirrorError> {
    let store = &served.store.mirror;
    let mut sizes = Vec::new();
    for id in stored_repositories(store.as_ref()).await? {
        let status = repository_status(store.as_ref(), &id).await?;
        let sum = |count: fn(&FormatStatus) -> u64| status.formats.iter().map(count).sum();
        let size = MirrorSize {
            records: sum(|format| format.records),
            tombstones: sum(|format| format.deleted),
            bytes: sum(|format| format.disk_bytes),
            lag_secs: status.lag_secs(served.clock.now_secs()),
            last_success_secs: store.repository_state(RepositoryId(&id)).await?.last_success_secs,
            missing: sum(|format| format.missing),
            unrepairable: sum(|format| format.unrepairable),
            duplicates: sum(|format| format.duplicates),
        };
        sizes.push((id, size));
    }
    telemetry.set_mirror_sizes(&sizes);
    Ok(())
}

/// Requests a harvest: `POST /-/mirror/ID/sync`.
pub(super) fn request_harvest(
    served: &ServedRepositories,
    lifecycle: &Lifecycle,
    id: &str,
    query: Option<&str>,
) -> Response {
    let accepts_deletions = match query {
        None | Some("") => false,
        Some("accept_deletions=true") => true,
        Some(_) => {
            return Response::json(400, &json!({"error": "expected no query, or accept_deletions=true"}));
        }
    };
    if served.harvested(id).is_none() {
        return Response::json(
            404,
            &json!({"error": "no mapping with this id has a source and a [mirror] table"}),
        );
    }
    if lifecycle.is_ending() {
        return Response::json(503, &json!({"error": "this process is stopping; send the request again"}));
    }
    let ended = served.mirror.runs.of(id).ended;
    if served.mirror.runs.request(id, HarvestRequest { accepts_deletions }) {
        return Response::json(202, &json!({ "repository": id, "ended": ended }));
    }
    let error = "a harvest of this repository runs or waits already, or it is being removed";
    Response::json(409, &json!({ "error": error }))
}

fn harvest_json(runs: &RepositoryRuns) -> Value {
    let last = runs.last.as_ref().map(|last| {
        json!({
            "began_at": to_datestamp(last.began_secs),
            "ended_at": to_datestamp(last.ended_secs),
            "is_complete": last.is_complete,
            "is_success": last.is_success,
            "summary": last.line,
        })
    });
    json!({
        "waiting": runs.waiting.is_some(),
        "running": runs.running.as_ref().map(running_json),
        "ended": runs.ended,
        "last": last,
    })
}

fn running_json(running: &RunningHarvest) -> Value {
    let status = running.status.as_ref();
    json!({
        "began_at": to_datestamp(running.began_secs),
        "prefix": status.map(|status| &status.prefix),
        "records": status.map_or(0, |status| status.records),
        "total": status.and_then(|status| status.total),
    })
}

fn to_datestamp(secs: UnixSecs) -> String {
    from_secs(secs, Granularity::Second)
}
