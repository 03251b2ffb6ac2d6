//! The content of `write-tokens.json`: the tokens with their hashes, and the rules that each of them fulfils.

use crate::rights::WriteRights;
use oaimend_oai::{datestamp, set_spec};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Maximum number of write tokens of a data folder.
pub const TOKENS_MAX: usize = 10_000;
/// Longest name of a write token, in bytes. That of a file has at most 255, and so has a repository id.
pub const NAME_BYTES_MAX: usize = 262;
/// Maximum number of sets of a write token.
pub const SETS_MAX: usize = 100;
/// Longest setSpec of a write token, in bytes.
pub const SET_SPEC_BYTES_MAX: usize = 1_024;
/// The version of the format.
const FORMAT: u32 = 1;
/// Length of a hash in hexadecimal digits.
const HASH_DIGITS: usize = 64;

/// All tokens of a data folder, in the order of their creation.
///
/// A file with a field of a later version is refused, because that field could limit the rights of a token. No field
/// has a default: a token without `sets` would have the rights for the whole repository.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredTokens {
    format: u32,
    pub(crate) tokens: Vec<StoredToken>,
}

/// A token of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredToken {
    pub(crate) name: String,
    pub(crate) repository: String,
    pub(crate) sets: Vec<String>,
    /// The time of its creation, `YYYY-MM-DDThh:mm:ssZ`.
    pub(crate) created: String,
    /// The hash of its text, in hexadecimal digits.
    pub(crate) hash: String,
}

impl Default for StoredTokens {
    fn default() -> Self {
        Self { format: FORMAT, tokens: Vec::new() }
    }
}

impl StoredTokens {
    /// Reads the content of the file.
    ///
    /// # Errors
    ///
    /// It is damaged, or of another version. The text says what is wrong.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, String> {
        let stored: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if stored.format != FORMAT {
            return Err(format!("has the format {} of another version of oaimend", stored.format));
        }
        if stored.tokens.len() > TOKENS_MAX {
            return Err(format!("has {} tokens, and {TOKENS_MAX} are allowed", stored.tokens.len()));
        }
        let (mut names, mut hashes) = (HashSet::new(), HashSet::new());
        for (number, token) in stored.tokens.iter().enumerate() {
            if !token.is_legal() || !names.insert(&token.name) || !hashes.insert(&token.hash) {
                return Err(format!("the token number {} is not one that oaimend has written", number + 1));
            }
        }
        Ok(stored)
    }

    /// The content of the file.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("texts and numbers are JSON")
    }

    /// Whether a token has this name.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.tokens.iter().any(|token| token.name == name)
    }
}

impl StoredToken {
    /// What its holder may write.
    pub(crate) fn rights(&self) -> WriteRights {
        let Self { name, repository, sets, .. } = self.clone();
        WriteRights { name, repository, sets }
    }

    fn is_legal(&self) -> bool {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        is_legal_name(&self.name)
            && is_legal_name(&self.repository)
            && self.sets.len() <= SETS_MAX
            && self.sets.iter().all(|set| is_legal_set(set))
            && datestamp::to_secs(&self.created).is_some()
            && self.hash.len() == HASH_DIGITS
            && self.hash.bytes().all(is_digit)
    }
}

/// Whether a text can be the name of a token. Repository ids have the same form.
pub(crate) fn is_legal_name(name: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(is_legal)
}

/// Whether a token can be limited to a set.
pub(crate) fn is_legal_set(set: &str) -> bool {
    set.len() <= SET_SPEC_BYTES_MAX && set_spec::read(set.as_bytes()).is_some()
}
