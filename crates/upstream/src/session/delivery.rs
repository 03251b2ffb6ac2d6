//! The part of the response that was sent, and the part that waits for its first item.

use crate::xml::envelope_tags::EnvelopeTags;
use oaimend_oai::ErrorCode;
use oaimend_repository::{AnsweredBy, ByteRope, DeliveredRecord, Event, ListAge, ResponseWriter, Stop};
use oaimend_store::QuarantinedRecord;

/// Items that were not reported yet.
#[derive(Default)]
struct Unreported {
    records: Vec<DeliveredRecord>,
    quarantined: Vec<QuarantinedRecord>,
}

/// The response of a session, over all attempts.
pub(crate) struct Delivery {
    writer: ResponseWriter,
    /// Output from before the first item: it is sent together with that.
    waiting: ByteRope,
    /// Records and quarantined items that are reported before the next output is sent.
    unreported: Unreported,
    /// The error code of `waiting`, if it is an error response.
    waiting_error: Option<ErrorCode>,
    /// The tags around the items that were sent, once one was.
    tags: Option<EnvelopeTags>,
    /// The end tag of the document element was sent: nothing may follow.
    is_document_closed: bool,
}

impl Delivery {
    pub(crate) fn new(writer: ResponseWriter) -> Self {
        Self {
            writer,
            waiting: ByteRope::default(),
            unreported: Unreported::default(),
            waiting_error: None,
            tags: None,
            is_document_closed: false,
        }
    }

    /// Whether a part of the response was sent, so that what follows must continue it.
    pub(crate) fn has_begun(&self) -> bool {
        self.writer.has_begun()
    }

    /// The number of bytes that were sent.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.writer.sent_bytes()
    }

    /// Fails if the harvester is gone.
    pub(crate) fn check_receiver(&self) -> Result<(), Stop> {
        self.writer.check_receiver()
    }

    /// Sets the times of the list for the head of the response.
    pub(crate) fn set_list_age(&mut self, age: ListAge) {
        self.writer.set_list_age(age);
    }

    /// The tags that are open around the items that were sent.
    pub(crate) fn tags(&self) -> Option<EnvelopeTags> {
        self.tags.clone()
    }

    /// Whether more items may follow what was sent.
    pub(crate) fn can_continue(&self) -> bool {
        !self.is_document_closed && self.tags.is_some()
    }

    /// Remembers the tags around the items, once.
    pub(crate) fn note_tags(&mut self, tags: Option<&EnvelopeTags>) {
        if self.tags.is_none() {
            self.tags = tags.cloned();
        }
    }

    pub(crate) fn note_document_closed(&mut self, is_closed: bool) {
        self.is_document_closed |= is_closed;
    }

    /// Output that waits for the first item.
    pub(crate) fn waiting(&self) -> &ByteRope {
        &self.waiting
    }

    /// Adds output to what waits. `error` is the code of an error response.
    pub(crate) fn hold(&mut self, output: ByteRope, error: Option<ErrorCode>) {
        if !output.is_empty() {
            self.waiting_error = self.waiting_error.or(error);
        }
        self.waiting.append(output);
    }

    /// Replaces what waits. `error` is the code of an error response.
    pub(crate) fn replace_waiting(&mut self, output: ByteRope, error: Option<ErrorCode>) {
        (self.waiting, self.waiting_error) = (output, error);
    }

    pub(crate) fn take_waiting(&mut self) -> ByteRope {
        self.waiting_error = None;
        std::mem::take(&mut self.waiting)
    }

    /// The error code of what waits.
    pub(crate) fn waiting_error(&self) -> Option<ErrorCode> {
        self.waiting_error
    }

    /// Notes records and quarantined items, which are reported before the next output.
    pub(crate) fn note_items(&mut self, records: Vec<DeliveredRecord>, quarantined: Vec<QuarantinedRecord>) {
        self.unreported.records.extend(records);
        self.unreported.quarantined.extend(quarantined);
    }

    /// Takes the quarantined items that were not reported.
    pub(crate) fn take_quarantined(&mut self) -> Vec<QuarantinedRecord> {
        std::mem::take(&mut self.unreported.quarantined)
    }

    /// Drops the output that waits, and the items in it.
    pub(crate) fn forget_waiting(&mut self) {
        self.take_waiting();
        if !self.has_begun() {
            self.unreported = Unreported::default();
        }
    }

    /// Sends output. `status` is that of the source.
    pub(crate) async fn send(&mut self, output: ByteRope, status: u16) -> Result<(), Stop> {
        if output.is_empty() {
            return Ok(());
        }
        self.report_items().await?;
        self.writer.send(output, AnsweredBy::Source(status)).await
    }

    /// Reports the noted items.
    async fn report_items(&mut self) -> Result<(), Stop> {
        let Unreported { records, quarantined } = std::mem::take(&mut self.unreported);
        if !records.is_empty() {
            self.writer.report(Event::Records(records)).await?;
        }
        if !quarantined.is_empty() {
            self.writer.report(Event::Quarantined(quarantined)).await?;
        }
        Ok(())
    }

    /// Sends what waits.
    pub(crate) async fn send_waiting(&mut self, status: u16) -> Result<(), Stop> {
        let waiting = self.take_waiting();
        self.send(waiting, status).await
    }

    /// Ends the response.
    pub(crate) async fn finish(&mut self) -> Result<(), Stop> {
        self.report_items().await?;
        self.writer.finish().await
    }

    /// Sends a whole response, or the rest of one, and ends it.
    pub(crate) async fn send_all(&mut self, output: Vec<u8>) -> Result<(), Stop> {
        self.send(output.into(), 200).await?;
        self.finish().await
    }
}
