//! Stores what a page leaves for operators: quarantined records, and broken pages as received.

use crate::clock;
use crate::config::OnUnrepairable;
use crate::oai::Request;
use crate::repository::{Failure, Reason};
use crate::store::{QuarantineBatch, QuarantineError, QuarantinedRecord};
use crate::upstream::adapt::requester::Requester;
use crate::upstream::client::job::Job;
use crate::upstream::page::attempt::{Page, Verdict};

/// Keeps a broken page as received. Nothing waits for the write.
pub(crate) fn keep_evidence(job: &Job, asked: &Request, page: &mut Page, verdict: &Verdict) {
    let failure = match verdict {
        Verdict::Whole(_) => None,
        Verdict::Cut(failure, _) => Some(failure),
    };
    let Some((raw, about)) = page.evidence(asked, failure) else { return };
    let (broken_pages, id) = (job.store.broken_pages.clone(), job.mapping.id.clone());
    let secrets = job.mapping.secrets();
    tokio::task::spawn_blocking(move || {
        let raw = secrets.mask(&raw);
        if let Err(error) = broken_pages.store(&id, &raw, &about) {
            tracing::warn!(repo = id, %error, "a broken page is not kept; check space and rights of the data folder");
        }
    });
}

/// Quarantines the records that waited for a first good item, of which there is none.
pub(crate) async fn quarantine_early(requester: &mut Requester<'_>, page: &mut Page) -> Result<(), Failure> {
    let early = page.buffer.take_early();
    if early.is_empty() {
        return Ok(());
    }
    quarantine_and_count(requester, early).await
}

/// Writes records to the quarantine, and counts them in the account.
pub(crate) async fn quarantine_and_count(
    requester: &mut Requester<'_>,
    records: Vec<QuarantinedRecord>,
) -> Result<(), Failure> {
    requester.account.quarantined += records.len() as u64;
    quarantine(requester, records).await
}

/// Writes records to the quarantine. Fails if the mapping wants such pages to fail.
pub(crate) async fn quarantine(
    requester: &mut Requester<'_>,
    records: Vec<QuarantinedRecord>,
) -> Result<(), Failure> {
    let Job { mapping, store, request, client, .. } = requester.job;
    if requester.job.reports_records {
        requester.quarantined.extend(records.iter().cloned());
    }
    let batch = QuarantineBatch {
        repository: mapping.id.clone(),
        request: request.query().to_owned(),
        received_at: clock::utc_datetime(requester.now()),
        bytes_max: mapping.limits.quarantine_bytes_max,
        records,
    };
    match store.quarantine.put(batch).await {
        Ok(()) if mapping.on_unrepairable == OnUnrepairable::Fail => {
            let details = format!(
                "{} sent a record that cannot be repaired, and the mapping says on_unrepairable = \"fail\"; see the quarantine",
                client.name()
            );
            Err(Failure::new(Reason::QuarantineReason, details))
        }
        Ok(()) => Ok(()),
        Err(error @ QuarantineError::Closed) => Err(Failure::new(Reason::TakenOver, error.to_string())),
        Err(error) => Err(Failure::new(Reason::Quarantine, error.to_string())),
    }
}
