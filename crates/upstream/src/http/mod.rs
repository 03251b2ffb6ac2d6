//! One HTTP exchange with a source: connections, redirects, content codings, limits and retries.

pub(crate) mod address;
pub(crate) mod body;
pub(crate) mod circuit_breaker;
pub(crate) mod client_error;
pub(crate) mod connector;
pub(crate) mod deadline;
pub mod decoding;
pub(crate) mod download;
pub(crate) mod endpoint;
pub(crate) mod exchange;
pub(crate) mod hop_headers;
pub(crate) mod http_client;
pub(crate) mod method;
pub(crate) mod proxy;
pub(crate) mod rate_limit;
pub(crate) mod redirects;
pub(crate) mod retry;
mod steady_time;
