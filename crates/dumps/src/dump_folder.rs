//! The files of dumps in the data folder.
//!
//! The store forgets replaced records, so the bytes of a dump cannot be made again once a record of it has changed. The
//! file of a dump therefore stays until newer ones need its space. A dump is complete when its manifest is there.
//!
//! The folder also has the id of the store. A backup leaves the folder out, so a restored store gets another id.

use crate::dump_error::DumpError;
use crate::dump_query::Selection;
use crate::dump_writer::WrittenDump;
use crate::kept_dumps::{DumpPart, Kept, KeptDumps, dump_of, remove_file};
use crate::manifest::Manifest;
use crate::position::Position;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::{Builder, NamedTempFile};

/// Maximum number of bytes of all dumps that are kept. The oldest ones make room.
const DUMPS_BYTES_MAX: u64 = 20 << 30;
/// Maximum number of dumps that are kept, of which each has a manifest of less than 1 KiB and its parameters.
const DUMPS_MAX: usize = 1_000;
/// Maximum length of a manifest that is read, in bytes.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
const ID_FILE: &str = "store.id";
/// The beginning of the names of what is being written.
const PART: &str = ".part-";

/// The folder of the dumps of a data folder.
#[derive(Debug)]
pub struct DumpFolder {
    folder: PathBuf,
    kept: KeptDumps,
    /// The id of the store, once the folder was opened.
    store: Mutex<Option<u64>>,
}

/// A dump that is kept.
#[derive(Debug)]
pub struct KeptDump {
    /// What it is.
    pub manifest: Manifest,
    /// Its file. It stays readable after it made room for others.
    pub file: File,
}

impl DumpFolder {
    /// Maximum number of bytes of a dump.
    pub const DUMP_BYTES_MAX: u64 = DUMPS_BYTES_MAX;

    /// The folder of a data folder. It is created when it is first used.
    pub fn new(data: &Path) -> Self {
        let folder = data.join("dumps");
        Self { kept: KeptDumps::new(folder.clone()), folder, store: Mutex::default() }
    }

    /// The id of the store. The first call creates the folder, and removes what a killed process has left.
    ///
    /// # Errors
    ///
    /// The folder cannot be written or read.
    pub fn store_id(&self) -> Result<u64, DumpError> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = *store {
            return Ok(id);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        self.remove_parts()?;
        let path = self.folder.join(ID_FILE);
        let read = match fs::read_to_string(&path) {
            Ok(text) => u64::from_str_radix(text.trim(), 16).ok(),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        let id = match read {
            Some(id) => id,
            // A damaged file is as good as none: all positions are stale then.
            None => self.create_id(&path)?,
        };
        *store = Some(id);
        Ok(id)
    }

    fn create_id(&self, path: &Path) -> Result<u64, DumpError> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
        let id = u64::from_le_bytes(bytes);
        let mut file = Builder::new().prefix(PART).tempfile_in(&self.folder)?;
        writeln!(file, "{id:016x}")?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(id)
    }

    /// A folder for a dump that is being written. It leaves so many bytes of the disk free, or a tenth of a smaller disk.
    ///
    /// # Errors
    ///
    /// It cannot be created.
    pub fn new_part(&self, reserve_bytes: u64) -> Result<DumpPart, DumpError> {
        self.store_id()?;
        let part = Builder::new().prefix(PART).tempdir_in(&self.folder)?;
        Ok(DumpPart::new(part, self.kept.clone(), reserve_bytes))
    }

    /// The last dump of a selection, or that of this position; `None` if it is not kept.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn find(
        &self,
        selection: &Selection,
        position: Option<&Position>,
    ) -> Result<Option<KeptDump>, DumpError> {
        self.store_id()?;
        let key = selection.key();
        let mut kept = self.kept.list()?;
        kept.retain(|kept| kept.name.strip_prefix(&*key).is_some_and(|rest| rest.starts_with('.')));
        for Kept { name, .. } in kept.iter().rev() {
            let Some(manifest) = self.manifest(name) else { continue };
            let is_wanted = position.is_none_or(|position| position.to_string() == manifest.position);
            if manifest.selection != *selection || !is_wanted {
                continue;
            }
            match File::open(self.kept.path(name)) {
                Ok(file) if file.metadata()?.len() == manifest.bytes => {
                    return Ok(Some(KeptDump { manifest, file }));
                }
                // It made room meanwhile, or the disk lost its end.
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Keeps a dump, and makes room for it.
    ///
    /// # Errors
    ///
    /// The disk fails. The dump is not kept then.
    pub fn keep(&self, written: &WrittenDump, manifest: Manifest) -> Result<KeptDump, DumpError> {
        let bytes_max = DUMPS_BYTES_MAX.saturating_sub(manifest.bytes);
        self.kept.make_room(bytes_max, DUMPS_MAX - 1)?;
        let name = name_of(&manifest);
        let path = self.kept.path(&name);
        fs::rename(written.path(), &path)?;
        if let Err(error) = self.describe(&name, &manifest) {
            // A dump without a manifest would need space that nothing counts. That it stays then is no second error.
            let _ = remove_file(&path);
            let _ = remove_file(&self.kept.manifest_path(&name));
            return Err(error);
        }
        let file = File::open(&path)?;
        Ok(KeptDump { manifest, file })
    }

    fn describe(&self, name: &str, manifest: &Manifest) -> Result<(), DumpError> {
        let mut part: NamedTempFile = Builder::new().prefix(PART).tempfile_in(&self.folder)?;
        part.write_all(&serde_json::to_vec_pretty(manifest).map_err(std::io::Error::other)?)?;
        part.as_file().sync_all()?;
        part.persist(self.kept.manifest_path(name)).map_err(|error| error.error)?;
        Ok(File::open(&self.folder)?.sync_all()?)
    }

    /// The manifests of all kept dumps, without damaged ones.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn manifests(&self) -> Result<Vec<Manifest>, DumpError> {
        self.store_id()?;
        Ok(self.kept.list()?.iter().filter_map(|kept| self.manifest(&kept.name)).collect())
    }

    /// Removes a kept dump.
    ///
    /// # Errors
    ///
    /// The disk fails.
    pub fn remove(&self, manifest: &Manifest) -> Result<(), DumpError> {
        Ok(self.kept.remove(&name_of(manifest))?)
    }

    /// The manifest of a kept dump; `None` if it is not there or damaged.
    fn manifest(&self, name: &str) -> Option<Manifest> {
        let path = self.kept.manifest_path(name);
        let length = fs::metadata(&path).ok()?.len();
        if length > MANIFEST_BYTES_MAX {
            return None;
        }
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Removes what a killed process has left: parts, and dumps without a manifest.
    fn remove_parts(&self) -> Result<(), DumpError> {
        let names =
            fs::read_dir(&self.folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let names = names.collect::<std::io::Result<Vec<String>>>()?;
        for name in &names {
            let path = self.folder.join(name);
            let is_known = name == ID_FILE
                || dump_of(name).is_some()
                || names.iter().any(|other| dump_of(other) == Some(name));
            if is_known {
                continue;
            }
            if path.is_dir() { fs::remove_dir_all(path)? } else { remove_file(&path)? }
        }
        Ok(())
    }
}

/// The name of the file of a dump.
fn name_of(manifest: &Manifest) -> String {
    format!("{}.{}", manifest.selection.key(), manifest.position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump_form::DumpForm;
    use crate::dump_query::DumpQuery;
    use crate::dump_writer::DumpWriter;
    use crate::row_index::RecordKey;
    use oaimend_tape::TapeDescription;

    fn kept(folder: &DumpFolder, repository: &str, position: &str) -> Manifest {
        keep(folder, repository, position).expect("writable").manifest
    }

    fn keep(folder: &DumpFolder, repository: &str, position: &str) -> Result<KeptDump, DumpError> {
        let query = DumpQuery::read(&format!("repository={repository}")).expect("legal");
        let part = folder.new_part(0).expect("writable");
        let about = ("oai_dc", TapeDescription::default());
        let writer = DumpWriter::begin(part, DumpForm::Jsonl, about, RecordKey::Identifier, 1_000);
        let written = writer.expect("writable").finish().expect("writable");
        let manifest = Manifest {
            selection: query.selection,
            position: position.to_owned(),
            records: written.records,
            deleted: written.deleted,
            bytes: written.bytes,
            sha256: written.sha256.clone(),
            gaps: Vec::new(),
        };
        folder.keep(&written, manifest)
    }

    #[test]
    fn a_dump_is_found_after_a_restart_and_parts_are_removed() {
        let data = tempfile::tempdir().expect("a folder");
        let folder = DumpFolder::new(data.path());
        let first = kept(&folder, "x", "00000000000000ab-0-5");
        let last = kept(&folder, "x", "00000000000000ab-0-6");
        let id = folder.store_id().expect("readable");
        // What a killed process leaves.
        let dumps = data.path().join("dumps");
        fs::create_dir(dumps.join(".part-1")).expect("writable");
        fs::write(dumps.join(".part-1/dump"), "x").expect("writable");
        fs::write(dumps.join("0123.00000000000000ab-0-7"), "half").expect("writable");
        let again = DumpFolder::new(data.path());
        assert_eq!(again.store_id().expect("readable"), id);
        assert_eq!(fs::read_dir(&dumps).expect("readable").count(), 5);
        let find = |position: Option<&str>| {
            let position = position.map(|text| text.parse().expect("a position"));
            let found = again.find(&last.selection, position.as_ref()).expect("readable");
            found.map(|found| found.manifest)
        };
        assert_eq!(find(None), Some(last.clone()));
        assert_eq!(find(Some(&first.position)), Some(first.clone()));
        assert_eq!(find(Some("00000000000000ab-0-7")), None);
        // A file that lost its end is no dump.
        fs::write(dumps.join(format!("{}.{}", last.selection.key(), last.position)), "x").expect("writable");
        assert_eq!(find(None), Some(first));
    }

    #[test]
    fn the_oldest_dumps_make_room() {
        let data = tempfile::tempdir().expect("a folder");
        let folder = DumpFolder::new(data.path());
        let manifests: Vec<Manifest> =
            (0..5).map(|number| kept(&folder, "x", &format!("00000000000000ab-0-{number}"))).collect();
        folder.kept.make_room(u64::MAX, 2).expect("writable");
        let is_kept = |manifest: &Manifest| {
            let position = manifest.position.parse().expect("a position");
            folder.find(&manifest.selection, Some(&position)).expect("readable").is_some()
        };
        assert_eq!(manifests.iter().map(is_kept).collect::<Vec<_>>(), [false, false, false, true, true]);
    }

    #[test]
    fn a_dump_whose_manifest_cannot_be_written_leaves_no_file() {
        let data = tempfile::tempdir().expect("a folder");
        let folder = DumpFolder::new(data.path());
        let position = "00000000000000ab-0-5";
        let name = name_of(&kept(&folder, "x", position));
        folder.kept.remove(&name).expect("writable");
        fs::create_dir(folder.kept.manifest_path(&name)).expect("writable");
        assert!(keep(&folder, "x", position).is_err());
        assert!(!folder.kept.path(&name).exists());
    }

    #[test]
    fn a_dump_that_is_removed_is_not_found() {
        let data = tempfile::tempdir().expect("a folder");
        let folder = DumpFolder::new(data.path());
        let gone = kept(&folder, "x", "00000000000000ab-0-5");
        let other = kept(&folder, "y", "00000000000000ab-0-5");
        assert_eq!(folder.manifests().expect("readable").len(), 2);
        folder.remove(&gone).expect("writable");
        assert_eq!(folder.manifests().expect("readable"), [other]);
        assert!(folder.find(&gone.selection, None).expect("readable").is_none());
        // Its id is left, and the other dump with its manifest.
        assert_eq!(fs::read_dir(data.path().join("dumps")).expect("readable").count(), 3);
    }

    #[test]
    fn a_store_without_its_dumps_has_another_id() {
        let data = tempfile::tempdir().expect("a folder");
        let id = DumpFolder::new(data.path()).store_id().expect("writable");
        fs::remove_dir_all(data.path().join("dumps")).expect("writable");
        assert_ne!(DumpFolder::new(data.path()).store_id().expect("writable"), id);
    }
}
