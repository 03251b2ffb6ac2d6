//! The cache: coalesces identical requests, and keeps pages on disk.
//!
//! `rules` decides which page is cached for how long. `in_flight` holds a page from the request that starts it to its
//! end. `storage` finds pages in flight and on disk. `lookup` finds the page that answers a request, or starts it.
//!
//! Invariants: identical concurrent requests share one session with the source, also if it fails. A cached page is
//! what the source sent, with the `responseDate` of its fetch. A slow reader never delays the source, except the last
//! reader of a page longer than the limit.

mod disk_threads;
mod in_flight;
mod lookup;
mod page_meta;
mod rules;
mod storage;
#[cfg(test)]
mod tests;

pub(super) use in_flight::{InFlightPage, PageError, Reader};
pub(crate) use lookup::{Cache, CachedRequest};
pub(super) use lookup::{CacheLookup, FoundPage};
pub(crate) use rules::PageVariant;
pub(super) use storage::{CachedPage, PageForm};
