//! A part of a list as a stream of pieces.

use crate::collection::{ListedPart, SyncError, SyncedCollection, SyncedRecords};
use crate::kind::ListKind;
use crate::part_writer::{PartPlace, PartWriter};
use crate::partition::Part;
use crate::resources::{ListUrls, Resources};
use bytes::Bytes;
use oaimend_store::{ListFilter, ListQuery, MirrorError, Position, StoredRecord};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Records that are read with their bytes at a time.
const BATCH_RECORDS: usize = 100;
/// Maximum number of bytes of the records that are read at a time.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Maximum number of batches that are hashed and compressed at once, each in a thread of its own.
const BATCHES_AT_ONCE: usize = 2;

static BATCHES: Semaphore = Semaphore::const_new(BATCHES_AT_ONCE);

/// A part that is being written. Memory is limited to one batch of records, and the manifest of a ZIP file.
#[derive(Debug)]
pub struct PartStream {
    records: Arc<SyncedRecords>,
    filter: ListFilter,
    after: Option<Position>,
    /// `None` at the end.
    writer: Option<PartWriter>,
}

impl PartStream {
    /// A part that a request names.
    ///
    /// # Errors
    ///
    /// There is no such part, or the store cannot be read.
    pub async fn of_part(
        collection: &SyncedCollection,
        (kind, part): (ListKind, Part),
        urls: &ListUrls,
        resources: Arc<dyn Resources>,
    ) -> Result<Self, SyncError> {
        let listed = collection.find_part(kind, part).await?;
        Ok(Self::new(collection, (kind, PartPlace::OneOfSeveral), &listed, urls, resources))
    }

    /// A list with this only part.
    pub(crate) fn of_list(
        collection: &SyncedCollection,
        (kind, part): (ListKind, &ListedPart),
        urls: &ListUrls,
        resources: Arc<dyn Resources>,
    ) -> Self {
        Self::new(collection, (kind, PartPlace::WholeList), part, urls, resources)
    }

    fn new(
        collection: &SyncedCollection,
        (kind, place): (ListKind, PartPlace),
        listed: &ListedPart,
        urls: &ListUrls,
        resources: Arc<dyn Resources>,
    ) -> Self {
        Self {
            records: Arc::clone(&collection.records),
            filter: collection.filter(kind, &listed.part),
            after: None,
            writer: Some(PartWriter::new((kind, place), listed, urls, resources)),
        }
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    ///
    /// A record is damaged, the repository was removed, or the store cannot be read. The bytes so far are no complete part.
    pub async fn next_piece(&mut self) -> Result<Option<Bytes>, SyncError> {
        while let Some(writer) = self.writer.take() {
            let query = ListQuery {
                filter: self.filter.clone(),
                after: self.after,
                count_max: BATCH_RECORDS,
                bytes_max: BATCH_BYTES_MAX,
                with_bytes: true,
            };
            let page = self.records.page(query).await?;
            self.after = page.next;
            let is_last = page.next.is_none();
            if is_last {
                self.records.check_whole().await?;
            }
            let (writer, piece) = write(writer, page.records, is_last).await?;
            self.writer = writer;
            if !piece.is_empty() {
                return Ok(Some(piece.into()));
            }
        }
        Ok(None)
    }
}

/// Writes a batch in a thread of its own, and the end after the last one.
async fn write(
    mut writer: PartWriter,
    records: Vec<StoredRecord>,
    is_last: bool,
) -> Result<(Option<PartWriter>, Vec<u8>), MirrorError> {
    let stopped = |error: &dyn std::error::Error| MirrorError::Stopped(error.to_string());
    let turn = BATCHES.acquire().await.map_err(|error| stopped(&error))?;
    let written = tokio::task::spawn_blocking(move || {
        // The thread goes on if the client disconnects, so the turn is its own.
        let _turn = turn;
        let mut piece = writer.write(&records)?;
        if is_last {
            piece.extend(writer.finish()?);
            return Ok((None, piece));
        }
        Ok((Some(writer), piece))
    });
    written.await.unwrap_or_else(|error| Err(stopped(&error)))
}
