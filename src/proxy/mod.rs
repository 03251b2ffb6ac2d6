//! Answers OAI-PMH requests: from the cache, from a page in flight, or from the source.
//!
//! `service` implements the phases of pingora. `page_response` writes a page to the harvester. `cache` finds it.

pub(crate) mod cache;
mod gzip;
mod headers;
mod page_response;
mod response_head;
mod service;
mod upstream_handle;

pub(crate) use service::ProxyService;
