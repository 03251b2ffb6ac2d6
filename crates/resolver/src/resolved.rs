//! What a query finds.

use crate::content_identifier::ContentIdentifier;
use crate::record_identifiers::NamedIn;
use oaimend_oai::UnixSecs;

/// The records that have or name an identifier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The identifiers in metadata that the text is; empty if it can only be an OAI identifier.
    pub identifiers: Vec<ContentIdentifier>,
    /// The records whose OAI identifier it is, those of the repository with the highest priority first.
    pub identified: Vec<ResolvedItem>,
    /// Other records that name it, the best ones first.
    pub named_by: Vec<ResolvedItem>,
    /// Whether more records may name it than were read.
    pub has_more: bool,
    /// The repositories that may have further records, in order: their first harvest has not ended, or records of them are
    /// damaged.
    pub incomplete: Vec<String>,
}

/// An item of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedItem {
    /// The repository id.
    pub repository: String,
    /// The OAI identifier.
    pub identifier: String,
    /// The field that names the identifier; `None` for the record that has it.
    pub named_in: Option<NamedIn>,
    /// The formats whose records have or name it, in the order of their prefixes. It is not empty.
    pub formats: Vec<ResolvedFormat>,
}

/// A record of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedFormat {
    /// The metadataPrefix.
    pub prefix: String,
    /// The datestamp of the source, in seconds since 1970.
    pub datestamp_secs: UnixSecs,
    /// The datestamp of the mirror: the time of the commit of its last change, in seconds since 1970.
    pub stamp_secs: UnixSecs,
    /// Whether the record is deleted.
    pub is_deleted: bool,
}

impl Resolved {
    /// The best record: one that is not deleted and has the identifier itself, else one that names it as that of the work, of a
    /// related work or of its source. A record that only cites the work is none.
    pub fn best(&self) -> Option<&ResolvedItem> {
        let is_about = |item: &&ResolvedItem| !item.named_in.is_some_and(NamedIn::is_of_cited_work);
        self.identified.iter().chain(&self.named_by).filter(is_about).find(|item| item.is_live())
    }

    /// Whether no record has or names the identifier, deleted or not.
    pub fn is_empty(&self) -> bool {
        self.identified.is_empty() && self.named_by.is_empty()
    }
}

impl ResolvedItem {
    /// Whether it has a record that is not deleted.
    pub fn is_live(&self) -> bool {
        self.formats.iter().any(|format| !format.is_deleted)
    }
}
