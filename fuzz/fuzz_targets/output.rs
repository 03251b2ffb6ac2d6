//! What goes out is one valid document or nothing.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| oaimend_fuzz::hold("output", input));
