//! Notifications: tells operators of events by webhook and by mail.
//!
//! `event` and `watch` are pure: they decide which events there are. `queue` holds the events that wait, and the times
//! between attempts. `webhook` and `mail` deliver. `src/serve/background/notifications/` observes the repositories and runs
//! all of it.

mod event;
mod mail;
mod queue;
mod watch;
mod webhook;

pub use event::{Event, EventKind};
pub(crate) use mail::MAIL_EVENTS_MAX;
pub use mail::{Mail, MailError, describe};
pub(crate) use queue::{EventQueue, retry_wait};
pub(crate) use watch::{FolderStatus, Observation, Outage, QuarantineUsage, Rules, events};
pub use webhook::WebhookMessage;
