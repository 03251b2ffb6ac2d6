//! The files of kept dumps, and the space that dumps leave on the disk.

use crate::dump_error::DumpError;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;

/// On a small disk, dumps leave this part of it free instead of the configured space.
const RESERVE_PART: u64 = 10;
const MANIFEST: &str = "json";

/// The dumps that are kept in a folder. Each has a file and a manifest.
#[derive(Clone, Debug)]
pub(crate) struct KeptDumps {
    folder: PathBuf,
}

/// A dump in the folder, in the order of its time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kept {
    kept_at: SystemTime,
    pub(crate) name: String,
    bytes: u64,
}

/// The space of a disk, in bytes.
#[derive(Clone, Copy, Debug)]
struct DiskSpace {
    free_bytes: u64,
    total_bytes: u64,
}

impl KeptDumps {
    pub(crate) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The file of a dump.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The manifest of a dump.
    pub(crate) fn manifest_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.{MANIFEST}"))
    }

    /// The kept dumps, the oldest first.
    pub(crate) fn list(&self) -> Result<Vec<Kept>, DumpError> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let file_name = entry.file_name().to_string_lossy().into_owned();
            let Some(name) = dump_of(&file_name) else { continue };
            // One that makes room at this moment is not kept.
            let (Ok(file), Ok(manifest)) = (fs::metadata(self.path(name)), entry.metadata()) else {
                continue;
            };
            let kept_at = manifest.modified()?;
            kept.push(Kept { kept_at, name: name.to_owned(), bytes: file.len() });
        }
        kept.sort();
        Ok(kept)
    }

    /// Removes a dump.
    pub(crate) fn remove(&self, name: &str) -> std::io::Result<()> {
        remove_file(&self.manifest_path(name))?;
        remove_file(&self.path(name))
    }

    /// Removes the oldest dumps until the rest is within these limits.
    pub(crate) fn make_room(&self, bytes_max: u64, dumps_max: usize) -> Result<(), DumpError> {
        let kept = self.list()?;
        let (mut bytes, mut count) = (kept.iter().map(|kept| kept.bytes).sum::<u64>(), kept.len());
        for Kept { name, bytes: removed, .. } in &kept {
            if bytes <= bytes_max && count <= dumps_max {
                break;
            }
            self.remove(name)?;
            bytes -= removed;
            count -= 1;
        }
        Ok(())
    }

    /// Removes the oldest dumps until so many bytes can be written and the reserve is left, in bytes.
    ///
    /// # Errors
    ///
    /// [`DumpError::NoSpace`] if no dump is left, or the folder cannot be read.
    fn ensure_space(
        &self,
        needed_bytes: u64,
        reserve_bytes: u64,
        disk: impl Fn(&Path) -> Option<DiskSpace>,
    ) -> Result<(), DumpError> {
        let has_space =
            || disk(&self.folder).map_or(Ok(()), |space| space.check(needed_bytes, reserve_bytes));
        let Err(mut short) = has_space() else { return Ok(()) };
        for Kept { name, .. } in self.list()? {
            self.remove(&name)?;
            match has_space() {
                Ok(()) => return Ok(()),
                Err(error) => short = error,
            }
        }
        Err(short)
    }
}

impl DiskSpace {
    /// That of the disk of a folder; `None` if the file system does not say it.
    fn of(folder: &Path) -> Option<Self> {
        let disk = rustix::fs::statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Some(Self { free_bytes: bytes(disk.f_bavail), total_bytes: bytes(disk.f_blocks) })
    }

    fn check(self, needed_bytes: u64, reserve_bytes: u64) -> Result<(), DumpError> {
        let Self { free_bytes, total_bytes } = self;
        let min_bytes = (total_bytes / RESERVE_PART).min(reserve_bytes).saturating_add(needed_bytes);
        if free_bytes < min_bytes { Err(DumpError::NoSpace { free_bytes, min_bytes }) } else { Ok(()) }
    }
}

/// The folder of a dump that is being written. It disappears with it.
#[derive(Debug)]
pub struct DumpPart {
    folder: TempDir,
    kept: KeptDumps,
    /// The free space that it leaves on the disk, in bytes.
    reserve_bytes: u64,
}

impl DumpPart {
    pub(crate) const fn new(folder: TempDir, kept: KeptDumps, reserve_bytes: u64) -> Self {
        Self { folder, kept, reserve_bytes }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Makes room for so many bytes in place of older dumps.
    ///
    /// # Errors
    ///
    /// [`DumpError::NoSpace`], or the folder cannot be read.
    pub(crate) fn ensure_space(&self, needed_bytes: u64) -> Result<(), DumpError> {
        self.kept.ensure_space(needed_bytes, self.reserve_bytes, DiskSpace::of)
    }

    /// The bytes of its files.
    pub(crate) fn bytes(&self) -> Result<u64, DumpError> {
        let files = fs::read_dir(self.path())?.map(|entry| Ok(entry?.metadata()?.len()));
        Ok(files.sum::<std::io::Result<u64>>()?)
    }
}

/// The name of the dump that this file describes; `None` if it is no manifest.
pub(crate) fn dump_of(file_name: &str) -> Option<&str> {
    file_name.strip_suffix(MANIFEST)?.strip_suffix('.')
}

/// Removes a file. One that is gone is no error.
pub(crate) fn remove_file(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const RESERVE: u64 = 1 << 30;

    #[test]
    fn the_oldest_dumps_are_removed_before_a_disk_is_too_full() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = KeptDumps::new(folder.path().to_owned());
        for name in ["a", "b", "c"] {
            fs::write(kept.path(name), "x").expect("writable");
            fs::write(kept.manifest_path(name), "{}").expect("writable");
        }
        // Each dump counts as 100 MiB of a disk of 2,000 MiB, and 200 MiB of it stay free.
        let disk = |folder: &Path| {
            let used = fs::read_dir(folder).expect("readable").count() as u64 / 2;
            Some(DiskSpace { free_bytes: (400 - used * 100) * MIB, total_bytes: 2_000 * MIB })
        };
        let names = || kept.list().expect("readable").into_iter().map(|kept| kept.name).collect::<Vec<_>>();
        kept.ensure_space(0, RESERVE, |_| Some(DiskSpace { free_bytes: RESERVE, total_bytes: 1 << 50 }))
            .expect("space");
        assert_eq!(names(), ["a", "b", "c"]);
        kept.ensure_space(50 * MIB, RESERVE, disk).expect("two dumps make room");
        assert_eq!(names(), ["c"]);
        let error = kept.ensure_space(201 * MIB, RESERVE, disk).expect_err("too little");
        assert!(matches!(error, DumpError::NoSpace { min_bytes, .. } if min_bytes == 401 * MIB), "{error}");
        assert_eq!(names(), [""; 0]);
        let full = |_: &Path| Some(DiskSpace { free_bytes: RESERVE - 1, total_bytes: 1 << 50 });
        assert!(kept.ensure_space(0, RESERVE, full).is_err());
        kept.ensure_space(0, RESERVE / 2, full).expect("a smaller reserve is left");
    }
}
