//! The view of one mirrored repository.

use super::answer::answer;
use super::options::{MirroredSource, ViewOptions};
use super::presentation::{View, ViewKind};
use super::stores::ViewStores;
use oaimend_oai::UnixSecs;
use oaimend_repository::{EventStream, Repository, RepositoryRequest};
use std::sync::Arc;

/// One mirrored repository, with the identifiers, sets and formats of its source. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MirrorRepository(Arc<View>);

impl MirrorRepository {
    /// The view of a repository in the store. It fails with 503 until its first harvest is complete.
    pub fn new(stores: ViewStores, options: ViewOptions, source: MirroredSource) -> Self {
        let name = source.id.clone();
        Self(Arc::new(View::new(name, stores, options, vec![source], ViewKind::Single)))
    }

    /// The same records with no lower datestamps than this one, in seconds since 1970: for a collection that is made of
    /// them, which has changed as a whole at this time.
    #[must_use]
    pub fn since(&self, since_secs: Option<UnixSecs>) -> Self {
        Self(Arc::new(self.0.since(since_secs)))
    }
}

impl Repository for MirrorRepository {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        answer(&self.0, request)
    }
}
