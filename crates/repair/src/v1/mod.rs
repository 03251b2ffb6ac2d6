//! OAI-PMH 1.0 and 1.1: the conversion to 2.0.

pub(crate) mod envelope;
pub(crate) mod items;
