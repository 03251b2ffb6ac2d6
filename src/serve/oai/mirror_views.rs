//! The views of mirrored repositories.

use crate::config::Mapping;
use crate::serve::context::ServerContext;
use oaimend_mirror::Stamps;
use oaimend_mirror::failover::FailoverRepository;
use oaimend_mirror::view::{
    AggregateRepository, AggregateSettings, MirrorRepository, MirroredSource, ViewOptions, ViewStores,
};
use oaimend_repository::lists::ListHistories;
use oaimend_repository::{Failure, Repository};
use oaimend_store::MirrorError;
use std::sync::Arc;

/// The view of a mirrored repository.
pub(crate) async fn mirror_view(
    context: &ServerContext,
    mapping: &Mapping,
) -> Result<Box<dyn Repository>, Failure> {
    let stores = view_stores(context).await?.clone();
    let options = view_options(context, mapping.source.limits.spool_bytes_max);
    let source = mirrored_source(mapping, mapping.source.provenance.is_some());
    Ok(Box::new(MirrorRepository::new(stores, options, source)))
}

/// A repository whose mirror answers if its source fails.
pub(crate) async fn failover_view(
    context: &ServerContext,
    mapping: &Mapping,
    live: Box<dyn Repository>,
) -> Result<Box<dyn Repository>, Failure> {
    let stores = view_stores(context).await?.clone();
    let options = view_options(context, mapping.source.limits.spool_bytes_max);
    let histories = ListHistories {
        repository: mapping.id().to_owned(),
        ledger: Arc::clone(&context.store.ledger),
        token_key: context.store.token_key.clone(),
    };
    let source = mirrored_source(mapping, false);
    Ok(Box::new(FailoverRepository::new(live, stores, options, source, histories)))
}

/// The view of all mirrored repositories.
pub(crate) async fn aggregate_view(context: &ServerContext) -> Result<Box<dyn Repository>, Failure> {
    let stores = view_stores(context).await?.clone();
    Ok(Box::new(AggregateRepository::open(stores, || aggregate_settings(context)).await?))
}

fn aggregate_settings(context: &ServerContext) -> AggregateSettings {
    let policy = context.mirror_policy();
    let options = view_options(context, context.repositories.limits().spool_bytes_max);
    let options = ViewOptions { collisions: policy.collisions, ..options };
    let mappings = context.repositories.all();
    let mirrored = mappings.values().filter(|mapping| mapping.mirror.is_some());
    let sources = mirrored.map(|mapping| mirrored_source(mapping, true)).collect();
    let name = policy.aggregate_name.clone();
    let repository_name = name.unwrap_or_else(|| format!("oaimend at {}", context.public_url));
    AggregateSettings { options, sources, repository_name, admin_emails: policy.aggregate_emails.clone() }
}

fn view_options(context: &ServerContext, spool_bytes_max: usize) -> ViewOptions {
    let total_elements = context.mirror_policy().total_elements;
    ViewOptions { spool_bytes_max, total_elements, ..ViewOptions::default() }
}

fn mirrored_source(mapping: &Mapping, with_provenance: bool) -> MirroredSource {
    let settings = mapping.mirror.as_ref();
    MirroredSource {
        id: mapping.id().to_owned(),
        prefixes: settings.map(|mirror| mirror.prefixes.clone()).unwrap_or_default(),
        sets: settings.map(|mirror| mirror.sets.clone()).unwrap_or_default(),
        provenance_base_url: with_provenance.then(|| mapping.source.base_url.to_string()),
        priority: mapping.mirror.as_ref().map_or(0, |mirror| mirror.priority),
        ..MirroredSource::default()
    }
}

/// The stores of the mirror, which are opened at their first use.
pub(crate) async fn view_stores(context: &ServerContext) -> Result<&ViewStores, Failure> {
    let open = async || {
        let store = Arc::clone(&context.store.mirror);
        let stamps = Arc::new(Stamps::open(Arc::clone(&store)).await?);
        let (token_key, clock) = (context.store.token_key.clone(), Arc::clone(&context.clock));
        Ok::<_, MirrorError>(ViewStores::new(store, stamps, token_key, clock))
    };
    Ok(context.mirror.stores.get_or_try_init(open).await?)
}
