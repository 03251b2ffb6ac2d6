//! What a page leaves behind for people: records put aside, and broken pages as they came.

use crate::clock;
use crate::config::OnUnrepairable;
use crate::store::{QuarantineBatch, QuarantineError, QuarantinedRecord};
use crate::upstream::failure::{Failure, Reason};
use crate::upstream::page::attempt::{Page, Verdict};
use crate::upstream::session::list_session::{Job, ListSession};

impl ListSession<'_> {
    /// Keeps a page that was broken, as it came. Nobody waits for that.
    pub(crate) fn keep_evidence(&self, page: &mut Page, verdict: &Verdict) {
        let failure = match verdict {
            Verdict::Whole(_) => None,
            Verdict::Cut(failure, _) => Some(failure),
        };
        let Some((raw, about)) = page.evidence(&self.asked, failure) else { return };
        let (broken, id) = (self.job.store.broken_pages.clone(), self.job.mapping.id.clone());
        tokio::task::spawn_blocking(move || {
            if let Err(error) = broken.store(&id, &raw, &about) {
                tracing::warn!(repo = id, %error, "a broken page is not kept; check space and rights of the data folder");
            }
        });
    }

    /// Puts aside what waited for a first good item to stand beside, and there is none.
    pub(crate) async fn give_up_early(&mut self, page: &mut Page) -> Result<(), Failure> {
        let early = page.pieces.take_early();
        if early.is_empty() {
            return Ok(());
        }
        self.account.quarantined += early.len() as u64;
        self.put_aside(early).await
    }

    pub(crate) async fn put_aside(&self, records: Vec<QuarantinedRecord>) -> Result<(), Failure> {
        let Job { mapping, store, request, client, .. } = self.job;
        let batch = QuarantineBatch {
            repository: mapping.id.clone(),
            request: request.query().to_owned(),
            received_at: clock::utc_datetime(self.budget.now()),
            bytes_max: mapping.limits.quarantine_bytes_max,
            records,
        };
        match store.quarantine.put(batch).await {
            Ok(()) if mapping.on_unrepairable == OnUnrepairable::Fail => {
                let details = format!(
                    "{} sent a record that cannot be mended, and the mapping says on_unrepairable = \"fail\"; see the quarantine",
                    client.name()
                );
                Err(Failure::new(Reason::QuarantineReason, details))
            }
            Ok(()) => Ok(()),
            Err(error @ QuarantineError::Closed) => Err(Failure::new(Reason::TakenOver, error.to_string())),
            Err(error) => Err(Failure::new(Reason::Quarantine, error.to_string())),
        }
    }
}
