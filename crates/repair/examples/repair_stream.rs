//! Repairs a response of any length from standard input to standard output, with bounded memory.
//!
//!     curl -s 'http://repository.example/oai?verb=Identify' | cargo run -p oaimend-repair --example repair_stream

use oaimend_repair::RepairConfig;
use oaimend_repair::stream::RepairReader;

fn main() -> std::io::Result<()> {
    let mut response = RepairReader::new(std::io::stdin().lock(), &RepairConfig::default());
    std::io::copy(&mut response, &mut std::io::stdout().lock())?;
    let summary = response.summary().expect("the input has ended");
    eprintln!("{}: {} records", summary.outcome, summary.records);
    Ok(())
}
