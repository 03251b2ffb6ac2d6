//! Listeners, connection limits, TLS, signals and the handover to another process.
//!
//! Each connection of a harvester passes `connection_limiter`, which counts it, starts TLS and reads the header within
//! limits. `signals` ends the process, and `handover` gives its sockets to another one.

pub(crate) mod connection_limiter;
pub(crate) mod handover;
pub(crate) mod lifecycle;
pub(crate) mod listener;
pub(crate) mod service_manager;
pub(crate) mod signals;
mod successor;
pub(crate) mod tls_listener;
mod vectored_stream;

pub use self::signals::EarlySignals;
pub(crate) use self::successor::installed_program;
