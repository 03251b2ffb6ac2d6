//! The engine in memory: clean and broken pages, small pieces, and what a
//! read-to-write loop of quick-xml takes for the same bytes.
//!
//! `cargo bench`; whole processes are measured by benches/compare.

mod pages;

use std::hint::black_box;
use std::io::Cursor;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use oaimend::repair::{RepairConfig, Repairer, Sink};
use pages::{Format, page};

const RECORDS: usize = 1000;
const SEED: u64 = 20_261_121;
/// How the network cuts a body, in bytes.
const PIECE: usize = 64 << 10;

/// Counts what leaves, as the cheapest honest consumer.
#[derive(Default)]
struct Counter {
    bytes: usize,
    repairs: usize,
}

impl Sink for Counter {
    fn write(&mut self, bytes: &[u8]) {
        self.bytes += black_box(bytes).len();
    }

    fn repaired(&mut self, _: &oaimend::repair::Repair<'_>) {
        self.repairs += 1;
    }
}

fn repair(page: &[u8], piece: usize) -> (usize, usize) {
    let mut counter = Counter::default();
    let mut repairer = Repairer::new(&RepairConfig::default());
    for piece in page.chunks(piece) {
        repairer.push(piece, &mut counter);
    }
    black_box(repairer.finish(&mut counter));
    (counter.bytes, counter.repairs)
}

fn quick_xml_loop(page: &[u8]) -> usize {
    let mut reader = quick_xml::Reader::from_reader(page);
    let mut writer = quick_xml::Writer::new(Cursor::new(Vec::with_capacity(page.len())));
    let mut buffer = Vec::new();
    loop {
        match reader.read_event_into(&mut buffer) {
            Ok(quick_xml::events::Event::Eof) => break,
            Ok(event) => writer.write_event(event).expect("memory takes all bytes"),
            Err(error) => panic!("a clean page is well-formed: {error}"),
        }
        buffer.clear();
    }
    writer.into_inner().into_inner().len()
}

fn benches(criterion: &mut Criterion) {
    let inputs = [
        ("oai_dc clean", page(Format::OaiDc, RECORDS, 0, SEED), PIECE),
        ("oai_dc 1 % broken", page(Format::OaiDc, RECORDS, 10, SEED), PIECE),
        ("oai_dc 10 % broken", page(Format::OaiDc, RECORDS, 100, SEED), PIECE),
        ("oai_dc all broken", page(Format::OaiDc, RECORDS, 1000, SEED), PIECE),
        ("oai_dc clean, pieces of 100 bytes", page(Format::OaiDc, RECORDS, 0, SEED), 100),
        ("marcxml clean", page(Format::Marcxml, RECORDS, 0, SEED), PIECE),
        ("marcxml 10 % broken", page(Format::Marcxml, RECORDS, 100, SEED), PIECE),
    ];
    let mut group = criterion.benchmark_group("repair");
    for (name, page, piece) in &inputs {
        group.throughput(Throughput::Bytes(page.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(name), |bench| {
            bench.iter(|| repair(black_box(page), *piece));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("quick-xml read to write");
    for (name, page, _) in inputs.iter().filter(|(name, ..)| name.ends_with("clean")) {
        group.throughput(Throughput::Bytes(page.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(name), |bench| {
            bench.iter(|| quick_xml_loop(black_box(page)));
        });
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
