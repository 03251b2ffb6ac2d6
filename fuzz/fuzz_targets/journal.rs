//! Replay gives the output, undo the text.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| oaimend_fuzz::hold("journal", input));
