//! A view of chosen records: a subject gateway.

use super::answer::answer;
use super::options::{MirroredSource, ViewOptions};
use super::presentation::{View, ViewKind};
use super::selection::Membership;
use super::stores::ViewStores;
use oaimend_repository::{EventStream, Repository, RepositoryRequest};
use std::sync::Arc;

/// What a view of chosen records contains, and how it describes itself.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name in Identify.
    pub repository_name: String,
    /// What it is about, in Identify.
    pub description: Option<String>,
    /// The addresses in Identify; empty: those of the repositories.
    pub admin_emails: Vec<String>,
    /// The sets, as `ListSets` of all repositories names them: `x` or `x:a`. Empty: all.
    pub sets: Vec<String>,
    /// The records that it contains.
    pub membership: Arc<dyn Membership>,
}

impl Subject {
    /// Whether `ListSets` contains a set: one of those that were chosen, one inside, or the repository around it.
    pub(super) fn shows_set(&self, set: &str) -> bool {
        let is_inside = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        self.sets.is_empty()
            || self.sets.iter().any(|chosen| is_inside(set, chosen) || is_inside(chosen, set))
    }
}

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
}

impl Repository for SubjectRepository {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        answer(&self.0, request)
    }
}
