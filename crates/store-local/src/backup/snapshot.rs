//! The files of a data folder at one moment, in a folder of their own inside it.

use super::BackupError;
use oaimend_store::Store;
use oaimend_store::save_error::SaveError;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What a backup leaves out: pages that are requested again, the search index, which is built again from the mirror, and
/// what belongs to the running process.
const LEFT_OUT: [&str; 4] = ["cache", "search", "lock", "upgrade"];
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
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(data);
        let folder = folder.map_err(BackupError::file(data))?;
        let mut taken = Ok(());
        store.databases.while_frozen(&mut || taken = copy_folder(data, folder.path(), Place::Root))?;
        taken?;
        let mut files = Vec::new();
        list_files(folder.path(), Path::new(""), &mut files)?;
        files.sort();
        Ok(Self { folder, files })
    }

    /// The folder of the snapshot.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Whether a folder is the data folder itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Inside,
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

fn copy_folder(from: &Path, to: &Path, place: Place) -> Result<(), BackupError> {
    for entry in fs::read_dir(from).map_err(BackupError::file(from))? {
        let entry = entry.map_err(BackupError::file(from))?;
        let (path, name) = (entry.path(), entry.file_name());
        let text = name.to_string_lossy();
        if place == Place::Root && (LEFT_OUT.contains(&&*text) || text.starts_with(PREFIX)) {
            continue;
        }
        let target = to.join(&name);
        // It follows a link, such as one to a bigger disk.
        let kind = match fs::metadata(&path) {
            Ok(metadata) => metadata.file_type(),
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(BackupError::file(&path)(error)),
        };
        if kind.is_dir() {
            fs::create_dir(&target).map_err(BackupError::file(&target))?;
            copy_folder(&path, &target, Place::Inside)?;
        } else if !is_unfinished(&path) {
            copy_file(&path, &target)?;
        }
    }
    Ok(())
}

/// A file that a process has not finished; a killed one leaves it behind, and the next one replaces it.
fn is_unfinished(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "part" || extension == "probe")
}

/// Copies a database, which changes in place. Links another file, which is only appended to or replaced as a whole.
fn copy_file(path: &Path, target: &Path) -> Result<(), BackupError> {
    let is_database = path.extension().is_some_and(|extension| extension == "redb");
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

fn list_files(root: &Path, folder: &Path, files: &mut Vec<(PathBuf, u64)>) -> Result<(), BackupError> {
    let path = root.join(folder);
    for entry in fs::read_dir(&path).map_err(BackupError::file(&path))? {
        let entry = entry.map_err(BackupError::file(&path))?;
        let inside = folder.join(entry.file_name());
        let metadata = entry.metadata().map_err(BackupError::file(&entry.path()))?;
        if metadata.is_dir() {
            list_files(root, &inside, files)?;
        } else {
            files.push((inside, metadata.len()));
        }
    }
    Ok(())
}
