//! The events of a response, in order.

use crate::repository::account::Account;
use crate::repository::failure::Failure;
use crate::store::QuarantinedRecord;
use bytes::Bytes;
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
    End(Box<Account>),
    /// There is no response or, after a head, no whole one.
    Failed(Failure, Box<Account>),
}

/// The facts of a response when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status of the source.
    pub received_status: u16,
    /// The length of the response in bytes, if it was held until it was whole.
    pub length: Option<usize>,
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
}
