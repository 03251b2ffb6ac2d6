//! Searches for bytes and marks. All of the engine searches through this module.
//!
//! In unit tests it counts the bytes that are read, so that the tests notice work that grows faster than the
//! input. In all other builds it is the crate `memchr` itself.

#[cfg(not(test))]
pub(crate) use memchr::{memchr, memchr_iter, memchr2, memchr2_iter, memmem, memrchr};

#[cfg(test)]
pub(crate) use counted::{memchr, memchr_iter, memchr2, memchr2_iter, memmem, memrchr};

/// Counts bytes that the engine reads without a search, such as those of a lexeme. Does nothing except in unit
/// tests.
#[inline]
pub(crate) fn count_read(bytes: usize) {
    #[cfg(test)]
    counted::count(bytes);
    #[cfg(not(test))]
    let _ = bytes;
}

/// Returns the bytes that this thread has read in searches and lexemes.
#[cfg(test)]
pub(crate) fn bytes_read() -> u64 {
    counted::READ.get()
}

/// The first `byte` of `text` at or after `from` for which `accepts` returns true. For a byte that occurs
/// often, such as `<`, this is faster than one search for each occurrence.
pub(crate) fn find_frequent(
    byte: u8,
    text: &[u8],
    from: usize,
    accepts: impl FnMut(usize) -> bool,
) -> Option<usize> {
    let found = find_in_steps(byte, text, from, accepts);
    count_read(found.map_or(text.len(), |at| at + 1).saturating_sub(from));
    found
}

fn find_in_steps(
    byte: u8,
    text: &[u8],
    from: usize,
    mut accepts: impl FnMut(usize) -> bool,
) -> Option<usize> {
    const STEP: usize = 64;
    let (steps, rest) = text.get(from..)?.as_chunks::<STEP>();
    for (start, step) in (from..).step_by(STEP).zip(steps) {
        let mut found = bits_of(byte, step);
        while found != 0 {
            let at = start + found.trailing_zeros() as usize;
            if accepts(at) {
                return Some(at);
            }
            found &= found - 1;
        }
    }
    let start = text.len() - rest.len();
    rest.iter().zip(start..).find(|&(&other, at)| other == byte && accepts(at)).map(|(_, at)| at)
}

/// One bit for each place of `byte`. The loops have no branches, so they become vector instructions.
#[inline]
fn bits_of(byte: u8, text: &[u8; 64]) -> u64 {
    let is_equal = text.map(|other| u8::from(other == byte));
    let (words, _) = is_equal.as_chunks::<8>();
    // The product has the lowest bits of the eight bytes in its highest byte.
    let gather = |word: &[u8; 8]| u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    words.iter().rev().fold(0, |bits, word| bits << 8 | gather(word))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test may panic")]
    use super::find_frequent;
    use crate::random;

    #[test]
    fn a_frequent_byte_is_found_everywhere() {
        let seed = 0x5EED_0004_u64;
        let mut random = random(seed);
        for _ in 0..2_000 {
            let text: Vec<u8> = (0..random(300)).map(|_| [b'<', b'a', 0x80, 0xFF][random(4)]).collect();
            let (from, least) = (random(text.len() + 2), random(text.len() + 1));
            let expected = (from.max(least)..text.len()).find(|&at| text.get(at) == Some(&b'<'));
            assert_eq!(
                find_frequent(b'<', &text, from, |at| at >= least),
                expected,
                "seed {seed:#x}: {text:?}"
            );
        }
    }
}

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    thread_local! {
        pub(super) static READ: Cell<u64> = const { Cell::new(0) };
    }

    /// The cost of a search that reads nothing, in bytes.
    const CALL: usize = 1;

    pub(super) fn count(bytes: usize) {
        READ.set(READ.get() + (bytes + CALL) as u64);
    }

    /// Counts the bytes up to a result, or all of them.
    fn counting(found: Option<usize>, len: usize) -> Option<usize> {
        count(found.map_or(len, |at| at + 1));
        found
    }

    fn counting_backwards(found: Option<usize>, len: usize) -> Option<usize> {
        count(found.map_or(len, |at| len - at));
        found
    }

    pub(crate) fn memchr(one: u8, text: &[u8]) -> Option<usize> {
        counting(::memchr::memchr(one, text), text.len())
    }

    pub(crate) fn memchr2(one: u8, two: u8, text: &[u8]) -> Option<usize> {
        counting(::memchr::memchr2(one, two, text), text.len())
    }

    pub(crate) fn memrchr(one: u8, text: &[u8]) -> Option<usize> {
        counting_backwards(::memchr::memrchr(one, text), text.len())
    }

    pub(crate) fn memchr_iter(one: u8, text: &[u8]) -> impl Iterator<Item = usize> {
        results(text.len(), ::memchr::memchr_iter(one, text))
    }

    pub(crate) fn memchr2_iter(one: u8, two: u8, text: &[u8]) -> impl Iterator<Item = usize> {
        results(text.len(), ::memchr::memchr2_iter(one, two, text))
    }

    /// Counts the bytes up to each result as it is taken, and the rest at the end.
    fn results(len: usize, mut found: impl Iterator<Item = usize>) -> impl Iterator<Item = usize> {
        let mut counted = 0;
        std::iter::from_fn(move || {
            let next = found.next();
            let read = next.map_or(len, |at| at + 1);
            count(read.saturating_sub(counted));
            counted = counted.max(read);
            next
        })
    }

    pub(crate) mod memmem {
        use crate::lex::search::counted::{counting, counting_backwards, results};

        pub(crate) fn find(text: &[u8], mark: &[u8]) -> Option<usize> {
            counting(::memchr::memmem::find(text, mark), text.len())
        }

        pub(crate) fn rfind(text: &[u8], mark: &[u8]) -> Option<usize> {
            counting_backwards(::memchr::memmem::rfind(text, mark), text.len())
        }

        pub(crate) fn find_iter<'t, M: AsRef<[u8]> + ?Sized>(
            text: &'t [u8],
            mark: &'t M,
        ) -> impl Iterator<Item = usize> + use<'t, M> {
            results(text.len(), ::memchr::memmem::find_iter(text, mark))
        }
    }
}
