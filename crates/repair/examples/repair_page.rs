//! Repairs a page in memory and lists the changes.
//!
//!     cargo run -p oaimend-repair --example repair_page -- page.xml > repaired.xml

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: repair_page FILE");
        std::process::exit(64);
    };
    let repaired = oaimend_repair::repair(&std::fs::read(path)?);
    for entry in &repaired.journal {
        let [original, replacement] = [&entry.original, &entry.replacement].map(|text| text.escape_ascii());
        eprintln!("byte {}: {original} becomes {replacement}", entry.offset);
    }
    let summary = &repaired.summary;
    eprintln!("{}: {} records, {} in quarantine", summary.outcome, summary.records, summary.quarantined);
    std::io::stdout().write_all(&repaired.bytes)
}
