//! A page is damaged anywhere; no item and no token is lost silently.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| oaimend_fuzz::check("losses", input));
