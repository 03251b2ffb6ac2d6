//! The gateway of a server: its current configuration, the limits of renderings, and rendered pages.

use super::records::record_cache::RecordCache;
use super::rendering::RenderLimits;
use super::state::GatewayState;
use std::sync::{Arc, PoisonError, RwLock};

/// What all pages share.
#[derive(Debug)]
pub(crate) struct Gateway {
    state: RwLock<Arc<GatewayState>>,
    /// The limits of all renderings.
    pub(crate) rendering: RenderLimits,
    /// The rendered pages of records.
    pub(super) record_cache: RecordCache,
}

impl Gateway {
    pub(crate) fn new(state: GatewayState) -> Self {
        Self {
            state: RwLock::new(Arc::new(state)),
            rendering: RenderLimits::default(),
            record_cache: RecordCache::default(),
        }
    }

    /// The configuration at this time.
    pub(crate) fn current(&self) -> Arc<GatewayState> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the configuration. The next request uses it.
    pub(crate) fn set(&self, state: GatewayState) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
    }
}
