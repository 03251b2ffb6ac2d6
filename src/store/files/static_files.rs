//! Our copies of static repository files, one a repository.
//!
//! `data/static/<repository>/<version>.xml` is the text of the version that is in force, and
//! `about.json` beside it says which that is and what it was made of. A version takes the place
//! of the one before in one step: whoever is killed meanwhile leaves the one or the other.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// All copies. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct StaticFiles(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Whether the folder is another process's; held while a copy takes its place.
    is_closed: RwLock<bool>,
}

/// What is known of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticFileInfo {
    /// The file it was made of: its URL.
    pub source: String,
    /// What its version is known by; letters and digits.
    pub version: String,
    /// What tells whether the file has changed since.
    pub stamp: FileStamp,
}

/// What tells one state of a file from another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// `ETag` of its answer.
    pub etag: Option<String>,
    /// `Last-Modified` of its answer.
    pub last_modified: Option<String>,
    /// Of a file of this machine: modification time in nanoseconds since 1970, and length in bytes.
    pub modified_nanos_and_bytes: Option<(u64, u64)>,
}

/// A copy that is being written. Dropped before it is kept, it is gone.
#[derive(Debug)]
pub struct NewStaticFile {
    static_files: StaticFiles,
    folder: PathBuf,
    path: PathBuf,
}

impl StaticFiles {
    /// Those in a data folder; folders are made with the first copy.
    pub fn of(data: &Path) -> Self {
        Self(Arc::new(Folder { path: data.join("static"), is_closed: RwLock::new(false) }))
    }

    /// Puts no copy in its place from now on, and removes none: the folder is another process's. What is
    /// read of a copy goes on being read. Waits for one that is taking its place.
    pub(in crate::store) fn close(&self) {
        *self.0.is_closed.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// The copy of a repository's file, if there is one. Blocks on the disk.
    pub fn find(&self, repository: &str) -> Option<(File, StaticFileInfo)> {
        let folder = self.0.path.join(repository);
        let about = std::fs::read(folder.join(ABOUT)).ok()?;
        let about: StaticFileInfo = serde_json::from_slice(&about).ok()?;
        let file = File::open(folder.join(name_of(&about.version))).ok()?;
        Some((file, about))
    }

    /// Begins a new copy. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// The disk says no.
    pub fn begin(&self, repository: &str) -> io::Result<(NewStaticFile, File)> {
        let folder = self.0.path.join(repository);
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{:016x}.{PART}", fastrand::u64(..)));
        let file = File::options().create_new(true).read(true).write(true).open(&path)?;
        Ok((NewStaticFile { static_files: self.clone(), folder, path }, file))
    }
}

impl NewStaticFile {
    /// Puts it in the place of the copy before. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// The disk says no; the copy before stays then.
    pub fn keep(self, about: &StaticFileInfo) -> io::Result<()> {
        let is_closed = self.static_files.0.is_closed.read().unwrap_or_else(PoisonError::into_inner);
        if *is_closed {
            return Ok(());
        }
        let name = name_of(&about.version);
        std::fs::rename(&self.path, self.folder.join(&name))?;
        self.write_about(about)?;
        for entry in std::fs::read_dir(&self.folder)?.flatten() {
            let path = entry.path();
            // Who reads an old version has it open.
            if path.file_name().is_some_and(|other| *other != *name && *other != *ABOUT) {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Throws it away, since it is the copy that is there already, and notes what it was made of.
    ///
    /// # Errors
    ///
    /// The disk says no.
    pub fn is_known(self, about: &StaticFileInfo) -> io::Result<()> {
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
        // It is gone already where it was kept; what cannot be removed goes with the next copy.
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
        let entries = std::fs::read_dir(data.join("static/x")).expect("it was made");
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_copy_takes_the_place_of_the_one_before_and_leaves_nothing() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let static_files = StaticFiles::of(data.path());
        assert!(static_files.find("x").is_none());
        let about =
            |version: &str| StaticFileInfo { version: version.to_owned(), ..StaticFileInfo::default() };
        for version in ["1", "2"] {
            let (making, mut file) = static_files.begin("x").expect("writable");
            file.write_all(version.as_bytes()).expect("writable");
            making.keep(&about(version)).expect("writable");
        }
        let (mut file, known) = static_files.find("x").expect("it was kept");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("readable");
        assert_eq!((text.as_str(), known), ("2", about("2")));
        assert_eq!(files(data.path()), ["2.xml", "about.json"]);
        drop(static_files.begin("x").expect("writable"));
        // Another process has the folder now, and writes a copy of its own.
        let old = StaticFiles::of(data.path());
        let (late, _) = old.begin("x").expect("writable");
        let (known, _) = old.begin("x").expect("writable");
        let (other, _) = static_files.begin("x").expect("writable");
        old.close();
        late.keep(&about("1")).expect("nothing is written");
        known.is_known(&about("1")).expect("nothing is written");
        other.keep(&about("2")).expect("it is still there");
        let (making, _) = static_files.begin("x").expect("writable");
        making.is_known(&StaticFileInfo { source: "other".to_owned(), ..about("2") }).expect("writable");
        assert_eq!(files(data.path()), ["2.xml", "about.json"]);
        assert_eq!(static_files.find("x").expect("it is there still").1.source, "other");
    }
}
