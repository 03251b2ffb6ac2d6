//! The view of all mirrored repositories as one.

use super::answer::answer;
use super::options::{MirroredSource, ViewOptions};
use super::presentation::{View, ViewKind};
use super::stores::ViewStores;
use crate::repository::{EventStream, Repository, RepositoryRequest};
use std::sync::Arc;

/// All mirrored repositories as one. Cheap to clone.
///
/// Each repository is a set with its name, and its sets are below it: `x` and `x:a`. A request may also name them
/// `x/a`, as ODL-Union does. The formats are those of all repositories. An identifier that two repositories have is
/// listed twice.
///
/// A list contains the records that were harvested so far. Records of a repository that is harvested for the first
/// time are in the next incremental list. A list of one repository fails until its first harvest is complete.
#[derive(Clone, Debug)]
pub struct AggregateRepository(Arc<View>);

impl AggregateRepository {
    /// The name of the view in tokens, and of its state in the store. No mirrored repository has it.
    pub const NAME: &str = "_all";

    /// The view of these repositories, with the name and the addresses of its own Identify response. Without addresses
    /// it has those of the repositories.
    pub fn new(
        stores: ViewStores,
        options: ViewOptions,
        sources: Vec<MirroredSource>,
        repository_name: String,
        admin_emails: Vec<String>,
    ) -> Self {
        let kind = ViewKind::Aggregate { repository_name, admin_emails };
        Self(Arc::new(View::new(Self::NAME.to_owned(), stores, options, sources, kind)))
    }
}

impl Repository for AggregateRepository {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        answer(&self.0, request)
    }
}
