//! Lists and reads the files of a folder. No symlink below the folder is followed.

use oaimend_deposit::{FileKind, FileStamp, FolderListing, FolderPlace};
use oaimend_oai::set_spec;
use rustix::fs::{Mode, OFlags, open, openat};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// Maximum number of files of a folder.
const FILES_MAX: usize = 1_000_000;
/// Maximum depth of subfolders.
const DEPTH_MAX: usize = 8;
/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Why a file was not read.
#[derive(Debug)]
pub(super) enum ReadError {
    /// It is another version now, or it is gone; the next look says more.
    Changed,
    /// It cannot be read; the text says why.
    Refused(String),
}

/// Lists the files of a folder.
///
/// # Errors
///
/// The folder cannot be read, or it was replaced meanwhile.
pub(super) fn list(folder: &Path) -> io::Result<FolderListing> {
    let place = place_of(folder)?;
    let mut listing = FolderListing {
        place,
        files: BTreeMap::new(),
        unread: Vec::new(),
        left_out: BTreeMap::new(),
        mounts: BTreeSet::new(),
    };
    let mut entries = WalkDir::new(folder).into_iter();
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.depth() == 0 => return Err(error.into()),
            Err(error) => {
                note_unread(&mut listing, folder, &error);
                continue;
            }
        };
        if entry.depth() == 0 {
            continue;
        }
        let is_folder = entry.file_type().is_dir();
        if !see(&mut listing, folder, &entry) && is_folder {
            entries.skip_current_dir();
        }
    }
    if place_of(folder)? != place {
        return Err(io::Error::other("it was replaced while it was read"));
    }
    Ok(listing)
}

fn place_of(folder: &Path) -> io::Result<FolderPlace> {
    let meta = std::fs::metadata(folder)?;
    if !meta.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(FolderPlace { device: meta.dev(), inode: meta.ino() })
}

fn note_unread(listing: &mut FolderListing, folder: &Path, error: &walkdir::Error) {
    let is_gone = error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound);
    let below = error.path().and_then(|path| path.strip_prefix(folder).ok());
    let below = below.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    if !is_gone {
        listing.left_out.insert(below.clone(), format!("it cannot be read: {error}"));
    }
    listing.unread.push(below);
}

/// Notes a path, and returns whether the folder at it is listed too.
fn see(listing: &mut FolderListing, folder: &Path, entry: &DirEntry) -> bool {
    if entry.file_name().as_encoded_bytes().starts_with(b".") {
        return false;
    }
    let below = entry.path().strip_prefix(folder).unwrap_or(entry.path());
    let (file_type, kind) = (entry.file_type(), FileKind::of(below));
    let Some(path) = below.to_str() else {
        if file_type.is_dir() || kind.is_some() {
            let reason = "its name is not UTF-8; rename it".to_owned();
            listing.left_out.insert(below.to_string_lossy().into_owned(), reason);
        }
        return false;
    };
    let mut leave_out = |reason: String| {
        listing.left_out.insert(path.to_owned(), reason);
        false
    };
    if file_type.is_symlink() {
        // It may be in place of a subfolder whose records are published.
        listing.unread.push(path.to_owned());
        return leave_out(
            "it is a symlink, which is not followed; copy or mount what it leads to".to_owned(),
        );
    }
    if file_type.is_dir() {
        return if entry.depth() > DEPTH_MAX {
            leave_out(format!("it is deeper than {DEPTH_MAX} subfolders"))
        } else if set_of(path).is_none() {
            leave_out("it is no set; expected letters, digits and -_.!~*'() in its name".to_owned())
        } else {
            note_mount(listing, folder, entry)
        };
    }
    if kind.is_none() || !file_type.is_file() {
        return false;
    }
    if listing.files.len() >= FILES_MAX {
        // Which files are past the limit is by chance, so none counts as gone.
        listing.unread.push(String::new());
        listing.left_out.insert(String::new(), format!("it has more than {FILES_MAX} files; divide it"));
        return false;
    }
    match entry.metadata() {
        Ok(meta) => drop(listing.files.insert(path.to_owned(), stamp_of(&meta))),
        Err(error) => note_unread(listing, folder, &error),
    }
    false
}

/// Notes a subfolder that is on another device or at which something is mounted, and returns whether it is listed.
fn note_mount(listing: &mut FolderListing, folder: &Path, entry: &DirEntry) -> bool {
    match entry.metadata() {
        Ok(meta) if meta.dev() != listing.place.device || is_mount_root(entry.path()) => {
            let below = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            listing.mounts.insert(below.to_string_lossy().into_owned());
            true
        }
        Ok(_) => true,
        Err(error) => {
            note_unread(listing, folder, &error);
            false
        }
    }
}

/// Whether something is mounted at a folder, also another folder of the same disk (`mount --bind`). Kernels before Linux 5.8
/// do not say it.
#[cfg(target_os = "linux")]
fn is_mount_root(folder: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    let found = statx(CWD, folder, AtFlags::NO_AUTOMOUNT | AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(not(target_os = "linux"))]
const fn is_mount_root(_folder: &Path) -> bool {
    false
}

/// The setSpec of a subfolder; `None` if it is not legal.
fn set_of(subfolder: &str) -> Option<String> {
    let set = subfolder.replace('/', ":");
    (!subfolder.contains(':') && set_spec::read(set.as_bytes()).is_some()).then_some(set)
}

/// The set of the file at this path: its subfolders.
pub(super) fn sets_of_file(path: &str) -> Vec<String> {
    path.rsplit_once('/').and_then(|(subfolder, _)| set_of(subfolder)).into_iter().collect()
}

fn stamp_of(meta: &Metadata) -> FileStamp {
    FileStamp {
        modified_secs: meta.mtime(),
        modified_nanos: meta.mtime_nsec(),
        bytes: meta.len(),
        inode: meta.ino(),
    }
}

/// Reads this version of a file.
///
/// # Errors
///
/// It is another version, too long, or cannot be read.
pub(super) fn read(folder: &Path, path: &str, stamp: FileStamp) -> Result<Vec<u8>, ReadError> {
    if stamp.bytes > FILE_BYTES_MAX {
        let text = format!("it has {} bytes, and {FILE_BYTES_MAX} are allowed; divide it", stamp.bytes);
        return Err(ReadError::Refused(text));
    }
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => ReadError::Changed,
        _ => ReadError::Refused(format!("it cannot be read: {error}")),
    };
    let file = open_below(folder, path).map_err(refused)?;
    let version = |file: &File| file.metadata().map(|meta| meta.is_file().then(|| stamp_of(&meta)));
    let before = version(&file).map_err(refused)?;
    if before != Some(stamp) {
        return Err(ReadError::Changed);
    }
    let mut content = Vec::new();
    (&file).take(FILE_BYTES_MAX).read_to_end(&mut content).map_err(refused)?;
    if version(&file).map_err(refused)? != before || content.len() as u64 != stamp.bytes {
        return Err(ReadError::Changed);
    }
    Ok(content)
}

/// Opens a file below a folder. A path that was replaced by a symlink meanwhile is an error.
fn open_below(folder: &Path, path: &str) -> io::Result<File> {
    let subfolder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = open(folder, subfolder, Mode::empty())?;
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        // A pipe in place of the file does not block.
        let file = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = if parts.peek().is_some() { subfolder } else { file };
        at = openat(&at, part, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(File::from(at))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_at_which_something_is_mounted_is_a_mount_root() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(is_mount_root(Path::new("/proc")));
        for other in [folder.path(), Path::new("/proc/self"), Path::new("/there/is/no/such/folder")] {
            assert!(!is_mount_root(other), "{}", other.display());
        }
    }
}
