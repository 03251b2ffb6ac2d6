//! Bytes that are held as they came: by reference, and not copied.
//!
//! What holds a page beside its way (the spool, the evidence of a broken page) costs no copy of it.
//! Must stay true: what is held takes about as much memory as its length says, however
//! small the pieces were in which it came.

use bytes::Bytes;

/// Bytes in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    /// Runs of bytes, each with its place.
    runs: Vec<(usize, Bytes)>,
    /// What came in short pieces since, behind the runs.
    tail: Vec<u8>,
    length: usize,
}

/// Shorter pieces are copied together, since a reference may cost more than they do.
const SHORT_BYTES: usize = 16 << 10;

impl Gathered {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Takes the next ones.
    pub(crate) fn push(&mut self, piece: Bytes) {
        let at = self.length;
        self.length += piece.len();
        if piece.len() < SHORT_BYTES {
            self.tail.extend_from_slice(&piece);
            if self.tail.len() >= SHORT_BYTES {
                self.end_tail(self.length);
            }
            return;
        }
        self.end_tail(at);
        self.runs.push((at, piece));
    }

    /// Makes a run of the short pieces; `end` is where they end.
    fn end_tail(&mut self, end: usize) {
        if !self.tail.is_empty() {
            let tail = std::mem::take(&mut self.tail);
            self.runs.push((end - tail.len(), tail.into()));
        }
    }

    /// The bytes from a place on, as many as lie together and at most `max`; none behind the end.
    pub(crate) fn read(&self, at: usize, max: usize) -> Bytes {
        let tail_at = self.length - self.tail.len();
        if at >= tail_at {
            let rest = self.tail.get(at - tail_at..).unwrap_or_default();
            return Bytes::copy_from_slice(rest.get(..max).unwrap_or(rest));
        }
        let behind = self.runs.partition_point(|(start, _)| *start <= at);
        let Some((start, run)) = behind.checked_sub(1).and_then(|index| self.runs.get(index)) else {
            return Bytes::new();
        };
        let from = at - start;
        run.slice(from..run.len().min(from.saturating_add(max)))
    }

    /// All of it, run by run, each with its place.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let tail = (self.length - self.tail.len(), self.tail.as_slice());
        self.runs.iter().map(|(at, run)| (*at, run.as_ref())).chain([tail])
    }

    /// All of it, as a copy in one piece.
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.length);
        self.runs().for_each(|(_, run)| all.extend_from_slice(run));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_is_read_from_each_place_and_costs_what_it_is_long() {
        let lengths =
            [1, 40, SHORT_BYTES, SHORT_BYTES - 1, 7, 3 * SHORT_BYTES + 5, 0, SHORT_BYTES - 2, 9, 12];
        let (mut gathered, mut all) = (Gathered::default(), Vec::new());
        for (number, length) in lengths.into_iter().enumerate() {
            let piece: Vec<u8> = (0..length).map(|at| (at * 31 + number * 7) as u8).collect();
            all.extend_from_slice(&piece);
            gathered.push(piece.into());
            assert_eq!(gathered.len(), all.len());
            for at in (0..all.len()).step_by(97).chain([all.len().saturating_sub(1)]) {
                let read = gathered.read(at, 100);
                assert!(!read.is_empty() && read.len() <= 100, "{} at {at}", read.len());
                assert_eq!(read, all[at..at + read.len()], "at {at}");
            }
            assert!(gathered.read(all.len(), 100).is_empty());
            assert_eq!(gathered.to_vec(), all);
            assert!(gathered.runs().all(|(at, run)| all[at..].starts_with(run)));
        }
        let mut trickled = Gathered::default();
        (0..10 * SHORT_BYTES).for_each(|_| trickled.push(Bytes::from_static(b"x")));
        assert_eq!((trickled.runs.len(), trickled.len()), (10, 10 * SHORT_BYTES));
    }

    #[test]
    fn long_pieces_are_not_copied() {
        let piece = Bytes::from(vec![b'x'; SHORT_BYTES]);
        let mut gathered = Gathered::default();
        gathered.push(piece.clone());
        assert_eq!(gathered.read(0, usize::MAX).as_ptr(), piece.as_ptr());
    }
}
