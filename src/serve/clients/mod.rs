//! Clients: their classes, their quotas, and the current limits of both.

pub(crate) mod client_class;
pub(crate) mod limits;
pub(crate) mod quotas;
