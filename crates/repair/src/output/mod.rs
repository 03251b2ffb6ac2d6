//! The last step of the engine: the buffered head, the counts, and the journal.

pub(crate) mod dedup;
pub(crate) mod head_buffer;
pub mod journal;
