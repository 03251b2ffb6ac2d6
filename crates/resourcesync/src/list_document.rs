//! The document at the URL of a list.

use crate::collection::{SyncError, SyncedCollection};
use crate::document::part_index;
use crate::kind::ListKind;
use crate::part_stream::PartStream;
use crate::resources::{ListUrls, Resources};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub enum ListDocument {
    /// The names of the parts, as XML.
    Parts(String),
    /// The list itself, because it is one part.
    Records(PartStream),
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
        if kind.is_dump() || parts.len() > 1 {
            return Ok(Self::Parts(part_index(urls, kind, collection.at_secs(), &parts)));
        }
        let only = parts.first().copied().unwrap_or_else(|| collection.empty_part());
        Ok(Self::Records(PartStream::of_list(collection, (kind, &only), urls, resources)))
    }
}
