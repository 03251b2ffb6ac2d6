//! The view of chosen records.

use super::answer::answer;
use super::options::{MirroredSource, ViewOptions};
use super::presentation::{View, ViewKind};
use super::stores::ViewStores;
use super::subject::Subject;
use oaimend_oai::UnixSecs;
use oaimend_repository::{EventStream, Repository, RepositoryRequest};
use std::sync::Arc;

/// Chosen records of the mirrored repositories, as one repository. Cheap to clone.
///
/// Its sets are those of the view of all repositories. An identifier that several repositories have is listed once: as
/// the record of the repository with the highest priority in which it is a live member, else as a deleted one. A list
/// of a set contains the records of its repository alone.
#[derive(Clone, Debug)]
pub struct SubjectRepository(Arc<View>);

impl SubjectRepository {
    /// The view with this name. `members` are its repositories, with the lowest datestamp of their records. The options
    /// should prefer one record of each item.
    pub fn new(
        name: String,
        stores: ViewStores,
        options: ViewOptions,
        members: Vec<MirroredSource>,
        subject: Subject,
    ) -> Self {
        Self(Arc::new(View::new(name, stores, options, members, ViewKind::Subject(subject))))
    }

    /// The same records with no lower datestamps than this one, in seconds since 1970: for a collection that is made of
    /// them, which has changed as a whole at this time.
    #[must_use]
    pub fn since(&self, since_secs: Option<UnixSecs>) -> Self {
        Self(Arc::new(self.0.since(since_secs)))
    }
}

impl Repository for SubjectRepository {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        answer(&self.0, request)
    }
}
