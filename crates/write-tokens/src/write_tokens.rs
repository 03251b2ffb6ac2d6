//! The write tokens of a data folder: found by requests of a server, and changed by commands.

use crate::error::{Refusal, TokensError};
use crate::rights::WriteRights;
use crate::stored_tokens::{SETS_MAX, StoredToken, StoredTokens, TOKENS_MAX, is_legal_name, is_legal_set};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use blake2::{Blake2s256, Digest as _};
use oaimend_base::clock;
use oaimend_base::suggestions::suggest_ids;
use oaimend_files::data_dir::rename_durably;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Longest file of the tokens, in bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// The file of the tokens in the data folder.
const FILE: &str = "write-tokens.json";
/// The file that writers lock. The file of the tokens is replaced by each of them.
const LOCK: &str = "write-tokens.lock";
/// The first characters of each token, by which people and scanners of secrets recognise it.
const PREFIX: &str = "oaimend_";
/// Random bytes of a token.
const RANDOM_BYTES: usize = 32;

/// The write tokens of a data folder.
#[derive(Debug)]
pub struct WriteTokens {
    data: PathBuf,
    path: PathBuf,
    cached: Mutex<Option<CachedTokens>>,
}

/// A token that is to be created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewWriteToken {
    /// Its name: letters, digits, `.`, `_` and `-`. `None`: the repository id with a number that is free.
    pub name: Option<String>,
    /// The id of the repository that its holder may write to.
    pub repository: String,
    /// The setSpecs that its holder may write to. Empty: the whole repository.
    pub sets: Vec<String>,
}

/// A token that was created. This is the only time that its text is known.
#[derive(Clone, PartialEq, Eq)]
pub struct CreatedWriteToken {
    /// The secret that the client sends.
    pub token: String,
    /// What its holder may write.
    pub rights: WriteRights,
}

/// A token without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WriteTokenInfo {
    /// What its holder may write.
    #[serde(flatten)]
    pub rights: WriteRights,
    /// The time of its creation, `YYYY-MM-DDThh:mm:ssZ`.
    pub created: String,
}

impl fmt::Debug for CreatedWriteToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedWriteToken").field("rights", &self.rights).finish_non_exhaustive()
    }
}

impl WriteTokens {
    /// The tokens of a data folder, which are read when they are needed.
    pub fn new(data: &Path) -> Self {
        Self { data: data.to_owned(), path: data.join(FILE), cached: Mutex::default() }
    }

    /// What the holder of a token may write; `None` if there is no such token. The file is read only if it has changed
    /// since the last call, otherwise the call costs one `stat`. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is damaged. Nobody can tell then whether the token is valid.
    pub fn rights(&self, token: &str) -> Result<Option<WriteRights>, TokensError> {
        let version = match std::fs::metadata(&self.path) {
            Ok(metadata) => FileVersion::of(&metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(self.unreadable(source)),
        };
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.as_ref().is_none_or(|cached| cached.version != version) {
            *cached = self.read()?.map(CachedTokens::new);
        }
        match cached.as_ref().map(|cached| &cached.rights) {
            None => Ok(None),
            // The time of the comparison reveals nothing of use: it is one of hashes, and a hash of 256 random bits can be
            // neither chosen nor inverted. That is also why no salt and no slow hash are needed.
            Some(Ok(rights)) => Ok(rights.get(&hash(token)).cloned()),
            Some(Err(problem)) => Err(self.damaged(problem)),
        }
    }

    /// Creates a token. `at` is the current time. Waits for other writers, and blocks on the disk.
    ///
    /// # Errors
    ///
    /// The name is taken, a value or the number of tokens is beyond its limits, or the file cannot be read or written.
    /// There is no new token then.
    pub fn create(&self, new: NewWriteToken, at: SystemTime) -> Result<CreatedWriteToken, TokensError> {
        let NewWriteToken { name, repository, mut sets } = new;
        sets.sort();
        sets.dedup();
        check(name.as_deref(), &repository, &sets)?;
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).map_err(|error| TokensError::NoRandomNumbers(error.to_string()))?;
        let token = format!("{PREFIX}{}", BASE64.encode(random));
        let (created, hash) = (clock::utc_datetime(at), hash(&token));
        let rights = self.change(|stored| {
            let name = match name {
                Some(name) if stored.has_name(&name) => return Err(Refusal::NameTaken(name)),
                Some(name) => name,
                None => free_name(stored, &repository)?,
            };
            if stored.tokens.len() >= TOKENS_MAX {
                return Err(Refusal::Full);
            }
            let token = StoredToken { name, repository, sets, created, hash };
            let rights = token.rights();
            stored.tokens.push(token);
            Ok(rights)
        })?;
        Ok(CreatedWriteToken { token, rights })
    }

    /// All tokens, in the order of their creation. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is damaged.
    pub fn list(&self) -> Result<Vec<WriteTokenInfo>, TokensError> {
        let describe = |token: StoredToken| WriteTokenInfo { rights: token.rights(), created: token.created };
        Ok(self.read_stored()?.tokens.into_iter().map(describe).collect())
    }

    /// Removes the token of this name: no request after the call is allowed by it. Waits for other writers, and blocks on
    /// the disk.
    ///
    /// # Errors
    ///
    /// There is no such token, or the file cannot be read or written.
    pub fn revoke(&self, name: &str) -> Result<(), TokensError> {
        self.change(|stored| {
            if !stored.has_name(name) {
                return Err(unknown_name(stored, name));
            }
            stored.tokens.retain(|token| token.name != name);
            Ok(())
        })
    }

    /// Replaces the file by one that is changed. A writer that is killed leaves the old file or the new one.
    fn change<T>(
        &self,
        edit: impl FnOnce(&mut StoredTokens) -> Result<T, Refusal>,
    ) -> Result<T, TokensError> {
        let unwritable = |source| TokensError::Unwritable { path: self.path.clone(), source };
        std::fs::create_dir_all(&self.data).map_err(unwritable)?;
        // The kernel releases the lock at the end of this function, and also if the process is killed.
        let lock = private_file().open(self.data.join(LOCK)).map_err(unwritable)?;
        lock.lock().map_err(unwritable)?;
        let mut stored = self.read_stored()?;
        let result = edit(&mut stored)?;
        let json = stored.to_json();
        if json.len() as u64 > FILE_BYTES_MAX {
            return Err(Refusal::Full.into());
        }
        let unfinished = self.path.with_extension("json.part");
        let written =
            write_durably(&unfinished, &json).and_then(|()| rename_durably(&unfinished, &self.path));
        if written.is_err() {
            // The first error is reported. If the file stays, the next writer replaces it.
            let _ = std::fs::remove_file(&unfinished);
        }
        written.map_err(unwritable)?;
        Ok(result)
    }

    /// The content of the file; no tokens if there is none.
    fn read_stored(&self) -> Result<StoredTokens, TokensError> {
        match self.read()? {
            None => Ok(StoredTokens::default()),
            Some(file) => file.content.map_err(|problem| self.damaged(&problem)),
        }
    }

    /// Reads the file; `None` if there is none.
    fn read(&self) -> Result<Option<ReadFile>, TokensError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(self.unreadable(source)),
        };
        ReadFile::new(file).map(Some).map_err(|source| self.unreadable(source))
    }

    fn unreadable(&self, source: io::Error) -> TokensError {
        TokensError::Unreadable { path: self.path.clone(), source }
    }

    fn damaged(&self, problem: &str) -> TokensError {
        TokensError::Damaged { path: self.path.clone(), problem: problem.to_owned() }
    }
}

/// The tokens of the last read of the file.
#[derive(Debug)]
struct CachedTokens {
    version: FileVersion,
    /// As long as the file is open, no other file gets its inode number.
    _file: File,
    /// The rights by the hash of the token, or why the file is damaged.
    rights: Result<HashMap<String, WriteRights>, String>,
}

impl CachedTokens {
    fn new(read: ReadFile) -> Self {
        let by_hash = |stored: StoredTokens| {
            stored.tokens.into_iter().map(|token| (token.hash.clone(), token.rights())).collect()
        };
        Self { version: read.version, _file: read.file, rights: read.content.map(by_hash) }
    }
}

/// Distinguishes one state of the file from another. Each writer creates a new file, and an editor that writes into it
/// changes the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileVersion {
    device_and_inode: (u64, u64),
    bytes: u64,
    /// The last change of the content or of the inode, in seconds and nanoseconds.
    changed: (i64, i64),
}

impl FileVersion {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device_and_inode: (metadata.dev(), metadata.ino()),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// The file as it was read.
struct ReadFile {
    file: File,
    version: FileVersion,
    /// The tokens, or why the file is damaged.
    content: Result<StoredTokens, String>,
}

impl ReadFile {
    fn new(file: File) -> io::Result<Self> {
        let version = FileVersion::of(&file.metadata()?);
        let mut json = Vec::new();
        (&file).take(FILE_BYTES_MAX + 1).read_to_end(&mut json)?;
        let content = if json.len() as u64 > FILE_BYTES_MAX {
            Err("is longer than 16 MiB".to_owned())
        } else {
            StoredTokens::parse(&json)
        };
        Ok(Self { file, version, content })
    }
}

/// The hash of a token, in hexadecimal digits.
fn hash(token: &str) -> String {
    hex::encode(Blake2s256::digest(token))
}

/// Checks what a new token is to have.
fn check(name: Option<&str>, repository: &str, sets: &[String]) -> Result<(), Refusal> {
    for name in name.into_iter().chain([repository]) {
        check_name(name)?;
    }
    if sets.len() > SETS_MAX {
        return Err(Refusal::TooManySets(sets.len()));
    }
    match sets.iter().find(|set| !is_legal_set(set)) {
        Some(set) => Err(Refusal::IllegalSet(set.clone())),
        None => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), Refusal> {
    if is_legal_name(name) { Ok(()) } else { Err(Refusal::IllegalName(name.to_owned())) }
}

/// The repository id with the first number that no token has.
fn free_name(stored: &StoredTokens, repository: &str) -> Result<String, Refusal> {
    let taken: HashSet<&str> = stored.tokens.iter().map(|token| token.name.as_str()).collect();
    let mut number = 1;
    loop {
        let name = format!("{repository}-{number}");
        if !taken.contains(name.as_str()) {
            return check_name(&name).map(|()| name);
        }
        number += 1;
    }
}

fn unknown_name(stored: &StoredTokens, name: &str) -> Refusal {
    let names: Vec<&str> = stored.tokens.iter().map(|token| token.name.as_str()).collect();
    let known = match names.as_slice() {
        [] => "there are none".to_owned(),
        names => format!("expected {}", suggest_ids(name, names)),
    };
    Refusal::UnknownName { name: name.to_owned(), known }
}

/// Opens a file that only its owner can use, and creates it if there is none.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options
}

fn write_durably(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = private_file().open(path)?;
    file.write_all(content)?;
    file.sync_all()
}
