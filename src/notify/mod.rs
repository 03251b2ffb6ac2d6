//! Notifications: tells operators of events by webhook and by mail.
//!
//! `event` and `watch` are pure: they decide which events there are. `queue` holds the events that wait, and the times
//! between attempts. `webhook` and `mail` deliver. `src/serve/background/notifications/` observes the repositories and runs all of it.

mod event;
mod mail;
mod queue;
mod watch;
mod webhook;

pub use event::{Event, EventKind};
pub use mail::{MAIL_EVENTS_MAX, Mail, MailError, describe};
pub use queue::{ATTEMPTS_MAX, EventQueue, QUEUED_EVENTS_MAX, retry_wait};
pub use watch::{Observation, Outage, QuarantineUsage, Rules, events};
pub use webhook::WebhookMessage;
