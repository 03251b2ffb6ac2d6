//! Hands the tag caches of engines from one page to the next one on the same thread.
//!
//! Pages repeat the tags of the pages before them, of any repository: reading them for the first time is a
//! good part of the work at a page of 100 KB.

use oaimend_repair::TagCache;
use std::cell::RefCell;

thread_local! {
    static POOL: RefCell<Vec<TagCache>> = const { RefCell::new(Vec::new()) };
}

/// Caches kept for each thread: one for each page whose body arrives at the same time. Each takes at most
/// `MEMORY_BYTES_MAX` of the engine.
const KEPT_MAX: usize = 8;

/// The cache of the last page; an empty one if there is none.
pub(crate) fn take() -> TagCache {
    POOL.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// Returns the cache of a finished page.
pub(crate) fn give_back(memory: TagCache) {
    POOL.with_borrow_mut(|memories| {
        if memories.len() < KEPT_MAX {
            memories.push(memory);
        }
    });
}
