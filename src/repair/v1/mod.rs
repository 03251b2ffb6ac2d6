//! OAI-PMH 1.0 and 1.1.

pub(crate) mod envelope;
pub(crate) mod items;
