//! The federations of served repositories.

use super::crosswalks::with_member_crosswalks;
use super::federation_members::CreationTimes;
use super::mapped_repository::{CountedBy, mapped_repository};
use super::mirror_views::{StoredIndex, creation_times_of, current_configuration, view_stores};
use crate::config::{FEDERATION_NAME, FederationFile, ServeFrom};
use crate::serve::background::harvests::state::IndexedConfiguration;
use crate::serve::served::ServedRepositories;
use async_trait::async_trait;
use oaimend_federation::{
    FederationRepository, FederationServices, FederationSettings, Member, MemberRepositories, OnFailure,
    RecordLocator,
};
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::Granularity;
use oaimend_repository::{Failure, Reason, Repository};
use oaimend_resolver::ResolvedItem;
use oaimend_upstream::RequestedBy;
use std::sync::Arc;

/// Opens the members of a federation for one request.
struct ServedMembers {
    served: Arc<ServedRepositories>,
    requested_by: RequestedBy,
    on_failure: OnFailure,
}

#[async_trait]
impl MemberRepositories for ServedMembers {
    async fn open(&self, id: &str) -> Result<Box<dyn Repository>, Failure> {
        let Some(mapping) = self.served.repositories.find(id) else {
            let text = "it was removed from the configuration at this moment; retry";
            return Err(Failure::new(Reason::Configuration, text));
        };
        let fails_over = self.on_failure == OnFailure::Mirror && mapping.mirror.is_some();
        let serve = match mapping.serve {
            ServeFrom::Live if fails_over => ServeFrom::LiveThenMirror,
            serve => serve,
        };
        let mapped = (Arc::clone(&mapping), serve);
        let opened =
            mapped_repository(&self.served, mapped, self.requested_by, CountedBy::Repository).await?;
        with_member_crosswalks(&self.served, (mapping, serve), opened).await
    }

    fn granularity(&self, id: &str) -> Option<Granularity> {
        let mapping = self.served.repositories.find(id)?;
        match mapping.serve {
            // The stamps of the mirror.
            ServeFrom::Mirror => Some(Granularity::Second),
            ServeFrom::Live | ServeFrom::LiveThenMirror => {
                self.served.store.profiles.dates(&mapping.source.source_key()).granularity
            }
        }
    }
}

/// Finds the members that hold an item by the identifiers of the mirror.
struct MirroredRecords {
    served: Arc<ServedRepositories>,
}

#[async_trait]
impl RecordLocator for MirroredRecords {
    fn covers(&self, id: &str) -> bool {
        self.served.mirrored(id).is_some()
    }

    async fn locate(&self, identifier: &str) -> Vec<String> {
        let ServedRepositories { resolver, repositories, .. } = &*self.served;
        // While the identifiers are being read, all members are asked.
        let located = resolver.resolver.locate(&resolver.sources(repositories), identifier).await;
        let live = located.unwrap_or_default().into_iter().filter(ResolvedItem::is_live);
        live.map(|item| item.repository).collect()
    }
}

/// A federation; without a file that of all repositories.
pub(crate) async fn federation_view(
    served: &Arc<ServedRepositories>,
    file: Option<&Arc<FederationFile>>,
    requested_by: RequestedBy,
) -> Result<Box<dyn Repository>, Failure> {
    let members = federation_members(served, file).await?;
    let policy = served.mirror.policy();
    let all = FederationFile::default();
    let settings = file.map_or(&all, Arc::as_ref);
    let settings = FederationSettings {
        name: path_of(file).to_owned(),
        repository_name: federation_title(served, file.map(Arc::as_ref)),
        description: settings.description.clone(),
        admin_emails: if file.is_some() {
            settings.admin_emails.clone()
        } else {
            policy.aggregate_emails.clone()
        },
        on_failure: settings.on_failure,
        members,
        spool_bytes_max: served.repositories.limits().spool_bytes_max,
    };
    let on_failure = settings.on_failure;
    let services = FederationServices {
        repositories: Arc::new(ServedMembers { served: Arc::clone(served), requested_by, on_failure }),
        locator: Some(Arc::new(MirroredRecords { served: Arc::clone(served) })),
        state: Arc::clone(&served.federation_state),
        spans: view_stores(served).await?.spans.clone(),
        token_key: served.store.token_key.clone(),
        clock: Arc::clone(&served.clock),
    };
    Ok(Box::new(FederationRepository::new(settings, services)))
}

fn path_of(file: Option<&Arc<FederationFile>>) -> &str {
    file.map_or(FEDERATION_NAME, |file| &file.path)
}

/// The name of a federation for people; without a file that of all repositories.
pub(crate) fn federation_title(served: &ServedRepositories, file: Option<&FederationFile>) -> String {
    match file {
        Some(file) => file.repository_name.clone().unwrap_or_else(|| file.name.clone()),
        None => format!("All repositories at {}", served.public_url),
    }
}

/// The members of a federation, in the order of its lists; without a file all repositories.
///
/// # Errors
///
/// The repository index cannot be read or written.
pub(crate) async fn federation_members(
    served: &ServedRepositories,
    file: Option<&Arc<FederationFile>>,
) -> Result<Arc<[Member]>, Failure> {
    let current = current_configuration(served);
    let created = creation_times_of(served, &current, StoredIndex::Unread).await?;
    let members = || members_of(served, &current, &created, file.map(Arc::as_ref));
    Ok(served.federation_members.of(path_of(file), (file, &created), members))
}

fn members_of(
    served: &ServedRepositories,
    current: &IndexedConfiguration,
    created: &CreationTimes,
    file: Option<&FederationFile>,
) -> Vec<Member> {
    let created_secs = |path: &str| {
        // A record that is not there is damaged: its repository counts as new.
        created.get(&format!("{}/{path}", served.public_url)).copied().unwrap_or(UnixSecs::MAX)
    };
    // A federation whose file has changed begins again.
    let since_secs = file.map_or(UnixSecs::MIN, |file| created_secs(&file.path));
    let is_member =
        |id: &&String| file.is_none_or(|file| file.repositories.is_empty() || file.repositories.contains(id));
    let ids = current.mappings.keys().filter(is_member);
    ids.map(|id| Member { id: id.clone(), joined_secs: created_secs(id).max(since_secs) }).collect()
}
