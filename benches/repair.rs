//! Benchmarks of the engine in memory: clean pages, broken pages, small chunks, and a
//! read-to-write loop of quick-xml with the same bytes.
//!
//! Run it with `cargo bench -p oaimend`. `benches/compare` measures whole processes.

mod pages;

use std::hint::black_box;
use std::io::Cursor;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use oaimend_repair::{RepairConfig, Repairer, Sink};
use pages::{Format, page};

const RECORDS: usize = 1000;
const SEED: u64 = 20_261_121;
/// The length of a chunk from the network, in bytes.
const PIECE: usize = 64 << 10;

/// Counts the output: the cheapest consumer that reads all of it.
#[derive(Default)]
struct Counter {
    bytes: usize,
    repairs: usize,
}

impl Sink for Counter {
    fn write(&mut self, bytes: &[u8]) {
        self.bytes += black_box(bytes).len();
    }

    fn repaired(&mut self, _: &oaimend_repair::Repair<'_>) {
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

/// The page in OAI-PMH 1.1.
fn version_one(page: &[u8]) -> Vec<u8> {
    const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
        <ListRecords xmlns=\"http://www.openarchives.org/OAI/1.1/OAI_ListRecords\" \
        xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
        xsi:schemaLocation=\"http://www.openarchives.org/OAI/1.1/OAI_ListRecords \
        http://www.openarchives.org/OAI/1.1/OAI_ListRecords.xsd\">\n\
        \t<responseDate>2001-06-10T14:09:57-07:00</responseDate>\n\
        \t<requestURL>http://repository.example.org/oai?verb=ListRecords&amp;metadataPrefix=oai_dc</requestURL>\n";
    const CONTAINER: &str = "<dc xmlns=\"http://purl.org/dc/elements/1.1/\"\n\
        \txmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n\
        \txsi:schemaLocation=\"http://purl.org/dc/elements/1.1/\n\
        \thttp://www.openarchives.org/OAI/1.1/dc.xsd\">";
    let text = std::str::from_utf8(page).expect("a clean page is UTF-8");
    let (_, records) = text.split_once("<ListRecords>\n").expect("a page has its list");
    let start = records.find("<oai_dc:dc").expect("a record has its payload");
    let len = records[start..].find('>').expect("a tag ends") + 1;
    let old = records.replace(&records[start..start + len], CONTAINER).replace("</oai_dc:dc>", "</dc>");
    let old = old.replace("<dc:", "<").replace("</dc:", "</").replace("</OAI-PMH>\n", "");
    let lines = old.lines().filter(|line| !line.contains("<setSpec>"));
    [HEAD, &lines.collect::<Vec<_>>().join("\n")].concat().into_bytes()
}

/// The output of the engine for a page.
fn repaired(page: &[u8]) -> Vec<u8> {
    #[derive(Default)]
    struct Kept(Vec<u8>);
    impl Sink for Kept {
        fn write(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
    }
    let mut kept = Kept::default();
    let mut repairer = Repairer::new(&RepairConfig::default());
    repairer.push(page, &mut kept);
    let summary = repairer.finish(&mut kept);
    assert_eq!(summary.records, RECORDS as u64, "{summary:?}");
    kept.0
}

fn benches(criterion: &mut Criterion) {
    let old = version_one(&page(Format::OaiDc, RECORDS, 0, SEED));
    let upgraded = repaired(&old);
    let inputs = [
        ("oai_dc of 1.1", old, PIECE),
        ("oai_dc of 1.1, upgraded", upgraded, PIECE),
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
