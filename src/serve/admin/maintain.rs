//! The maintenance of the store that operators request at the admin listener, and the records as a file.
//!
//! One task runs at a time, on threads of its own, so harvesters are answered meanwhile. A task that has begun ends also
//! if the operator does not wait for it.

use super::lines::respond_with_lines;
use crate::serve::background::harvests::harvester::harvester;
use crate::serve::net::lifecycle::Lifecycle;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use bytes::Bytes;
use futures::future::ready;
use futures::stream::{self, StreamExt as _};
use oaimend_mirror::export::{Export, ExportError, ExportForm, ExportSelection};
use oaimend_mirror::harvest::{HarvestError, HarvestSettings};
use oaimend_mirror::maintenance::{
    MaintenanceLine, compare_with_source, describe_unstored, stored_repositories,
};
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{to_last_second, to_secs};
use oaimend_store::{MirrorError, RepositoryId};
use serde_json::json;
use std::sync::Arc;

/// A task for one repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MaintenanceTask {
    /// Check all records.
    Verify,
    /// Compare the records with those of the source.
    Compare,
    /// Accept the loss of damaged records.
    AcceptLoss,
    /// Free the space of replaced records.
    Compact,
    /// Remove everything.
    Forget,
}

impl MaintenanceTask {
    /// The task with this name and query; `None` if there is none.
    fn parse(name: &str, query: Option<&str>) -> Option<Self> {
        match (name, query.filter(|query| !query.is_empty())) {
            ("verify", None) => Some(Self::Verify),
            ("verify", Some("against_source=true")) => Some(Self::Compare),
            ("accept-loss", None) => Some(Self::AcceptLoss),
            ("compact", None) => Some(Self::Compact),
            ("forget", None) => Some(Self::Forget),
            _ => None,
        }
    }
}

/// Runs a task: `POST /-/mirror/ID/TASK`. The response has a line for each result.
pub(super) async fn maintain(
    served: &Arc<ServedRepositories>,
    lifecycle: &Lifecycle,
    id: &str,
    name: &str,
    query: Option<&str>,
) -> Response {
    let Some(task) = MaintenanceTask::parse(name, query) else {
        let error = "expected no query; verify accepts against_source=true";
        return Response::json(400, &json!({ "error": error }));
    };
    if lifecycle.is_ending() {
        return Response::json(503, &json!({"error": "this process is stopping; send the request again"}));
    }
    match stored_repositories(served.store.mirror.as_ref()).await {
        Err(error) => return Response::json(500, &json!({"error": error.to_string()})),
        Ok(stored) if stored.iter().any(|stored| stored == id) => {}
        Ok(_) if task == MaintenanceTask::Compare && served.mirrored(id).is_some() => {}
        Ok(stored) => {
            return Response::json(404, &json!({"error": describe_unstored(id, &stored)}));
        }
    }
    let removal = match task {
        MaintenanceTask::Forget => match served.mirror.runs.begin_removal(id) {
            Some(mark) => Some(mark),
            None => {
                let error =
                    "a harvest of this repository runs; forget it after its end, or stop oaimend serve first";
                return Response::json(409, &json!({ "error": error }));
            }
        },
        _ => None,
    };
    let (served, id, clock) = (Arc::clone(served), id.to_owned(), Arc::clone(&served.clock));
    let work = async move {
        let turn = Arc::clone(&served.mirror.maintenance).lock_owned().await;
        let work = async move {
            let _marks = (turn, removal);
            perform(&served, &id, task).await
        };
        // The task continues if the operator is gone.
        let result = tokio::spawn(work).await;
        let result = result.unwrap_or_else(|error| Err(MirrorError::Stopped(error.to_string())));
        stream::iter(result.unwrap_or_else(|error| {
            vec![MaintenanceLine::Failed { prefix: None, error: format!("failed: {error}") }]
        }))
    };
    respond_with_lines(stream::once(work).flatten().boxed(), clock, |secs| {
        ready(MaintenanceLine::Running { secs })
    })
}

async fn perform(
    served: &ServedRepositories,
    id: &str,
    task: MaintenanceTask,
) -> Result<Vec<MaintenanceLine>, MirrorError> {
    let (store, repository) = (&served.store.mirror, RepositoryId(id));
    let line = match task {
        MaintenanceTask::Verify => {
            let found = store.verify(repository).await?;
            MaintenanceLine::Verified { records: found.records, damaged: found.damaged }
        }
        MaintenanceTask::Compare => return compare(served, id).await,
        MaintenanceTask::AcceptLoss => {
            MaintenanceLine::LossAccepted { missing: store.accept_loss(repository).await? }
        }
        MaintenanceTask::Compact => {
            MaintenanceLine::Compacted { freed_bytes: store.compact(repository).await? }
        }
        MaintenanceTask::Forget => {
            store.forget(repository).await?;
            served
                .store
                .full_texts
                .forget(id)
                .await
                .map_err(|error| MirrorError::Stopped(error.to_string()))?;
            MaintenanceLine::Forgotten { is_mirrored: served.mirrored(id).is_some() }
        }
    };
    Ok(vec![line])
}

async fn compare(served: &ServedRepositories, id: &str) -> Result<Vec<MaintenanceLine>, MirrorError> {
    let Some(mapping) = served.harvested(id) else {
        let error = "not compared: its mapping has no source with a [mirror] table".to_owned();
        return Ok(vec![MaintenanceLine::Failed { prefix: None, error }]);
    };
    match harvester(served, &mapping).await {
        Ok(harvester) => compare_with_source(&harvester, &HarvestSettings::of(mapping.mirror.as_ref())).await,
        Err(HarvestError::Store(error)) => Err(error),
        Err(error) => Ok(vec![MaintenanceLine::not_compared(None, &error)]),
    }
}

/// The records of one format: `GET /-/mirror/ID/records`.
pub(super) async fn export(served: &ServedRepositories, id: &str, query: Option<&str>) -> Response {
    let (selection, form) = match read_query(id, query.unwrap_or_default()) {
        Ok(read) => read,
        Err(error) => return Response::json(400, &json!({ "error": error })),
    };
    let export = match Export::begin(Arc::clone(&served.store.mirror), selection, form).await {
        Ok(export) => export,
        Err(error) => {
            let status = match &error {
                ExportError::NeverHarvested { .. } | ExportError::UnknownMembers(_) => 404,
                ExportError::AmbiguousPrefix(_) => 400,
                ExportError::Store(_) => 500,
            };
            return Response::json(status, &json!({"error": error.to_string()}));
        }
    };
    let content_type = match form {
        ExportForm::Xml => "text/xml; charset=UTF-8",
        ExportForm::Jsonl => "application/jsonl",
        ExportForm::Ids => "text/plain; charset=UTF-8",
    };
    let pieces = stream::try_unfold(export, async |mut export| {
        let piece = export.next_piece().await?;
        Ok(piece.map(|piece| (Bytes::from(piece), export)))
    });
    Response::download(content_type, pieces.boxed())
}

fn read_query(id: &str, query: &str) -> Result<(ExportSelection, ExportForm), String> {
    let mut selection = ExportSelection { id: id.to_owned(), ..ExportSelection::default() };
    let mut form = ExportForm::default();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let date = |secs: Option<UnixSecs>| {
            secs.ok_or_else(|| format!("{name}: expected a date such as 2024-01-31"))
        };
        match &*name {
            "prefix" => selection.prefix = Some(value.into_owned()),
            "set" => selection.set = Some(value.into_owned()),
            "from" => selection.from_secs = Some(date(to_secs(&value))?),
            "until" => selection.until_secs = Some(date(to_last_second(&value))?),
            "format" => {
                form = match &*value {
                    "xml" => ExportForm::Xml,
                    "jsonl" => ExportForm::Jsonl,
                    "ids" => ExportForm::Ids,
                    _ => return Err("format: expected xml, jsonl or ids".to_owned()),
                }
            }
            _ => return Err("expected prefix, set, from, until or format".to_owned()),
        }
    }
    Ok((selection, form))
}
