//! The events of a response, in order.

use crate::failure::Failure;
use crate::response_summary::ResponseSummary;
use bytes::Bytes;
use oaimend_oai::UnixSecs;
use oaimend_store::{QuarantinedRecord, RecordRepairs};
use std::ops::Range;

/// The events of a response, in order.
#[derive(Debug)]
pub enum Event {
    /// The response begins; a status of 200.
    Head(ResponseHead),
    /// Records in the next pieces of the body. Only if the request asks for them.
    Records(Vec<DeliveredRecord>),
    /// Items that are missing in the body, because they are in quarantine. Only if the request asks for
    /// them.
    Quarantined(Vec<QuarantinedRecord>),
    /// A piece of its body.
    Body(Bytes),
    /// The response is whole.
    End(Box<ResponseSummary>),
    /// There is no response or, after a head, no whole one.
    Failed(Failure, Box<ResponseSummary>),
}

/// The facts of a response when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The origin of the response.
    pub answered_by: AnsweredBy,
    /// The length of the response in bytes, if it was held until it was whole.
    pub length: Option<usize>,
    /// The times of a list of records or headers; `None` for other responses, and for those of the mirror.
    pub list: Option<ListAge>,
}

/// The origin of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnsweredBy {
    /// The source, with this HTTP status.
    Source(u16),
    /// The mirror. Contains the failure of the source if the mirror answers in its place.
    Mirror(Option<Box<Failure>>),
}

/// The times of a page of a list, by the clock of the source, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListAge {
    /// The state that the list shows: it contains all changes before this time. It is the same for all pages.
    pub state_secs: UnixSecs,
    /// The responseDate of the page.
    pub response_date_secs: UnixSecs,
}

/// A record, or the header of one, in a page of a list or in a response to `GetRecord`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredRecord {
    /// Its identifier, with references resolved.
    pub identifier: String,
    /// Its datestamp.
    pub datestamp: String,
    /// Whether its header says `status="deleted"`.
    pub deleted: bool,
    /// Its setSpecs, in order.
    pub set_specs: Vec<String>,
    /// The element with declarations for all namespaces that it needs: it can be written into any list
    /// whose elements have no prefix.
    pub xml: String,
    /// The place of the datestamp's text in `xml`, in bytes.
    pub datestamp_at: Range<usize>,
    /// The repairs that were made in it.
    pub repairs: RecordRepairs,
}
