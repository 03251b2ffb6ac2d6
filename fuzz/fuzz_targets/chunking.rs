//! How the input was cut makes no difference.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| oaimend_fuzz::hold("chunking", input));
