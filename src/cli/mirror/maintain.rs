//! `oaimend mirror verify`, `compact` and `forget`: the maintenance of the store.

use clap::Args;

use super::super::exit::{Exit, Failure, print};
use super::{Context, store_failure};

#[derive(Debug, Args)]
pub(super) struct IdArguments {
    /// The ids of stored repositories; none: all of them
    #[arg(value_name = "ID")]
    ids: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct ForgetArguments {
    /// The id of a stored repository
    #[arg(value_name = "ID")]
    id: String,
}

pub(super) fn verify(context: &Context, arguments: IdArguments) -> Result<Exit, Failure> {
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
