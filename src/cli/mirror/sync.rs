//! `oaimend mirror sync`: harvests now.

use std::time::Duration;

use clap::Args;
use serde::Deserialize;

use super::super::admin_api::{AdminApi, Refusal};
use super::super::exit::{Exit, Failure, print};
use super::super::progress::ProgressLine;
use super::mirrored;

#[derive(Debug, Args)]
pub(super) struct SyncArguments {
    /// The ids of mappings with a [mirror] table
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Deletes all records that have vanished from their source, however many
    #[arg(long)]
    accept_deletions: bool,
}

/// The time between two looks at a harvest.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

pub(super) fn run(api: &AdminApi, arguments: &SyncArguments) -> Result<Exit, Failure> {
    let follower =
        |id: &str| Follower { id: id.to_owned(), accepts_deletions: arguments.accept_deletions, after: None };
    let mut waiting: Vec<Follower> =
        mirrored(api, &arguments.ids)?.iter().map(|mapping| follower(mapping.id())).collect();
    let progress = ProgressLine::default();
    let mut is_success = true;
    while !waiting.is_empty() {
        let mut next = Vec::new();
        for mut follower in waiting {
            let Some((line, has_succeeded)) = follower.look(api, &progress)? else {
                next.push(follower);
                continue;
            };
            progress.end(&follower.id);
            is_success &= has_succeeded;
            print(format!("{}: {line}\n", follower.id).as_bytes())?;
        }
        waiting = next;
        if !waiting.is_empty() {
            api.pause(LOOK_INTERVAL);
        }
    }
    Ok(if is_success { Exit::Success } else { Exit::Incomplete })
}

/// Harvests one repository, and returns the line of its result and whether it is a success.
pub(in super::super) fn harvest_one(api: &AdminApi, id: &str) -> Result<(String, bool), Failure> {
    let mut follower = Follower { id: id.to_owned(), accepts_deletions: false, after: None };
    let progress = ProgressLine::default();
    loop {
        if let Some(result) = follower.look(api, &progress)? {
            progress.end(id);
            return Ok(result);
        }
        api.pause(LOOK_INTERVAL);
    }
}

/// Follows the harvest of one repository.
struct Follower {
    id: String,
    accepts_deletions: bool,
    /// The number of harvests that had ended before this one; `None` before it is requested.
    after: Option<u64>,
}

#[derive(Deserialize)]
struct Requested {
    ended: u64,
}

/// The harvests of a repository since the start of the server.
#[derive(Deserialize)]
struct Harvests {
    running: Option<RunningHarvest>,
    ended: u64,
    /// `None` also if the last one has panicked.
    last: Option<EndedHarvest>,
}

#[derive(Deserialize)]
struct RunningHarvest {
    /// `None` before the first page.
    prefix: Option<String>,
    records: u64,
    total: Option<u64>,
}

#[derive(Deserialize)]
struct EndedHarvest {
    summary: String,
    is_success: bool,
}

impl Follower {
    /// Requests the harvest, or looks at it. Returns its result once it has ended.
    fn look(&mut self, api: &AdminApi, progress: &ProgressLine) -> Result<Option<(String, bool)>, Failure> {
        let Some(after) = self.after else {
            let query = if self.accepts_deletions { "?accept_deletions=true" } else { "" };
            match api.send("POST", &format!("/-/mirror/{}/sync{query}", self.id))? {
                Ok(requested) => self.after = Some(requested.read::<Requested>()?.ended),
                // A harvest with other options is no substitute.
                Err(Refusal { status: 409, .. }) if self.accepts_deletions => {}
                Err(Refusal { status: 409, .. }) => self.after = Some(self.harvests(api)?.ended),
                Err(refusal) => return Err(self.failure(&refusal)),
            }
            return Ok(None);
        };
        let Harvests { running, ended, last } = self.harvests(api)?;
        if ended > after {
            let panicked = || ("failed: the log of the server says why".to_owned(), false);
            return Ok(Some(last.map_or_else(panicked, |last| (last.summary, last.is_success))));
        }
        if let Some(running) = running
            && let Some(prefix) = running.prefix
        {
            progress.show(&self.id, &prefix, running.records, running.total);
        }
        Ok(None)
    }

    fn harvests(&self, api: &AdminApi) -> Result<Harvests, Failure> {
        let harvests = api.send("GET", &format!("/-/mirror/{}/harvest", self.id))?;
        harvests.map_err(|refusal| self.failure(&refusal))?.read()
    }

    fn failure(&self, refusal: &Refusal) -> Failure {
        Failure::in_use(format_args!("{} is not harvested: {}", self.id, refusal.error))
    }
}
