//! What a cursor contains. The server signs it.

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;
use std::hash::{Hash, Hasher};

/// The place after a page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListCursor {
    /// A digest of the operation, the repository and the parameters that stay the same. A cursor continues its own list
    /// only.
    #[serde(rename = "l")]
    pub list: u64,
    /// The position.
    #[serde(rename = "p")]
    pub position: ListPosition,
}

/// A position in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListPosition {
    /// After an item with this name.
    After(String),
    /// After this number of items.
    Offset(usize),
    /// In a page of OAI-PMH.
    Page {
        /// The resumptionToken of the page; `None` for the first one.
        #[serde(rename = "t")]
        token: Option<String>,
        /// The number of its items that were delivered.
        #[serde(rename = "o")]
        delivered: usize,
        /// The [`items_digest`] of these.
        #[serde(rename = "d")]
        digest: u64,
    },
}

impl ListCursor {
    /// The digest of a list.
    pub fn digest_of(list: &impl Hash) -> u64 {
        let mut hasher = SipHasher13::new();
        list.hash(&mut hasher);
        hasher.finish()
    }
}

/// A digest of the names and datestamps of items, which shows whether a page that is read again has changed.
pub fn items_digest<'i>(items: impl Iterator<Item = (&'i str, &'i str)>) -> u64 {
    let mut hasher = SipHasher13::new();
    items.for_each(|item| item.hash(&mut hasher));
    hasher.finish()
}
