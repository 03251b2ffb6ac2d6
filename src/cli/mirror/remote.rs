//! `oaimend mirror` while `oaimend serve` uses the data folder: through its admin listener.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use oaimend::config::{Config, Mapping};
use oaimend_base::clock::{Clock as _, SystemClock};
use oaimend_mirror::maintenance::MaintenanceLine;
use oaimend_mirror::status::RepositoryStatus;
use rustix::fs::Mode;
use serde_json::Value;

use super::super::admin_client::AdminClient;
use super::super::exit::{Exit, Failure, print};
use super::super::progress::ProgressLine;
use super::maintain::{Maintained, Report, Task};
use super::sync::SyncArguments;
use super::{MirrorCommand, cat, maintain, mirrored, plan, status};

/// The time between two looks at a harvest.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Runs a command with the server that uses the data folder.
pub(super) fn run(
    client: &AdminClient,
    config: &Config,
    command: MirrorCommand,
    mask: Mode,
) -> Result<Exit, Failure> {
    match command {
        MirrorCommand::Sync(arguments) => sync(client, config, &arguments),
        MirrorCommand::Status(arguments) => status::show(&statuses(client)?, &arguments),
        MirrorCommand::Plan(arguments) => plan::run(config, &statuses(client)?, arguments, mask),
        MirrorCommand::Cat(arguments) => cat::run_remote(client, &arguments),
        MirrorCommand::Verify(arguments) => maintain::verify(config, &arguments, client),
        MirrorCommand::AcceptLoss(arguments) => maintain::accept_loss(&arguments, client),
        MirrorCommand::Compact(arguments) => maintain::compact(&arguments, client),
        MirrorCommand::Forget(arguments) => maintain::forget(&arguments, client),
    }
}

/// The status of all repositories of the mirror.
pub(super) fn statuses(client: &AdminClient) -> Result<Vec<RepositoryStatus>, Failure> {
    let response = client.send("GET", "/-/mirror")?;
    let statuses = serde_json::from_value(response.json["repositories"].clone());
    statuses.map_err(|error| unexpected(&format!("the status of the mirror cannot be read: {error}")))
}

fn sync(client: &AdminClient, config: &Config, arguments: &SyncArguments) -> Result<Exit, Failure> {
    let mut waiting: Vec<Follower> = mirrored(config, &arguments.ids)?
        .into_iter()
        .map(|mapping| Follower { mapping, after: None })
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("start", Path::new("the timer"), &error))?;
    let progress = ProgressLine::default();
    let mut is_success = true;
    while !waiting.is_empty() {
        let mut next = Vec::new();
        for mut follower in waiting {
            match follower.look(client, arguments.accept_deletions, &progress)? {
                Some((line, has_succeeded)) => {
                    progress.end(follower.mapping.id());
                    is_success &= has_succeeded;
                    print(format!("{}: {line}\n", follower.mapping.id()).as_bytes())?;
                }
                None => next.push(follower),
            }
        }
        waiting = next;
        if !waiting.is_empty() {
            // The pause needs the timer of the runtime.
            runtime.block_on(async { SystemClock.pause(LOOK_INTERVAL).await });
        }
    }
    Ok(if is_success { Exit::Success } else { Exit::Incomplete })
}

/// Follows the harvest of one repository.
struct Follower {
    mapping: Arc<Mapping>,
    /// The number of harvests that had ended before this one; `None` before it is requested.
    after: Option<u64>,
}

impl Follower {
    /// Requests the harvest, or looks at it. Returns its result once it has ended.
    fn look(
        &mut self,
        client: &AdminClient,
        accepts_deletions: bool,
        progress: &ProgressLine,
    ) -> Result<Option<(String, bool)>, Failure> {
        let id = self.mapping.id();
        let Some(after) = self.after else {
            let query = if accepts_deletions { "?accept_deletions=true" } else { "" };
            let response = client.send("POST", &format!("/-/mirror/{id}/sync{query}"))?;
            match response.status {
                202 => self.after = Some(response.json["ended"].as_u64().unwrap_or_default()),
                // A harvest with other options is no substitute.
                409 if accepts_deletions => {}
                409 => {
                    let harvest = client.send("GET", &format!("/-/mirror/{id}/harvest"))?;
                    self.after = harvest.json["ended"].as_u64();
                }
                _ => return Err(unexpected(&explain(id, &response.json))),
            }
            return Ok(None);
        };
        let response = client.send("GET", &format!("/-/mirror/{id}/harvest"))?;
        if response.status != 200 {
            return Err(unexpected(&explain(id, &response.json)));
        }
        let harvest = response.json;
        if harvest["ended"].as_u64().is_some_and(|ended| ended > after) {
            let last = &harvest["last"];
            let line = last["summary"].as_str().unwrap_or("failed: the log of the server says why");
            return Ok(Some((line.to_owned(), last["is_success"] == true)));
        }
        let running = &harvest["running"];
        if let Some(prefix) = running["prefix"].as_str() {
            let records = running["records"].as_u64().unwrap_or_default();
            progress.show(id, prefix, records, running["total"].as_u64());
        }
        Ok(None)
    }
}

impl Maintained for AdminClient {
    fn stored(&self) -> Result<Vec<String>, Failure> {
        let statuses = statuses(self)?;
        // The list contains repositories that were never harvested too.
        let stored = statuses.into_iter().filter(|status| !status.formats.is_empty());
        Ok(stored.map(|status| status.id).collect())
    }

    fn run(&self, task: Task, id: &str, report: &mut Report<'_>) -> Result<(), Failure> {
        let task = match task {
            Task::Verify => "verify",
            Task::Compare => "verify?against_source=true",
            Task::AcceptLoss => "accept-loss",
            Task::Compact => "compact",
            Task::Forget => "forget",
        };
        let response = self.open("POST", &format!("/-/mirror/{id}/{task}"))?;
        match response.status {
            200 => {}
            404 => return Err(Failure::usage(response.into_error()?)),
            _ => return Err(Failure::in_use(format!("{id}: {}", response.into_error()?))),
        }
        let progress = ProgressLine::default();
        let mut has_result = false;
        response.for_each_line(|line| {
            let line = serde_json::from_slice(line);
            match line.map_err(|error| unexpected(&format!("the result cannot be read: {error}")))? {
                MaintenanceLine::Running { secs } => progress.show_wait(id, secs),
                result => {
                    progress.end(id);
                    has_result = true;
                    report(result)?;
                }
            }
            Ok(())
        })?;
        match has_result {
            true => Ok(()),
            false => Err(unexpected(&format!("{id}: the response has no result"))),
        }
    }
}

fn explain(id: &str, json: &Value) -> String {
    let error = json["error"].as_str().unwrap_or("the response is not known");
    format!("{id} is not harvested: {error}")
}

fn unexpected(text: &str) -> Failure {
    Failure::io("use", Path::new("the admin listener"), &std::io::Error::other(text.to_owned()))
}
