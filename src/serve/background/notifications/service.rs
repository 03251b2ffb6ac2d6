//! Tells operators of events: looks at the repositories at intervals, and delivers to each target on its own.
//!
//! Invariant: a target that does not respond delays nothing but its own events.

use super::observe::Observer;
use crate::notify::{MAIL_EVENTS_MAX, Mail, Rules, WebhookMessage, describe, events, retry_wait};
use crate::serve::context::ServerContext;
use crate::serve::telemetry::labels::{NotificationResult, NotificationTarget};
use async_trait::async_trait;
use oaimend_base::certificate::EXPIRY_WARNING;
use oaimend_store::{SaveError, WatchedRepository};
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Time between two looks at the repositories.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Tells operators of events until the server stops. Events that wait then are lost.
pub(crate) struct NoticeService(pub(crate) Arc<ServerContext>);

#[async_trait]
impl BackgroundService for NoticeService {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        tokio::select! {
            _ = async { tokio::join!(self.watch(), self.deliver_to_webhook(), self.deliver_mail()) } => {}
            _ = shutdown.changed() => {}
        }
    }
}

impl NoticeService {
    /// Looks at the repositories at intervals.
    async fn watch(&self) {
        let context = &self.0;
        let saved = context.served.store.notices.watched().await;
        let mut watched = saved.unwrap_or_else(|error| {
            tracing::warn!(%error, "it is not known which events operators were told of; some come again");
            BTreeMap::new()
        });
        let mut observer = Observer::default();
        loop {
            if !context.lifecycle.is_ending() && context.notices.policy().has_target() {
                self.look(&mut observer, &mut watched).await;
            }
            context.served.clock.deadline(LOOK_INTERVAL).await;
        }
    }

    async fn look(&self, observer: &mut Observer, watched: &mut BTreeMap<String, WatchedRepository>) {
        let (context, before) = (&self.0, watched.clone());
        let policy = context.notices.policy();
        let secs = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        let rules = Rules {
            source_down_after_secs: secs(policy.source_down_after),
            quarantine_share: policy.quarantine_share,
            records_lost_interval_secs: secs(policy.records_lost_interval),
            certificate_warning_secs: secs(EXPIRY_WARNING),
        };
        let now_secs = context.served.clock.now_secs();
        let observations = observer.observe(&context.served, context.tls.as_ref()).await;
        let found = events(&rules, watched, now_secs, &observations);
        for event in &found {
            tracing::info!(event = event.name(), repository = event.repository, "operators are told");
        }
        let targets = [
            (NotificationTarget::Webhook, policy.webhook.is_some(), &context.notices.webhook),
            (NotificationTarget::Mail, policy.mail.is_some(), &context.notices.mail),
        ];
        for (target, is_configured, queue) in targets {
            let dropped = if is_configured { queue.push(&found) } else { 0 };
            if dropped > 0 {
                tracing::warn!(
                    to = target.name(),
                    dropped,
                    "too many events wait for their delivery; see the log"
                );
                context.telemetry.notified(target, NotificationResult::Dropped, dropped);
            }
        }
        if *watched == before {
            return;
        }
        match context.served.store.notices.save_watched(watched.clone()).await {
            Ok(()) | Err(SaveError::Closed) => {}
            Err(error) => tracing::warn!(
                %error,
                "after a restart some events come again; check space and rights of the data folder"
            ),
        }
    }

    async fn deliver_to_webhook(&self) {
        let context = &self.0;
        loop {
            context.notices.webhook.wait().await;
            for event in context.notices.webhook.take(1) {
                match WebhookMessage::new(&event, &context.served.public_url) {
                    Ok(message) => self.deliver(Message::Webhook(message), 1).await,
                    Err(problem) => self.give_up(NotificationTarget::Webhook, 1, &problem),
                }
            }
        }
    }

    async fn deliver_mail(&self) {
        let context = &self.0;
        loop {
            context.notices.mail.wait().await;
            let policy = context.notices.policy();
            let gather = policy.mail.as_ref().map_or(Duration::ZERO, |target| target.gather);
            context.served.clock.pause(gather).await;
            let events = context.notices.mail.take(MAIL_EVENTS_MAX);
            let (subject, text) = describe(&events, &context.served.public_url);
            self.deliver(Message::Mail(Mail::new(subject, text)), events.len()).await;
        }
    }

    /// Sends a message until it is accepted, or until there were too many attempts. `count` is the number of its events.
    async fn deliver(&self, message: Message, count: usize) {
        let (clock, mut failed) = (&self.0.served.clock, 0);
        loop {
            let Err(problem) = self.attempt(&message).await else {
                self.0.telemetry.notified(message.target(), NotificationResult::Sent, count);
                return;
            };
            failed += 1;
            let Some(wait) = retry_wait(failed, clock.chance()) else {
                self.give_up(message.target(), count, &problem);
                return;
            };
            tracing::debug!(
                to = message.target().name(),
                problem,
                ?wait,
                "a notification is not delivered yet"
            );
            clock.pause(wait).await;
        }
    }

    /// Sends a message once, by the current configuration.
    async fn attempt(&self, message: &Message) -> Result<(), String> {
        let (policy, clock) = (self.0.notices.policy(), self.0.served.clock.as_ref());
        match (message, &policy.webhook, &policy.mail) {
            (Message::Webhook(message), Some(target), _) => message.send(target, clock).await.map(drop),
            (Message::Mail(mail), _, Some(target)) => {
                mail.send(&target.to, target, clock).await.map_err(|error| error.text)
            }
            _ => Err("the target was removed from the configuration".to_owned()),
        }
    }

    fn give_up(&self, target: NotificationTarget, count: usize, problem: &str) {
        self.0.telemetry.notified(target, NotificationResult::Failed, count);
        tracing::warn!(
            to = target.name(),
            events = count,
            problem,
            "a notification is not delivered; check the target with oaimend notify test"
        );
    }
}

/// A message on its way to a target.
enum Message {
    Webhook(WebhookMessage),
    Mail(Mail),
}

impl Message {
    const fn target(&self) -> NotificationTarget {
        match self {
            Self::Webhook(_) => NotificationTarget::Webhook,
            Self::Mail(_) => NotificationTarget::Mail,
        }
    }
}
