//! What the engine makes of a page: what it passes on as it came is held by reference.
//!
//! Sits between the engine, which writes slices of what it reads and texts of its own, and the
//! harvester. A page that is well leaves as the piece it came in, with another head.

use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;

/// Bytes in the order in which they were made.
#[derive(Debug, Default)]
pub(crate) struct ByteRope {
    runs: Vec<Bytes>,
    /// What was copied, behind the runs.
    own: Vec<u8>,
    /// The piece that is read, and what of it stands behind all that: one run, as it came.
    piece: Bytes,
    passed: Range<usize>,
    length: usize,
}

/// Shorter runs are copied together, in bytes: a reference may cost more than they do.
const SHORT_BYTES: usize = 16 << 10;
/// A run that is less than one part in so many of its piece is copied, since a reference holds all of it.
const PARTS_OF_A_PIECE_MAX: usize = 4;
/// Room for a head of our own, in bytes, before there is more to be copied.
const HEAD_BYTES: usize = 4 << 10;

impl ByteRope {
    /// What is written next may be slices of this piece.
    pub(crate) fn set_source(&mut self, piece: Bytes) {
        self.end_run();
        (self.piece, self.passed) = (piece, 0..0);
    }

    /// Takes the next bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        let behind = self.passed.end;
        match self.place_of(bytes) {
            Some(start) if start == behind => self.passed.end += bytes.len(),
            Some(start) => {
                self.end_run();
                self.passed = start..start + bytes.len();
            }
            // What was held back for a while is the same as it came.
            None if self.piece.get(behind..).is_some_and(|rest| rest.starts_with(bytes)) => {
                self.passed.end += bytes.len();
            }
            None => {
                self.end_run();
                self.copy(bytes);
            }
        }
    }

    /// Where in the piece the bytes lie, if they are a slice of it.
    fn place_of(&self, bytes: &[u8]) -> Option<usize> {
        let start = bytes.as_ptr().addr().checked_sub(self.piece.as_ptr().addr())?;
        (!bytes.is_empty() && start + bytes.len() <= self.piece.len()).then_some(start)
    }

    /// Makes a run of what was passed on of the piece.
    fn end_run(&mut self) {
        let passed = self.passed.clone();
        // What comes next of this piece comes behind that.
        self.passed.start = passed.end;
        let long = SHORT_BYTES.max(self.piece.len() / PARTS_OF_A_PIECE_MAX);
        if passed.len() >= long {
            self.end_own();
            self.runs.push(self.piece.slice(passed));
        } else if !passed.is_empty() {
            let piece = self.piece.clone();
            self.copy(piece.get(passed).unwrap_or_default());
        }
    }

    fn end_own(&mut self) {
        if self.own.is_empty() {
            return;
        }
        let mut own = std::mem::take(&mut self.own);
        if own.capacity() / 2 > own.len() {
            // Whoever holds them counts their length alone.
            own.shrink_to_fit();
        }
        self.runs.push(own.into());
    }

    fn copy(&mut self, bytes: &[u8]) {
        if self.own.capacity() - self.own.len() < bytes.len() {
            let is_first = self.own.capacity() == 0;
            let to_come = if is_first { HEAD_BYTES } else { self.piece.len() - self.passed.end + HEAD_BYTES };
            self.own.reserve(to_come.max(bytes.len()));
        }
        self.own.extend_from_slice(bytes);
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Takes others behind its own.
    pub(crate) fn append(&mut self, mut others: Self) {
        if self.is_empty() {
            *self = others;
            return;
        }
        others.end_run();
        self.end_run();
        self.length += others.length;
        if !others.runs.is_empty() {
            self.end_own();
            self.runs.append(&mut others.runs);
        }
        (self.piece, self.passed) = (Bytes::new(), 0..0);
        match self.own.is_empty() {
            true => self.own = others.own,
            false => self.copy(&others.own),
        }
    }

    /// All of it, part by part.
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let passed = self.piece.get(self.passed.clone()).unwrap_or_default();
        self.runs.iter().map(Bytes::as_ref).chain([self.own.as_slice(), passed])
    }

    /// What stands at a place, as far as there is something, in one piece.
    pub(crate) fn slice(&self, place: Range<usize>) -> Cow<'_, [u8]> {
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

    /// All of it in one piece.
    pub(crate) fn bytes(&self) -> Cow<'_, [u8]> {
        self.slice(0..self.length)
    }

    /// Changes it in one piece.
    pub(crate) fn edit<T>(&mut self, edit: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut bytes = std::mem::take(self).into_vec();
        let changed = edit(&mut bytes);
        *self = bytes.into();
        changed
    }

    /// All of it, in one piece.
    pub(crate) fn into_vec(self) -> Vec<u8> {
        if self.own.len() == self.length { self.own } else { self.bytes().into_owned() }
    }

    /// All of it, run by run.
    pub(crate) fn into_runs(mut self) -> impl Iterator<Item = Bytes> {
        self.end_run();
        self.end_own();
        self.runs.into_iter()
    }
}

impl From<Vec<u8>> for ByteRope {
    fn from(own: Vec<u8>) -> Self {
        Self { length: own.len(), own, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(length: usize) -> Bytes {
        (0..length).map(|at| (at * 31 % 251) as u8).collect()
    }

    /// Where its runs lie, and how long they are.
    fn runs(made: ByteRope) -> Vec<(*const u8, usize)> {
        made.into_runs().map(|run| (run.as_ptr(), run.len())).collect()
    }

    #[test]
    fn a_page_that_is_well_is_no_copy_of_its_piece() {
        let page = piece(100_000);
        let mut made = ByteRope::default();
        made.set_source(page.clone());
        made.write(b"a head of our own");
        made.write(&page[300..40_000]);
        made.write(&page[40_000..99_970]);
        // Held back, and then written as it came.
        let held_back = page[99_970..].to_vec();
        made.write(&held_back);
        assert_eq!(made.len(), 17 + 99_700);
        let all = [b"a head of our own".as_slice(), &page[300..]].concat();
        assert!(made.bytes() == all.as_slice());
        for place in [0..20, 0..0, 5..17, 17..400, 99_000..usize::MAX] {
            assert!(*made.slice(place.clone()) == all[place.start..place.end.min(all.len())], "{place:?}");
        }
        let runs = runs(made);
        assert_eq!((runs.len(), runs[0].1), (2, 17));
        assert_eq!(runs[1], (page[300..].as_ptr(), 99_700));
    }

    #[test]
    fn what_is_short_or_little_of_its_piece_is_copied_together() {
        let page = piece(100_000);
        let mut made = ByteRope::default();
        made.set_source(page.clone());
        let mut all = Vec::new();
        for (range, word) in
            [(0..20_000, "a"), (20_001..20_005, "bc"), (30_000..54_000, ""), (60_000..99_000, "d")]
        {
            made.write(&page[range.clone()]);
            made.write(word.as_bytes());
            all.extend_from_slice(&page[range]);
            all.extend_from_slice(word.as_bytes());
            assert!(made.bytes() == all.as_slice());
        }
        let lengths: Vec<usize> = runs(made).into_iter().map(|(_, length)| length).collect();
        assert_eq!(lengths, [20_000 + 1 + 4 + 2 + 24_000, 39_000, 1]);
    }

    #[test]
    fn it_is_changed_in_one_piece_and_taken_behind_another() {
        let page = piece(50_000);
        let mut made = ByteRope::default();
        made.set_source(page.clone());
        made.write(&page);
        made.write(b"end");
        let mut both = ByteRope::from(b"begin".to_vec());
        both.append(made);
        both.append(b"s".to_vec().into());
        both.edit(|bytes| bytes.truncate(bytes.len() - 1));
        both.write(b".");
        assert!(both.into_vec() == [b"begin".as_slice(), &page, b"end."].concat());
    }
}
