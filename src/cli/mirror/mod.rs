//! `oaimend mirror`: harvests repositories into the mirror, and reads the mirror.
//!
//! The commands work on the data folder. While `oaimend serve` uses it, they work through its admin listener
//! (`remote`).

mod cat;
mod maintain;
mod plan;
mod remote;
mod status;
mod sync;

use std::path::Path;
use std::sync::Arc;

use clap::{Args, Subcommand};
use oaimend::config::{Config, Mapping, check_id};
use oaimend_base::suggestions::suggest_ids;
use oaimend_mirror::maintenance::stored_repositories;
use oaimend_store::{MirrorError, Store};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::data_arguments::{DataArguments, create_private_files};
use super::exit::{Exit, Failure};
use super::state::{IfAbsent, LockedData, State};

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

/// The configuration, the opened data folder, and a runtime.
struct Context {
    config: Config,
    store: Store,
    runtime: Runtime,
    /// The data folder of an empty state.
    _empty: Option<TempDir>,
}

pub(crate) fn run(arguments: MirrorArguments) -> Result<Exit, Failure> {
    let MirrorArguments { command, data } = arguments;
    let if_absent = match command {
        MirrorCommand::Sync(_) => IfAbsent::Create,
        _ => IfAbsent::ReadEmpty,
    };
    let mask = create_private_files();
    let (config, state) = data.find(if_absent)?;
    let context = match state {
        State::Here(data) => Context::open(config, data)?,
        State::InServer(client) => return remote::run(&client, &config, command, mask),
    };
    let exit = match command {
        MirrorCommand::Sync(arguments) => sync::run(&context, &arguments),
        MirrorCommand::Status(arguments) => status::run(&context, &arguments),
        MirrorCommand::Plan(arguments) => {
            status::read(&context).and_then(|statuses| plan::run(&context.config, &statuses, arguments, mask))
        }
        MirrorCommand::Cat(arguments) => cat::run(&context, arguments),
        MirrorCommand::Verify(arguments) => maintain::verify(&context.config, &arguments, &context),
        MirrorCommand::AcceptLoss(arguments) => maintain::accept_loss(&arguments, &context),
        MirrorCommand::Compact(arguments) => maintain::compact(&arguments, &context),
        MirrorCommand::Forget(arguments) => maintain::forget(&arguments, &context),
    };
    context.store.close();
    exit
}

impl Context {
    fn open(config: Config, data: LockedData) -> Result<Self, Failure> {
        let (store, empty) = data.open()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::io("start", Path::new("the network"), &error))?;
        Ok(Self { config, store, runtime, _empty: empty })
    }

    /// All stored repositories.
    fn stored(&self) -> Result<Vec<String>, Failure> {
        let stored = stored_repositories(self.store.mirror.as_ref());
        self.runtime.block_on(stored).map_err(store_failure)
    }
}

/// The mirrored repositories with these ids; without an id all of them.
fn mirrored(config: &Config, ids: &[String]) -> Result<Vec<Arc<Mapping>>, Failure> {
    let all = config.repositories.all();
    let mirrored = || all.values().filter(|mapping| mapping.mirror.is_some());
    if ids.is_empty() {
        let found: Vec<_> = mirrored().cloned().collect();
        return if found.is_empty() {
            Err(Failure::usage("no mapping has a [mirror] table; add one to mirror its repository"))
        } else {
            Ok(found)
        };
    }
    ids.iter().map(|id| find_mirrored(config, id, mirrored().map(|mapping| mapping.id()))).collect()
}

fn find_mirrored<'m>(
    config: &Config,
    id: &str,
    mirrored: impl Iterator<Item = &'m str>,
) -> Result<Arc<Mapping>, Failure> {
    match config.repositories.find(id) {
        Some(mapping) if mapping.mirror.is_some() => Ok(mapping),
        Some(_) => {
            Err(Failure::usage(format!("\"{id}\" is not mirrored; add a [mirror] table to its mapping")))
        }
        None => {
            let known: Vec<&str> = mirrored.collect();
            let expected = if known.is_empty() {
                "no mapping has a [mirror] table".to_owned()
            } else {
                format!("expected {}", suggest_ids(id, &known))
            };
            let id = id.escape_debug();
            Err(Failure::usage(format!("\"{id}\" is not a mirrored repository; {expected}")))
        }
    }
}

/// Reads the id of a repository that may have no mapping any more.
fn parse_id(text: &str) -> Result<String, String> {
    check_id(text).map(|()| text.to_owned())
}

/// The failure of a command whose store fails.
fn store_failure(error: MirrorError) -> Failure {
    Failure::io("use", Path::new("the mirror"), &std::io::Error::other(error))
}
