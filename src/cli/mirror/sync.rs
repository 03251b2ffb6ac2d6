//! `oaimend mirror sync`: harvests now.

use std::sync::Arc;

use clap::Args;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use oaimend::config::Mapping;
use oaimend_base::clock::SystemClock;
use oaimend_mirror::Stamps;
use oaimend_mirror::harvest::{
    HarvestError, HarvestSettings, HarvestStatus, HarvestSummary, HarvestTurn, HarvestTurns, Harvester,
};
use oaimend_repository::ObservedRepository;
use oaimend_upstream::{LiveRepository, SourceClients};

use super::super::exit::{Exit, Failure, print};
use super::super::progress::ProgressLine;
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
    let sources = Harvests::open(context)?;
    let progress = ProgressLine::default();
    let mut is_complete = true;
    let harvests = mappings.iter().map(|mapping| {
        let (sources, progress) = (&sources, &progress);
        async move {
            let result = sources.harvest(mapping, arguments.accept_deletions, progress).await;
            (mapping.id(), result)
        }
    });
    let mut harvests: FuturesUnordered<_> = harvests.collect();
    context.runtime.block_on(async {
        while let Some((id, result)) = harvests.next().await {
            progress.end(id);
            let (line, complete) = describe(id, &result);
            is_complete &= complete;
            print(line.as_bytes())?;
        }
        Ok::<_, Failure>(())
    })?;
    context.store.activity.save_changed();
    Ok(if is_complete { Exit::Success } else { Exit::Incomplete })
}

/// What all harvests of a command share.
pub(super) struct Harvests<'c> {
    context: &'c Context,
    stamps: Arc<Stamps>,
    clients: SourceClients,
    turns: Arc<HarvestTurns>,
}

impl<'c> Harvests<'c> {
    pub(super) fn open(context: &'c Context) -> Result<Self, Failure> {
        let stamps = context.runtime.block_on(Stamps::open(Arc::clone(&context.store.mirror)));
        let stamps = Arc::new(stamps.map_err(store_failure)?);
        let turns = Arc::new(HarvestTurns::default());
        turns.set_running_max(context.config.mirror.harvests_max);
        let clients = SourceClients::new(context.store.static_files.clone());
        Ok(Self { context, stamps, clients, turns })
    }

    /// The harvester of a repository.
    pub(super) fn harvester(&self, mapping: &Arc<Mapping>) -> Result<Harvester, HarvestError> {
        let client = self.clients.client_for(&mapping.source).map_err(HarvestError::Source)?;
        let (store, clock) = (self.context.store.clone(), Arc::new(SystemClock));
        let activity = store.activity.clone();
        let repository =
            LiveRepository { mapping: Arc::clone(&mapping.source), client, store, clock: clock.clone() };
        let (id, clock_of_activity) = (mapping.id().to_owned(), clock.clone());
        let source = ObservedRepository { id, repository, activity, clock: clock_of_activity };
        Ok(Harvester {
            id: mapping.id().to_owned(),
            source: Arc::new(source),
            store: Arc::clone(&self.context.store.mirror),
            stamps: Arc::clone(&self.stamps),
            clock,
            via: "1.1 oaimend".to_owned(),
            base_url: mapping.source.base_url.to_string(),
            turn: HarvestTurn::default(),
        })
    }

    async fn harvest(
        &self,
        mapping: &Arc<Mapping>,
        accepts_deletions: bool,
        progress: &ProgressLine,
    ) -> Result<HarvestSummary, HarvestError> {
        let turn = self.turns.begin(mapping.id(), Arc::new(SystemClock)).await;
        let harvester = Harvester { turn, ..self.harvester(mapping)? };
        let settings = HarvestSettings { accepts_deletions, ..HarvestSettings::of(mapping.mirror.as_ref()) };
        let observe = |status: &HarvestStatus| {
            progress.show(mapping.id(), &status.prefix, status.records, status.total)
        };
        harvester.run(&settings, &observe).await
    }
}

/// The line about one harvest, and whether it was complete.
fn describe(id: &str, result: &Result<HarvestSummary, HarvestError>) -> (String, bool) {
    match result {
        Ok(summary) => (format!("{id}: {}\n", summary.describe()), summary.is_success()),
        Err(error) => (format!("{id}: failed: {error}\n"), false),
    }
}
