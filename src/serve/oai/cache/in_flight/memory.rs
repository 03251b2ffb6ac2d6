//! The memory that all pages in flight share.
//!
//! Harvesters that read slowly would hold a MiB each, so the sum is limited.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory of all pages in flight.
#[derive(Clone, Debug, Default)]
pub(in crate::serve::oai::cache) struct SharedMemory {
    /// In bytes.
    used: Arc<AtomicU64>,
}

/// The part of it that one page uses. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct MemoryShare {
    all: SharedMemory,
    bytes: u64,
}

impl SharedMemory {
    pub(super) fn share(&self) -> MemoryShare {
        MemoryShare { all: self.clone(), bytes: 0 }
    }
}

impl MemoryShare {
    /// Takes more memory, in bytes. False if not enough is left.
    pub(super) fn grow(&mut self, count: u64) -> bool {
        let used = self.all.used.fetch_add(count, Ordering::Relaxed) + count;
        if used > IN_FLIGHT_BYTES_MAX {
            self.all.used.fetch_sub(count, Ordering::Relaxed);
            return false;
        }
        self.bytes += count;
        true
    }

    /// Gives all of it back.
    pub(super) fn release(&mut self) {
        self.all.used.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.release();
    }
}

/// Maximum number of bytes in memory of all pages in flight. Further pages are in files. Rings are not counted: each is
/// a page that is too long, or of a full disk.
pub(in crate::serve::oai::cache) const IN_FLIGHT_BYTES_MAX: u64 = 16 << 20;
