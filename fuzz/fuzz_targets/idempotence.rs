//! Repairing the output changes nothing.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| oaimend_fuzz::check("idempotence", input));
