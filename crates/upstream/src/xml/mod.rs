//! Pure helpers for pieces of OAI-PMH responses: text and the tags around items.

pub(crate) mod envelope_tags;
pub(crate) mod set_specs;
pub(crate) mod text;
