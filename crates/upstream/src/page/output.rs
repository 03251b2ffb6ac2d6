//! The bytes that the engine has written since they were last taken, and the places of the source's text in them.

use bytes::Bytes;
use oaimend_repository::ByteRope;
use std::borrow::Cow;
use std::ops::Range;

/// The output of the engine since it was last taken. Places are in bytes from its start, unless they are in the whole
/// output of the attempt.
#[derive(Debug, Default)]
pub(crate) struct PageOutput {
    bytes: ByteRope,
    /// The place of `bytes` in the whole output.
    base: u64,
    /// The length of the whole output minus the length of the text so far.
    drift: i64,
    /// Changes that may be in the next item: the place in the text, and the growth in bytes.
    recent: Vec<(u64, i64)>,
}

impl PageOutput {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.bytes.write(bytes);
    }

    /// The text that the engine reads next: what it writes of that is not copied.
    pub(crate) fn set_source(&mut self, piece: Bytes) {
        self.bytes.set_source(piece);
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the attempt has no output yet.
    pub(super) fn is_at_start(&self) -> bool {
        self.base == 0 && self.bytes.is_empty()
    }

    /// The length of the whole output.
    pub(super) fn whole_len(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    pub(crate) fn slice(&self, place: Range<usize>) -> Cow<'_, [u8]> {
        self.bytes.slice(place)
    }

    /// The bytes from a place in the whole output on, and their place in these; `None` if they were taken.
    pub(super) fn after(&self, at: u64) -> Option<(usize, Cow<'_, [u8]>)> {
        let start = usize::try_from(at.checked_sub(self.base)?).ok()?;
        (start <= self.len()).then(|| (start, self.bytes.slice(start..self.len())))
    }

    /// Takes the bytes: those that follow are further output.
    pub(crate) fn take(&mut self) -> ByteRope {
        self.base += self.bytes.len() as u64;
        std::mem::take(&mut self.bytes)
    }

    /// Takes the bytes for an edit, which ends with [`replace`](Self::replace).
    pub(super) fn take_for_edit(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes).into_vec()
    }

    /// Puts bytes in the place of those that were taken for an edit, which were `taken` in number.
    pub(super) fn replace(&mut self, taken: usize, bytes: Vec<u8>) {
        self.drift += bytes.len() as i64 - taken as i64;
        self.bytes = bytes.into();
    }

    /// Replaces a part. Returns the growth in bytes.
    pub(super) fn splice(&mut self, place: Range<usize>, bytes: &[u8]) -> i64 {
        let growth = bytes.len() as i64 - place.len() as i64;
        self.bytes.edit(|made| drop(made.splice(place, bytes.iter().copied())));
        self.drift += growth;
        growth
    }

    pub(super) fn truncate(&mut self, length: usize) {
        if self.bytes.len() > length {
            self.bytes.edit(|bytes| bytes.truncate(length));
        }
    }

    /// Notes that the text at a place has grown in the output by so many bytes.
    pub(super) fn note_change(&mut self, at: u64, growth: i64) {
        self.recent.push((at, growth));
    }

    /// The place in the output of an item that is at `offset` in the text.
    pub(super) fn place(&mut self, offset: u64) -> usize {
        // An insertion at the start of an item belongs to the text before it.
        for (_, delta) in self.recent.extract_if(.., |(at, _)| *at < offset) {
            self.drift += delta;
        }
        let start = i128::from(offset) + i128::from(self.drift) - i128::from(self.base);
        usize::try_from(start).unwrap_or(0)
    }
}
