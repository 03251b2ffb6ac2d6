//! The document at the URL of a list.

use crate::collection::{ListedPart, SyncError, SyncedCollection};
use crate::document::part_index;
use crate::kind::ListKind;
use crate::part_stream::PartStream;
use crate::part_writer::{DOCUMENT_BYTES_MAX, entry_bytes};
use crate::resources::{ListUrls, Resources};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub enum ListDocument {
    /// The names of the parts, as XML.
    Parts(String),
    /// The list itself, because it is one part, or the newest changes of it.
    Records(Box<PartStream>),
}

impl ListDocument {
    /// The document of a list.
    ///
    /// # Errors
    ///
    /// The list has too many parts, or the store cannot be read.
    pub async fn of(
        collection: &SyncedCollection,
        kind: ListKind,
        urls: &ListUrls,
        resources: Arc<dyn Resources>,
    ) -> Result<Self, SyncError> {
        let records = |part: &ListedPart, resources| {
            let part = PartStream::of_list(collection, (kind, part), urls, resources);
            Ok(Self::Records(Box::new(part)))
        };
        if kind == ListKind::ChangeList {
            let entry_bytes = |identifier: &str| entry_bytes(identifier, &urls.repository, &*resources);
            if let Some(newest) = collection.newest_changes(DOCUMENT_BYTES_MAX, &entry_bytes).await? {
                return records(&newest, resources);
            }
        }
        let parts = collection.parts(kind).await?;
        match parts.as_slice() {
            _ if kind.is_dump() => {}
            [] => return records(&collection.empty_part(), resources),
            [only] => return records(only, resources),
            _ => {}
        }
        Ok(Self::Parts(part_index(urls, kind, collection.at_secs(), &parts)))
    }
}
