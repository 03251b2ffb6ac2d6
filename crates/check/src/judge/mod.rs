//! The judgements: pure functions from responses to findings.

pub(crate) mod agreement;
pub(crate) mod compression;
mod dublin_core;
pub(crate) mod envelope;
pub(crate) mod errors;
pub(crate) mod identify;
pub(crate) mod lists;
pub(crate) mod odl;
pub(crate) mod payload;
mod schema;
pub(crate) mod tokens;
