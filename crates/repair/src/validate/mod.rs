//! The validator: it decides whether an item is well-formed and valid in the OAI-PMH envelope.

pub(crate) mod envelope_names;
pub(crate) mod facts;
pub(crate) mod fast_path;
pub(crate) mod schema;
pub(crate) mod section;
pub(crate) mod start_tag;
pub(crate) mod state;
pub(crate) mod validator;
pub(crate) mod validator_oversized;
