//! `oaimend mirror`: harvests repositories into the mirror, and reads the mirror.
//!
//! The commands work on the data folder. While `oaimend serve` uses it, `sync` and `status` work through its admin
//! listener (`remote`).

mod admin_client;
mod cat;
mod maintain;
mod progress;
mod remote;
mod status;
mod sync;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use oaimend::config::{Config, Flags, Mapping};
use oaimend::mirror::status::RepositoryStatus;
use oaimend::mirror::view::AggregateRepository;
use oaimend::store::{DataDirLock, MirrorError, Store};
use tokio::runtime::Runtime;

use super::exit::{Exit, Failure};

/// Harvests repositories into the mirror, and reads the mirror
#[derive(Debug, Args)]
pub(crate) struct MirrorArguments {
    #[command(subcommand)]
    command: MirrorCommand,
    /// The settings file [default: oaimend.toml, if it exists]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Folder with one mapping file for each repository [default: mappings, if it exists]
    #[arg(long, value_name = "DIR", global = true)]
    mappings: Option<PathBuf>,
    /// Folder for the mirror and other state [default: data]
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
    /// The admin listener of the running server [default: admin.listen, else 127.0.0.1:8081]
    #[arg(long, value_name = "ADDR", global = true)]
    admin: Option<SocketAddr>,
}

#[derive(Debug, Subcommand)]
enum MirrorCommand {
    /// Harvests repositories now; without an id all mirrored ones
    Sync(sync::SyncArguments),
    /// Shows the records and the last harvest of each mirrored repository
    Status(status::StatusArguments),
    /// Writes the records of a repository
    Cat(cat::CatArguments),
    /// Checks every stored record of a repository, or of all, or compares them with the source
    Verify(maintain::VerifyArguments),
    /// Frees the disk space of replaced records of a repository, or of all
    Compact(maintain::IdArguments),
    /// Removes everything that the mirror stores of a repository
    Forget(maintain::ForgetArguments),
}

/// The configuration, the opened data folder, and a runtime.
struct Context {
    config: Config,
    store: Store,
    runtime: Runtime,
}

pub(crate) fn run(arguments: MirrorArguments) -> Result<Exit, Failure> {
    let MirrorArguments { command, config, mappings, data, admin } = arguments;
    let admin = admin.map(Some);
    let config = Config::load(&Flags { config, mappings, data, admin, ..Flags::default() })?;
    let Some(lock) = DataDirLock::take(&config.data)? else {
        return remote::run(&config, &command);
    };
    let context = Context::open(config, lock)?;
    let exit = match command {
        MirrorCommand::Sync(arguments) => sync::run(&context, &arguments),
        MirrorCommand::Status(arguments) => status::run(&context, &arguments),
        MirrorCommand::Cat(arguments) => cat::run(&context, arguments),
        MirrorCommand::Verify(arguments) => maintain::verify(&context, arguments),
        MirrorCommand::Compact(arguments) => maintain::compact(&context, arguments),
        MirrorCommand::Forget(arguments) => maintain::forget(&context, &arguments),
    };
    context.store.close();
    exit
}

/// The status of all stored repositories: from the data folder, or from the server that uses it.
pub(crate) fn statuses(config: Config) -> Result<(Config, Vec<RepositoryStatus>), Failure> {
    let Some(lock) = DataDirLock::take(&config.data)? else {
        let statuses = remote::statuses(&config)?;
        return Ok((config, statuses));
    };
    let context = Context::open(config, lock)?;
    let statuses = status::read(&context);
    context.store.close();
    Ok((context.config, statuses?))
}

impl Context {
    fn open(config: Config, lock: DataDirLock) -> Result<Self, Failure> {
        let store = Store::open_locked(lock)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::io("start", Path::new("the network"), &error))?;
        Ok(Self { config, store, runtime })
    }

    /// The ids, or all stored repositories.
    fn stored(&self, ids: Vec<String>) -> Result<Vec<String>, Failure> {
        if !ids.is_empty() {
            return Ok(ids);
        }
        let mut stored = self.runtime.block_on(self.store.mirror.repositories()).map_err(store_failure)?;
        // The store contains the state of this view too, and no records of it.
        stored.retain(|id| id != AggregateRepository::NAME);
        Ok(stored)
    }
}

/// The mirrored repositories with these ids; without an id all of them.
fn mirrored(config: &Config, ids: &[String]) -> Result<Vec<Arc<Mapping>>, Failure> {
    let all = config.repositories.all();
    let mirrored = || all.values().filter(|mapping| mapping.mirror.is_some());
    if ids.is_empty() {
        let found: Vec<_> = mirrored().cloned().collect();
        return match found.is_empty() {
            true => Err(Failure::usage("no mapping has a [mirror] table; add one to mirror its repository")),
            false => Ok(found),
        };
    }
    ids.iter().map(|id| find_mirrored(config, id, mirrored().map(|mapping| mapping.id.as_str()))).collect()
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
            let expected = match known.is_empty() {
                true => "no mapping has a [mirror] table".to_owned(),
                false => format!("expected {}", known.join(", ")),
            };
            let id = id.escape_debug();
            Err(Failure::usage(format!("\"{id}\" is not a mirrored repository; {expected}")))
        }
    }
}

/// The failure of a command whose store fails.
fn store_failure(error: MirrorError) -> Failure {
    Failure::io("use", Path::new("the mirror"), &std::io::Error::other(error))
}
