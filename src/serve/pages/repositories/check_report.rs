//! The result of `oaimend check` for the page of a repository.

use crate::config::Mapping;
use crate::serve::served::ServedRepositories;
use oaimend_pages::repository::CheckResult;

/// The result of the last check; `None` without one, and if it is of another base URL.
pub(super) async fn last_check(served: &ServedRepositories, mapping: &Mapping) -> Option<CheckResult> {
    let (reports, id) = (served.store.check_reports.clone(), mapping.id().to_owned());
    let report = tokio::task::spawn_blocking(move || reports.find(&id)).await.ok()??;
    CheckResult::read(&report, &mapping.source.masked_base_url())
}
