//! What engines remember of tags, handed from a page to the next one on the same thread.
//!
//! Pages repeat the tags of the pages before them, of whatever repository: reading them for the
//! first time is a good part of the work at a page of 100 KB.

use crate::repair::TagCache;
use std::cell::RefCell;

thread_local! {
    static POOL: RefCell<Vec<TagCache>> = const { RefCell::new(Vec::new()) };
}

/// How many are kept for each thread: for so many pages whose bodies arrive at the same time. Each
/// takes at most `MEMORY_BYTES_MAX` of the engine.
const KEPT_MAX: usize = 8;

/// What the last page has left; nothing, if there was none or another page has it.
pub(crate) fn take() -> TagCache {
    POOL.with_borrow_mut(Vec::pop).unwrap_or_default()
}

/// A page is done.
pub(crate) fn give_back(memory: TagCache) {
    POOL.with_borrow_mut(|memories| {
        if memories.len() < KEPT_MAX {
            memories.push(memory);
        }
    });
}
