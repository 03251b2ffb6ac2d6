//! One attempt at a page: its body passes through the engine, and what the harvester has is left out.

pub(crate) mod attempt;
pub(crate) mod buffer;
pub(crate) mod edit;
pub(crate) mod item;
pub(crate) mod resume;
pub(crate) mod tag_cache_pool;
