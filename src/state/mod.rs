//! What must survive a restart.

mod quarantine;

pub use quarantine::{Entry, PutAside, Quarantine, QuarantineError};
