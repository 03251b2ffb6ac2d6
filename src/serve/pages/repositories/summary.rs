//! Gathers what the overview shows of a repository.

use crate::config::{Mapping, RecordPages};
use crate::serve::background::harvests::runs::state_of;
use crate::serve::served::ServedRepositories;
use oaimend_mirror::status::{RepositoryStatus, repository_status};
use oaimend_pages::repository::{RepositoryState, RepositorySummary};
use oaimend_store::MirrorError;

/// The days of activity on pages, today included.
pub(super) const DAYS_SHOWN: usize = 30;

/// What the mirror contains of a repository; `None` if it is not mirrored.
pub(super) async fn mirror_status(
    served: &ServedRepositories,
    mapping: &Mapping,
) -> Result<Option<RepositoryStatus>, MirrorError> {
    match mapping.mirror {
        Some(_) => Ok(Some(repository_status(&*served.store.mirror, mapping.id()).await?)),
        None => Ok(None),
    }
}

/// What the overview shows of a repository. `status` is an error if the mirror cannot be read.
pub(super) fn summary(
    served: &ServedRepositories,
    mapping: &Mapping,
    name: Option<String>,
    status: &Result<Option<RepositoryStatus>, MirrorError>,
) -> RepositorySummary {
    let is_mirrored = mapping.mirror.is_some();
    let (days, fails_since, last_response_at) = served.store.activity.read(mapping.id(), |activity| {
        let days = activity.last_days(served.clock.now_secs(), DAYS_SHOWN);
        let owned = |time: Option<&str>| time.map(str::to_owned);
        (days, owned(activity.fails_since()), owned(activity.last_success_at()))
    });
    let (state, records, last_success_at) = match status {
        Ok(None) => (RepositoryState::Live, None, last_response_at),
        Ok(Some(status)) => {
            // Each item is in one or more formats.
            let records = status.formats.iter().map(|format| format.records).max();
            let state = match state_of(status, &served.mirror.runs.of(mapping.id())) {
                "complete" => RepositoryState::Complete,
                "harvesting" | "waiting" => RepositoryState::Harvesting,
                "never-harvested" => RepositoryState::NeverHarvested,
                _ => RepositoryState::Incomplete,
            };
            (state, Some(records.unwrap_or_default()), status.last_success_at.clone())
        }
        Err(_) => (RepositoryState::Unreadable, None, None),
    };
    RepositorySummary {
        id: mapping.id().to_owned(),
        name,
        state,
        fails_since,
        records,
        has_record_pages: mapping.has_source_list() || is_mirrored && mapping.records != RecordPages::Off,
        last_success_at,
        days,
    }
}
