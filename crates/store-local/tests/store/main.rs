//! Tests of the stores of the mirror: one contract for all implementations, and the faults of each.

mod contract;
mod damage;
mod fixtures;
mod format;
mod full_disk;
mod kill;
mod model;
mod record_log;
mod stores;
