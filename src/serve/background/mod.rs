//! What a running server does without a request: harvests, full texts, lists of records, notifications, maintenance, and
//! the watch of its configuration.

pub(crate) mod config_watch;
pub(crate) mod folders;
pub(crate) mod full_texts;
pub(crate) mod harvests;
pub(crate) mod hub;
pub(crate) mod maintenance;
mod mappings_watch;
pub(crate) mod notifications;
pub(crate) mod source_walks;
