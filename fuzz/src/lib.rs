//! The properties that the fuzzers try to break, taken from the tests.
//!
//! Only the modules that need neither files nor a process; see
//! tests/support/fuzzing.rs for what each target says.
#![allow(dead_code, reason = "the tests use the rest")]

#[path = "../../tests/support/damage.rs"]
mod damage;
#[path = "../../tests/support/envelope.rs"]
mod envelope;
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
#[path = "../../tests/support/old.rs"]
mod old;
#[path = "../../tests/support/random.rs"]
mod random;
#[path = "../../tests/support/strict.rs"]
mod strict;
#[path = "../../tests/support/trial.rs"]
mod trial;

/// Holds an input against the property of that name.
///
/// # Panics
///
/// When the property does not hold: that is how a fuzzer finds it.
pub fn hold(target: &str, input: &[u8]) {
    let property = fuzzing::TARGETS.iter().find(|(name, _)| *name == target);
    let (_, property) = property.expect("each target has its property");
    if let Err(error) = property(input) {
        panic!("{error}");
    }
}
