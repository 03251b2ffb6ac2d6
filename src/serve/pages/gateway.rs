//! The gateway of a server: its current configuration, the limits of renderings, and rendered pages.

use super::records::record_cache::RecordCache;
use super::rendering::RenderLimits;
use super::state::GatewayState;
use crate::serve::api::records_json::RecordsJsonCache;
use crate::serve::served::ServedRepositories;
use std::sync::{Arc, PoisonError, RwLock};

/// What all pages share.
#[derive(Debug)]
pub(crate) struct Gateway {
    /// The state without and with search: mappings decide which one pages have.
    states: RwLock<[Arc<GatewayState>; 2]>,
    /// The limits of all renderings.
    pub(crate) rendering: RenderLimits,
    /// The rendered pages of records.
    pub(super) record_cache: RecordCache,
    /// The JSON of records of lists.
    pub(crate) records_json: Arc<RecordsJsonCache>,
}

impl Gateway {
    pub(crate) fn new(state: GatewayState) -> Self {
        Self {
            states: RwLock::new(states(state)),
            rendering: RenderLimits::default(),
            record_cache: RecordCache::default(),
            records_json: Arc::default(),
        }
    }

    /// The configuration at this time.
    pub(crate) fn current(&self) -> Arc<GatewayState> {
        let [state, _] = &*self.states.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(state)
    }

    /// The configuration at this time for public pages, which have a search box if the server searches.
    pub(crate) fn current_for_pages(&self, served: &ServedRepositories) -> Arc<GatewayState> {
        let [state, with_search] = &*self.states.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(if served.search().is_some() { with_search } else { state })
    }

    /// Replaces the configuration. The next request uses it.
    pub(crate) fn set(&self, state: GatewayState) {
        *self.states.write().unwrap_or_else(PoisonError::into_inner) = states(state);
    }
}

fn states(state: GatewayState) -> [Arc<GatewayState>; 2] {
    let with_search = state.with_search();
    [state, with_search].map(Arc::new)
}
