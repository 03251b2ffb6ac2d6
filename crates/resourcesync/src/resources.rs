//! The resources of a format, and the URLs of its lists.

use crate::address::FormatAddress;
use crate::kind::ListKind;
use crate::partition::Part;
use oaimend_store::{MirrorError, StoredRecord};

/// The resources of a format: the metadata of its records.
pub trait Resources: std::fmt::Debug + Send + Sync {
    /// The URL of the metadata of a record.
    fn url(&self, identifier: &str) -> String;

    /// The URL of the OAI-PMH record with the metadata.
    fn record_url(&self, identifier: &str) -> String;

    /// The bytes at the URL of a record that is not deleted; `None` if it has no metadata, and so is no resource.
    ///
    /// # Errors
    ///
    /// The stored record is damaged.
    fn metadata(&self, record: &StoredRecord) -> Result<Option<String>, MirrorError>;

    /// The media type of the resources.
    fn media_type(&self) -> &'static str;
}

/// The URLs of the lists of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListUrls {
    /// The public URL of the server, without a slash at its end.
    pub base: String,
    /// The format.
    pub format: FormatAddress,
    /// The base URL of the repository for harvesters, the collection of its records.
    pub repository: String,
}

impl ListUrls {
    /// The URL of the capability list.
    pub fn capability_list(&self) -> String {
        self.format.capability_list(&self.base)
    }

    /// The URL of a list.
    pub fn list(&self, kind: ListKind) -> String {
        self.format.list(&self.base, kind)
    }

    /// The URL of a part of a list.
    pub fn part(&self, kind: ListKind, part: &Part) -> String {
        self.format.part(&self.base, kind, part)
    }
}
