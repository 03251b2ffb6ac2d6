//! Measures tapes: building beside `gzip -6`, GetRecord by the number of records, and the time to open a tape.
//!
//! `cargo run --profile dist -p oaimend-tape --example tape_speed FOLDER [build|read]` measures both or one of them. It needs
//! `gzip` and 500 MB in FOLDER. The runs of both programs alternate, and the medians are printed.

use oaimend_base::clock::uptime;
use oaimend_tape::{OnDuplicate, Tape, TapeBuild, TapeDescription, TapeRecord};
use std::error::Error;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const RUNS: usize = 5;
const BUILD_RECORDS: u32 = 100_000;
const LENGTHS: [u32; 2] = [10_000, 1_000_000];
const READS: u32 = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("expected a folder")?;
    let folder = Path::new(&folder);
    let part = std::env::args().nth(2);
    if part.as_deref() != Some("read") {
        measure_build(folder)?;
    }
    if part.as_deref() != Some("build") {
        measure_reads(folder)?;
    }
    Ok(())
}

fn measure_build(folder: &Path) -> Result<(), Box<dyn Error>> {
    let tape = folder.join("speed.xml.gz");
    build(&tape, BUILD_RECORDS)?;
    let xml = folder.join("speed.xml");
    io::copy(&mut flate2::read::MultiGzDecoder::new(File::open(&tape)?), &mut File::create(&xml)?)?;
    let (mut ours, mut gzip) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        ours.push(timed(|| build(&tape, BUILD_RECORDS))?);
        gzip.push(timed(|| compress(&xml))?);
    }
    let (ours, gzip) = (median(ours), median(gzip));
    println!(
        "build {BUILD_RECORDS} records, {} bytes of XML: {ours:?}, gzip -6: {gzip:?}",
        xml.metadata()?.len()
    );
    Ok(())
}

fn measure_reads(folder: &Path) -> Result<(), Box<dyn Error>> {
    for length in LENGTHS {
        let path = folder.join(format!("{length}.xml.gz"));
        build(&path, length)?;
        let mut opened = Vec::new();
        for _ in 0..RUNS {
            opened.push(timed(|| Tape::open(&path).map(drop).map_err(Into::into))?);
        }
        let tape = Tape::open(&path)?;
        let mut read = Vec::new();
        for _ in 0..RUNS {
            read.push(timed(|| {
                for number in 0..READS {
                    let number = number.wrapping_mul(2_654_435_761) % length;
                    tape.record(&record(number).identifier, 0)?.ok_or("a record is missing")?;
                }
                Ok(())
            })?);
        }
        let (opened, read) = (median(opened), median(read) / READS);
        println!("{length} records: opened in {opened:?}, GetRecord {read:?}");
    }
    Ok(())
}

fn build(path: &Path, count: u32) -> Result<(), Box<dyn Error>> {
    let mut tape = TapeBuild::begin(path, TapeDescription::default())?;
    for number in 0..count {
        tape.add(&record(number))?;
    }
    tape.finish(OnDuplicate::KeepNewest)?;
    Ok(())
}

fn compress(xml: &Path) -> Result<(), Box<dyn Error>> {
    let mut gzip = Command::new("gzip");
    let status = gzip.args(["-6", "-c"]).arg(xml).stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err("gzip failed".into()) }
}

/// A record of about 1.5 KiB whose words look random, as text does.
fn record(number: u32) -> TapeRecord {
    let mut state = u64::from(number) + 1;
    let mut words = String::new();
    for _ in 0..150 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        words.push_str(WORDS[(state >> 33) as usize % WORDS.len()]);
        words.push(' ');
    }
    TapeRecord {
        identifier: format!("oai:speed.example:{number:08}"),
        datestamp: format!(
            "20{:02}-{:02}-{:02}T00:00:00Z",
            number / 50_000 % 30,
            number / 4_000 % 12 + 1,
            number / 150 % 28 + 1
        ),
        prefix: Some("oai_dc".to_owned()),
        set_specs: vec![format!("set:{}", number % 100)],
        metadata: format!(
            "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>Letter {state:x}</dc:title><dc:description>{words}\
             </dc:description><dc:identifier>https://speed.example/{number}</dc:identifier></oai_dc:dc>"
        ),
        ..TapeRecord::default()
    }
}

const WORDS: [&str; 32] = [
    "letter",
    "from",
    "the",
    "archive",
    "of",
    "a",
    "city",
    "about",
    "trade",
    "with",
    "northern",
    "towns",
    "in",
    "winter",
    "and",
    "ships",
    "that",
    "carried",
    "grain",
    "salt",
    "cloth",
    "to",
    "harbours",
    "where",
    "merchants",
    "wrote",
    "accounts",
    "maps",
    "charters",
    "seals",
    "which",
    "remain",
];

fn timed(work: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<Duration, Box<dyn Error>> {
    let start = uptime();
    work()?;
    Ok(uptime().saturating_sub(start))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
