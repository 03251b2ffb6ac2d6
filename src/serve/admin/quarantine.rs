//! The quarantine for scripts: entries as JSON, their removal, and their retry.

use super::lines::respond_with_lines;
use crate::quarantine_retry::{Retry, RetryLine};
use crate::serve::background::harvests::harvester::{background_source, idle_harvester};
use crate::serve::net::lifecycle::Lifecycle;
use crate::serve::oai::crosswalks::converted_repository;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use futures::future::ready;
use futures::{StreamExt as _, stream};
use oaimend_oai::datestamp;
use oaimend_store::{
    QuarantineEntry, QuarantineError, QuarantineQuery, QuarantineSelection, QuarantineState, RepositoryId,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// The entries of a repository; `None` if no mapping has this id.
pub(super) async fn list(served: &ServedRepositories, id: &str, query: Option<&str>) -> Option<Response> {
    served.repositories.find(id)?;
    let Ok(Selected { state, before: None, is_all: false }) = Selected::read(query) else {
        let error = "expected no query, state=open or state=resolved";
        return Some(Response::json(400, &json!({ "error": error })));
    };
    Some(match entries_json(served, id, state).await {
        Ok(value) => Response::json(200, &value),
        Err(error) => Response::json(500, &json!({ "error": error.to_string() })),
    })
}

/// An entry with the raw bytes of the record; `None` if no mapping has this id.
pub(super) async fn record(served: &ServedRepositories, id: &str, key: &str) -> Option<Response> {
    served.repositories.find(id)?;
    Some(match record_json(served, id, key).await {
        Ok(Some(value)) => Response::json(200, &value),
        Ok(None) => unknown_key(),
        Err(error) => Response::json(500, &json!({ "error": error.to_string() })),
    })
}

async fn entries_json(
    served: &ServedRepositories,
    id: &str,
    state: Option<QuarantineState>,
) -> Result<Value, QuarantineError> {
    let query = QuarantineQuery { state, ..QuarantineQuery::default() };
    let records = served.store.quarantine.list(RepositoryId(id), query).await?;
    let records: Vec<Value> = records.iter().map(|(key, entry)| entry_json(key, entry)).collect();
    Ok(json!({ "records": records }))
}

async fn record_json(
    served: &ServedRepositories,
    id: &str,
    key: &str,
) -> Result<Option<Value>, QuarantineError> {
    let Some((entry, raw)) = served.store.quarantine.find(RepositoryId(id), key).await? else {
        return Ok(None);
    };
    let mut value = entry_json(key, &entry);
    match String::from_utf8(raw) {
        Ok(text) => value["raw"] = json!(text),
        Err(bytes) => value["raw_hex"] = json!(hex::encode(bytes.as_bytes())),
    }
    Ok(Some(value))
}

fn entry_json(key: &str, entry: &QuarantineEntry) -> Value {
    let mut value = json!(entry);
    value["identifier"] = json!(entry.plain_identifier());
    value["key"] = json!(key);
    value["state"] = json!(entry.state().name());
    value
}

/// The conditions in a query.
struct Selected {
    state: Option<QuarantineState>,
    before: Option<String>,
    is_all: bool,
}

impl Selected {
    fn read(query: Option<&str>) -> Result<Self, ()> {
        let mut selected = Self { state: None, before: None, is_all: false };
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "state" => selected.state = Some(QuarantineState::from_name(&value).ok_or(())?),
                "before" if datestamp::to_secs(&value).is_some() => {
                    selected.before = Some(value.into_owned())
                }
                "all" if value == "true" => selected.is_all = true,
                _ => return Err(()),
            }
        }
        Ok(selected)
    }

    /// The entries to remove; `None` without a condition, because such a request may be a mistake.
    fn to_removal(&self) -> Option<QuarantineSelection> {
        let Self { state, before, is_all } = self;
        match (state, before, is_all) {
            (None, None, false) | (Some(_), _, true) | (_, Some(_), true) => None,
            (None, None, true) => Some(QuarantineSelection::ALL),
            (_, _, false) => Some(QuarantineSelection::Matching { state: *state, before: before.clone() }),
        }
    }
}

/// Removes entries of a repository: one, those that fit the query, or all.
pub(super) async fn remove(
    served: &ServedRepositories,
    id: &str,
    key: Option<&str>,
    query: Option<&str>,
) -> Response {
    if served.repositories.find(id).is_none() {
        return Response::json(404, &json!({"error": "no such repository"}));
    }
    let which = match (key, query) {
        (Some(key), None) => Some(QuarantineSelection::Key(key.to_owned())),
        (None, query) => Selected::read(query).ok().and_then(|selected| selected.to_removal()),
        _ => None,
    };
    let Some(which) = which else { return wrong_selection() };
    let is_one = matches!(which, QuarantineSelection::Key(_));
    match served.store.quarantine.remove(RepositoryId(id), which).await {
        Ok(0) if is_one => unknown_key(),
        Ok(removed) => Response::json(200, &json!({ "removed": removed })),
        Err(error) => Response::json(500, &json!({ "error": error.to_string() })),
    }
}

fn unknown_key() -> Response {
    Response::json(404, &json!({"error": "no quarantined record has this key"}))
}

fn wrong_selection() -> Response {
    let error = "expected DELETE /-/repositories/ID/quarantine/KEY, or /-/repositories/ID/quarantine with state=open, \
                 state=resolved or before=YYYY-MM-DD, or with all=true";
    Response::json(400, &json!({ "error": error }))
}

/// Requests quarantined records again. The response has a line for each. The retry ends if the client is gone.
pub(super) async fn retry(
    served: &Arc<ServedRepositories>,
    lifecycle: &Lifecycle,
    id: &str,
    key: Option<&str>,
    query: Option<&str>,
) -> Response {
    if lifecycle.is_ending() {
        return Response::json(503, &json!({"error": "this process is stopping; send the request again"}));
    }
    let mut prefix = None;
    for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "prefix" => prefix = Some(value.into_owned()),
            _ => return Response::json(400, &json!({"error": "expected no query, or prefix=PREFIX"})),
        }
    }
    let Some(mapping) = served.repositories.find(id) else {
        return Response::json(404, &json!({"error": "no such repository"}));
    };
    let source = match background_source(served, &mapping) {
        Ok(source) => source,
        Err(failure) => return Response::json(500, &json!({ "error": failure.details })),
    };
    let retry = Retry {
        id: id.to_owned(),
        source: Arc::new(source),
        with_crosswalks: converted_repository(served, &mapping).await.map(Arc::from),
        quarantine: Arc::clone(&served.store.quarantine),
        mirror: idle_harvester(served, &mapping).await,
        clock: Arc::clone(&served.clock),
        via: served.via.to_str().unwrap_or_default().to_owned(),
        base_url: format!("{}/{id}", served.public_url),
        prefix,
    };
    match retry.begin(key).await {
        Ok(Some(run)) => {
            let lines = stream::unfold(run, async |mut run| Some((run.next().await?, run)));
            respond_with_lines(lines.boxed(), Arc::clone(&served.clock), |_| ready(RetryLine::Running))
        }
        Ok(None) => unknown_key(),
        Err(error) => Response::json(500, &json!({ "error": error.to_string() })),
    }
}
