//! The events of a response, in order.

use crate::upstream::account::Account;
use crate::upstream::failure::Failure;
use bytes::Bytes;

/// The events of a response, in order.
#[derive(Debug)]
pub enum Event {
    /// The response begins; a status of 200.
    Head(ResponseHead),
    /// A piece of its body.
    Body(Bytes),
    /// The response is whole.
    End(Box<Account>),
    /// There is no response or, after a head, no whole one.
    Failed(Failure, Box<Account>),
}

/// What is known of a response when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status of the source.
    pub received_status: u16,
    /// The length of the response in bytes, if it was held until it was whole.
    pub length: Option<usize>,
}
