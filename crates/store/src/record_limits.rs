//! What a store of the mirror takes.

use super::mirror::{MirrorError, NewRecord};
use oaimend_oai::UnixSecs;
use std::path::Path;

/// Maximum size of one record, in bytes.
pub(crate) const RECORD_BYTES_MAX: usize = 256 << 20;
/// Maximum size of an identifier, in bytes.
pub const IDENTIFIER_BYTES_MAX: usize = 16 << 10;
/// Datestamps and stamps are less than this number of seconds from 1970. Keys have 40 bits for them: 17,000 years
/// before and after.
pub const TIME_BIAS: i64 = 1 << 39;
/// Free space that harvested records leave on the disk, in bytes. The rest of the data folder needs it: the quarantine,
/// the ledger, and the index, which is copied where it changes.
const FREE_BYTES_MIN: u64 = 64 << 20;

/// Checks that the store takes a record. A commit with a record that does not fit stores nothing.
///
/// # Errors
///
/// [`MirrorError::TooLarge`] names the value that exceeds its limit.
pub fn check_record(record: &NewRecord) -> Result<(), MirrorError> {
    check_size("an identifier", record.identifier.len(), IDENTIFIER_BYTES_MAX)?;
    check_size("a record", record.bytes.len(), RECORD_BYTES_MAX)
}

/// Checks one size, in bytes; `what` names the value.
///
/// # Errors
///
/// [`MirrorError::TooLarge`].
pub fn check_size(what: &'static str, bytes: usize, max: usize) -> Result<(), MirrorError> {
    if bytes > max { Err(MirrorError::TooLarge { what, bytes, max }) } else { Ok(()) }
}

/// The time that a store keeps in place of this one.
pub fn clamp_time(secs: UnixSecs) -> UnixSecs {
    secs.clamp(UnixSecs(-TIME_BIAS), UnixSecs(TIME_BIAS - 1))
}

/// Fails if the disk of a folder is almost full.
///
/// # Errors
///
/// [`MirrorError::NoSpace`].
pub fn check_free_space(folder: &Path) -> Result<(), MirrorError> {
    free_space(folder).map_or(Ok(()), |free_bytes| check_free_bytes(folder, free_bytes))
}

/// The bytes that this process may still write to the disk of a folder. `None`: the file system does not say it.
pub fn free_space(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

fn check_free_bytes(folder: &Path, free_bytes: u64) -> Result<(), MirrorError> {
    let (path, min_bytes) = (folder.display().to_string(), FREE_BYTES_MIN);
    if free_bytes < min_bytes { Err(MirrorError::NoSpace { path, free_bytes, min_bytes }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_not_stored_on_an_almost_full_disk() {
        let check = |free_bytes| check_free_bytes(Path::new("data/mirror"), free_bytes);
        assert!(check(FREE_BYTES_MIN).is_ok());
        let error = check(FREE_BYTES_MIN - 1).expect_err("too little").to_string();
        assert!(error.starts_with("data/mirror has 63 MiB of free space, and the mirror stores"), "{error}");
    }
}
