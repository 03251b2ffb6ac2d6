//! The pages of the quarantine.

use super::page::{html, no_repository, site};
use crate::serve::pages::gateway::Gateway;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use oaimend_html::Site;
use oaimend_pages::html::{QuarantinePage, QuarantinedRecordPage, UnknownOperatorPage};
use oaimend_pages::texts::operator as texts;
use oaimend_store::{QUARANTINE_LISTED_MAX, QuarantineError, QuarantineQuery, RepositoryId};

/// The list of the quarantined records of a repository.
pub(crate) async fn list(served: &ServedRepositories, gateway: &Gateway, id: &str) -> Response {
    let site = &site(gateway);
    let Some(mapping) = served.repositories.find(id) else { return no_repository(site) };
    match served.store.quarantine.list(RepositoryId(mapping.id()), QuarantineQuery::default()).await {
        Ok(records) => {
            let is_cut = records.len() >= QUARANTINE_LISTED_MAX;
            html(200, QuarantinePage { site, repository: mapping.id(), records: &records, is_cut }.render())
        }
        Err(error) => unreadable(site, &error),
    }
}

/// One quarantined record.
pub(crate) async fn record(served: &ServedRepositories, gateway: &Gateway, id: &str, key: &str) -> Response {
    let site = &site(gateway);
    let Some(mapping) = served.repositories.find(id) else { return no_repository(site) };
    match served.store.quarantine.find(RepositoryId(mapping.id()), key).await {
        Ok(Some((entry, raw))) => {
            let page =
                QuarantinedRecordPage { site, repository: mapping.id(), key, entry: &entry, raw: &raw };
            html(200, page.render())
        }
        Ok(None) => html(
            404,
            UnknownOperatorPage { site, title: texts::UNKNOWN_KEY_TITLE, text: texts::UNKNOWN_KEY }.render(),
        ),
        Err(error) => unreadable(site, &error),
    }
}

fn unreadable(site: &Site, error: &QuarantineError) -> Response {
    let text = error.to_string();
    html(500, UnknownOperatorPage { site, title: texts::UNREADABLE_QUARANTINE_TITLE, text: &text }.render())
}
