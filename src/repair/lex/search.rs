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
        use crate::repair::lex::search::counted::{counting, counting_backwards, results};

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
