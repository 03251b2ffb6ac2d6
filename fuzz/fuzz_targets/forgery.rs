//! The record of an attacker is one of many shapes; it forges, changes and removes no other record.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| oaimend_fuzz::check("forgery", input));
