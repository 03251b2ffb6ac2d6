//! The items that a response has emitted.
//!
//! The head buffer and the list stages use them. A second document in the same body adds only new items.

use std::collections::HashSet;

/// Maximum number of items that are stored. A later repeated item passes, which the protocol allows.
const ITEMS_MAX: usize = 65_536;

/// Initial capacity, in items. It is enough for most pages.
const ITEMS_INITIAL: usize = 128;

/// Hashes of the identifiers and datestamps of items.
#[derive(Debug)]
pub(crate) struct EmittedItems {
    hashes: Vec<u64>,
    set: Option<HashSet<u64>>,
    /// The first of `hashes`, up to the last call of [`EmittedItems::was_emitted`].
    emitted: HashSet<u64>,
    emitted_len: usize,
}

impl Default for EmittedItems {
    fn default() -> Self {
        Self { hashes: Vec::with_capacity(ITEMS_INITIAL), set: None, emitted: HashSet::new(), emitted_len: 0 }
    }
}

impl EmittedItems {
    /// Adds an item.
    #[inline]
    pub(crate) fn insert(&mut self, identifier: &[u8], datestamp: &[u8]) {
        if self.hashes.len() < ITEMS_MAX {
            self.hashes.push(hash(hash(0, identifier), datestamp));
        }
    }

    /// Whether the item was emitted before the first call of this function.
    pub(crate) fn contains(&mut self, identifier: &[u8], datestamp: &[u8]) -> bool {
        let hashes = &self.hashes;
        let set = self.set.get_or_insert_with(|| hashes.iter().copied().collect());
        set.contains(&hash(hash(0, identifier), datestamp))
    }

    /// Whether the item was emitted before this call.
    pub(crate) fn was_emitted(&mut self, identifier: &[u8], datestamp: &[u8]) -> bool {
        self.emitted.extend(self.hashes.iter().skip(self.emitted_len));
        self.emitted_len = self.hashes.len();
        self.emitted.contains(&hash(hash(0, identifier), datestamp))
    }
}

/// Hashes eight bytes at a time. Collisions are those of 64 bits.
#[inline]
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut state = (seed ^ bytes.len() as u64).wrapping_mul(FACTOR);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = word.try_into().map(u64::from_le_bytes).unwrap_or(0);
        state = (state.rotate_left(29) ^ word).wrapping_mul(FACTOR);
    }
    let tail = words.remainder().iter().fold(0_u64, |tail, &byte| tail << 8 | u64::from(byte));
    let state = (state.rotate_left(29) ^ tail).wrapping_mul(FACTOR);
    state ^ state >> 32
}
