//! Answers requests for the pages of the gateway.
//!
//! Pages are made from the store of the mirror alone: no request for a page causes a request to a source.

mod answer;
mod record;
pub(crate) mod state;
mod validators;

pub(crate) use answer::{GatewayResponse, answer};
