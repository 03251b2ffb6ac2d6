//! The views of mirrored repositories, and their harvests.

use crate::config::Mapping;
use crate::mirror::Stamps;
use crate::mirror::harvest::{HarvestError, HarvestSettings, HarvestSummary, Harvester};
use crate::mirror::view::{MirrorRepository, MirroredSource, ViewOptions, ViewStores};
use crate::repository::{Failure, Repository};
use crate::server::context::ServerContext;
use crate::store::MirrorError;
use crate::upstream::LiveRepository;
use std::sync::Arc;

/// The view of a mirrored repository.
pub(crate) async fn mirror_view(
    context: &ServerContext,
    mapping: &Mapping,
) -> Result<Box<dyn Repository>, Failure> {
    let stores = view_stores(context).await?.clone();
    let options = ViewOptions { spool_bytes_max: mapping.limits.spool_bytes_max, ..ViewOptions::default() };
    let source = MirroredSource {
        id: mapping.id.clone(),
        prefixes: mapping.mirror.as_ref().map(|mirror| mirror.prefixes.clone()).unwrap_or_default(),
        provenance_base_url: mapping.provenance.map(|_| mapping.base_url.to_string()),
    };
    Ok(Box::new(MirrorRepository::new(stores, options, source)))
}

/// Harvests a repository into the mirror now.
pub(super) async fn harvest(
    context: &ServerContext,
    mapping: &Arc<Mapping>,
) -> Result<HarvestSummary, HarvestError> {
    let stores = view_stores(context).await.map_err(HarvestError::Source)?;
    let client = context.clients.client_for(mapping).map_err(HarvestError::Source)?;
    let (store, clock) = (context.store.clone(), Arc::clone(&context.clock));
    let live = LiveRepository { mapping: Arc::clone(mapping), client, store, clock: Arc::clone(&clock) };
    let harvester = Harvester {
        id: mapping.id.clone(),
        source: Arc::new(live),
        store: Arc::clone(&stores.store),
        stamps: Arc::clone(&stores.stamps),
        clock,
        via: context.via.to_str().unwrap_or_default().to_owned(),
        base_url: format!("{}/_mirror/{}", context.public_url, mapping.id),
    };
    harvester.run(&HarvestSettings::of(mapping), &|_| {}).await
}

async fn view_stores(context: &ServerContext) -> Result<&ViewStores, Failure> {
    let open = async || {
        let store = Arc::clone(&context.store.mirror);
        let stamps = Arc::new(Stamps::open(Arc::clone(&store)).await?);
        let (token_key, clock) = (context.store.token_key.clone(), Arc::clone(&context.clock));
        Ok::<_, MirrorError>(ViewStores { store, stamps, token_key, clock })
    };
    Ok(context.mirror.0.get_or_try_init(open).await?)
}
