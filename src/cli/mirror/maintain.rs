//! `oaimend mirror verify`, `compact` and `forget`: the maintenance of the store.

use clap::Args;
use oaimend::mirror::harvest::{Comparison, HarvestSettings};

use super::super::exit::{Exit, Failure, print};
use super::sync::Harvests;
use super::{Context, mirrored, store_failure};

#[derive(Debug, Args)]
pub(super) struct IdArguments {
    /// The ids of stored repositories; none: all of them
    #[arg(value_name = "ID")]
    ids: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// The ids of stored repositories; none: all of them
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Compares identifiers and datestamps with those of the source instead
    #[arg(long)]
    against_source: bool,
}

#[derive(Debug, Args)]
pub(super) struct ForgetArguments {
    /// The id of a stored repository
    #[arg(value_name = "ID")]
    id: String,
}

pub(super) fn verify(context: &Context, arguments: VerifyArguments) -> Result<Exit, Failure> {
    if arguments.against_source {
        return compare(context, &arguments.ids);
    }
    let mut is_whole = true;
    for id in context.stored(arguments.ids)? {
        let found = context.runtime.block_on(context.store.mirror.verify(&id)).map_err(store_failure)?;
        is_whole &= found.damaged == 0;
        let advice =
            if found.damaged > 0 { format!("; run: oaimend mirror sync {id}") } else { String::new() };
        print(format!("{id}: {} records, {} damaged{advice}\n", found.records, found.damaged).as_bytes())?;
    }
    Ok(if is_whole { Exit::Success } else { Exit::Incomplete })
}

/// Compares repositories with their sources.
fn compare(context: &Context, ids: &[String]) -> Result<Exit, Failure> {
    let harvests = Harvests::open(context)?;
    let mut is_equal = true;
    for mapping in mirrored(&context.config, ids)? {
        let id = &mapping.id;
        let harvester = match harvests.harvester(&mapping) {
            Ok(harvester) => harvester,
            Err(error) => {
                is_equal = false;
                print(format!("{id}: not compared: {error}\n").as_bytes())?;
                continue;
            }
        };
        let settings = HarvestSettings::of(&mapping);
        let sizes = context.runtime.block_on(context.store.mirror.collections(id)).map_err(store_failure)?;
        if sizes.is_empty() {
            is_equal = false;
            print(format!("{id}: never harvested; run: oaimend mirror sync {id}\n").as_bytes())?;
        }
        for prefix in sizes.into_iter().map(|size| size.prefix) {
            let compared = context.runtime.block_on(harvester.compare(&settings, &prefix));
            let text = match compared {
                Ok(comparison) => {
                    is_equal &= comparison.is_equal();
                    describe(id, &prefix, &comparison)
                }
                Err(error) => {
                    is_equal = false;
                    format!("{id} {prefix}: not compared: {error}\n")
                }
            };
            print(text.as_bytes())?;
        }
    }
    Ok(if is_equal { Exit::Success } else { Exit::Incomplete })
}

fn describe(id: &str, prefix: &str, comparison: &Comparison) -> String {
    let Comparison { listed, missing, changed, vanished, .. } = comparison;
    let mut text = format!(
        "{id} {prefix}: {listed} records at the source, {} missing, {} vanished, {} changed\n",
        missing.count,
        vanished.len(),
        changed.count
    );
    let vanished_count = vanished.len() as u64;
    let vanished = vanished.iter().map(|entry| &entry.identifier).take(NAMED_MAX).collect();
    for (kind, count, identifiers) in [
        ("missing", missing.count, missing.identifiers.iter().take(NAMED_MAX).collect::<Vec<_>>()),
        ("vanished", vanished_count, vanished),
        ("changed", changed.count, changed.identifiers.iter().take(NAMED_MAX).collect()),
    ] {
        for identifier in &identifiers {
            text.push_str(&format!("  {kind}: {identifier}\n"));
        }
        let unnamed = count - identifiers.len() as u64;
        if unnamed > 0 {
            text.push_str(&format!("  {kind}: {unnamed} more\n"));
        }
    }
    text
}

/// Most identifiers that are printed for each kind of difference.
const NAMED_MAX: usize = 20;

pub(super) fn compact(context: &Context, arguments: IdArguments) -> Result<Exit, Failure> {
    for id in context.stored(arguments.ids)? {
        let freed = context.runtime.block_on(context.store.mirror.compact(&id)).map_err(store_failure)?;
        print(format!("{id}: {freed} bytes freed\n").as_bytes())?;
    }
    Ok(Exit::Success)
}

pub(super) fn forget(context: &Context, arguments: &ForgetArguments) -> Result<Exit, Failure> {
    let id = &arguments.id;
    let stored = context.stored(Vec::new())?;
    if !stored.contains(id) {
        return Err(Failure::usage(format!("the mirror stores nothing of \"{}\"", id.escape_debug())));
    }
    context.runtime.block_on(context.store.mirror.forget(id)).map_err(store_failure)?;
    print(format!("{id}: forgotten\n").as_bytes())
}
