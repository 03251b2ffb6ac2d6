//! Bytes in order, held by reference where possible.
//!
//! A rope contains the output of the engine, which consists of slices of the input and of new texts, or the pieces
//! of a body. A page without repairs is sent as the received piece, with a new head.
//!
//! Invariant: a rope needs about as much memory as its length, for pieces of any size.

use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;

/// Bytes in order.
#[derive(Clone, Debug, Default)]
pub struct ByteRope {
    /// Runs of bytes, each with its place.
    runs: Vec<(usize, Bytes)>,
    /// Copied bytes, after the runs.
    buffer: Vec<u8>,
    /// The piece that the engine reads, and the part of it after `buffer`: one run, as received.
    piece: Bytes,
    passed: Range<usize>,
    length: usize,
}

/// Shorter runs are copied together, in bytes: a reference may cost more.
const SHORT_BYTES: usize = 16 << 10;
/// A run of less than one part in so many of its piece is copied: a reference holds the whole piece.
const PARTS_OF_A_PIECE_MAX: usize = 4;
/// Room for a head of our own, in bytes, before more is copied.
const HEAD_BYTES: usize = 4 << 10;

impl ByteRope {
    /// Adds the next piece of a body.
    pub fn push(&mut self, piece: Bytes) {
        self.end_run();
        self.length += piece.len();
        if piece.len() < SHORT_BYTES {
            self.buffer.extend_from_slice(&piece);
            if self.buffer.len() >= SHORT_BYTES {
                self.end_buffer(self.length);
            }
            return;
        }
        let at = self.length - piece.len();
        self.end_buffer(at);
        self.runs.push((at, piece));
    }

    /// The bytes that are written next may be slices of this piece.
    pub fn set_source(&mut self, piece: Bytes) {
        self.end_run();
        (self.piece, self.passed) = (piece, 0..0);
    }

    /// Adds the next bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        let passed_end = self.passed.end;
        match self.place_of(bytes) {
            Some(start) if start == passed_end => self.passed.end += bytes.len(),
            Some(start) => {
                self.end_run();
                self.passed = start..start + bytes.len();
            }
            // The engine held these bytes back, and writes them as received.
            None if self.piece.get(passed_end..).is_some_and(|rest| rest.starts_with(bytes)) => {
                self.passed.end += bytes.len();
            }
            None => {
                self.end_run();
                self.copy(bytes);
            }
        }
    }

    /// The place of the bytes in the piece, if they are a slice of it.
    fn place_of(&self, bytes: &[u8]) -> Option<usize> {
        let start = bytes.as_ptr().addr().checked_sub(self.piece.as_ptr().addr())?;
        (!bytes.is_empty() && start + bytes.len() <= self.piece.len()).then_some(start)
    }

    /// Makes a run of the passed part of the piece.
    fn end_run(&mut self) {
        let passed = self.passed.clone();
        // The next part of this piece begins after this one.
        self.passed.start = passed.end;
        let long = SHORT_BYTES.max(self.piece.len() / PARTS_OF_A_PIECE_MAX);
        if passed.len() >= long {
            // Bytes that are being added count in the length already.
            let at = self.end_of_buffer();
            self.end_buffer(at);
            self.runs.push((at, self.piece.slice(passed)));
        } else if !passed.is_empty() {
            let piece = self.piece.clone();
            self.copy(piece.get(passed).unwrap_or_default());
        }
    }

    /// The place after the runs.
    fn end_of_runs(&self) -> usize {
        self.runs.last().map_or(0, |(at, run)| at + run.len())
    }

    /// The place after the copied bytes.
    fn end_of_buffer(&self) -> usize {
        self.end_of_runs() + self.buffer.len()
    }

    /// Makes a run of the copied bytes; `end` is the place after them.
    fn end_buffer(&mut self, end: usize) {
        if self.buffer.is_empty() {
            return;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        if buffer.capacity() / 2 > buffer.len() {
            // A holder of runs counts their length only.
            buffer.shrink_to_fit();
        }
        self.runs.push((end - buffer.len(), buffer.into()));
    }

    fn copy(&mut self, bytes: &[u8]) {
        if self.buffer.capacity() - self.buffer.len() < bytes.len() {
            let is_first = self.buffer.capacity() == 0;
            let to_come = if is_first { HEAD_BYTES } else { self.piece.len() - self.passed.end + HEAD_BYTES };
            self.buffer.reserve(to_come.max(bytes.len()));
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds the bytes of another rope.
    pub fn append(&mut self, mut others: Self) {
        if self.is_empty() {
            *self = others;
            return;
        }
        others.end_run();
        self.end_run();
        let at = self.end_of_buffer();
        self.length += others.length;
        if !others.runs.is_empty() {
            self.end_buffer(at);
            self.runs.extend(others.runs.into_iter().map(|(place, run)| (at + place, run)));
        }
        (self.piece, self.passed) = (Bytes::new(), 0..0);
        if self.buffer.is_empty() {
            self.buffer = others.buffer;
        } else {
            self.copy(&others.buffer);
        }
    }

    /// All parts in order.
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let passed = self.piece.get(self.passed.clone()).unwrap_or_default();
        self.runs.iter().map(|(_, run)| run.as_ref()).chain([self.buffer.as_slice(), passed])
    }

    /// The bytes from a place on, as many as are in one part and at most `max`; none after the end.
    pub fn read(&self, at: usize, max: usize) -> Bytes {
        let (buffer_at, passed_at) = (self.end_of_runs(), self.end_of_buffer());
        if at >= passed_at {
            let from = self.passed.end.min(self.passed.start.saturating_add(at - passed_at));
            return self.piece.slice(from..self.passed.end.min(from.saturating_add(max)));
        }
        if at >= buffer_at {
            let rest = self.buffer.get(at - buffer_at..).unwrap_or_default();
            return Bytes::copy_from_slice(rest.get(..max).unwrap_or(rest));
        }
        let next_run = self.runs.partition_point(|(start, _)| *start <= at);
        let Some((start, run)) = next_run.checked_sub(1).and_then(|index| self.runs.get(index)) else {
            return Bytes::new();
        };
        let from = at - start;
        run.slice(from..run.len().min(from.saturating_add(max)))
    }

    /// All parts in order, each with its place.
    pub fn runs(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.parts().scan(0, |at, part| {
            let place = *at;
            *at += part.len();
            Some((place, part))
        })
    }

    /// A copy of all bytes in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.length);
        self.parts().for_each(|part| all.extend_from_slice(part));
        all
    }

    /// The bytes at a place in one piece, as far as there are any.
    pub fn slice(&self, place: Range<usize>) -> Cow<'_, [u8]> {
        let (mut at, end) = (0, place.end.min(self.length));
        let mut slice = Cow::Borrowed(<&[u8]>::default());
        for part in self.parts() {
            let from = place.start.saturating_sub(at).min(part.len());
            let to = end.saturating_sub(at).min(part.len());
            at += part.len();
            match part.get(from..to).unwrap_or_default() {
                [] => {}
                here if slice.is_empty() => slice = Cow::Borrowed(here),
                here => slice.to_mut().extend_from_slice(here),
            }
        }
        slice
    }

    /// All bytes in one piece.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        self.slice(0..self.length)
    }

    /// Edits all bytes in one piece.
    pub fn edit<T>(&mut self, edit: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut bytes = std::mem::take(self).into_vec();
        let changed = edit(&mut bytes);
        *self = bytes.into();
        changed
    }

    /// All bytes in one piece.
    pub fn into_vec(self) -> Vec<u8> {
        if self.buffer.len() == self.length { self.buffer } else { self.bytes().into_owned() }
    }

    /// All bytes, run by run.
    pub(crate) fn into_runs(mut self) -> impl Iterator<Item = Bytes> {
        self.end_run();
        self.end_buffer(self.length);
        self.runs.into_iter().map(|(_, run)| run)
    }
}

impl From<Vec<u8>> for ByteRope {
    fn from(buffer: Vec<u8>) -> Self {
        Self { length: buffer.len(), buffer, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(length: usize) -> Bytes {
        (0..length).map(|at| (at * 31 % 251) as u8).collect()
    }

    /// The addresses and lengths of its runs.
    fn runs(rope: ByteRope) -> Vec<(*const u8, usize)> {
        rope.into_runs().map(|run| (run.as_ptr(), run.len())).collect()
    }

    #[test]
    fn a_clean_page_is_not_copied() {
        let page = piece(100_000);
        let mut rope = ByteRope::default();
        rope.set_source(page.clone());
        rope.write(b"a head of our own");
        rope.write(&page[300..40_000]);
        rope.write(&page[40_000..99_970]);
        // Held back, and then written as received.
        let held_back = page[99_970..].to_vec();
        rope.write(&held_back);
        assert_eq!(rope.len(), 17 + 99_700);
        let all = [b"a head of our own".as_slice(), &page[300..]].concat();
        assert!(rope.bytes() == all.as_slice());
        for place in [0..20, 0..0, 5..17, 17..400, 99_000..usize::MAX] {
            assert!(*rope.slice(place.clone()) == all[place.start..place.end.min(all.len())], "{place:?}");
        }
        let runs = runs(rope);
        assert_eq!((runs.len(), runs[0].1), (2, 17));
        assert_eq!(runs[1], (page[300..].as_ptr(), 99_700));
    }

    #[test]
    fn short_runs_are_copied_together() {
        let page = piece(100_000);
        let mut rope = ByteRope::default();
        rope.set_source(page.clone());
        let mut all = Vec::new();
        for (range, word) in
            [(0..20_000, "a"), (20_001..20_005, "bc"), (30_000..54_000, ""), (60_000..99_000, "d")]
        {
            rope.write(&page[range.clone()]);
            rope.write(word.as_bytes());
            all.extend_from_slice(&page[range]);
            all.extend_from_slice(word.as_bytes());
            assert!(rope.bytes() == all.as_slice());
        }
        let lengths: Vec<usize> = runs(rope).into_iter().map(|(_, length)| length).collect();
        assert_eq!(lengths, [20_000 + 1 + 4 + 2 + 24_000, 39_000, 1]);
    }

    #[test]
    fn a_rope_is_edited_in_one_piece_and_appended_to_another() {
        let page = piece(50_000);
        let mut rope = ByteRope::default();
        rope.set_source(page.clone());
        rope.write(&page);
        rope.write(b"end");
        let mut both = ByteRope::from(b"begin".to_vec());
        both.append(rope);
        both.append(b"s".to_vec().into());
        both.edit(|bytes| bytes.truncate(bytes.len() - 1));
        both.write(b".");
        assert!(both.into_vec() == [b"begin".as_slice(), &page, b"end."].concat());
    }

    #[test]
    fn pushed_bytes_are_readable_at_each_place_without_extra_memory() {
        let lengths =
            [1, 40, SHORT_BYTES, SHORT_BYTES - 1, 7, 3 * SHORT_BYTES + 5, 0, SHORT_BYTES - 2, 9, 12];
        let (mut rope, mut all) = (ByteRope::default(), Vec::new());
        for (number, length) in lengths.into_iter().enumerate() {
            let piece: Vec<u8> = (0..length).map(|at| (at * 31 + number * 7) as u8).collect();
            all.extend_from_slice(&piece);
            rope.push(piece.into());
            assert_eq!(rope.len(), all.len());
            for at in (0..all.len()).step_by(97).chain([all.len().saturating_sub(1)]) {
                let read = rope.read(at, 100);
                assert!(!read.is_empty() && read.len() <= 100, "{} at {at}", read.len());
                assert_eq!(read, all[at..at + read.len()], "at {at}");
            }
            assert!(rope.read(all.len(), 100).is_empty());
            assert_eq!(rope.to_vec(), all);
            assert!(rope.runs().all(|(at, run)| all[at..].starts_with(run)));
        }
        let mut trickled = ByteRope::default();
        (0..10 * SHORT_BYTES).for_each(|_| trickled.push(Bytes::from_static(b"x")));
        assert_eq!((trickled.runs.len(), trickled.len()), (10, 10 * SHORT_BYTES));
    }

    #[test]
    fn long_pieces_are_not_copied() {
        let piece = Bytes::from(vec![b'x'; SHORT_BYTES]);
        let mut rope = ByteRope::default();
        rope.push(piece.clone());
        assert_eq!(rope.read(0, usize::MAX).as_ptr(), piece.as_ptr());
    }
}
