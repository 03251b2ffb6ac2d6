//! One attempt at a page: its body passes through the engine, and what the harvester has is left out.

pub(crate) mod attempt;
pub(crate) mod buffer;
pub(crate) mod edit;
mod head;
pub(crate) mod item;
mod observations;
mod output;
pub(crate) mod resume;
pub(crate) mod tag_cache_pool;
