//! The clients of all sources, and one client with everything that requests to a source share.

pub(crate) mod probe;
pub(crate) mod probe_cache;
pub(crate) mod request_context;
pub(crate) mod source_client;
pub(crate) mod source_clients;
pub(crate) mod trial_gate;
