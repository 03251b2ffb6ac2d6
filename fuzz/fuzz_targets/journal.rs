//! Replay of the journal gives the output, undo gives the text.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| oaimend_fuzz::check("journal", input));
