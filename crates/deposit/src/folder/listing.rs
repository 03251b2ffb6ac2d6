//! The files of a folder at one time, and what follows from two looks at it.

use super::state::{FileStamp, FolderPlace, FolderState};
use std::collections::{BTreeMap, BTreeSet};

/// The files of a folder at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderListing {
    /// The folder.
    pub place: FolderPlace,
    /// The files of known kinds by their paths below the folder.
    pub files: BTreeMap<String, FileStamp>,
    /// The paths that could not be read, so that the files below them are unknown. An empty path is the folder itself.
    pub unread: Vec<String>,
    /// The paths that are not published, with the reason.
    pub left_out: BTreeMap<String, String>,
    /// The subfolders that are on other devices than the folder, or at which something is mounted.
    pub mounts: BTreeSet<String>,
}

/// What a look at a folder finds to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderWork {
    /// The new and changed files, in the order of their paths.
    pub read: Vec<String>,
    /// The files that do not exist any more.
    pub gone: Vec<String>,
    /// Whether nothing is left for the next look.
    pub is_settled: bool,
}

/// A folder without files, which were there before. Nothing is deleted, because its disk may not be mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has no files any more, so nothing is deleted; check whether its disk is mounted")]
pub struct EmptyFolder;

impl FolderListing {
    /// Decides what to do after this look. `before` is the previous look, at least half a second ago.
    ///
    /// # Errors
    ///
    /// The folder has no files, although it had some.
    pub fn work(&self, state: &FolderState, before: Option<&Self>) -> Result<FolderWork, EmptyFolder> {
        if self.files.is_empty() && state.files.keys().any(|path| self.is_absent(path)) {
            return Err(EmptyFolder);
        }
        let before = before.filter(|before| before.place == self.place);
        let mut work = FolderWork { is_settled: true, ..FolderWork::default() };
        for (path, stamp) in &self.files {
            if state.files.get(path).is_some_and(|file| file.stamp == Some(*stamp)) {
                continue;
            }
            // A file that is being written has another length or time at the next look.
            if before.is_some_and(|before| before.files.get(path) == Some(stamp)) {
                work.read.push(path.clone());
            } else {
                work.is_settled = false;
            }
        }
        for path in state.files.keys().filter(|path| self.is_absent(path)) {
            // The new name of a renamed file is known by then.
            if before.is_some_and(|before| before.is_absent(path)) {
                work.gone.push(path.clone());
            } else {
                work.is_settled = false;
            }
        }
        Ok(work)
    }

    /// Leaves a mounted subfolder unread if its files were published and it has none now, because its disk may not be mounted.
    pub fn keep_emptied_mounts(&mut self, state: &FolderState) {
        for mount in &state.mounts {
            if has_below(&state.files, mount) && !has_below(&self.files, mount) {
                self.mounts.insert(mount.clone());
                self.unread.push(mount.clone());
                let reason = "it was a mounted disk and has no files any more, so nothing is deleted; mount it, or leave a file \
                              in it";
                self.left_out.insert(mount.clone(), reason.to_owned());
            }
        }
    }

    /// The number of files whose current version is not published yet, or whose removal is not.
    pub fn waiting(&self, state: &FolderState) -> usize {
        let is_read = |path: &String, stamp: &FileStamp| {
            state.files.get(path).is_some_and(|file| file.stamp == Some(*stamp))
        };
        let unread = self.files.iter().filter(|(path, stamp)| !is_read(path, stamp)).count();
        unread + state.files.keys().filter(|path| self.is_absent(path)).count()
    }

    /// Whether there is certainly no such file.
    fn is_absent(&self, path: &str) -> bool {
        let is_below = |folder: &String| {
            folder.is_empty()
                || path
                    .strip_prefix(folder.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        !self.files.contains_key(path) && !self.unread.iter().any(is_below)
    }
}

/// Whether a subfolder has any of these files.
fn has_below<T>(files: &BTreeMap<String, T>, subfolder: &str) -> bool {
    let start = format!("{subfolder}/");
    files.range(start.clone()..).next().is_some_and(|(path, _)| path.starts_with(&start))
}
