//! What must survive a restart.

mod pages;
mod quarantine;

pub use pages::{BLOCK_BYTES, BlockSums, Entry as PageEntry, PageKey, Pages, Part, Size};
pub use quarantine::{Entry, PutAside, Quarantine, QuarantineError};
