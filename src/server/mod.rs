//! The server: listeners, connection limits, routing, quotas, handover and the admin listener.
//!
//! `run` starts and stops it. Each connection passes `connection_limiter`; each request passes `router` and `quotas`.
//! Requests for a repository go to `proxy`. `own_pages` answers the others.

mod admin;
mod client_class;
mod config_watch;
mod connection_limiter;
pub(crate) mod gateway;
mod handover;
mod listener;
pub(crate) mod live_requests;
mod maintenance;
mod mappings_watch;
mod run;
mod service_manager;
mod signals;
mod successor;
mod tls_listener;
mod vectored_stream;

pub(crate) mod context;
pub(crate) mod mirror;
mod notices;
pub(crate) mod own_pages;
pub(crate) mod quotas;
pub(crate) mod router;
pub(crate) mod validators;

pub use run::{Running, Server};
pub use signals::EarlySignals;
