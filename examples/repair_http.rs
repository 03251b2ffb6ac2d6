//! Repairs the body of an HTTP response chunk by chunk, in asynchronous code.
//!
//!     cargo run --example repair_http -- 'http://repository.example/oai?verb=Identify' > repaired.xml

use oaimend_repair::{RepairConfig, Repairer};
use std::io::Write as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: repair_http URL");
        std::process::exit(64);
    };
    let mut response = reqwest::get(url).await?.error_for_status()?;
    let mut repairer = Repairer::new(&RepairConfig::default());
    let mut stdout = std::io::stdout().lock();
    let mut repaired = Vec::new();
    // The engine neither waits nor blocks, so asynchronous code can call it for each chunk.
    while let Some(chunk) = response.chunk().await? {
        repairer.push(&chunk, &mut repaired);
        stdout.write_all(&repaired)?;
        repaired.clear();
    }
    let summary = repairer.finish(&mut repaired);
    stdout.write_all(&repaired)?;
    eprintln!("{}: {} records", summary.outcome, summary.records);
    Ok(())
}
