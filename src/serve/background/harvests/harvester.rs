//! The harvesters of mirrored repositories, and their sources.

use super::runs::HarvestRequest;
use crate::config::Mapping;
use crate::serve::context::ServerContext;
use crate::serve::oai::mirror_views::view_stores;
use oaimend_mirror::harvest::{
    HarvestError, HarvestSettings, HarvestStatus, HarvestSummary, HarvestTurn, Harvester,
};
use oaimend_repository::{Failure, ObservedRepository};
use oaimend_upstream::{LiveRepository, RequestedBy};
use std::sync::Arc;

/// Harvests a repository into the mirror now.
pub(super) async fn harvest(
    context: &ServerContext,
    mapping: &Arc<Mapping>,
    (HarvestRequest { accepts_deletions }, turn): (HarvestRequest, HarvestTurn),
    observe: &(dyn Fn(&HarvestStatus) + Send + Sync),
) -> Result<HarvestSummary, HarvestError> {
    let harvester = Harvester { turn, ..harvester(context, mapping).await? };
    let settings = HarvestSettings { accepts_deletions, ..HarvestSettings::of(mapping.mirror.as_ref()) };
    harvester.run(&settings, observe).await
}

/// The harvester of a repository. Requests of harvesters go first.
pub(crate) async fn harvester(
    context: &ServerContext,
    mapping: &Arc<Mapping>,
) -> Result<Harvester, HarvestError> {
    let stores = view_stores(context).await.map_err(HarvestError::Source)?;
    let source = background_source(context, mapping).map_err(HarvestError::Source)?;
    Ok(Harvester {
        id: mapping.id().to_owned(),
        source: Arc::new(source),
        store: Arc::clone(&stores.store),
        stamps: Arc::clone(&stores.stamps),
        clock: Arc::clone(&context.clock),
        via: context.via.to_str().unwrap_or_default().to_owned(),
        base_url: format!("{}/_mirror/{}", context.public_url, mapping.id()),
        turn: HarvestTurn::default(),
    })
}

/// The harvester of a repository; `None` if it is not mirrored, or if a harvest of it runs.
pub(crate) async fn idle_harvester(context: &ServerContext, mapping: &Arc<Mapping>) -> Option<Harvester> {
    if mapping.mirror.is_none() || context.mirror.runs.of(mapping.id()).running.is_some() {
        return None;
    }
    // Without its store, a harvester stores nothing; the harvest that fetches the gaps says so.
    harvester(context, mapping).await.ok()
}

/// The repository for requests that can wait: the requests of harvesters go first.
pub(crate) fn background_source(
    context: &ServerContext,
    mapping: &Arc<Mapping>,
) -> Result<ObservedRepository<LiveRepository>, Failure> {
    let client = context.clients.client_for(&mapping.source)?.requested_by(RequestedBy::Mirror);
    let (store, clock) = (context.store.clone(), Arc::clone(&context.clock));
    let activity = store.activity.clone();
    let live =
        LiveRepository { mapping: Arc::clone(&mapping.source), client, store, clock: Arc::clone(&clock) };
    Ok(ObservedRepository { id: mapping.id().to_owned(), repository: live, activity, clock })
}
