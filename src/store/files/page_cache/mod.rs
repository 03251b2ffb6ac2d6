//! The cached pages on disk: `pages` is the cache, `key` names its files, `entry` is their format, and `reuse` writes
//! new pages into the files of old ones.

mod entry;
mod key;
mod pages;
mod reuse;
#[cfg(test)]
mod tests;

pub use entry::{BlockSums, Entry};
pub use key::PageKey;
pub use pages::{HotPage, Pages, Part, Size};
