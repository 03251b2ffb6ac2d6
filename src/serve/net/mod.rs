//! Listeners, connection limits, TLS, signals and the handover to another process.
//!
//! `harvester_service` accepts connections. Each passes `connection_limiter`, which counts it, starts TLS and reads the
//! header within limits. `signals` ends the process, and `handover` gives its sockets to another one.

mod connection;
mod connection_limiter;
mod freed_memory;
pub(crate) mod handover;
pub(crate) mod harvester_service;
pub(crate) mod lifecycle;
pub(crate) mod listener;
pub(crate) mod service_manager;
pub(crate) mod signals;
mod successor;
pub(crate) mod tls_listener;
pub(crate) mod vectored_stream;

pub use self::signals::EarlySignals;
pub(crate) use self::successor::installed_program;
