//! One SIMD pass over a block of text: where its markup is, and whether its bytes are legal.
//!
//! First stage of the fast path. It marks every `<`, every `&` and every `>`
//! that ends `]]>`, and finds the first byte that XML 1.0 in UTF-8 cannot
//! hold. What the marks mean is for [`scan`](crate::repair::validate::validator) to say.
//! Blocks are small, so that the UTF-8 check and this pass share the cache.

/// Bytes looked at in one go: fits the first-level cache twice over, and bounds
/// what is looked at again behind a record that needed the slow path.
const BLOCK_BYTES: usize = 4096;

/// The marks of one block of a window, one bit a byte.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Where the block begins in the window.
    start: usize,
    /// First byte not indexed yet.
    end: usize,
    words: Vec<u64>,
    /// The word after the one that is being read.
    next_word: usize,
    /// What is left of the word that is being read, and where it begins in the window.
    current: u64,
    current_at: usize,
    bad: Option<usize>,
}

/// What comes next in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A `<`, `&`, or the `>` of `]]>` at this position.
    At(usize),
    /// A byte that is no part of legal text.
    Bad(usize),
    /// The window ends; everything before this position is legal text.
    WindowEnd(usize),
}

impl Index {
    /// Forgets everything: the window is a new one, or its bytes moved.
    pub(crate) fn restart(&mut self, at: usize) {
        self.words.clear();
        self.next_word = 0;
        self.current = 0;
        self.start = at;
        self.end = at;
        self.bad = None;
    }

    /// Goes on at `at`, which may lie before or behind what was indexed.
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

    /// The next mark of the window. `last` says that no more bytes will come,
    /// so that a character cut by the end of the window is bad.
    #[inline(always)]
    pub(crate) fn next(&mut self, window: &[u8], last: bool) -> Mark {
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
            if !self.fill(window, last) {
                return Mark::WindowEnd(self.end);
            }
        }
    }

    /// The mark that [`Index::next`] gave last is the next one again.
    #[inline(always)]
    pub(crate) fn put_back(&mut self, at: usize) {
        self.current |= 1 << (at - self.current_at);
    }

    /// Indexes the next block; false when nothing was left to index.
    fn fill(&mut self, window: &[u8], last: bool) -> bool {
        let from = self.end;
        let mut to = window.len().min(from + BLOCK_BYTES);
        // A block ends between two characters, so that each is judged as a whole.
        if to < window.len() {
            let whole = to;
            while to > from && whole - to < 3 && window.get(to).is_some_and(|b| b & 0xC0 == 0x80) {
                to -= 1;
            }
        }
        let Some(block) = window.get(from..to).filter(|block| !block.is_empty()) else {
            return false;
        };
        self.words.clear();
        self.words.reserve(block.len().div_ceil(64));
        self.next_word = 0;
        self.start = from;
        self.bad = None;
        let mut legal = block.len();
        if simdutf8::basic::from_utf8(block).is_err() {
            let error = std::str::from_utf8(block).err();
            legal = error.map_or(block.len(), |e| e.valid_up_to());
            let cut = error.is_some_and(|e| e.error_len().is_none()) && to == window.len() && !last;
            if !cut {
                self.bad = Some(from + legal);
            }
            if legal == 0 {
                return self.bad.is_some();
            }
        }
        let text = block.get(..legal).unwrap_or_default();
        let before = window.get(from.saturating_sub(2)..from).unwrap_or_default();
        if let Some(illegal) = crate::repair::lex::simd::mark(text, before, &mut self.words) {
            self.bad = Some(from + illegal);
        }
        self.end = from + legal;
        true
    }
}
