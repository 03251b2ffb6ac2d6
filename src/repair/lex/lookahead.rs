//! Looking ahead in broken text without doing so again and again.
//!
//! Where damage ends is often told by what stands far behind it. What was
//! found there is remembered, and what was looked through in vain is counted:
//! a page made so that each of its bytes needs all the others is given up
//! instead of being read for hours. Everything here depends on positions in
//! the text alone.

use memchr::memmem;

/// Bytes that a page may make us look through in vain whatever its length.
const FAILED_BYTES_FREE: u64 = 16 << 20;
/// Bytes that it may make us look through in vain for each byte of it that is settled.
const FAILED_BYTES_PER_BYTE: u64 = 4;

/// What was learned by looking ahead.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookahead {
    /// Where sections end next, for each kind of them.
    pub(crate) section_ends: [Ahead; 3],
    /// The next end tag of an item.
    pub(crate) item_end: ItemEnd,
    /// Where the next item begins.
    pub(crate) item_start: Ahead,
    /// Where the element ends that wraps an item, and its end tag.
    wrapper_end: (Vec<u8>, Ahead),
    failed_bytes: u64,
}

impl Lookahead {
    /// Where this end tag stands next. That of the last one asked for is remembered.
    pub(crate) fn wrapper_end(&mut self, end_tag: &[u8]) -> &mut Ahead {
        if self.wrapper_end.0 != end_tag {
            let (from, to) = self.wrapper_end.1.none;
            self.failed_bytes = self.failed_bytes.saturating_add(to - from);
            self.wrapper_end = (end_tag.to_vec(), Ahead::default());
        }
        &mut self.wrapper_end.1
    }

    /// So many bytes were looked through and said nothing that lasts.
    pub(crate) fn count_failed(&mut self, bytes: usize) {
        self.failed_bytes = self.failed_bytes.saturating_add(bytes as u64);
    }

    /// Whether the damage up to `offset`, in bytes of the text, is not worth more looking.
    pub(crate) fn is_exhausted(&self, offset: u64) -> bool {
        self.failed_bytes > FAILED_BYTES_FREE.saturating_add(offset.saturating_mul(FAILED_BYTES_PER_BYTE))
    }
}

/// Where a mark stands next, so that no byte is searched for it twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ahead {
    /// Between these offsets of the text the mark does not begin.
    none: (u64, u64),
    /// Whether it stands at the end of that range.
    found: bool,
}

impl Ahead {
    /// The first `mark` at or behind `from` in `text`, which begins at offset `base`.
    pub(crate) fn find(&mut self, text: &[u8], base: u64, from: usize, mark: &[u8]) -> Option<usize> {
        let at = base + from as u64;
        let (known_from, known_to) = self.none;
        let known = known_from <= at && at <= known_to;
        if !known || !self.found {
            let start = if known { (known_to - base) as usize } else { from };
            let found = memmem::find(text.get(start..).unwrap_or_default(), mark).map(|len| start + len);
            // The mark may begin with the last bytes of what there is.
            let searched = found.unwrap_or_else(|| (text.len() + 1).saturating_sub(mark.len()).max(start));
            self.none = (if known { known_from } else { at }, base + searched as u64);
            self.found = found.is_some();
        }
        let found = self.found.then(|| (self.none.1 - base) as usize)?;
        (found + mark.len() <= text.len()).then_some(found)
    }
}

/// The next end tag of an item that is one, and whether the list goes on behind it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ItemEnd {
    /// Between these offsets of the text there is none.
    none: (u64, u64),
    /// Whether one stands at the end of that range, and whether it is a border.
    boundary: Option<bool>,
}

impl ItemEnd {
    /// What is known from `from` on: up to where there is none, and what stands there.
    pub(crate) fn known(&self, from: u64) -> (u64, Option<bool>) {
        let (known_from, known_to) = self.none;
        if known_from <= from && from <= known_to { (known_to, self.boundary) } else { (from, None) }
    }

    /// From `from` on there is none before `to`, and `boundary` says what stands there.
    pub(crate) fn note(&mut self, from: u64, to: u64, boundary: Option<bool>) {
        let (known_from, known_to) = self.none;
        let from = if known_from <= from && from <= known_to { known_from } else { from };
        *self = Self { none: (from, to), boundary };
    }
}
