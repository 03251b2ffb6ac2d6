//! Opens a mapped repository: its source, its mirror, or both.

use super::mirror_views::{failover_view, mirror_view};
use crate::config::{Mapping, ServeFrom};
use crate::serve::served::ServedRepositories;
use oaimend_repository::{Failure, ObservedRepository, Repository};
use oaimend_upstream::{LiveRepository, RequestedBy};
use std::sync::Arc;

/// Who counts the requests to a source in its activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountedBy {
    /// The request of the harvester, which is for this repository.
    Request,
    /// The repository, because the request of the harvester is for another one.
    Repository,
}

/// The repository that answers for a mapping.
///
/// # Errors
///
/// The source is not asked now, or the mirror cannot be read.
pub(crate) async fn mapped_repository(
    served: &ServedRepositories,
    (mapping, serve): (Arc<Mapping>, ServeFrom),
    requested_by: RequestedBy,
    counted_by: CountedBy,
) -> Result<Box<dyn Repository>, Failure> {
    if serve == ServeFrom::Mirror {
        return Ok(Box::new(mirror_view(served, &mapping).await?));
    }
    let client = served.sources.client_for(&mapping.source)?.requested_by(requested_by);
    let (store, clock) = (served.store.clone(), Arc::clone(&served.clock));
    let repository = LiveRepository { mapping: Arc::clone(&mapping.source), client, store, clock };
    let live: Box<dyn Repository> = match counted_by {
        CountedBy::Request => Box::new(repository),
        CountedBy::Repository => {
            let (activity, clock) = (served.store.activity.clone(), Arc::clone(&served.clock));
            Box::new(ObservedRepository { id: mapping.id().to_owned(), repository, activity, clock })
        }
    };
    match serve {
        ServeFrom::LiveThenMirror => failover_view(served, &mapping, live).await,
        ServeFrom::Live | ServeFrom::Mirror => Ok(live),
    }
}
