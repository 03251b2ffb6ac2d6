//! Gathers what the overview shows of a repository.

use crate::config::{Mapping, RecordPages};
use crate::serve::background::harvests::runs::state_of;
use crate::serve::context::ServerContext;
use oaimend_base::clock;
use oaimend_mirror::status::{RepositoryStatus, repository_status};
use oaimend_pages::repository::{RepositoryState, RepositorySummary};
use oaimend_store::MirrorError;

/// The days of activity on pages, today included.
pub(super) const DAYS_SHOWN: usize = 30;

/// The time of the server, in seconds since 1970.
pub(super) fn now_secs(context: &ServerContext) -> i64 {
    i64::try_from(clock::secs(context.clock.now())).unwrap_or(i64::MAX)
}

/// What the mirror contains of a repository; `None` if it is not mirrored.
pub(super) async fn mirror_status(
    context: &ServerContext,
    mapping: &Mapping,
) -> Result<Option<RepositoryStatus>, MirrorError> {
    match mapping.mirror {
        Some(_) => Ok(Some(repository_status(&*context.store.mirror, mapping.id()).await?)),
        None => Ok(None),
    }
}

/// What the overview shows of a repository. `status` is an error if the mirror cannot be read.
pub(super) fn summary(
    context: &ServerContext,
    mapping: &Mapping,
    name: Option<String>,
    status: &Result<Option<RepositoryStatus>, MirrorError>,
) -> RepositorySummary {
    let is_mirrored = mapping.mirror.is_some();
    let (days, fails_since, last_response_at) = context.store.activity.read(mapping.id(), |activity| {
        let days = activity.last_days(now_secs(context), DAYS_SHOWN);
        let owned = |time: Option<&str>| time.map(str::to_owned);
        (days, owned(activity.fails_since()), owned(activity.last_success_at()))
    });
    let (state, records, last_success_at) = match status {
        Ok(None) => (RepositoryState::Live, None, last_response_at),
        Ok(Some(status)) => {
            // Each item is in one or more formats.
            let records = status.formats.iter().map(|format| format.records).max();
            let state = match state_of(status, &context.mirror.runs.of(mapping.id())) {
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
        has_record_pages: is_mirrored && mapping.records != RecordPages::Off,
        last_success_at,
        days,
    }
}
