//! The document at the URL of a list.

use crate::collection::{SyncError, SyncedCollection};
use crate::document::part_index;
use crate::kind::ListKind;
use crate::part_stream::PartStream;
use crate::part_writer::{DOCUMENT_BYTES_MAX, entry_bytes_max};
use crate::resources::{ListUrls, Resources};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub enum ListDocument {
    /// The names of the parts, as XML.
    Parts(String),
    /// The list itself, because it is one part.
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
        let parts = collection.parts(kind).await?;
        let only = match parts.as_slice() {
            _ if kind.is_dump() => None,
            [] => Some(collection.empty_part()),
            [only] => Some(*only),
            _ if kind.has_changes() => {
                collection.whole_change_list(&parts, (DOCUMENT_BYTES_MAX, entry_bytes_max)).await?
            }
            _ => None,
        };
        let Some(only) = only else {
            return Ok(Self::Parts(part_index(urls, kind, collection.at_secs(), &parts)));
        };
        let part = PartStream::of_list(collection, (kind, &only), urls, resources);
        Ok(Self::Records(Box::new(part)))
    }
}
