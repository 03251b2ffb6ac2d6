//! The state that all views and harvests of the mirror share.

use super::runs::HarvestRuns;
use oaimend_mirror::harvest::HarvestTurns;
use oaimend_mirror::view::ViewStores;
use std::sync::Arc;
use tokio::sync::{Mutex, OnceCell};

/// The stores of the mirror with their stamps, and its harvests.
#[derive(Debug, Default)]
pub(crate) struct MirrorState {
    /// The stores. They are opened at their first use.
    pub(crate) stores: OnceCell<ViewStores>,
    /// Held by the one task of maintenance that runs.
    pub(crate) maintenance: Arc<Mutex<()>>,
    /// The harvests since the start.
    pub(crate) runs: Arc<HarvestRuns>,
    /// The turns of the harvests.
    pub(crate) turns: Arc<HarvestTurns>,
}
