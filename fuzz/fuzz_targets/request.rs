//! A request is read, written and echoed as what it is, or refused validly.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| oaimend_fuzz::hold("request", input));
