//! The view of all mirrored repositories as one.

use super::aggregate_versions::AGGREGATE_NAME;
use super::answer::answer;
use super::component::Component;
use super::options::AggregateSettings;
use super::presentation::{View, ViewKind};
use super::stores::ViewStores;
use oaimend_oai::UnixSecs;
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
        Ok(Self(Arc::new(Self::view(stores, read_settings, Self::NAME.to_owned()).await?)))
    }
    /// A service over the view for the responses that begin now.
    ///
    /// # Errors
    ///
    /// As for [`AggregateRepository::open`].
    pub async fn open_component(
        stores: ViewStores,
        read_settings: impl FnOnce() -> AggregateSettings,
        component: Arc<dyn Component>,
    ) -> Result<Self, MirrorError> {
        let name = component.name().to_owned();
        let mut view = Self::view(stores, read_settings, name).await?;
        view.component = Some(component);
        Ok(Self(Arc::new(view)))
    }

    async fn view(
        stores: ViewStores,
        read_settings: impl FnOnce() -> AggregateSettings,
        name: String,
    ) -> Result<View, MirrorError> {
        let now_secs = stores.clock.now_secs();
        let (settings, version) = stores.aggregate.begin_response(now_secs, read_settings).await?;
        let AggregateSettings { options, sources, repository_name, admin_emails } = settings;
        let members = version.members(sources);
        let kind = ViewKind::Aggregate { repository_name, admin_emails, version };
        Ok(View::new(name, stores, options, members, kind))
    }

    /// The same records with no lower datestamps than this one, in seconds since 1970: for a collection that is made of
    /// them, which has changed as a whole at this time.
    #[must_use]
    pub fn since(&self, since_secs: Option<UnixSecs>) -> Self {
        Self(Arc::new(self.0.since(since_secs)))
    }
}

impl Repository for AggregateRepository {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        answer(&self.0, request)
    }
}
