//! Sends the weekly reports to providers.
//!
//! Invariant: a provider receives at most one report a week. The time of a report is on disk before it is sent. It is
//! removed again only if the mail server has certainly not accepted it.

use super::admin_email::admin_email;
use super::state::NoticeState;
use crate::config::{MailTarget, Mapping, ReportTo};
use crate::notify::{Mail, retry_wait};
use crate::provider_report::{ProviderReport, WeekTime, is_due, slot_secs, week_report};
use crate::serve::context::ServerContext;
use crate::serve::served::ServedRepositories;
use crate::serve::telemetry::labels::{NotificationResult, NotificationTarget};
use async_trait::async_trait;
use oaimend_oai::UnixSecs;
use oaimend_store::{QuarantineError, RepositoryId};
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Time between two looks at the reports that are due.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
const DAY_SECS: i64 = 86_400;

/// Sends the weekly reports until the server stops.
pub(crate) struct ReportService(pub(crate) Arc<ServerContext>);

/// The attempts to send the report of a repository for one time of the week.
#[derive(Clone, Copy, Debug, Default)]
struct Attempts {
    slot_secs: UnixSecs,
    failed: u32,
    /// The time of the next one; `None`: there is none.
    next_secs: Option<UnixSecs>,
}

/// What became of a report.
enum Outcome {
    Sent,
    NothingToReport,
    /// It was not sent, and may be sent later.
    Failed(String),
    /// It must not be sent again, because it may have arrived.
    Unknown(String),
}

#[async_trait]
impl BackgroundService for ReportService {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let mut attempts: HashMap<String, Attempts> = HashMap::new();
        loop {
            if !self.0.lifecycle.is_ending() {
                self.look(&mut attempts).await;
            }
            tokio::select! {
                () = self.0.served.clock.deadline(LOOK_INTERVAL) => {}
                _ = shutdown.changed() => return,
            }
        }
    }
}

/// The report of the seven days that end with the day of `last_day_secs`; `None` if there is nothing to report.
///
/// # Errors
///
/// The quarantine cannot be read.
pub(crate) async fn report_of(
    served: &ServedRepositories,
    notices: &NoticeState,
    mapping: &Mapping,
    last_day_secs: UnixSecs,
) -> Result<Option<ProviderReport>, QuarantineError> {
    let docs_url = &notices.reports().docs_url;
    week_report(&served.store, mapping, last_day_secs, &served.public_url, docs_url.as_ref()).await
}

/// A report on its way.
struct AddressedMail<'m> {
    mail: &'m Mail,
    to: &'m str,
    server: &'m MailTarget,
}

impl ReportService {
    async fn look(&self, attempts: &mut HashMap<String, Attempts>) {
        let (context, now_secs) = (&self.0, self.0.served.clock.now_secs());
        let policy = context.notices.reports();
        let time = WeekTime { weekday: policy.weekday, hour: policy.hour };
        let slot_secs = slot_secs(time, now_secs);
        let mappings = context.served.repositories.all();
        attempts.retain(|id, attempts| mappings.contains_key(id) && attempts.slot_secs == slot_secs);
        for mapping in mappings.values() {
            let Some(report_to) = &mapping.report_to else { continue };
            let before = attempts.get(mapping.id()).copied();
            let is_waiting =
                before.is_some_and(|attempts| attempts.next_secs.is_none_or(|next| now_secs < next));
            if is_waiting || !is_due(time, None, now_secs) {
                continue;
            }
            let outcome =
                match context.served.store.notices.report_sent_secs(RepositoryId(mapping.id())).await {
                    Ok(sent_secs) if !is_due(time, sent_secs, now_secs) => continue,
                    Ok(sent_secs) => self.report(mapping, report_to, sent_secs).await,
                    Err(error) => Outcome::Failed(error.to_string()),
                };
            let failed = before.map_or(0, |attempts| attempts.failed) + 1;
            let next_secs = self.note(mapping.id(), &outcome, failed);
            attempts.insert(mapping.id().to_owned(), Attempts { slot_secs, failed, next_secs });
        }
    }

    /// Sends a report. `sent_secs` is the time of the one before.
    async fn report(
        &self,
        mapping: &Arc<Mapping>,
        report_to: &ReportTo,
        sent_secs: Option<UnixSecs>,
    ) -> Outcome {
        let (context, now_secs) = (&self.0, self.0.served.clock.now_secs());
        let Some(target) = context.notices.policy().mail.clone() else {
            return Outcome::Failed("[notifications.mail] is not configured".to_owned());
        };
        // Each day is in one report: today is in the next one.
        let report =
            match report_of(&context.served, &context.notices, mapping, now_secs.minus(DAY_SECS)).await {
                Ok(Some(report)) => report,
                Ok(None) => return Outcome::NothingToReport,
                Err(error) => return Outcome::Failed(error.to_string()),
            };
        let to = match report_to {
            ReportTo::Address(address) => address.clone(),
            ReportTo::Admin => match admin_email(&context.served, mapping).await {
                Ok(address) => address,
                Err(problem) => return Outcome::Failed(problem),
            },
        };
        let mail = Mail::new(report.subject, report.text).with_reply_to(&target.to);
        self.send(mapping.id(), AddressedMail { mail: &mail, to: &to, server: &target }, sent_secs).await
    }

    async fn send(&self, id: &str, addressed: AddressedMail<'_>, sent_secs: Option<UnixSecs>) -> Outcome {
        let AddressedMail { mail, to, server } = addressed;
        let (context, notices) = (&self.0, &self.0.served.store.notices);
        if let Err(error) =
            notices.save_report_sent(RepositoryId(id), Some(context.served.clock.now_secs())).await
        {
            return Outcome::Failed(error.to_string());
        }
        match mail.send(to, server, context.served.clock.as_ref()).await {
            Ok(()) => Outcome::Sent,
            Err(error) if error.may_have_arrived => Outcome::Unknown(error.text),
            Err(error) => match notices.save_report_sent(RepositoryId(id), sent_secs).await {
                Ok(()) => Outcome::Failed(error.text),
                Err(_) => Outcome::Unknown(error.text),
            },
        }
    }

    /// Logs and counts an outcome. Returns the time of the next attempt.
    fn note(&self, id: &str, outcome: &Outcome, failed: u32) -> Option<UnixSecs> {
        let context = &self.0;
        let problem = match outcome {
            Outcome::NothingToReport => return None,
            Outcome::Sent => {
                tracing::info!(repo = id, "the weekly report was sent to the provider");
                context.telemetry.notified(NotificationTarget::Provider, NotificationResult::Sent, 1);
                return None;
            }
            Outcome::Failed(problem) => {
                if let Some(wait) = retry_wait(failed, context.served.clock.chance()) {
                    tracing::debug!(repo = id, problem, ?wait, "the weekly report is not sent yet");
                    let wait_secs = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX);
                    return Some(context.served.clock.now_secs().plus(wait_secs));
                }
                problem
            }
            Outcome::Unknown(problem) => problem,
        };
        tracing::warn!(repo = id, problem, "the weekly report is not sent; the next one is due in a week");
        context.telemetry.notified(NotificationTarget::Provider, NotificationResult::Failed, 1);
        None
    }
}
