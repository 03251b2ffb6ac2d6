//! The view of all mirrored repositories as one.

use super::aggregate_versions::AGGREGATE_NAME;
use super::answer::answer;
use super::options::AggregateSettings;
use super::presentation::{View, ViewKind};
use super::stores::ViewStores;
use oaimend_repository::{EventStream, Repository, RepositoryRequest};
use oaimend_store::MirrorError;
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
    pub const NAME: &str = AGGREGATE_NAME;

    /// The view for the responses that begin now. Changes since the last response get a stamp first.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or a change cannot be stored. The request can be repeated.
    pub async fn open(
        stores: ViewStores,
        read_settings: impl FnOnce() -> AggregateSettings,
    ) -> Result<Self, MirrorError> {
        let now_secs = stores.clock.now_secs();
        let (settings, version) = stores.aggregate.begin_response(now_secs, read_settings).await?;
        let AggregateSettings { options, sources, repository_name, admin_emails } = settings;
        let members = version.members(sources);
        let kind = ViewKind::Aggregate { repository_name, admin_emails, version };
        Ok(Self(Arc::new(View::new(Self::NAME.to_owned(), stores, options, members, kind))))
    }
}

impl Repository for AggregateRepository {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        answer(&self.0, request)
    }
}
