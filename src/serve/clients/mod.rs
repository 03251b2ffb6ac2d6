//! Clients: their classes, and the quotas of clients and classes.

pub(crate) mod client_class;
pub(crate) mod quotas;
