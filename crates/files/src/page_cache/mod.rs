//! The cached pages on disk: `pages` is the cache, `key` names its files, `entry` is their format, `disk_wait` reads them, `reuse` writes new
//! pages into the files of old ones, and `hot` holds pages in memory.

mod disk_wait;
mod entry;
mod hot;
mod key;
mod pages;
mod reuse;
#[cfg(test)]
mod tests;

pub use disk_wait::Wait;
pub use entry::{BlockSums, Entry, FileSlice, NewBody, NewPage};
pub use hot::{HotPage, PageCoding};
pub use key::PageKey;
pub use pages::{Pages, Part, Size};
