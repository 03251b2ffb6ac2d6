//! A valid request can be written and parsed again; an invalid one gets a valid error response.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| oaimend_fuzz::check("request", input));
