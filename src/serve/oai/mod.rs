//! Answers OAI-PMH requests: from the cache, from a page in flight, or from the source.
//!
//! `router` finds the `target`, and `service` implements the phases of pingora. `page_response` writes a page to `downstream`: to the harvester, or into
//! `collected` for a browser. `cache` finds it, and `request_context` logs the request.

pub(crate) mod cache;
mod collected;
mod cors;
pub(crate) mod crosswalks;
mod deposits;
mod downstream;
pub(crate) mod federation_members;
pub(crate) mod federation_view;
mod gzip;
mod headers;
mod json_api;
pub(crate) mod live_requests;
mod mapped_repository;
pub(crate) mod mirror_views;
mod page_response;
mod request_context;
mod request_query;
mod response_head;
pub(crate) mod router;
mod service;
pub(crate) mod target;
mod upstream_handle;

pub(crate) use service::ProxyService;
