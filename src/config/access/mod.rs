//! What requests to one source contain besides the query, and the way that they take.

pub(super) mod bearer_token;
pub(super) mod headers;
pub(super) mod proxy;
