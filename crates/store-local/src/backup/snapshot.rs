//! The files of a data folder at one moment, in a folder of their own inside it.

use super::BackupError;
use super::space::{BackupSize, check_space};
use oaimend_store::Store;
use oaimend_store::save_error::SaveError;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The folder of file systems for what a check of the disk has found, at the root of each.
pub(super) const LOST_FOUND: &str = "lost+found";
/// What a backup leaves out: pages that are requested again, the search index, which is built again from the mirror, and
/// what belongs to the running process. The dumps are left out with the id of the store: a restored store has another one,
/// so that nobody continues after changes that it has lost.
const LEFT_OUT: [&str; 6] = ["cache", "dumps", "search", "lock", "upgrade", LOST_FOUND];
/// The beginning of the names of snapshots.
const PREFIX: &str = ".oaimend-snapshot-";

/// The files of a data folder at one moment. Dropping it removes its folder.
pub(super) struct Snapshot {
    folder: TempDir,
    /// The files in order, relative to the folder, each with its bytes.
    pub(super) files: Vec<(PathBuf, u64)>,
}

impl Snapshot {
    /// Copies the databases, and links all other files.
    pub(super) fn take(store: &Store) -> Result<Self, BackupError> {
        let data = &store.data_folder().ok_or(SaveError::Closed)?;
        check_space(data, size_of(data)?.copied_bytes)?;
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(data);
        let folder = folder.map_err(BackupError::file(data))?;
        let mut taken = Ok(());
        store.databases.while_frozen(&mut || taken = copy_folder(data, folder.path()))?;
        taken?;
        let mut files = Vec::new();
        walk(folder.path(), Path::new(""), &mut |found| {
            if let Found::File(path, bytes) = found {
                files.push((path, bytes));
            }
            Ok(())
        })?;
        files.sort();
        Ok(Self { folder, files })
    }

    /// The folder of the snapshot.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The space that a backup of the data folder needs now.
///
/// # Errors
///
/// The store is closed, or the folder cannot be read.
pub fn backup_size(store: &Store) -> Result<BackupSize, BackupError> {
    size_of(&store.data_folder().ok_or(SaveError::Closed)?)
}

fn size_of(data: &Path) -> Result<BackupSize, BackupError> {
    let mut size = BackupSize::default();
    walk(data, Path::new(""), &mut |found| {
        if let Found::File(path, bytes) = found {
            size.add(bytes, is_database(&path));
        }
        Ok(())
    })?;
    Ok(size)
}

/// What belongs to a backup, relative to the data folder. A folder comes before its content.
enum Found {
    Folder(PathBuf),
    /// A file with its bytes.
    File(PathBuf, u64),
}

/// Removes the snapshots of a process that was killed, when its folder is opened again.
pub(crate) fn remove_snapshots(data: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(data)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            match fs::remove_dir_all(entry.path()) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), BackupError> {
    walk(from, Path::new(""), &mut |found| match found {
        Found::Folder(path) => {
            let target = to.join(path);
            fs::create_dir(&target).map_err(BackupError::file(&target))
        }
        Found::File(path, _) => copy_file(&from.join(&path), &to.join(&path)),
    })
}

/// Visits what is in `folder`, relative to the data folder.
fn walk(
    data: &Path,
    folder: &Path,
    visit: &mut dyn FnMut(Found) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let from = data.join(folder);
    for entry in fs::read_dir(&from).map_err(BackupError::file(&from))? {
        let name = entry.map_err(BackupError::file(&from))?.file_name();
        let (path, text) = (folder.join(&name), name.to_string_lossy());
        let is_root = folder.as_os_str().is_empty();
        if is_root && (LEFT_OUT.contains(&&*text) || text.starts_with(PREFIX)) {
            continue;
        }
        // It follows a link, such as one to a bigger disk.
        let metadata = match fs::metadata(data.join(&path)) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(BackupError::file(&data.join(&path))(error)),
        };
        if metadata.is_dir() {
            visit(Found::Folder(path.clone()))?;
            walk(data, &path, visit)?;
        } else if !is_unfinished(&path) {
            visit(Found::File(path, metadata.len()))?;
        }
    }
    Ok(())
}

/// A file that a process has not finished; a killed one leaves it behind, and the next one replaces it.
fn is_unfinished(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "part" || extension == "probe")
}

fn is_database(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "redb")
}

/// Copies a database, which changes in place. Links another file, which is only appended to or replaced as a whole.
fn copy_file(path: &Path, target: &Path) -> Result<(), BackupError> {
    let is_database = is_database(path);
    let copied = if is_database { fs::copy(path, target).map(drop) } else { link_or_copy(path, target) };
    match copied {
        // A file that a store has removed meanwhile is not in its database any more.
        Err(error) if error.kind() == ErrorKind::NotFound && !is_database => Ok(()),
        copied => copied.map_err(BackupError::file(path)),
    }
}

/// Not every file system has links.
fn link_or_copy(path: &Path, target: &Path) -> std::io::Result<()> {
    match fs::hard_link(path, target) {
        Err(error) if error.kind() != ErrorKind::NotFound => fs::copy(path, target).map(drop),
        linked => linked,
    }
}
