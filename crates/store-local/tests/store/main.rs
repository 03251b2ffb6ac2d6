//! Tests of the stores: the contract of all implementations, and the faults of the disk.

mod backup;
mod damage;
mod format;
mod full_disk;
mod kill;
mod record_log;
mod stores;
