//! The stages that read a response, from the prolog to the epilog.

pub(crate) mod engine;
pub(crate) mod envelope;
pub(crate) mod head;
pub(crate) mod item_search;
pub(crate) mod list;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod response_parts;
pub(crate) mod root;
pub(crate) mod second_document;
pub(crate) mod step;
pub(crate) mod tail;
