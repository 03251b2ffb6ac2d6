//! Tests of the stores of the mirror: one contract for all implementations, and the faults of each.

#[path = "../support/random.rs"]
#[allow(dead_code, reason = "only its generator of numbers is used")]
mod random;

mod contract;
mod damage;
mod fixtures;
mod format;
mod full_disk;
mod kill;
mod model;
mod record_log;
