//! A bearer token for a source, in a file that another program may replace at any time.
//!
//! Invariant: no message, log line or `Debug` output contains the token. Only requests to the source itself contain it.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum size of a token in bytes. Servers accept headers of 8 to 16 KiB.
const TOKEN_BYTES_MAX: u64 = 16 << 10;

/// A file with a bearer token. Clones share what was read last.
#[derive(Clone)]
pub struct BearerToken {
    path: PathBuf,
    read: Arc<Mutex<ReadTokens>>,
}

/// The tokens that the file contained.
struct ReadTokens {
    last: String,
    /// The one before, which a source may still echo.
    previous: Option<String>,
    /// Whether the file cannot be read now; it is logged once.
    is_stale: bool,
}

impl BearerToken {
    /// The token in a file; it is read again at each use.
    ///
    /// # Errors
    ///
    /// The file cannot be read or contains no token. The text, after the name of the key, names the expected value.
    pub fn open(path: PathBuf) -> Result<Self, String> {
        let last = read_token(&path)?;
        let read = ReadTokens { last, previous: None, is_stale: false };
        Ok(Self { path, read: Arc::new(Mutex::new(read)) })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The token that the file contains now; use it only for a request to the source. While the file cannot be read, it
    /// is the last token, and the log says so once.
    pub fn current(&self) -> String {
        let now = read_token(&self.path);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match now {
            Ok(token) => {
                read.is_stale = false;
                if token != read.last {
                    read.previous = Some(std::mem::replace(&mut read.last, token));
                }
            }
            Err(problem) if !read.is_stale => {
                read.is_stale = true;
                tracing::warn!(
                    "bearer_token_file {} {problem}; the previous token is still used",
                    self.path.display()
                );
            }
            Err(_) => {}
        }
        read.last.clone()
    }

    /// The tokens that must not be shown: the current one and the one before.
    pub(super) fn secrets(&self) -> impl Iterator<Item = String> + use<> {
        let current = self.current();
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.previous.clone().into_iter().chain([current])
    }
}

impl PartialEq for BearerToken {
    /// The same file. A new token in it does not change the mapping.
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerToken").field("path", &self.path).finish_non_exhaustive()
    }
}

fn read_token(path: &Path) -> Result<String, String> {
    let expected = "expected a file with the token in its only line";
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}; {expected}");
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(TOKEN_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > TOKEN_BYTES_MAX {
        return Err(format!("is longer than {TOKEN_BYTES_MAX} bytes; {expected}"));
    }
    let token = text.trim();
    if token.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("bearer ")) {
        return Err(format!("contains the word \"Bearer\"; {expected}, without this word"));
    }
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("contains no token; {expected}, of visible ASCII characters"));
    }
    Ok(token.to_owned())
}
