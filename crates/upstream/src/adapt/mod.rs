//! Adapts a request to its source and the response to the request.

pub(crate) mod capability_detection;
pub(crate) mod error_diagnosis;
pub(crate) mod item_filter;
pub(crate) mod quarantine;
pub(crate) mod repository_facts;
pub(crate) mod request_adapter;
pub(crate) mod requester;
pub(crate) mod subrequest;
