//! The properties that the fuzzers test, shared with the tests.
//!
//! Only the modules that need neither files nor other processes are included;
//! tests/support/fuzzing.rs describes each target.
#![allow(dead_code, reason = "the tests use the rest")]

#[path = "../../tests/support/damage.rs"]
mod damage;
#[path = "../../tests/support/envelope.rs"]
mod envelope;
#[path = "../../tests/support/events.rs"]
mod events;
#[path = "../../tests/support/forgery.rs"]
mod forgery;
#[path = "../../tests/support/fuzzing.rs"]
mod fuzzing;
#[path = "../../tests/support/harness.rs"]
mod harness;
#[path = "../../tests/support/invariants.rs"]
mod invariants;
#[path = "../../tests/support/losses.rs"]
mod losses;
#[path = "../../tests/support/names.rs"]
mod names;
#[path = "../../tests/support/random.rs"]
mod random;
#[path = "../../tests/support/strict.rs"]
mod strict;
#[path = "../../tests/support/trial.rs"]
mod trial;
#[path = "../../tests/support/v1.rs"]
mod v1;

/// Checks the property of that name for an input.
///
/// # Panics
///
/// If the property does not hold: a fuzzer looks for panics.
pub fn check(target: &str, input: &[u8]) {
    let property = fuzzing::TARGETS.iter().find(|(name, _)| *name == target);
    let (_, property) = property.expect("each target has its property");
    if let Err(error) = property(input) {
        panic!("{error}");
    }
}
