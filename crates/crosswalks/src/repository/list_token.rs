//! The resumptionToken of a list in a format that a crosswalk makes.

use oaimend_store::{TokenKey, TokenUse};
use serde::{Deserialize, Serialize};

/// The resumptionToken of a list: that of the wrapped repository, and what it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ListToken {
    /// The name of the repository.
    #[serde(rename = "r")]
    pub(super) repository: String,
    /// The format of the list.
    #[serde(rename = "p")]
    pub(super) prefix: String,
    /// The format that is read.
    #[serde(rename = "s")]
    pub(super) source_prefix: String,
    /// The version of the conversion at the beginning of the list.
    #[serde(rename = "v")]
    pub(super) version: String,
    /// Whether it is a list of records, not of headers.
    #[serde(rename = "m")]
    pub(super) with_metadata: bool,
    /// The token of the wrapped repository.
    #[serde(rename = "t")]
    pub(super) inner: String,
}

impl ListToken {
    /// Reads a token; `None` if it is not one of ours.
    pub(super) fn read(key: &TokenKey, token: &str) -> Option<Self> {
        key.unseal(TokenUse::Crosswalk, token)
    }

    /// Writes the token; `None` if it would be too long.
    pub(super) fn write(&self, key: &TokenKey) -> Option<String> {
        key.seal(TokenUse::Crosswalk, self)
    }
}
