//! Which items a response has held, so that a second document in the same body adds only new ones.

use std::collections::HashSet;

/// Items remembered at most; beyond them a repeated one passes, which the protocol allows.
const ITEMS_MAX: usize = 65_536;

/// Items for which there is room from the start: those of most pages.
const USUAL_ITEMS: usize = 128;

/// Hashes of identifier and datestamp of items.
#[derive(Debug)]
pub(crate) struct EmittedItems {
    hashes: Vec<u64>,
    set: Option<HashSet<u64>>,
    /// The first of `hashes`, as far as [`EmittedItems::has_left`] has needed them.
    left: HashSet<u64>,
    left_len: usize,
}

impl Default for EmittedItems {
    fn default() -> Self {
        Self { hashes: Vec::with_capacity(USUAL_ITEMS), set: None, left: HashSet::new(), left_len: 0 }
    }
}

impl EmittedItems {
    /// Remembers an item.
    #[inline]
    pub(crate) fn insert(&mut self, identifier: &[u8], datestamp: &[u8]) {
        if self.hashes.len() < ITEMS_MAX {
            self.hashes.push(hash(hash(0, identifier), datestamp));
        }
    }

    /// Whether the item was there before.
    pub(crate) fn contains(&mut self, identifier: &[u8], datestamp: &[u8]) -> bool {
        let hashes = &self.hashes;
        let set = self.set.get_or_insert_with(|| hashes.iter().copied().collect());
        set.contains(&hash(hash(0, identifier), datestamp))
    }

    /// Whether the item has left, as of now.
    pub(crate) fn has_left(&mut self, identifier: &[u8], datestamp: &[u8]) -> bool {
        self.left.extend(self.hashes.iter().skip(self.left_len));
        self.left_len = self.hashes.len();
        self.left.contains(&hash(hash(0, identifier), datestamp))
    }
}

/// Eight bytes at a time; collisions are those of 64 bits.
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
