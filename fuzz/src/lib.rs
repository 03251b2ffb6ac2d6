//! The properties that the fuzzers test, shared with the tests.
//!
//! `fuzzing` of the test support describes each target.

use oaimend_test_support::fuzzing;

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
