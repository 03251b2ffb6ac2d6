//! The size of the quarantine, and which entries make room for others.

use super::entries::QuarantineEntry;

/// The file of a record occupies whole blocks of this many bytes.
const BLOCK_BYTES: u64 = 4096;
/// The bytes of an entry in the index, apart from its identifier and its request.
const ENTRY_BYTES: u64 = 512;

/// The size of the quarantine of one repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuarantineSizes {
    /// The open entries.
    pub open: QuarantineSize,
    /// The resolved entries.
    pub resolved: QuarantineSize,
}

/// The size of some entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuarantineSize {
    /// Their number.
    pub records: u64,
    /// Their bytes on disk.
    pub bytes: u64,
}

impl QuarantineSize {
    /// The size after an entry changed; `None`: there is none.
    #[must_use]
    pub fn after(self, before: Option<&QuarantineEntry>, after: Option<&QuarantineEntry>) -> Self {
        let bytes = |entry: Option<&QuarantineEntry>| entry.map_or(0, QuarantineEntry::disk_bytes);
        Self {
            records: (self.records + u64::from(after.is_some())).saturating_sub(u64::from(before.is_some())),
            bytes: (self.bytes + bytes(after)).saturating_sub(bytes(before)),
        }
    }

    /// The entries that are removed until the size is at most `bytes_max`: of the `resolved` ones, those that were
    /// resolved first. `None` if all of them are not enough.
    pub fn surplus(
        self,
        mut resolved: Vec<(String, QuarantineEntry)>,
        bytes_max: u64,
    ) -> Option<Vec<(String, QuarantineEntry)>> {
        resolved.sort_by(|(_, one), (_, other)| one.changed_at().cmp(other.changed_at()));
        let (mut size, mut count) = (self, 0);
        while size.bytes > bytes_max {
            let (_, entry) = resolved.get(count)?;
            size = size.after(Some(entry), None);
            count += 1;
        }
        resolved.truncate(count);
        Some(resolved)
    }
}

impl QuarantineEntry {
    /// The bytes of the entry and its record on disk.
    pub fn disk_bytes(&self) -> u64 {
        let texts = self.identifier.as_ref().map_or(0, String::len) + self.request.len();
        self.bytes.next_multiple_of(BLOCK_BYTES) + ENTRY_BYTES + texts as u64
    }
}
