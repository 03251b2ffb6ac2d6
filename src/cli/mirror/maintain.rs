//! `oaimend mirror verify`, `accept-loss`, `compact` and `forget`: the maintenance of the store.

use clap::Args;
use oaimend::config::Config;
use oaimend_mirror::harvest::{Difference, HarvestSettings};
use oaimend_mirror::maintenance::{
    ComparisonReport, MaintenanceLine, compare_with_source, describe_unstored,
};
use oaimend_store::RepositoryId;

use super::super::exit::{Exit, Failure, print};
use super::sync::Harvests;
use super::{Context, find_mirrored, mirrored, parse_id, store_failure};

#[derive(Debug, Args)]
pub(super) struct IdArguments {
    /// The ids of stored repositories; none: all of them
    #[arg(value_name = "ID", value_parser = parse_id)]
    ids: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// The ids of stored repositories; none: all of them
    #[arg(value_name = "ID", value_parser = parse_id)]
    ids: Vec<String>,
    /// Compares identifiers and datestamps with those of the source instead
    #[arg(long)]
    against_source: bool,
}

#[derive(Debug, Args)]
pub(super) struct OneIdArguments {
    /// The id of a stored repository
    #[arg(value_name = "ID", value_parser = parse_id)]
    id: String,
}

/// The maintenance of one repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Check all records.
    Verify,
    /// Compare the records with the source.
    Compare,
    /// Accept the loss of damaged records.
    AcceptLoss,
    /// Free the space of replaced records.
    Compact,
    /// Remove everything.
    Forget,
}

/// A mirror: in the data folder, or of a server that uses the data folder.
pub(super) trait Maintained {
    /// The stored repositories, in order.
    fn stored(&self) -> Result<Vec<String>, Failure>;

    /// Runs a task, and reports its results.
    fn run(&self, task: Task, id: &str, report: &mut Report<'_>) -> Result<(), Failure>;
}

/// Receives the results of a task.
pub(super) type Report<'r> = dyn FnMut(MaintenanceLine) -> Result<(), Failure> + 'r;

pub(super) fn verify(
    config: &Config,
    arguments: &VerifyArguments,
    mirror: &impl Maintained,
) -> Result<Exit, Failure> {
    match arguments.against_source {
        false => run_all(Task::Verify, &all_or(&arguments.ids, mirror)?, mirror),
        true => {
            let mappings = mirrored(config, &arguments.ids)?;
            let ids: Vec<String> = mappings.iter().map(|mapping| mapping.id().to_owned()).collect();
            run_all(Task::Compare, &ids, mirror)
        }
    }
}

pub(super) fn compact(arguments: &IdArguments, mirror: &impl Maintained) -> Result<Exit, Failure> {
    run_all(Task::Compact, &all_or(&arguments.ids, mirror)?, mirror)
}

pub(super) fn accept_loss(arguments: &OneIdArguments, mirror: &impl Maintained) -> Result<Exit, Failure> {
    run_all(Task::AcceptLoss, std::slice::from_ref(&arguments.id), mirror)
}

pub(super) fn forget(arguments: &OneIdArguments, mirror: &impl Maintained) -> Result<Exit, Failure> {
    run_all(Task::Forget, std::slice::from_ref(&arguments.id), mirror)
}

/// The ids, or all stored repositories.
fn all_or(ids: &[String], mirror: &impl Maintained) -> Result<Vec<String>, Failure> {
    if ids.is_empty() { mirror.stored() } else { Ok(ids.to_vec()) }
}

/// Runs a task for each of these repositories, and prints the results.
fn run_all(task: Task, ids: &[String], mirror: &impl Maintained) -> Result<Exit, Failure> {
    let mut is_good = true;
    for id in ids {
        let mut report = |line: MaintenanceLine| {
            let (text, is_success) = describe(id, line);
            is_good &= is_success;
            print(text.as_bytes()).map(drop)
        };
        mirror.run(task, id, &mut report)?;
    }
    Ok(if is_good { Exit::Success } else { Exit::Incomplete })
}

impl Maintained for Context {
    fn stored(&self) -> Result<Vec<String>, Failure> {
        Self::stored(self)
    }

    fn run(&self, task: Task, id: &str, report: &mut Report<'_>) -> Result<(), Failure> {
        let stored = Self::stored(self)?;
        if task != Task::Compare && !stored.iter().any(|stored| stored == id) {
            return Err(Failure::usage(describe_unstored(id, &stored)));
        }
        let store = &self.store.mirror;
        let line = match task {
            Task::Compare => {
                let lines = compare(self, id)?;
                return lines.into_iter().try_for_each(report);
            }
            Task::Verify => {
                let found = self.runtime.block_on(store.verify(RepositoryId(id))).map_err(store_failure)?;
                MaintenanceLine::Verified { records: found.records, damaged: found.damaged }
            }
            Task::AcceptLoss => {
                let missing =
                    self.runtime.block_on(store.accept_loss(RepositoryId(id))).map_err(store_failure)?;
                MaintenanceLine::LossAccepted { missing }
            }
            Task::Compact => {
                let freed_bytes =
                    self.runtime.block_on(store.compact(RepositoryId(id))).map_err(store_failure)?;
                MaintenanceLine::Compacted { freed_bytes }
            }
            Task::Forget => {
                self.runtime.block_on(store.forget(RepositoryId(id))).map_err(store_failure)?;
                MaintenanceLine::Forgotten { is_mirrored: false }
            }
        };
        report(line)
    }
}

/// Compares a repository with its source.
fn compare(context: &Context, id: &str) -> Result<Vec<MaintenanceLine>, Failure> {
    let mapping = find_mirrored(&context.config, id, std::iter::empty())?;
    let harvests = Harvests::open(context)?;
    match harvests.harvester(&mapping) {
        Ok(harvester) => {
            let settings = HarvestSettings::of(mapping.mirror.as_ref());
            context.runtime.block_on(compare_with_source(&harvester, &settings)).map_err(store_failure)
        }
        Err(error) => Ok(vec![MaintenanceLine::not_compared(None, &error)]),
    }
}

/// The lines about a result, and whether it is good.
fn describe(id: &str, line: MaintenanceLine) -> (String, bool) {
    match line {
        MaintenanceLine::Running { .. } => (String::new(), true),
        MaintenanceLine::Verified { records, damaged } => {
            let advice = match damaged {
                0 => String::new(),
                _ => format!(
                    "; run: oaimend mirror sync {id}; if the source is gone: oaimend mirror accept-loss {id}"
                ),
            };
            (format!("{id}: {records} records, {damaged} damaged{advice}\n"), damaged == 0)
        }
        MaintenanceLine::LossAccepted { missing } => {
            (format!("{id}: {missing} damaged records count as missing\n"), true)
        }
        MaintenanceLine::Compacted { freed_bytes } => (format!("{id}: {freed_bytes} bytes freed\n"), true),
        MaintenanceLine::Compared(report) => (describe_comparison(id, &report), report.is_equal()),
        MaintenanceLine::Forgotten { is_mirrored: false } => (format!("{id}: forgotten\n"), true),
        MaintenanceLine::Forgotten { is_mirrored: true } => {
            let next = "its mapping has a [mirror] table, so the server harvests it again";
            (format!("{id}: forgotten; {next}\n"), true)
        }
        MaintenanceLine::Failed { prefix, error } => {
            let prefix = prefix.map(|prefix| format!(" {prefix}")).unwrap_or_default();
            (format!("{id}{prefix}: {error}\n"), false)
        }
    }
}

fn describe_comparison(id: &str, report: &ComparisonReport) -> String {
    let ComparisonReport { prefix, listed, missing, vanished, changed } = report;
    let mut text = format!(
        "{id} {prefix}: {listed} records at the source, {} missing, {} vanished, {} changed\n",
        missing.count, vanished.count, changed.count
    );
    for (kind, Difference { count, identifiers }) in
        [("missing", missing), ("vanished", vanished), ("changed", changed)]
    {
        for identifier in identifiers {
            text.push_str(&format!("  {kind}: {identifier}\n"));
        }
        let unnamed = count - identifiers.len() as u64;
        if unnamed > 0 {
            text.push_str(&format!("  {kind}: {unnamed} more\n"));
        }
    }
    text
}
