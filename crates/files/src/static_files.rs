//! The files of static repositories, one for each repository.
//!
//! `data/static/<repository>/<version>.xml` is the text of the current version. `about.json` beside it names that
//! version and its origin. A new version replaces the old one atomically: a process that is killed meanwhile leaves
//! one or the other.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// All static files. Clones share them.
#[derive(Clone, Debug)]
pub struct StaticFiles(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Whether another process has the folder. Locked while a new version is put in place.
    is_closed: RwLock<bool>,
}

/// The description of a static file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticFileInfo {
    /// The URL of the original file.
    pub source: String,
    /// The name of the version; letters and digits.
    pub version: String,
    /// Identifies the state of the original file.
    pub stamp: FileStamp,
}

/// Distinguishes one state of a file from another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// `ETag` of its response.
    pub etag: Option<String>,
    /// `Last-Modified` of its response.
    pub last_modified: Option<String>,
    /// For a local file: modification time in nanoseconds since 1970, and length in bytes.
    pub modified_nanos_and_bytes: Option<(u64, u64)>,
}

/// A version that is being written. Dropping it before [`NewStaticFile::commit`] removes it.
#[derive(Debug)]
pub struct NewStaticFile {
    static_files: StaticFiles,
    folder: PathBuf,
    path: PathBuf,
}

impl StaticFiles {
    /// The static files of a data folder. Folders are created with the first file.
    pub fn new(data: &Path) -> Self {
        Self(Arc::new(Folder { path: data.join("static"), is_closed: RwLock::new(false) }))
    }

    /// Stops replacing and removing files, because another process has the folder. Open files stay readable. Waits
    /// for a version that is being put in place.
    pub fn close(&self) {
        *self.0.is_closed.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// The file of a repository, if there is one. Blocks on the disk.
    pub fn find(&self, repository: &str) -> Option<(File, StaticFileInfo)> {
        let folder = self.0.path.join(repository);
        let about = std::fs::read(folder.join(ABOUT)).ok()?;
        let about: StaticFileInfo = serde_json::from_slice(&about).ok()?;
        let file = File::open(folder.join(name_of(&about.version))).ok()?;
        Some((file, about))
    }

    /// Starts a new version. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// The file cannot be created.
    pub fn start(&self, repository: &str) -> io::Result<(NewStaticFile, File)> {
        let folder = self.0.path.join(repository);
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{:016x}.{PART}", fastrand::u64(..)));
        let file = File::options().create_new(true).read(true).write(true).open(&path)?;
        Ok((NewStaticFile { static_files: self.clone(), folder, path }, file))
    }
}

impl NewStaticFile {
    /// Replaces the old version. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// The files cannot be written; the old version stays then.
    pub fn commit(self, about: &StaticFileInfo) -> io::Result<()> {
        let is_closed = self.static_files.0.is_closed.read().unwrap_or_else(PoisonError::into_inner);
        if *is_closed {
            return Ok(());
        }
        let name = name_of(&about.version);
        std::fs::rename(&self.path, self.folder.join(&name))?;
        self.write_about(about)?;
        for entry in std::fs::read_dir(&self.folder)?.flatten() {
            let path = entry.path();
            // A reader of an old version has it open.
            if path.file_name().is_some_and(|other| *other != *name && *other != *ABOUT) {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Discards the new version, which is identical to the current one, and updates the description.
    ///
    /// # Errors
    ///
    /// The description cannot be written.
    pub fn discard_as_unchanged(self, about: &StaticFileInfo) -> io::Result<()> {
        let is_closed = self.static_files.0.is_closed.read().unwrap_or_else(PoisonError::into_inner);
        if *is_closed { Ok(()) } else { self.write_about(about) }
    }

    fn write_about(&self, about: &StaticFileInfo) -> io::Result<()> {
        let json = serde_json::to_vec_pretty(about).map_err(io::Error::other)?;
        let unfinished = self.path.with_extension("json");
        std::fs::write(&unfinished, json)?;
        std::fs::rename(&unfinished, self.folder.join(ABOUT))
    }
}

impl Drop for NewStaticFile {
    fn drop(&mut self) {
        // It is renamed already if it was committed. If it cannot be removed, the next commit removes it.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn name_of(version: &str) -> String {
    format!("{version}.xml")
}

const ABOUT: &str = "about.json";
const PART: &str = "part";

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    fn files(data: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(data.join("static/x")).expect("it was created");
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_version_replaces_the_old_one_and_no_other_file_remains() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let static_files = StaticFiles::new(data.path());
        assert!(static_files.find("x").is_none());
        let about =
            |version: &str| StaticFileInfo { version: version.to_owned(), ..StaticFileInfo::default() };
        for version in ["1", "2"] {
            let (new, mut file) = static_files.start("x").expect("writable");
            file.write_all(version.as_bytes()).expect("writable");
            new.commit(&about(version)).expect("writable");
        }
        let (mut file, known) = static_files.find("x").expect("it was committed");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("readable");
        assert_eq!((text.as_str(), known), ("2", about("2")));
        assert_eq!(files(data.path()), ["2.xml", "about.json"]);
        drop(static_files.start("x").expect("writable"));
        // Another process has the folder now, and writes a version of its own.
        let old = StaticFiles::new(data.path());
        let (late, _) = old.start("x").expect("writable");
        let (known, _) = old.start("x").expect("writable");
        let (other, _) = static_files.start("x").expect("writable");
        old.close();
        late.commit(&about("1")).expect("nothing is written");
        known.discard_as_unchanged(&about("1")).expect("nothing is written");
        other.commit(&about("2")).expect("the folder is still open");
        let (new, _) = static_files.start("x").expect("writable");
        new.discard_as_unchanged(&StaticFileInfo { source: "other".to_owned(), ..about("2") })
            .expect("writable");
        assert_eq!(files(data.path()), ["2.xml", "about.json"]);
        assert_eq!(static_files.find("x").expect("it exists").1.source, "other");
    }
}
