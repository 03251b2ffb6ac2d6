//! `oaimend mirror`: harvests repositories into the mirror, and reads the mirror.

mod cat;
mod export;
mod maintain;
mod plan;
mod status;
mod sync;

use std::sync::Arc;

use clap::{Args, Subcommand};
use oaimend::config::{Mapping, check_id};
use oaimend_base::suggestions::suggest_ids;
use oaimend_mirror::status::RepositoryStatus;
use serde::Deserialize;

pub(super) use sync::harvest_one;

use super::admin_api::AdminApi;
use super::data_arguments::{DataArguments, create_private_files};
use super::exit::{Exit, Failure};
use super::state::IfAbsent;

/// Harvests repositories into the mirror, and reads the mirror
#[derive(Debug, Args)]
pub(crate) struct MirrorArguments {
    #[command(subcommand)]
    command: MirrorCommand,
    #[command(flatten)]
    data: DataArguments,
}

#[derive(Debug, Subcommand)]
enum MirrorCommand {
    /// Harvests repositories now; without an id all mirrored ones
    Sync(sync::SyncArguments),
    /// Shows the records and the last harvest of each mirrored repository
    Status(status::StatusArguments),
    /// Shows how often each mirrored repository is harvested, and what that costs
    Plan(plan::PlanArguments),
    /// Writes a dump of a repository, of all, or of a view: its records at one position
    Export(export::ExportArguments),
    /// Writes the records of a repository
    Cat(cat::CatArguments),
    /// Checks every stored record of a repository, or of all, or compares them with the source
    Verify(maintain::VerifyArguments),
    /// Accepts that damaged records of a repository are lost, and opens its lists without them
    AcceptLoss(maintain::OneIdArguments),
    /// Frees the disk space of replaced records of a repository, or of all
    Compact(maintain::IdArguments),
    /// Removes everything that the mirror stores of a repository
    Forget(maintain::OneIdArguments),
}

pub(crate) fn run(arguments: MirrorArguments) -> Result<Exit, Failure> {
    let MirrorArguments { command, data } = arguments;
    let if_absent = match command {
        MirrorCommand::Sync(_) => IfAbsent::Create,
        _ => IfAbsent::ReadEmpty,
    };
    let mask = create_private_files();
    let api = data.open(if_absent)?;
    match command {
        MirrorCommand::Sync(arguments) => sync::run(&api, &arguments),
        MirrorCommand::Status(arguments) => status::run(&api, &arguments),
        MirrorCommand::Plan(arguments) => plan::run(&api, arguments, mask),
        MirrorCommand::Export(arguments) => export::run(&api, &arguments),
        MirrorCommand::Cat(arguments) => cat::run(&api, &arguments),
        MirrorCommand::Verify(arguments) => maintain::verify(&api, &arguments),
        MirrorCommand::AcceptLoss(arguments) => maintain::accept_loss(&api, &arguments),
        MirrorCommand::Compact(arguments) => maintain::compact(&api, &arguments),
        MirrorCommand::Forget(arguments) => maintain::forget(&api, &arguments),
    }
}

/// The status of all repositories that are mirrored or stored.
fn statuses(api: &AdminApi) -> Result<Vec<RepositoryStatus>, Failure> {
    #[derive(Deserialize)]
    struct Mirror {
        repositories: Vec<RepositoryStatus>,
    }
    let mirror = api.send("GET", "/-/mirror")?.map_err(|refusal| Failure::in_use(refusal.error))?;
    Ok(mirror.read::<Mirror>()?.repositories)
}

/// The mirrored repositories with a source and these ids; without an id all of them.
fn mirrored(api: &AdminApi, ids: &[String]) -> Result<Vec<Arc<Mapping>>, Failure> {
    let all = api.repositories().all();
    let mirrored: Vec<_> = all.values().filter(|mapping| mapping.harvest().is_some()).cloned().collect();
    if ids.is_empty() {
        let problem = "no mapping has a [mirror] table; add one to mirror its repository";
        return if mirrored.is_empty() { Err(Failure::usage(problem)) } else { Ok(mirrored) };
    }
    let find = |id: &String| match all.get(id) {
        Some(mapping) if mapping.harvest().is_some() => Ok(Arc::clone(mapping)),
        Some(mapping) if mapping.local.is_some() => {
            Err(Failure::usage(format!("\"{id}\" is a local repository, which has no source to harvest")))
        }
        Some(_) => {
            Err(Failure::usage(format!("\"{id}\" is not mirrored; add a [mirror] table to its mapping")))
        }
        None => Err(Failure::usage(describe_unknown(id, &mirrored))),
    };
    ids.iter().map(find).collect()
}

fn describe_unknown(id: &str, mirrored: &[Arc<Mapping>]) -> String {
    let known: Vec<&str> = mirrored.iter().map(|mapping| mapping.id()).collect();
    let expected = match known.as_slice() {
        [] => "no mapping has a [mirror] table".to_owned(),
        known => format!("expected {}", suggest_ids(id, known)),
    };
    format!("\"{}\" is not a mirrored repository; {expected}", id.escape_debug())
}

/// Reads the id of a repository that may have no mapping any more.
fn parse_id(text: &str) -> Result<String, String> {
    check_id(text).map(|()| text.to_owned())
}
