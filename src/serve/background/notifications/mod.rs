//! Observes the repositories of a running server, tells operators of events, and sends reports to providers.

mod admin_email;
mod observe;
pub(crate) mod reports;
pub(crate) mod service;
pub(crate) mod state;
