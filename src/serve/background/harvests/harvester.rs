//! The harvesters of mirrored repositories, and their sources.

use super::runs::HarvestRequest;
use crate::config::Mapping;
use crate::serve::oai::mirror_views::view_stores;
use crate::serve::served::ServedRepositories;
use oaimend_mirror::harvest::{
    HarvestError, HarvestSettings, HarvestStatus, HarvestSummary, HarvestTurn, Harvester,
};
use oaimend_repository::{Failure, ObservedRepository};
use oaimend_upstream::settings::PageFallback;
use oaimend_upstream::{LiveRepository, RequestedBy};
use std::sync::Arc;

/// Harvests a repository into the mirror now.
pub(super) async fn harvest(
    served: &ServedRepositories,
    mapping: &Arc<Mapping>,
    (HarvestRequest { accepts_deletions }, turn): (HarvestRequest, HarvestTurn),
    observe: &(dyn Fn(&HarvestStatus) + Send + Sync),
) -> Result<HarvestSummary, HarvestError> {
    let harvester = Harvester { turn, ..harvester(served, mapping).await? };
    let settings = HarvestSettings { accepts_deletions, ..HarvestSettings::of(mapping.mirror.as_ref()) };
    harvester.run(&settings, observe).await
}

/// The harvester of a repository. Requests of harvesters go first.
pub(crate) async fn harvester(
    served: &ServedRepositories,
    mapping: &Arc<Mapping>,
) -> Result<Harvester, HarvestError> {
    let stores = view_stores(served).await.map_err(HarvestError::Source)?;
    let source = background_source(served, mapping).map_err(HarvestError::Source)?;
    Ok(Harvester {
        id: mapping.id().to_owned(),
        source: Arc::new(source),
        store: Arc::clone(&stores.store),
        stamps: Arc::clone(&stores.stamps),
        clock: Arc::clone(&served.clock),
        via: served.via.to_str().unwrap_or_default().to_owned(),
        base_url: format!("{}/_mirror/{}", served.public_url, mapping.id()),
        turn: HarvestTurn::default(),
    })
}

/// The harvester of a repository; `None` if it is not mirrored, or if a harvest of it runs.
pub(crate) async fn idle_harvester(served: &ServedRepositories, mapping: &Arc<Mapping>) -> Option<Harvester> {
    if mapping.harvest().is_none() || served.mirror.runs.of(mapping.id()).running.is_some() {
        return None;
    }
    // Without its store, a harvester stores nothing; the harvest that fetches the gaps says so.
    harvester(served, mapping).await.ok()
}

/// The repository for requests that can wait: the requests of harvesters go first.
pub(crate) fn background_source(
    served: &ServedRepositories,
    mapping: &Arc<Mapping>,
) -> Result<ObservedRepository<LiveRepository>, Failure> {
    let client = served.sources.client_for(&mapping.source)?.requested_by(RequestedBy::Mirror);
    let (store, clock) = (served.store.clone(), Arc::clone(&served.clock));
    let activity = store.activity.clone();
    let mut source = Arc::clone(&mapping.source);
    if mapping.mirror.as_ref().is_some_and(|settings| settings.duplicates.needs_whole_lists()) {
        // The source can return another record with the same identifier if one is requested alone.
        let quirks = &mut Arc::make_mut(&mut source).quirks;
        (quirks.refetch_broken_records, quirks.page_fallback) = (false, PageFallback::Off);
    }
    let live = LiveRepository { mapping: source, client, store, clock: Arc::clone(&clock) };
    Ok(ObservedRepository { id: mapping.id().to_owned(), repository: live, activity, clock })
}
