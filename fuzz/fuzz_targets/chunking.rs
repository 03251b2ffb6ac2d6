//! The chunks of the input make no difference.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| oaimend_fuzz::check("chunking", input));
