//! The key that makes tokens of ours ours, and items of a list known: `data/token.key`, 32 random bytes.

use crate::error::Error;
use crate::store::data_dir::{WRITABLE, rename_durably};
use blake2::Blake2sMac;
use blake2::digest::consts::U16;
use blake2::digest::{FixedOutput as _, KeyInit as _, Update as _};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A key that nobody else knows, and the one that is made of it.
#[derive(Clone)]
pub struct TokenKey {
    pub(crate) tokens: [u8; 32],
    /// By which items of lists are known; it says nothing of the other one.
    pub(crate) items: [u8; 16],
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKey(..)")
    }
}

impl TokenKey {
    pub(crate) fn of(tokens: [u8; 32]) -> Self {
        let mut items = Blake2sMac::<U16>::new(&tokens.into());
        items.update(b"items");
        Self { tokens, items: items.finalize_fixed().into() }
    }

    /// Reads the key of a data folder, which is made at the first start.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written, or is no key.
    pub fn open(data: &Path) -> Result<Self, Error> {
        let path = data.join("token.key");
        match std::fs::read(&path) {
            Ok(bytes) => match <[u8; 32]>::try_from(bytes) {
                Ok(key) => return Ok(Self::of(key)),
                Err(bytes) => {
                    let message = format!(
                        "a key of {} bytes, not 32; move the file away, a new one is made",
                        bytes.len()
                    );
                    return Err(Error::State { path, message });
                }
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::reading(&path, error, "let oaimend read it")),
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key)
            .map_err(|error| Error::State { path: path.clone(), message: error.to_string() })?;
        // A process that is killed here leaves no key that is too short.
        let unfinished = path.with_extension("key.part");
        let written =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished);
        written
            .and_then(|mut file| file.write_all(&key).and_then(|()| file.sync_all()))
            .and_then(|()| rename_durably(&unfinished, &path))
            .map_err(|error| Error::writing(&path, error, WRITABLE))?;
        Ok(Self::of(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_key_is_made_once_and_nobody_else_may_read_it() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let key = TokenKey::open(data.path()).expect("it can be written to");
        assert_eq!(TokenKey::open(data.path()).expect("it is there").tokens, key.tokens);
        let file = std::fs::metadata(data.path().join("token.key")).expect("it is there");
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
        assert_eq!(format!("{key:?}"), "TokenKey(..)");
        std::fs::write(data.path().join("token.key"), "short").expect("writable");
        let error = TokenKey::open(data.path()).expect_err("no key");
        assert!(error.to_string().contains("a key of 5 bytes, not 32"), "{error}");
    }
}
