//! A vector index of one block of text: the positions of its markup, and its first illegal byte.
//!
//! The validator reads through it, so it is the first stage of the fast path. It marks every `<`, every `&`
//! and every `>` that ends `]]>`. It finds the first byte that XML 1.0 in UTF-8 does not allow.
//! [`validator`](crate::validate::validator) interprets the marks. Blocks are small, so that the
//! UTF-8 check and this pass share the cache.

use crate::lex::search::count_read;
use crate::lex::window::TextWindow;

/// Maximum number of bytes in one block. Two blocks fit the first-level cache.
const BLOCK_BYTES_MAX: usize = 4096;
/// Bytes in the first block after a restart. Each further block has twice as many. After a record that
/// took the slow path, at most one block is indexed again.
const BLOCK_BYTES_FIRST: usize = 1024;

/// The marks of one block of a window, one bit for each byte.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// The start of the block in the window.
    start: usize,
    /// The first byte that is not indexed yet.
    end: usize,
    words: Vec<u64>,
    /// The number of the word after the current one.
    next_word: usize,
    /// The remaining marks of the current word, and the position of that word in the window.
    current: u64,
    current_at: usize,
    bad: Option<usize>,
    /// The length of the next block; 0 for the first one.
    block_bytes: usize,
}

/// The next mark in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A `<`, `&`, or the `>` of `]]>` at this position.
    At(usize),
    /// A byte that is not legal text.
    Bad(usize),
    /// The window ends; everything before this position is legal text.
    WindowEnd(usize),
}

impl Index {
    /// Discards the index, because the window is new or its bytes moved.
    pub(crate) fn restart(&mut self, at: usize) {
        self.words.clear();
        self.next_word = 0;
        self.current = 0;
        self.start = at;
        self.end = at;
        self.bad = None;
        self.block_bytes = 0;
    }

    /// Continues at `at`, which may be before or after the indexed block.
    pub(crate) fn seek(&mut self, at: usize) {
        let offset = at.wrapping_sub(self.start);
        match self.words.get(offset / 64) {
            Some(word) if at < self.end && self.bad.is_none_or(|bad| at <= bad) => {
                self.current = word & (u64::MAX << (offset % 64));
                self.current_at = at - offset % 64;
                self.next_word = offset / 64 + 1;
            }
            _ => self.restart(at),
        }
    }

    /// Returns the next mark of the window. A character that the end of the last window cuts is bad.
    #[inline(always)]
    pub(crate) fn next(&mut self, window: TextWindow<'_>) -> Mark {
        loop {
            if self.current != 0 {
                let bit = self.current.trailing_zeros() as usize;
                self.current &= self.current - 1;
                return Mark::At(self.current_at + bit);
            }
            if let Some(&word) = self.words.get(self.next_word) {
                self.next_word += 1;
                if word != 0 {
                    self.current = word;
                    self.current_at = self.start + self.next_word * 64 - 64;
                }
                continue;
            }
            if let Some(bad) = self.bad {
                return Mark::Bad(bad);
            }
            if !self.fill(window.text, window.is_last) {
                return Mark::WindowEnd(self.end);
            }
        }
    }

    /// Returns the last mark of [`Index::next`] to the index.
    #[inline(always)]
    pub(crate) fn put_back(&mut self, at: usize) {
        self.current |= 1 << (at - self.current_at);
    }

    /// Indexes the next block. Returns false if no byte is left. The window comes in parts, because as a whole it
    /// would be written to memory for each mark.
    fn fill(&mut self, window: &[u8], is_last: bool) -> bool {
        let from = self.end;
        let block_bytes = self.block_bytes.max(BLOCK_BYTES_FIRST);
        self.block_bytes = BLOCK_BYTES_MAX.min(2 * block_bytes);
        let mut to = window.len().min(from + block_bytes);
        // A block ends between two characters, so that each is checked as a whole.
        if to < window.len() {
            let whole = to;
            while to > from && whole - to < 3 && window.get(to).is_some_and(|b| b & 0xC0 == 0x80) {
                to -= 1;
            }
        }
        let Some(block) = window.get(from..to).filter(|block| !block.is_empty()) else {
            return false;
        };
        count_read(block.len());
        self.words.clear();
        self.words.reserve(block.len().div_ceil(64));
        self.next_word = 0;
        self.start = from;
        self.bad = None;
        let mut legal = block.len();
        // The first check is faster, the second one says where the error is.
        if simdutf8::basic::from_utf8(block).is_err()
            && let Err(error) = simdutf8::compat::from_utf8(block)
        {
            legal = error.valid_up_to();
            let cut = error.error_len().is_none() && to == window.len() && !is_last;
            if !cut {
                self.bad = Some(from + legal);
            }
            if legal == 0 {
                return self.bad.is_some();
            }
        }
        let text = block.get(..legal).unwrap_or_default();
        let before = window.get(from.saturating_sub(2)..from).unwrap_or_default();
        if let Some(illegal) = crate::lex::simd::mark(text, before, &mut self.words) {
            self.bad = Some(from + illegal);
        }
        self.end = from + legal;
        true
    }
}
