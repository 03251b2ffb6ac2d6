//! The documents that wait for a writer thread. tantivy holds up to 10,000 of them whatever their length, which can be more
//! than the memory of its threads, so this queue counts their bytes.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use tantivy::TantivyDocument;
use tantivy::schema::Value;
use tantivy::schema::document::{DeserializeError, Document, DocumentDeserialize, DocumentDeserializer};

/// Bytes of a document and of each of its values beside their texts.
const VALUE_BYTES: usize = 16;

/// The bytes of the waiting documents.
#[derive(Debug)]
pub(super) struct WriteQueue {
    bytes: Mutex<usize>,
    bytes_max: usize,
    has_shrunk: Condvar,
}

/// A document that waits for a writer thread.
pub(super) struct QueuedDocument {
    document: TantivyDocument,
    _bytes: Option<QueuedBytes>,
}

/// The bytes of a waiting document.
struct QueuedBytes {
    queue: Arc<WriteQueue>,
    bytes: usize,
}

impl WriteQueue {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self { bytes: Mutex::new(0), bytes_max, has_shrunk: Condvar::new() }
    }

    /// Waits until there is room for a document. One that is longer than the queue waits until it is alone.
    pub(super) fn add(self: &Arc<Self>, document: TantivyDocument) -> QueuedDocument {
        let texts = document.iter_fields_and_values();
        let bytes = texts.map(|(_, value)| VALUE_BYTES + value.as_str().map_or(0, str::len)).sum();
        let queued = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |queued: &mut usize| *queued > 0 && *queued + bytes > self.bytes_max;
        *self.has_shrunk.wait_while(queued, is_full).unwrap_or_else(PoisonError::into_inner) += bytes;
        QueuedDocument { document, _bytes: Some(QueuedBytes { queue: Arc::clone(self), bytes }) }
    }
}

impl Drop for QueuedBytes {
    fn drop(&mut self) {
        *self.queue.bytes.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.queue.has_shrunk.notify_all();
    }
}

impl Document for QueuedDocument {
    type Value<'a> = <TantivyDocument as Document>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as Document>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.document.iter_fields_and_values()
    }

    /// A writer thread takes it.
    fn into_tantivy_document(self) -> TantivyDocument {
        self.document
    }
}

impl DocumentDeserialize for QueuedDocument {
    fn deserialize<'de, D: DocumentDeserializer<'de>>(deserializer: D) -> Result<Self, DeserializeError> {
        Ok(Self { document: TantivyDocument::deserialize(deserializer)?, _bytes: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tantivy::schema::Field;

    #[test]
    fn a_document_waits_until_there_is_room() {
        let queue = Arc::new(WriteQueue::new(100));
        let document = |length: usize| {
            let mut document = TantivyDocument::default();
            document.add_text(Field::from_field_id(0), "x".repeat(length));
            document
        };
        // A long one has the queue alone.
        let long = queue.add(document(500));
        let (added, waiting) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let queue = Arc::clone(&queue);
            scope.spawn(move || {
                let short = [queue.add(document(10)), queue.add(document(10))];
                added.send(short).expect("it is received");
            });
            // Time for a mistake.
            for _ in 0..1_000 {
                std::thread::yield_now();
                assert!(waiting.try_recv().is_err());
            }
            drop(long.into_tantivy_document());
            let short = waiting.recv().expect("there is room");
            assert_eq!(*short[0]._bytes.as_ref().expect("counted").queue.bytes.lock().expect("no panic"), 52);
        });
        assert_eq!(*queue.bytes.lock().expect("no panic"), 0);
    }
}
