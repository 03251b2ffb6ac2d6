//! The cached pages on disk: `pages` is the cache, `key` names its files, `entry` is their format, `disk_wait` reads them, `reuse` writes new
//! pages into the files of old ones, `hot` holds pages in memory, and `unsaved` those that have no file.

mod disk_wait;
mod entry;
mod hot;
mod key;
mod pages;
mod reuse;
mod saving;
#[cfg(test)]
mod tests;
mod unsaved;

pub use disk_wait::Wait;
pub use entry::{BlockSums, Entry, FileSlice, NewBody, NewPage};
pub use hot::{HotPage, PageCoding};
pub use key::PageKey;
pub use pages::{Pages, Part, Size};
pub use unsaved::{LeavingPage, UnsavedPage};
