//! The events of a response, in order.

use crate::upstream::account::Account;
use crate::upstream::failure::Failure;
use bytes::Bytes;

/// What happens, in order.
#[derive(Debug)]
pub enum Event {
    /// The answer begins; a status of 200.
    Head(ResponseHead),
    /// A piece of it.
    Body(Bytes),
    /// It was whole.
    End(Box<Account>),
    /// There is no answer or, behind a head, no whole one.
    Failed(Failure, Box<Account>),
}

/// What is known of an answer when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status the source answered with.
    pub received_status: u16,
    /// The length of the whole answer in bytes, where it was held back.
    pub length: Option<usize>,
}
