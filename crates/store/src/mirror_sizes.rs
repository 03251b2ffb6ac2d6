//! The sizes of the store of the mirror, and the result of its check.

use oaimend_oai::UnixSecs;

/// The size of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectionSize {
    /// The metadataPrefix.
    pub prefix: String,
    /// The number of records that are not deleted.
    pub records: u64,
    /// The number of deleted records.
    pub tombstones: u64,
    /// The number of records that were lost to damage.
    pub damaged: u64,
    /// The number of records whose loss was accepted.
    pub lost: u64,
    /// The bytes of the records on disk, replaced ones included, without indexes.
    pub disk_bytes: u64,
    /// The part of `disk_bytes` that replaced records take, estimated.
    pub dead_bytes: u64,
    /// The stamp of the first record of the list; `None` if the collection is empty.
    pub earliest_stamp_secs: Option<UnixSecs>,
    /// The stamp of the last change; `None` before the first one.
    pub latest_stamp_secs: Option<UnixSecs>,
}

/// The disk space of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// The bytes of all records, replaced ones included.
    pub record_bytes: u64,
    /// The bytes of all indexes.
    pub index_bytes: u64,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// The number of checked records.
    pub records: u64,
    /// The number of damaged records that this check found.
    pub damaged: u64,
}
