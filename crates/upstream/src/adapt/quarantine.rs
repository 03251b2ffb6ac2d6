//! Stores what a page leaves for operators: quarantined records, records that came whole after that, and broken pages
//! as received.

use crate::adapt::requester::Requester;
use crate::client::request_context::RequestContext;
use crate::page::attempt::{Page, Verdict};
use crate::page::buffer::PageBuffer;
use crate::settings::OnUnrepairable;
use crate::xml::text::unescape_text;
use oaimend_base::clock;
use oaimend_oai::{Request, Verb};
use oaimend_repository::{Failure, Reason};
use oaimend_store::{QuarantineBatch, QuarantineError, QuarantinedRecord, RepositoryId, WholeRecords};

/// Keeps a broken page as received, unless its defects were kept lately. Nothing waits for the write.
pub(crate) fn keep_evidence(
    context: &RequestContext,
    source_request: &Request,
    page: &mut Page,
    verdict: &Verdict,
) {
    let failure = match verdict {
        Verdict::Whole(_) => None,
        Verdict::Cut(failure, _) => Some(failure),
    };
    let (broken_pages, id) = (context.store.broken_pages.clone(), context.mapping.id.clone());
    let are_wanted = |needed: &[&'static str]| broken_pages.are_due(&id, needed, clock::uptime());
    let Some((raw, about)) = page.evidence(source_request, failure, are_wanted) else { return };
    let secrets = context.mapping.secrets();
    tokio::task::spawn_blocking(move || {
        let raw = raw.to_vec();
        let raw = secrets.mask(&raw);
        if let Err(error) = broken_pages.store(&id, &raw, &about) {
            tracing::warn!(repo = id, %error, "a broken page is not kept; check space and rights of the data folder");
        }
    });
}

/// The identifiers of the good items of a page that may have an open entry in the quarantine.
pub(crate) async fn formerly_broken(context: &RequestContext, buffer: &PageBuffer) -> Vec<String> {
    let (quarantine, id) = (&context.store.quarantine, &context.mapping.id);
    let has_records = context.request.verb().is_harvest() || context.request.verb() == Verb::GetRecord;
    if !has_records || !quarantine.has_open(RepositoryId(id)).await {
        return Vec::new();
    }
    let identifiers = buffer.identifiers().map(|written| unescape_text(&written)).collect();
    quarantine.open_among(RepositoryId(id), identifiers).await
}

/// Marks the open entries of records that came whole. A failure is only logged: the records are whole without it, and
/// mark their entries when they come again.
pub(crate) async fn resolve_entries(requester: &Requester<'_>, identifiers: Vec<String>) {
    if identifiers.is_empty() {
        return;
    }
    let RequestContext { mapping, store, request, .. } = requester.context;
    let whole = WholeRecords {
        repository: mapping.id.clone(),
        headers_only: request.verb() == Verb::ListIdentifiers,
        metadata_prefix: requester.metadata_prefix.clone(),
        identifiers,
        received_at: clock::utc_datetime(requester.now()),
    };
    match store.quarantine.resolve(whole).await {
        Ok(0) | Err(QuarantineError::Closed) => {}
        Ok(resolved) => {
            tracing::info!(repo = mapping.id, resolved, "quarantined records came whole");
        }
        Err(error) => {
            tracing::warn!(repo = mapping.id, %error, "quarantined records came whole, but their entries stay open");
        }
    }
}

/// Quarantines the records that waited for a first good item, of which there is none.
pub(crate) async fn quarantine_early(requester: &mut Requester<'_>, page: &mut Page) -> Result<(), Failure> {
    let early = page.buffer.take_early();
    if early.is_empty() {
        return Ok(());
    }
    quarantine_and_count(requester, early).await
}

/// Writes records to the quarantine, and counts them in the summary of the response.
pub(crate) async fn quarantine_and_count(
    requester: &mut Requester<'_>,
    records: Vec<QuarantinedRecord>,
) -> Result<(), Failure> {
    requester.summary.items.add_quarantined(records.len() as u64);
    quarantine(requester, records).await
}

/// Writes records to the quarantine. Fails if the mapping wants such pages to fail.
pub(crate) async fn quarantine(
    requester: &mut Requester<'_>,
    records: Vec<QuarantinedRecord>,
) -> Result<(), Failure> {
    let RequestContext { mapping, store, request, client, .. } = requester.context;
    if requester.context.reports_records {
        requester.quarantined.extend(records.iter().cloned());
    }
    let batch = QuarantineBatch {
        repository: mapping.id.clone(),
        request: request.query().to_owned(),
        metadata_prefix: requester.metadata_prefix.clone(),
        received_at: clock::utc_datetime(requester.now()),
        bytes_max: mapping.limits.quarantine_bytes_max,
        records,
    };
    match store.quarantine.put(batch).await {
        Ok(()) if mapping.repairs.on_unrepairable == OnUnrepairable::Fail => {
            let details = format!(
                "{} sent a record that cannot be repaired, and the mapping says on_unrepairable = \"fail\"; see the quarantine",
                client.name()
            );
            Err(Failure::new(Reason::Unrepairable, details))
        }
        Ok(()) => Ok(()),
        Err(error @ QuarantineError::Closed) => Err(Failure::new(Reason::TakenOver, error.to_string())),
        Err(error) => Err(Failure::new(Reason::Quarantine, error.to_string())),
    }
}
