//! One record is damaged; all others stay unchanged.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| oaimend_fuzz::check("neighbours", input));
