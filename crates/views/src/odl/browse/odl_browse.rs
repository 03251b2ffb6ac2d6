//! What is browsed: categories over the records of repositories.

use super::category::BrowseCategory;
use super::values::CategoryValues;
use oaimend_search::Searches;
use std::sync::Arc;

/// ODL-Browse over the index of the mirror. Cheap to clone.
#[derive(Clone, Debug)]
pub struct OdlBrowse {
    pub(super) searches: Searches,
    pub(super) repositories: Arc<[String]>,
    pub(super) categories: Arc<[Arc<BrowseCategory>]>,
    pub(super) values: CategoryValues,
}

impl OdlBrowse {
    /// Browses by these categories, and no records yet.
    pub fn new(searches: Searches, categories: Vec<BrowseCategory>) -> Self {
        let categories = categories.into_iter().map(Arc::new).collect();
        Self { searches, repositories: Arc::default(), categories, values: CategoryValues::default() }
    }

    /// The same categories over the records of these repositories.
    #[must_use]
    pub fn over(&self, repositories: Vec<String>) -> Self {
        Self { repositories: repositories.into(), ..self.clone() }
    }
}
