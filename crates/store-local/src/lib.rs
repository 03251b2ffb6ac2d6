//! The stores of a data folder on the disk of this machine: databases of redb, and the record log of the mirror.

pub mod backup;
mod open;
mod record_log;
mod redb;

pub use open::{open, open_locked};
pub use record_log::RecordLog;
