//! The views of mirrored repositories.

use super::target::OdlComponent;
use crate::config::{Mapping, RecordPages, ViewFile};
use crate::serve::background::harvests::state::{IndexedConfiguration, IndexedRepositories};
use crate::serve::served::ServedRepositories;
use oaimend_mirror::Stamps;
use oaimend_mirror::failover::FailoverRepository;
use oaimend_mirror::repository_index::{
    INDEX_NAME, IndexSettings, IndexedRepository, RepositoryKind, creation_times, index_repository,
    is_index_damaged, update_index,
};
use oaimend_mirror::view::{
    AggregateRepository, AggregateSettings, Component, MirrorRepository, MirroredSource, QuerySets,
    SubjectRepository, ViewOptions, ViewStores,
};
use oaimend_oai::UnixSecs;
use oaimend_repository::lists::ListHistories;
use oaimend_repository::{Failure, Reason, Repository};
use oaimend_store::MirrorError;
use oaimend_views::odl::{OdlRecent, OdlSearch};
use oaimend_views::{FoundMember, IndexQuerySets, NewestMember, SubjectViews, ViewSettings};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The view of a mirrored repository.
pub(crate) async fn mirror_view(
    served: &ServedRepositories,
    mapping: &Mapping,
) -> Result<MirrorRepository, Failure> {
    let stores = view_stores(served).await?.clone();
    let options = view_options(served, mapping.source.limits.spool_bytes_max);
    let source = mirrored_source(mapping, mapping.source.repairs.provenance.is_some());
    Ok(MirrorRepository::new(stores, options, source))
}

/// A repository whose mirror answers if its source fails.
pub(crate) async fn failover_view(
    served: &ServedRepositories,
    mapping: &Mapping,
    live: Box<dyn Repository>,
) -> Result<Box<dyn Repository>, Failure> {
    let mut stores = view_stores(served).await?.clone();
    // The source knows no query sets.
    stores.query_sets = None;
    let options = view_options(served, mapping.source.limits.spool_bytes_max);
    let histories = ListHistories {
        repository: mapping.id().to_owned(),
        ledger: Arc::clone(&served.store.ledger),
        token_key: served.store.token_key.clone(),
    };
    let source = mirrored_source(mapping, false);
    Ok(Box::new(FailoverRepository::new(live, stores, options, source, histories)))
}

/// The view of all mirrored repositories.
pub(crate) async fn aggregate_view(served: &ServedRepositories) -> Result<AggregateRepository, Failure> {
    let stores = view_stores(served).await?.clone();
    Ok(AggregateRepository::open(stores, || aggregate_settings(served)).await?)
}

/// The name of the view of all mirrored repositories.
pub(crate) fn aggregate_name(served: &ServedRepositories) -> String {
    let name = served.mirror.policy().aggregate_name.clone();
    name.unwrap_or_else(|| format!("oaimend at {}", served.public_url))
}

/// The index of the served repositories.
pub(crate) async fn index_view(served: &ServedRepositories) -> Result<Box<dyn Repository>, Failure> {
    creation_times_of(served, &current_configuration(served), StoredIndex::Verified).await?;
    let options = view_options(served, served.repositories.limits().spool_bytes_max);
    Ok(Box::new(index_repository(view_stores(served).await?.clone(), options)))
}

/// What the index contains at this time.
pub(crate) fn current_configuration(served: &ServedRepositories) -> IndexedConfiguration {
    IndexedConfiguration {
        mappings: served.repositories.all(),
        views: served.views.all(),
        federations: served.federations.all(),
    }
}

/// Whether the stored index is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredIndex {
    /// Its records are delivered, so damaged ones are stored again.
    Verified,
    /// Only the creationTimes are used, which are in memory.
    Unread,
}

/// Brings the index up to date, and returns the creationTime of each repository by its baseURL.
pub(crate) async fn creation_times_of(
    served: &ServedRepositories,
    current: &IndexedConfiguration,
    stored: StoredIndex,
) -> Result<Arc<BTreeMap<String, UnixSecs>>, Failure> {
    let stores = view_stores(served).await?;
    // One request stores what the configuration has changed, and the others wait for it.
    let mut indexed = served.mirror.indexed.lock().await;
    if let Some(indexed) = indexed.as_ref().filter(|indexed| indexed.configuration.is_same(current))
        && (stored == StoredIndex::Unread || !is_index_damaged(stores).await?)
    {
        return Ok(Arc::clone(&indexed.created));
    }
    let settings = index_settings(served, current);
    match update_index(stores, &settings).await {
        // A request that has ended left its change to finish.
        Err(MirrorError::Conflict) => update_index(stores, &settings).await?,
        updated => updated?,
    }
    let created = Arc::new(creation_times(stores).await?);
    *indexed = Some(IndexedRepositories { configuration: current.clone(), created: Arc::clone(&created) });
    Ok(created)
}

fn index_settings(served: &ServedRepositories, current: &IndexedConfiguration) -> IndexSettings {
    let policy = served.mirror.policy();
    let base_url = |path: &str| format!("{}/{path}", served.public_url);
    let mapped = current.mappings.iter().map(|(id, mapping)| IndexedRepository {
        base_url: base_url(id),
        name: id.clone(),
        kind: mapping.kind(),
        members: Vec::new(),
    });
    let views = current.views.values().map(|view| IndexedRepository {
        base_url: base_url(&format!("_view/{}", view.name)),
        name: view.repository_name.clone().unwrap_or_else(|| view.name.clone()),
        kind: RepositoryKind::View,
        members: Vec::new(),
    });
    let federations = current.federations.values().map(|federation| IndexedRepository {
        base_url: base_url(&federation.path),
        name: federation.repository_name.clone().unwrap_or_else(|| federation.name.clone()),
        kind: RepositoryKind::Federation,
        members: federation.repositories.iter().map(|id| base_url(id)).collect(),
    });
    IndexSettings {
        base_url: base_url(INDEX_NAME),
        repository_name: format!("Repositories at {}", served.public_url),
        admin_emails: policy.aggregate_emails.clone(),
        repositories: mapped.chain(views).chain(federations).collect(),
    }
}

/// A service over the view of all mirrored repositories.
pub(crate) async fn component_view(
    served: &ServedRepositories,
    component: OdlComponent,
) -> Result<Box<dyn Repository>, Failure> {
    let Some(search) = served.search() else {
        let text = "there is no search: no repository is mirrored any more, or search.enabled is false";
        return Err(Failure::new(Reason::Search, text));
    };
    let searches = search.searches.clone();
    // Those without pages of their records too: harvesters get these records from every other view.
    let mappings = served.repositories.all();
    let mirrored = mappings.values().filter(|mapping| mapping.mirror.is_some());
    let repositories = mirrored.map(|mapping| mapping.id().to_owned()).collect();
    let mut stores = view_stores(served).await?.clone();
    let (component, query_sets): (Arc<dyn Component>, Option<Arc<dyn QuerySets>>) = match component {
        OdlComponent::Search => (Arc::new(OdlSearch { searches, repositories }), None),
        OdlComponent::Recent => (Arc::new(OdlRecent { searches, repositories }), None),
        OdlComponent::Browse => {
            let browse = search.browse.over(repositories);
            (Arc::new(browse.clone()), Some(Arc::new(browse)))
        }
    };
    stores.query_sets = query_sets;
    let settings = || aggregate_settings(served);
    Ok(Box::new(AggregateRepository::open_component(stores, settings, component).await?))
}

fn aggregate_settings(served: &ServedRepositories) -> AggregateSettings {
    let policy = served.mirror.policy();
    let options = view_options(served, served.repositories.limits().spool_bytes_max);
    let options = ViewOptions { collisions: policy.collisions, ..options };
    let mappings = served.repositories.all();
    let mirrored = mappings.values().filter(|mapping| mapping.mirror.is_some());
    let sources = mirrored.map(|mapping| mirrored_source(mapping, true)).collect();
    let repository_name = aggregate_name(served);
    AggregateSettings { options, sources, repository_name, admin_emails: policy.aggregate_emails.clone() }
}

/// A view of chosen records. A repository that is not mirrored any more has left it.
pub(crate) async fn subject_view(
    served: &ServedRepositories,
    view: &ViewFile,
) -> Result<SubjectRepository, Failure> {
    let subjects = subject_views(served).await?;
    let options = view_options(served, served.repositories.limits().spool_bytes_max);
    subjects.open(&view_settings(served, view), options).await
}

/// The newest records of a view that have pages, the newest first.
pub(crate) async fn newest_of_view(
    served: &ServedRepositories,
    view: &ViewFile,
    count_max: usize,
) -> Result<Vec<NewestMember>, Failure> {
    let has_pages = |id: &str| served.mirrored(id).is_some_and(|mapping| mapping.records != RecordPages::Off);
    subject_views(served).await?.newest(&view_settings(served, view), has_pages, count_max).await
}

/// The record that a view shows of an item.
pub(crate) async fn record_of_view(
    served: &ServedRepositories,
    view: &ViewFile,
    identifier: &str,
) -> Result<FoundMember, Failure> {
    subject_views(served).await?.find(&view_settings(served, view), identifier).await
}

async fn subject_views(served: &ServedRepositories) -> Result<&SubjectViews, Failure> {
    let stores = view_stores(served).await?;
    let open = async || {
        SubjectViews::new(stores.clone(), Arc::clone(&served.store.views), Arc::clone(&served.clock))
    };
    Ok(served.mirror.subjects.get_or_init(open).await)
}

fn view_settings(served: &ServedRepositories, view: &ViewFile) -> ViewSettings {
    let mappings = served.repositories.all();
    let mirrored = mappings.values().filter(|mapping| mapping.mirror.is_some());
    let is_chosen = |mapping: &&Arc<Mapping>| {
        view.repositories.is_empty() || view.repositories.iter().any(|id| id == mapping.id())
    };
    ViewSettings {
        name: view.name.clone(),
        repository_name: view.repository_name.clone().unwrap_or_else(|| view.name.clone()),
        description: view.description.clone(),
        admin_emails: view.admin_emails.clone(),
        sources: mirrored.filter(is_chosen).filter_map(|mapping| source_of_view(mapping, view)).collect(),
        sets: view.sets.clone(),
        query: view.query.clone(),
    }
}

/// A repository with the formats that a view has of it; `None` if it mirrors none of them.
fn source_of_view(mapping: &Mapping, view: &ViewFile) -> Option<MirroredSource> {
    let mut source = mirrored_source(mapping, true);
    if !view.formats.is_empty() {
        let is_mirrored = |prefix: &&String| source.prefixes.is_empty() || source.prefixes.contains(prefix);
        source.prefixes = view.formats.iter().filter(is_mirrored).cloned().collect();
        if source.prefixes.is_empty() {
            return None;
        }
    }
    Some(source)
}

fn view_options(served: &ServedRepositories, spool_bytes_max: usize) -> ViewOptions {
    let total_elements = served.mirror.policy().total_elements;
    ViewOptions { spool_bytes_max, total_elements, ..ViewOptions::default() }
}

fn mirrored_source(mapping: &Mapping, with_provenance: bool) -> MirroredSource {
    let settings = mapping.mirror.as_ref();
    MirroredSource {
        id: mapping.id().to_owned(),
        prefixes: settings.map(|mirror| mirror.prefixes.clone()).unwrap_or_default(),
        sets: settings.map(|mirror| mirror.sets.clone()).unwrap_or_default(),
        provenance_base_url: (with_provenance && mapping.local.is_none())
            .then(|| mapping.source.base_url.to_string()),
        priority: mapping.mirror.as_ref().map_or(0, |mirror| mirror.priority),
        ..MirroredSource::default()
    }
}

/// The stores of the mirror, which are opened at their first use. The local repositories in them say what they are.
pub(crate) async fn view_stores(served: &ServedRepositories) -> Result<&ViewStores, Failure> {
    let open = async || {
        let store = Arc::clone(&served.store.mirror);
        let stamps = Arc::new(Stamps::open(Arc::clone(&store)).await?);
        let (token_key, clock) = (served.store.token_key.clone(), Arc::clone(&served.clock));
        let mut stores = ViewStores::new(store, stamps, token_key, clock);
        let search = served.search_service.as_ref().filter(|search| search.policy.query_sets);
        let query_sets = search.map(|search| IndexQuerySets { searches: search.searches.clone() });
        stores.query_sets = query_sets.map(|query_sets| Arc::new(query_sets) as Arc<dyn QuerySets>);
        Ok::<_, MirrorError>(stores)
    };
    let stores = served.mirror.stores.get_or_try_init(open).await?;
    served.deposit.describe(served, stores).await?;
    Ok(stores)
}
