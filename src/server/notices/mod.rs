//! Observes the repositories of a running server, and tells operators of events.

mod observe;
pub(crate) mod service;
pub(crate) mod state;
