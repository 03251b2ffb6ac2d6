//! The state that all views and harvests of the mirror share.

use super::runs::HarvestRuns;
use crate::config::{FederationFile, Mapping, ViewFile};
use oaimend_mirror::harvest::HarvestTurns;
use oaimend_mirror::settings::MirrorPolicy;
use oaimend_mirror::view::ViewStores;
use oaimend_oai::UnixSecs;
use oaimend_views::SubjectViews;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{Mutex, OnceCell};

/// The stores of the mirror with their stamps, and its harvests.
#[derive(Debug)]
pub(crate) struct MirrorState {
    /// The stores. They are opened at their first use.
    pub(crate) stores: OnceCell<ViewStores>,
    /// The views of chosen records over them, from their first use on.
    pub(crate) subjects: OnceCell<SubjectViews>,
    /// The configuration that the index of repositories has stored; `None` before its first request.
    pub(crate) indexed: Mutex<Option<IndexedRepositories>>,
    /// Held by the one task of maintenance that runs.
    pub(crate) maintenance: Arc<Mutex<()>>,
    /// The harvests since the start.
    pub(crate) runs: Arc<HarvestRuns>,
    /// The turns of the harvests.
    pub(crate) turns: Arc<HarvestTurns>,
    policy: RwLock<Arc<MirrorPolicy>>,
}

/// What the index of repositories contains.
#[derive(Debug)]
pub(crate) struct IndexedRepositories {
    pub(crate) configuration: IndexedConfiguration,
    /// The creationTime of each repository, by its baseURL.
    pub(crate) created: Arc<BTreeMap<String, UnixSecs>>,
}

/// The mappings, views and federations of one version of the configuration.
#[derive(Clone, Debug)]
pub(crate) struct IndexedConfiguration {
    pub(crate) mappings: Arc<BTreeMap<String, Arc<Mapping>>>,
    pub(crate) views: Arc<BTreeMap<String, Arc<ViewFile>>>,
    pub(crate) federations: Arc<BTreeMap<String, Arc<FederationFile>>>,
}

impl IndexedConfiguration {
    /// Whether nothing was reloaded between two of them.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.mappings, &other.mappings)
            && Arc::ptr_eq(&self.views, &other.views)
            && Arc::ptr_eq(&self.federations, &other.federations)
    }
}

impl MirrorState {
    pub(crate) fn new(policy: MirrorPolicy) -> Self {
        Self {
            stores: OnceCell::default(),
            subjects: OnceCell::default(),
            indexed: Mutex::default(),
            maintenance: Arc::default(),
            runs: Arc::default(),
            turns: Arc::default(),
            policy: RwLock::new(Arc::new(policy)),
        }
    }

    /// The configuration at this time. A request or harvest uses one version of it.
    pub(crate) fn policy(&self) -> Arc<MirrorPolicy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the configuration.
    pub(crate) fn set_policy(&self, policy: MirrorPolicy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }
}
