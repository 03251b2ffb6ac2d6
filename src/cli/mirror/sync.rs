//! `oaimend mirror sync`: harvests now.

use std::sync::Arc;

use clap::Args;
use futures::StreamExt as _;
use oaimend::clock::SystemClock;
use oaimend::config::Mapping;
use oaimend::mirror::Stamps;
use oaimend::mirror::harvest::{HarvestError, HarvestSettings, HarvestSummary, Harvester};
use oaimend::upstream::{LiveRepository, SourceClients};

use super::super::exit::{Exit, Failure, print};
use super::progress::ProgressLine;
use super::{Context, mirrored, store_failure};

#[derive(Debug, Args)]
pub(super) struct SyncArguments {
    /// The ids of mappings with a [mirror] table
    #[arg(value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// Deletes all records that have vanished from their source, however many
    #[arg(long)]
    pub(super) accept_deletions: bool,
}

pub(super) fn run(context: &Context, arguments: &SyncArguments) -> Result<Exit, Failure> {
    let mappings = mirrored(&context.config, &arguments.ids)?;
    let stamps = context.runtime.block_on(Stamps::open(Arc::clone(&context.store.mirror)));
    let stamps = Arc::new(stamps.map_err(store_failure)?);
    let clients = SourceClients::new(context.store.static_files.clone());
    let progress = ProgressLine::default();
    let mut is_complete = true;
    let harvests = mappings.iter().map(|mapping| {
        let (stamps, clients, progress) = (Arc::clone(&stamps), &clients, &progress);
        async move {
            let result =
                harvest(context, mapping, stamps, clients, arguments.accept_deletions, progress).await;
            (mapping.id.as_str(), result)
        }
    });
    let mut harvests = futures::stream::iter(harvests).buffer_unordered(context.config.mirror.harvests_max);
    context.runtime.block_on(async {
        while let Some((id, result)) = harvests.next().await {
            progress.end(id);
            let (line, complete) = describe(id, &result);
            is_complete &= complete;
            print(line.as_bytes())?;
        }
        Ok::<_, Failure>(())
    })?;
    Ok(if is_complete { Exit::Success } else { Exit::Incomplete })
}

async fn harvest(
    context: &Context,
    mapping: &Arc<Mapping>,
    stamps: Arc<Stamps>,
    clients: &SourceClients,
    accepts_deletions: bool,
    progress: &ProgressLine,
) -> Result<HarvestSummary, HarvestError> {
    let client = clients.client_for(mapping).map_err(HarvestError::Source)?;
    let (store, clock) = (context.store.clone(), Arc::new(SystemClock));
    let live = LiveRepository { mapping: Arc::clone(mapping), client, store, clock: clock.clone() };
    let harvester = Harvester {
        id: mapping.id.clone(),
        source: Arc::new(live),
        store: Arc::clone(&context.store.mirror),
        stamps,
        clock,
        via: "1.1 oaimend".to_owned(),
        base_url: mapping.base_url.to_string(),
    };
    let settings = HarvestSettings { accepts_deletions, ..HarvestSettings::of(mapping) };
    harvester
        .run(&settings, &|status| progress.show(&mapping.id, &status.prefix, status.records, status.total))
        .await
}

/// The line about one harvest, and whether it was complete.
fn describe(id: &str, result: &Result<HarvestSummary, HarvestError>) -> (String, bool) {
    match result {
        Ok(summary) => (format!("{id}: {}\n", summary.describe()), summary.is_success()),
        Err(error) => (format!("{id}: failed: {error}\n"), false),
    }
}
