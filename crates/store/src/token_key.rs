//! The key of our own tokens and of the hashes of items: `data/token.key`, 32 random bytes.

use blake2::Blake2sMac;
use blake2::digest::consts::{U16, U32};
use blake2::digest::{FixedOutput as _, KeyInit as _, Update as _};
use oaimend_base::error::Error;
use oaimend_files::data_dir::{WRITABLE, rename_durably};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The secret key, and the keys derived from it.
#[derive(Clone)]
pub struct TokenKey {
    /// Signs our own tokens.
    pub tokens: [u8; 32],
    /// Signs the tokens of the mirror's lists; does not reveal the first key.
    pub mirror_lists: [u8; 32],
    /// Signs the tokens of lists that the mirror continues; does not reveal the other keys.
    pub failover_lists: [u8; 32],
    /// Signs the tokens of lists that crosswalks make; does not reveal the other keys.
    pub crosswalk_lists: [u8; 32],
    /// Signs the tokens of the lists of federations; does not reveal the other keys.
    pub federated_lists: [u8; 32],
    /// Signs the cursors of the JSON API; does not reveal the other keys.
    pub api_lists: [u8; 32],
    /// Hashes the items of lists; does not reveal the other keys.
    items: [u8; 16],
}

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKey(..)")
    }
}

impl TokenKey {
    /// The keys that are derived from a secret.
    pub fn new(tokens: [u8; 32]) -> Self {
        let mut items = Blake2sMac::<U16>::new(&tokens.into());
        items.update(b"items");
        let derived = |name: &[u8]| {
            let mut key = Blake2sMac::<U32>::new(&tokens.into());
            key.update(name);
            key.finalize_fixed().into()
        };
        let (mirror_lists, failover_lists) = (derived(b"mirror lists"), derived(b"failover lists"));
        let crosswalk_lists = derived(b"crosswalk lists");
        let (federated_lists, api_lists) = (derived(b"federated lists"), derived(b"api lists"));
        let items = items.finalize_fixed().into();
        Self { tokens, mirror_lists, failover_lists, crosswalk_lists, federated_lists, api_lists, items }
    }

    /// The key of the hashes of items.
    pub fn items(&self) -> &[u8; 16] {
        &self.items
    }

    /// Reads the key of a data folder, and creates it at the first start.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written, or is not a key.
    pub fn open(data: &Path) -> Result<Self, Error> {
        let path = data.join("token.key");
        match std::fs::read(&path) {
            Ok(bytes) => match <[u8; 32]>::try_from(bytes) {
                Ok(key) => return Ok(Self::new(key)),
                Err(bytes) => {
                    let message = format!(
                        "a key of {} bytes, not 32; move the file away to create a new one",
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
        // A process that is killed here leaves no truncated key.
        let unfinished = path.with_extension("key.part");
        let written =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished);
        written
            .and_then(|mut file| file.write_all(&key).and_then(|()| file.sync_all()))
            .and_then(|()| rename_durably(&unfinished, &path))
            .map_err(|error| Error::writing(&path, error, WRITABLE))?;
        Ok(Self::new(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_key_is_created_once_and_readable_by_its_owner_only() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let key = TokenKey::open(data.path()).expect("it can be written to");
        assert_eq!(TokenKey::open(data.path()).expect("it is there").tokens, key.tokens);
        let file = std::fs::metadata(data.path().join("token.key")).expect("it is there");
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
        assert_eq!(format!("{key:?}"), "TokenKey(..)");
        std::fs::write(data.path().join("token.key"), "short").expect("writable");
        let error = TokenKey::open(data.path()).expect_err("not a key");
        assert!(error.to_string().contains("a key of 5 bytes, not 32"), "{error}");
    }
}
