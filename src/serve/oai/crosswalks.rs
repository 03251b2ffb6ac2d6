//! The crosswalks of the repository that answers a request.

use super::mapped_repository::{CountedBy, mapped_repository};
use super::mirror_views::{aggregate_view, mirror_view, subject_view, view_stores};
use super::target::TargetRepository;
use crate::config::{Mapping, ServeFrom, ViewFile};
use crate::serve::served::ServedRepositories;
use async_trait::async_trait;
use oaimend_crosswalks::{
    CrosswalkChoice, CrosswalkChoices, CrosswalkRepository, CrosswalkSettings, DerivedCollections,
    LinksSource, QuarantineSettings,
};
use oaimend_mirror::view::{AggregateRepository, DerivedVersions};
use oaimend_oai::UnixSecs;
use oaimend_repository::{Failure, Repository};
use oaimend_upstream::RequestedBy;
use oaimend_upstream::settings::OnUnrepairable;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The opened repository with the formats that crosswalks add to it.
///
/// # Errors
///
/// The store of the mirror cannot be read.
pub(crate) async fn with_crosswalks(
    served: &Arc<ServedRepositories>,
    repository: &TargetRepository,
    opened: Box<dyn Repository>,
) -> Result<Box<dyn Repository>, Failure> {
    match records_of(served, repository) {
        Some((records, choices)) => {
            add_crosswalks(served, repository.mapping(), (records, choices), opened).await
        }
        None => Ok(opened),
    }
}

/// A mapped repository as it is served, with its crosswalks as a member of federations, for requests that can wait.
///
/// # Errors
///
/// The source is not asked now, or the mirror cannot be read.
pub(crate) async fn converted_repository(
    served: &Arc<ServedRepositories>,
    mapping: &Arc<Mapping>,
) -> Result<Box<dyn Repository>, Failure> {
    let mapped = (Arc::clone(mapping), mapping.serve);
    let opened =
        mapped_repository(served, mapped.clone(), RequestedBy::Mirror, CountedBy::Repository).await?;
    with_member_crosswalks(served, mapped, opened).await
}

/// A member of a federation with its crosswalks, and with `oai_dc` in any case, because a federation has it if one of its
/// members does.
///
/// # Errors
///
/// The store of the mirror cannot be read.
pub(super) async fn with_member_crosswalks(
    served: &Arc<ServedRepositories>,
    (mapping, serve): (Arc<Mapping>, ServeFrom),
    opened: Box<dyn Repository>,
) -> Result<Box<dyn Repository>, Failure> {
    let dublin_core = CrosswalkChoices(BTreeMap::from([("oai_dc".to_owned(), CrosswalkChoice::BuiltIn)]));
    let choices = mapping.crosswalks.over(&dublin_core);
    let records = Records::of_mapping(&mapping, serve);
    add_crosswalks(served, Some(&mapping), (records, choices), opened).await
}

async fn add_crosswalks(
    served: &Arc<ServedRepositories>,
    mapping: Option<&Arc<Mapping>>,
    (records, choices): (Records, CrosswalkChoices),
    opened: Box<dyn Repository>,
) -> Result<Box<dyn Repository>, Failure> {
    let links = records.links(served);
    let crosswalks = choices.crosswalks(&served.public_url, &served.sheets, links.as_ref());
    if crosswalks.is_empty() {
        return Ok(opened);
    }
    let limits =
        mapping.map_or_else(|| served.repositories.limits(), |mapping| mapping.source.limits.clone());
    let name = records.name();
    let (known_formats, collections): (_, Option<Arc<dyn DerivedCollections>>) = match records {
        Records::Source(_) => (Some(served.known_formats.clone()), None),
        // The formats of a mirror are in its store.
        records => (None, Some(Arc::new(MirrorCollections::open(served, records).await?))),
    };
    let settings = CrosswalkSettings {
        repository: name,
        crosswalks,
        known_formats,
        converted: served.converted.clone(),
        collections,
        quarantine: QuarantineSettings {
            store: Arc::clone(&served.store.quarantine),
            bytes_max: limits.quarantine_bytes_max,
            fails_pages: mapping
                .is_some_and(|mapping| mapping.source.repairs.on_unrepairable == OnUnrepairable::Fail),
            is_by_set: mapping.is_none(),
        },
        spool_bytes_max: limits.spool_bytes_max,
        token_key: served.store.token_key.clone(),
        clock: Arc::clone(&served.clock),
    };
    Ok(Box::new(CrosswalkRepository::new(opened, settings)))
}

/// The records that crosswalks convert.
#[derive(Debug)]
enum Records {
    /// Those of a source, with its datestamps.
    Source(Arc<Mapping>),
    /// Those of a mirrored repository.
    Mirror(Arc<Mapping>),
    /// Those of all mirrored repositories.
    All,
    /// Those of a view.
    View(Arc<ViewFile>),
}

/// The records of a repository, and the choices for its crosswalks; `None`: it has none.
fn records_of(
    served: &ServedRepositories,
    repository: &TargetRepository,
) -> Option<(Records, CrosswalkChoices)> {
    match repository {
        TargetRepository::Mapped(mapping, serve) => {
            Some((Records::of_mapping(mapping, *serve), mapping.crosswalks.clone()))
        }
        TargetRepository::Aggregate => Some((Records::All, served.crosswalks.clone())),
        TargetRepository::View(view) => {
            Some((Records::View(Arc::clone(view)), view.crosswalks.over(&served.crosswalks)))
        }
        // The index has `oai_dc`, the components search and browse in the formats of `/_all`, and the members of a federation
        // have crosswalks of their own.
        TargetRepository::Component(_) | TargetRepository::Federation(_) | TargetRepository::Index => None,
    }
}

impl Records {
    /// The records of a mapped repository.
    fn of_mapping(mapping: &Arc<Mapping>, serve: ServeFrom) -> Self {
        match serve {
            ServeFrom::Live | ServeFrom::LiveThenMirror => Self::Source(Arc::clone(mapping)),
            ServeFrom::Mirror => Self::Mirror(Arc::clone(mapping)),
        }
    }

    /// The links between records, which the mirror knows for those of one repository.
    fn links(&self, served: &ServedRepositories) -> Option<LinksSource> {
        let Self::Mirror(mapping) = self else { return None };
        let sources = served.resolver.sources(&served.repositories);
        let resolver = served.resolver.resolver.clone();
        Some(LinksSource { resolver, sources, repository: mapping.id().to_owned() })
    }

    /// The name in tokens and of derived collections. A view may have the name of a repository.
    fn name(&self) -> String {
        match self {
            Self::Source(mapping) | Self::Mirror(mapping) => mapping.id().to_owned(),
            Self::All => AggregateRepository::NAME.to_owned(),
            Self::View(view) => format!("_view/{}", view.name),
        }
    }
}

/// The collections that crosswalks make of a view of the mirror.
#[derive(Debug)]
struct MirrorCollections {
    served: Arc<ServedRepositories>,
    records: Records,
    derived: DerivedVersions,
}

impl MirrorCollections {
    async fn open(served: &Arc<ServedRepositories>, records: Records) -> Result<Self, Failure> {
        let stores = view_stores(served).await?.clone();
        let derived = DerivedVersions::new(stores, records.name());
        Ok(Self { served: Arc::clone(served), records, derived })
    }

    /// The view with no lower datestamps than this one.
    async fn since(&self, since_secs: Option<UnixSecs>) -> Result<Box<dyn Repository>, Failure> {
        let served = &*self.served;
        Ok(match &self.records {
            Records::Source(mapping) | Records::Mirror(mapping) => {
                Box::new(mirror_view(served, mapping).await?.since(since_secs))
            }
            Records::All => Box::new(aggregate_view(served).await?.since(since_secs)),
            Records::View(view) => Box::new(subject_view(served, view).await?.since(since_secs)),
        })
    }
}

#[async_trait]
impl DerivedCollections for MirrorCollections {
    async fn begin(&self, prefix: &str, version: &str) -> Result<Box<dyn Repository>, Failure> {
        self.since(self.derived.begin(prefix, version).await?).await
    }

    async fn continue_list(&self, prefix: &str) -> Result<Box<dyn Repository>, Failure> {
        self.since(self.derived.continue_list(prefix).await?).await
    }

    async fn is_current(&self, prefix: &str, version: &str) -> Result<bool, Failure> {
        Ok(self.derived.is_current(prefix, version).await?)
    }

    async fn note_native(&self, prefix: &str) -> Result<(), Failure> {
        Ok(self.derived.note_stored(prefix).await?)
    }
}
