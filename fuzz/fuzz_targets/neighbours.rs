//! One record is damaged, all others keep their bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| oaimend_fuzz::hold("neighbours", input));
