//! A page is damaged anywhere, and no item and no token is lost without saying so.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| oaimend_fuzz::hold("losses", input));
