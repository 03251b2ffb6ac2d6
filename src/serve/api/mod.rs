//! The JSON API: requests of programs to every kind of repository, and to the search.
//!
//! [`ApiRequest`] is read from the head of a request. One for records, sets or formats becomes a request of OAI-PMH, which
//! goes through the proxy, its cache and the mirror as that of a harvester does, and [`page`] makes the document of the
//! response. So a source that fails is a 503 here too, and never a short list. `oaimend-api` has the documents.

pub(crate) mod page;
pub(crate) mod records_json;
pub(crate) mod repositories;
pub(crate) mod request;
pub(crate) mod search;
