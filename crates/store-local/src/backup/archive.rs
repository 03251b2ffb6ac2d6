//! The archive of a backup: written from a snapshot, and restored into a new folder.

use super::BackupError;
use super::snapshot::{LOST_FOUND, Snapshot};
use super::space::check_space;
use blake2::{Blake2s256, Digest};
use oaimend_store::Store;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use tar::{Archive, Builder, Entry, Header};

const MANIFEST: &str = "manifest.json";
const CHECKSUMS: &str = "checksums";
/// The version of the format.
const FORMAT: u32 = 1;
/// Longest manifest, in bytes.
const MANIFEST_BYTES_MAX: u64 = 64 << 10;
/// Longest name and hash of a file in the checksums, in bytes.
const CHECKSUM_BYTES_MAX: u64 = 8 << 10;
/// Compression level of zstd. Records are compressed already.
const ZSTD_LEVEL: i32 = 1;

/// The first entry of a backup.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    /// The version of oaimend that wrote it.
    oaimend: String,
    /// The time of the snapshot, as in OAI-PMH.
    created: String,
    files: u64,
    bytes: u64,
}

/// The hash of each file, in hexadecimal digits.
type Checksums = BTreeMap<String, String>;

/// The result of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenBackup {
    /// The number of files in it.
    pub files: u64,
    /// The bytes of these files.
    pub bytes: u64,
}

/// The result of a restored backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RestoredBackup {
    /// The time of the snapshot, as in OAI-PMH.
    pub created: String,
    /// The version of oaimend that wrote it.
    pub oaimend: String,
    /// The number of files.
    pub files: u64,
    /// The bytes of these files.
    pub bytes: u64,
}

/// Writes a backup of a data folder whose stores are open in this process. `created` is the time of the backup, as in
/// OAI-PMH. Writers wait while the databases are copied. Blocks on the disk.
///
/// # Errors
///
/// A store cannot be used, or a file cannot be read or written. The bytes written so far are then no complete backup.
pub fn write_backup(store: &Store, created: &str, out: impl Write) -> Result<WrittenBackup, BackupError> {
    let snapshot = Snapshot::take(store)?;
    let bytes = snapshot.files.iter().map(|(_, bytes)| bytes).sum();
    let written = WrittenBackup { files: snapshot.files.len() as u64, bytes };
    let manifest = Manifest {
        format: FORMAT,
        oaimend: env!("CARGO_PKG_VERSION").to_owned(),
        created: created.to_owned(),
        files: written.files,
        bytes,
    };
    let mut compressed = zstd::Encoder::new(out, ZSTD_LEVEL).map_err(BackupError::Archive)?;
    compressed.include_checksum(true).map_err(BackupError::Archive)?;
    let mut archive = Builder::new(compressed);
    append(&mut archive, MANIFEST, &json(&manifest)).map_err(BackupError::Archive)?;
    let mut checksums = Checksums::new();
    for (file, bytes) in &snapshot.files {
        let hash = append_file(&mut archive, snapshot.path(), file, *bytes)?;
        checksums.insert(file.to_string_lossy().into_owned(), hash);
    }
    let end = append(&mut archive, CHECKSUMS, &json(&checksums));
    let end = end.and_then(|()| archive.into_inner()).and_then(zstd::Encoder::finish);
    end.and_then(|mut out| out.flush()).map_err(BackupError::Archive)?;
    Ok(written)
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(value).expect("texts and numbers are JSON")
}

fn header(bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o600);
    header
}

fn append(archive: &mut Builder<impl Write>, name: &str, bytes: &[u8]) -> io::Result<()> {
    archive.append_data(&mut header(bytes.len() as u64), name, bytes)
}

/// Appends a file up to the length that it had in the snapshot, and returns its hash.
fn append_file(
    archive: &mut Builder<impl Write>,
    root: &Path,
    file: &Path,
    bytes: u64,
) -> Result<String, BackupError> {
    let path = root.join(file);
    let opened = File::open(&path).map_err(BackupError::file(&path))?;
    let mut read = HashingReader { from: opened.take(bytes), hash: Blake2s256::new() };
    archive.append_data(&mut header(bytes), file, &mut read).map_err(BackupError::Archive)?;
    if read.from.limit() > 0 {
        let error = io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter");
        return Err(BackupError::File { path, error });
    }
    Ok(hex::encode(read.hash.finalize()))
}

/// Reads from another reader, and hashes what it reads.
struct HashingReader<R> {
    from: R,
    hash: Blake2s256,
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(out)?;
        self.hash.update(out.get(..count).unwrap_or_default());
        Ok(count)
    }
}

/// The beginning of the names of folders into which a backup is unpacked, inside the data folder.
pub(crate) const UNPACKED_PREFIX: &str = ".oaimend-restore-";

/// Restores a backup as the data folder `data`, which must be absent or empty. It may be a mount point, such as the volume
/// of a container, so everything is unpacked inside it. Everything is read and checked, and the state is opened once,
/// before a file gets its place. `on_progress` gets the bytes that are done, and all bytes. Blocks on the disk.
///
/// # Errors
///
/// The folder is not empty or has too little space, the file is no complete backup, or its state cannot be opened. `data`
/// is then as before.
pub fn restore(
    archive: impl Read,
    data: &Path,
    on_progress: &mut dyn FnMut(u64, u64),
) -> Result<RestoredBackup, BackupError> {
    let is_new = remove_unpacked(data)?;
    let restored = restore_into(archive, data, on_progress);
    if is_new && restored.is_err() {
        // It stays if somebody has put something into it.
        let _ = fs::remove_dir(data);
    }
    restored
}

fn restore_into(
    archive: impl Read,
    data: &Path,
    on_progress: &mut dyn FnMut(u64, u64),
) -> Result<RestoredBackup, BackupError> {
    fs::create_dir_all(data).map_err(BackupError::file(data))?;
    let unpacked = tempfile::Builder::new().prefix(UNPACKED_PREFIX).tempdir_in(data);
    let unpacked = unpacked.map_err(BackupError::file(data))?;
    let manifest = unpack(archive, unpacked.path(), on_progress)?;
    crate::open(unpacked.path()).map_err(BackupError::Unusable)?.close();
    // Something may have been put into the folder meanwhile.
    // A relative path of the data folder is absolute here, so only names can be compared.
    if others_in(data)?.iter().any(|path| path.file_name() != unpacked.path().file_name()) {
        return Err(BackupError::Occupied(data.to_owned()));
    }
    // As long as this folder exists, the data folder cannot be opened.
    let unpacked = unpacked.keep();
    for path in others_in(&unpacked)? {
        let name = path.file_name().unwrap_or_default();
        fs::rename(&path, data.join(name)).map_err(BackupError::file(&path))?;
    }
    let sync = || File::open(data)?.sync_all();
    sync().map_err(BackupError::file(data))?;
    fs::remove_dir(&unpacked).and_then(|()| sync()).map_err(BackupError::file(data))?;
    let Manifest { created, oaimend, files, bytes, .. } = manifest;
    Ok(RestoredBackup { created, oaimend, files, bytes })
}

/// Refuses a data folder that is not empty, and removes what a killed restore has unpacked. Returns whether the folder is
/// absent.
fn remove_unpacked(data: &Path) -> Result<bool, BackupError> {
    if !data.exists() {
        return Ok(true);
    }
    let (unpacked, others): (Vec<_>, Vec<_>) =
        others_in(data)?.into_iter().partition(|path| is_unpacked(path));
    match (unpacked.as_slice(), others.as_slice()) {
        ([], []) => {}
        ([], _) => return Err(BackupError::Occupied(data.to_owned())),
        (unpacked, []) => {
            for folder in unpacked {
                fs::remove_dir_all(folder).map_err(BackupError::file(folder))?;
            }
        }
        _ => return Err(BackupError::Interrupted(data.to_owned())),
    }
    Ok(false)
}

fn is_unpacked(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(UNPACKED_PREFIX))
}

/// Refuses a data folder that an interrupted restore has filled in part.
pub(crate) fn refuse_interrupted(data: &Path) -> Result<(), BackupError> {
    let is_whole = !others_in(data)?.iter().any(|path| is_unpacked(path));
    if is_whole { Ok(()) } else { Err(BackupError::Interrupted(data.to_owned())) }
}

/// The entries of a folder, except those that its file system creates.
fn others_in(folder: &Path) -> Result<Vec<PathBuf>, BackupError> {
    let entries = fs::read_dir(folder).map_err(BackupError::file(folder))?;
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let is_other = |path: &PathBuf| path.file_name().is_none_or(|name| name != LOST_FOUND);
    Ok(paths.map_err(BackupError::file(folder))?.into_iter().filter(is_other).collect())
}

/// Unpacks all files, and compares them with the checksums at the end.
fn unpack(
    archive: impl Read,
    folder: &Path,
    on_progress: &mut dyn FnMut(u64, u64),
) -> Result<Manifest, BackupError> {
    let damaged = |error: io::Error| BackupError::Damaged(error.to_string());
    let mut archive = Archive::new(zstd::Decoder::new(archive).map_err(BackupError::Archive)?);
    let mut entries = archive.entries().map_err(damaged)?;
    let first = entries.next().ok_or_else(|| BackupError::Damaged("it is empty".to_owned()))?;
    let manifest = read_manifest(first.map_err(damaged)?)?;
    check_space(folder, manifest.bytes)?;
    let (mut found, mut expected, mut done) = (Checksums::new(), None, 0);
    for entry in entries {
        let mut entry = entry.map_err(damaged)?;
        let name = safe_name(&entry)?;
        if name == Path::new(CHECKSUMS) {
            let bytes_max = CHECKSUM_BYTES_MAX.saturating_mul(manifest.files.saturating_add(1));
            let read = serde_json::from_reader::<_, Checksums>((&mut entry).take(bytes_max));
            expected = Some(read.map_err(|error| BackupError::Damaged(error.to_string()))?);
            break;
        }
        let left = manifest.bytes.saturating_sub(done);
        if entry.size() > left || found.len() as u64 >= manifest.files {
            return Err(BackupError::Damaged("it has more than its manifest says".to_owned()));
        }
        let (bytes, hash) = unpack_file(&mut entry, &folder.join(&name))?;
        found.insert(name.to_string_lossy().into_owned(), hash);
        done += bytes;
        on_progress(done, manifest.bytes);
    }
    match expected {
        Some(expected) if expected == found && done == manifest.bytes => Ok(manifest),
        Some(_) => Err(BackupError::Damaged("a checksum is wrong".to_owned())),
        None => Err(BackupError::Damaged("its end is missing".to_owned())),
    }
}

fn read_manifest(entry: Entry<'_, impl Read>) -> Result<Manifest, BackupError> {
    let is_manifest = safe_name(&entry)? == Path::new(MANIFEST);
    let manifest = serde_json::from_reader::<_, Manifest>(entry.take(MANIFEST_BYTES_MAX));
    match manifest {
        Ok(manifest) if is_manifest && manifest.format == FORMAT => Ok(manifest),
        Ok(manifest) if is_manifest => {
            let Manifest { format, oaimend, .. } = manifest;
            let oaimend = oaimend.escape_debug();
            Err(BackupError::Damaged(format!("it has the format {format} of oaimend {oaimend}")))
        }
        _ => Err(BackupError::Damaged("it has no manifest".to_owned())),
    }
}

/// The name of an entry, which must be a file inside the data folder.
fn safe_name(entry: &Entry<'_, impl Read>) -> Result<PathBuf, BackupError> {
    let name = entry.path().map_err(|error| BackupError::Damaged(error.to_string()))?.into_owned();
    let is_inside = name.components().all(|part| matches!(part, Component::Normal(_)));
    if is_inside && entry.header().entry_type().is_file() {
        return Ok(name);
    }
    let name = name.display().to_string();
    Err(BackupError::Damaged(format!("{} is no file of a data folder", name.escape_debug())))
}

/// Writes a file durably; returns its bytes and its hash.
fn unpack_file(entry: &mut impl Read, path: &Path) -> Result<(u64, String), BackupError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(BackupError::file(folder))?;
    }
    let mut file = File::create_new(path).map_err(BackupError::file(path))?;
    let mut read = HashingReader { from: entry, hash: Blake2s256::new() };
    let bytes = io::copy(&mut read, &mut file).map_err(|error| BackupError::Damaged(error.to_string()))?;
    file.sync_data().map_err(BackupError::file(path))?;
    Ok((bytes, hex::encode(read.hash.finalize())))
}
