//! The resolver over the repositories that are mirrored now.

use crate::config::{Mapping, RecordPages, Repositories};
use oaimend_resolver::{ResolvedSource, ResolvedSources, Resolver};
use oaimend_store::Store;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Maximum number of lists of identifiers that are resolved at once. Each needs a processor for a while.
const LISTS_MAX: usize = 2;

/// The resolver of a server.
#[derive(Debug)]
pub(crate) struct ResolverState {
    pub(crate) resolver: Resolver,
    /// The permits of lists of identifiers.
    pub(crate) lists: Semaphore,
    /// The mirrored repositories of the last version of the mappings.
    sources: Mutex<Option<(Arc<Mappings>, Arc<ResolvedSources>)>>,
}

type Mappings = BTreeMap<String, Arc<Mapping>>;

impl ResolverState {
    /// The resolver over the mirror of a data folder.
    pub(crate) fn new(store: &Store) -> Self {
        let (mirror, table) = (Arc::clone(&store.mirror), Arc::clone(&store.identifiers));
        let resolver = Resolver::new(mirror, table, Arc::clone(&store.full_texts));
        Self { resolver, lists: Semaphore::new(LISTS_MAX), sources: Mutex::default() }
    }

    /// The mirrored repositories. The same mappings give the same ones.
    pub(crate) fn sources(&self, repositories: &Repositories) -> Arc<ResolvedSources> {
        let mappings = repositories.all();
        let mut known = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, sources)) = &*known
            && Arc::ptr_eq(of, &mappings)
        {
            return Arc::clone(sources);
        }
        let source = |mapping: &Arc<Mapping>| {
            let mirror = mapping.mirror.as_ref()?;
            let (id, prefixes) = (mapping.id().to_owned(), mirror.prefixes.clone());
            let is_hidden = mapping.records == RecordPages::Off;
            let has_full_texts = mapping.full_texts.is_some();
            Some(ResolvedSource { id, prefixes, priority: mirror.priority, is_hidden, has_full_texts })
        };
        let sources = Arc::new(ResolvedSources::new(mappings.values().filter_map(source).collect()));
        // A change of other keys must not make the table begin again.
        let sources = match known.take() {
            Some((_, before)) if *before == *sources => before,
            _ => sources,
        };
        *known = Some((mappings, Arc::clone(&sources)));
        sources
    }
}
