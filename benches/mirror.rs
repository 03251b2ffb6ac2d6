//! Measures the store of the mirror: disk space, and the cost of each operation in stores of different sizes.
//!
//! `cargo bench --bench mirror` measures 10,000 and 100,000 records; `cargo bench --bench mirror -- 1000000` other
//! numbers. `OAIMEND_MIRROR_PAGE=FILE` takes the records of a saved ListRecords page instead of generated ones, and
//! `OAIMEND_MIRROR_SMALL=1` makes small records. The results are in docs/explanation/performance.md.

#[path = "pages.rs"]
#[allow(dead_code, reason = "only whole pages are used")]
mod pages;

use oaimend_base::clock::uptime;
use oaimend_oai::UnixSecs;
use oaimend_store::{
    HarvestProgress, Identifier, ListFilter, ListQuery, MirrorStore, NewRecord, PageCommit, Position, Prefix,
    RecordRepairs, RecordStatus, RepositoryId, content_hash,
};
use oaimend_store_local::RecordLog;
use redb::{ReadableDatabase, TableDefinition};
use std::path::Path;
use std::time::Duration;

const PAGE_RECORDS: usize = 100;
/// A larger store is filled with larger pages, and is not updated.
const TIMED_RECORDS_MAX: usize = 1_000_000;
const STAMP_SECS: i64 = 1_800_000_000;
const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");

/// The texts of records, which are used in turn with other identifiers.
struct Texts(Vec<String>);

impl Texts {
    fn read() -> Self {
        if std::env::var_os("OAIMEND_MIRROR_SMALL").is_some() {
            return Self((0..1000).map(|number| format!("<record><a>{number}</a></record>")).collect());
        }
        let page = match std::env::var_os("OAIMEND_MIRROR_PAGE") {
            Some(path) => std::fs::read(path).expect("OAIMEND_MIRROR_PAGE is a file"),
            None => pages::page(pages::Format::OaiDc, 10_000, 0, 20_261_123),
        };
        let page = String::from_utf8_lossy(&page);
        let records = page.split("<record>").skip(1).filter_map(|rest| rest.split_once("</record>"));
        Self(records.map(|(record, _)| format!("<record>{record}</record>")).collect())
    }

    /// A version of a record. Each version has a text of another record.
    fn record(&self, number: usize, version: usize) -> NewRecord {
        let text = &self.0[(number + version * 7919) % self.0.len()];
        let bytes = text.replacen("<record>", &format!("<record><!--{number} {version}-->"), 1);
        let set_specs = vec![format!("set{}", number % 50), format!("group:part{}", number % 7)];
        NewRecord {
            identifier: format!("oai:repository.example.org:article/{number}"),
            datestamp_secs: UnixSecs(STAMP_SECS - (number as i64 * 37) % 100_000_000),
            content_hash: content_hash(RecordStatus::Live, &set_specs, &[bytes.as_bytes()]),
            set_specs,
            status: RecordStatus::Live,
            bytes: bytes.into(),
            repairs: RecordRepairs::default(),
        }
    }
}

fn filter(set: Option<&str>) -> ListFilter {
    let [repository, prefix] = ["x", "oai_dc"].map(str::to_owned);
    ListFilter { repository, prefix, set: set.map(str::to_owned), ..ListFilter::default() }
}

async fn commit(store: &dyn MirrorStore, stamp_secs: i64, records: Vec<NewRecord>) {
    let progress: HarvestProgress =
        store.progress(RepositoryId("x"), Prefix("oai_dc")).await.expect("readable");
    let ListFilter { repository, prefix, .. } = filter(None);
    let stamp_secs = UnixSecs(stamp_secs);
    let page = PageCommit { repository, prefix, stamp_secs, records, progress, ..PageCommit::default() };
    store.commit(page).await.expect("writable");
}

/// A small multiplicative generator.
fn random(seed: &mut u64, below: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize % below
}

/// The median time of an operation.
async fn median<F: Future>(mut operation: impl FnMut(usize) -> F) -> Duration {
    let mut times = Vec::new();
    for round in 0..101 {
        let start = uptime();
        operation(round).await;
        times.push(uptime() - start);
    }
    times.sort_unstable();
    times[times.len() / 2]
}

async fn print_disk(store: &dyn MirrorStore, what: &str, raw_bytes: u64) {
    let usage = store.disk_usage().await.expect("readable");
    let share = |bytes: u64| bytes as f64 / raw_bytes as f64;
    println!(
        "  disk {what}: {:.3} of the records (blocks {:.3}, index {:.3})",
        share(usage.record_bytes + usage.index_bytes),
        share(usage.record_bytes),
        share(usage.index_bytes)
    );
}

async fn fill(store: &dyn MirrorStore, texts: &Texts, count: usize) -> u64 {
    let (mut raw_bytes, start) = (0, uptime());
    let mut generating = Duration::ZERO;
    let page_records = if count > TIMED_RECORDS_MAX { 10 * PAGE_RECORDS } else { PAGE_RECORDS };
    for first in (0..count).step_by(page_records) {
        let before = uptime();
        let end = (first + page_records).min(count);
        let records: Vec<NewRecord> = (first..end).map(|number| texts.record(number, 0)).collect();
        raw_bytes += records.iter().map(|record| record.bytes.len() as u64).sum::<u64>();
        generating += uptime() - before;
        commit(store, STAMP_SECS + first as i64 / 10_000, records).await;
    }
    let time = (uptime() - start - generating).as_secs_f64();
    println!("  full harvest: {:.0} records a second, {:.1} s", count as f64 / time, time);
    raw_bytes
}

async fn update(store: &dyn MirrorStore, texts: &Texts, count: usize) {
    let mut seed = 20_261_123;
    println!("  seed {seed}");
    for round in 1..=10 {
        for page in 0..count / 10 / PAGE_RECORDS {
            let numbers = (0..PAGE_RECORDS).map(|_| random(&mut seed, count));
            let records = numbers.map(|number| texts.record(number, round)).collect();
            commit(store, STAMP_SECS + 200_000_000 + 1_000_000 * round as i64 + page as i64, records).await;
        }
    }
}

async fn measure_operations(store: &dyn MirrorStore, texts: &Texts, count: usize) {
    let mut seed = 7;
    let page = |after, set| ListQuery {
        filter: filter(set),
        after,
        count_max: PAGE_RECORDS,
        bytes_max: usize::MAX,
        with_bytes: true,
    };
    let mut positions: Vec<Option<Position>> = vec![None];
    for _ in 0..200 {
        let sequence = random(&mut seed, count - PAGE_RECORDS) as u64;
        positions.push(Some(Position { secs: UnixSecs(0), sequence }));
    }
    let identifiers: Vec<String> =
        (0..200).map(|_| texts.record(random(&mut seed, count), 0).identifier).collect();
    let list = median(|round| store.list(page(positions[round], None))).await;
    let set = median(|round| store.list(page(positions[round], Some("set7")))).await;
    let headers =
        median(|round| store.list(ListQuery { with_bytes: false, ..page(positions[round], None) })).await;
    let one =
        median(|round| store.record(RepositoryId("x"), Prefix("oai_dc"), Identifier(&identifiers[round])))
            .await;
    let counted = median(|round| {
        let from_secs = Some(UnixSecs(STAMP_SECS + 1 + round as i64 % 7));
        store.count(ListFilter { from_secs, ..filter(Some("set7")) })
    })
    .await;
    let stamp = STAMP_SECS + 100_000_000;
    let unchanged: Vec<Vec<NewRecord>> = (0..101)
        .map(|_| {
            let found = (0..PAGE_RECORDS).map(|_| texts.record(random(&mut seed, count), 99));
            found.collect()
        })
        .collect();
    let changed = median(|round| commit(store, stamp, unchanged[round].clone())).await;
    let same = median(|round| commit(store, stamp, unchanged[round].clone())).await;
    let empty = median(|_| commit(store, stamp, Vec::new())).await;
    println!("  list page of {PAGE_RECORDS}: {list:.0?}; in a set of 2 %: {set:.0?}; headers: {headers:.0?}");
    println!("  GetRecord: {one:.0?}; count by set and from: {counted:.0?}");
    println!("  commit of {PAGE_RECORDS}: changed {changed:.0?}, unchanged {same:.0?}, empty {empty:.0?}");
}

/// Prints the highest resident memory of this process.
fn print_memory() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("VmHWM")) {
        println!("  {}", line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
}

/// The same records in one table of redb, compressed one by one.
fn measure_table(folder: &Path, texts: &Texts, count: usize) {
    let path = folder.join("table.redb");
    let database = redb::Database::create(&path).expect("writable");
    let mut compressor = zstd::bulk::Compressor::new(3).expect("a legal level");
    let (mut raw_bytes, mut generating, start) = (0, Duration::ZERO, uptime());
    let mut write = |numbers: Vec<usize>, version| {
        let before = uptime();
        let records: Vec<NewRecord> = numbers.iter().map(|&number| texts.record(number, version)).collect();
        generating += uptime() - before;
        let writing = database.begin_write().expect("open");
        {
            let mut table = writing.open_table(TABLE).expect("a table");
            for record in &records {
                let bytes = compressor.compress(&record.bytes).expect("small");
                table.insert(record.identifier.as_str(), bytes.as_slice()).expect("writable");
            }
        }
        writing.commit().expect("writable");
        records.iter().map(|record| record.bytes.len() as u64).sum::<u64>()
    };
    for first in (0..count).step_by(PAGE_RECORDS) {
        raw_bytes += write((first..(first + PAGE_RECORDS).min(count)).collect(), 0);
    }
    let disk = || {
        use std::os::unix::fs::MetadataExt as _;
        let blocks = std::fs::metadata(&path).expect("readable").blocks();
        blocks as f64 * 512.0 / raw_bytes as f64
    };
    let harvested = disk();
    let mut seed = 20_261_123;
    for round in 1..=10 {
        for _ in 0..count / 10 / PAGE_RECORDS {
            write((0..PAGE_RECORDS).map(|_| random(&mut seed, count)).collect(), round);
        }
    }
    println!("  one redb table: disk {harvested:.3} after the harvest, {:.3} after updates", disk());
    let time = (uptime() - start - generating).as_secs_f64();
    println!("  one redb table: {:.0} records a second", 2.0 * count as f64 / time);
    let reading = database.begin_read().expect("open");
    let table = reading.open_table(TABLE).expect("a table");
    let mut decompressor = zstd::bulk::Decompressor::new().expect("memory");
    let mut times = Vec::new();
    for _ in 0..101 {
        let key = texts.record(random(&mut seed, count), 0).identifier;
        let start = uptime();
        for row in table.range(key.as_str()..).expect("readable").take(PAGE_RECORDS) {
            let (_, bytes) = row.expect("readable");
            std::hint::black_box(decompressor.decompress(bytes.value(), 1 << 20).expect("compressed"));
        }
        times.push(uptime() - start);
    }
    times.sort_unstable();
    println!("  one redb table: list page of {PAGE_RECORDS}: {:.0?}", times[times.len() / 2]);
}

async fn measure(texts: &Texts, count: usize) {
    println!("{count} records");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = RecordLog::open(folder.path()).expect("writable");
    let raw_bytes = fill(&store, texts, count).await;
    print_disk(&store, "after a full harvest", raw_bytes).await;
    measure_operations(&store, texts, count).await;
    if count <= TIMED_RECORDS_MAX {
        update(&store, texts, count).await;
        print_disk(&store, "after ten rounds of updates", raw_bytes).await;
        store.compact(RepositoryId("x")).await.expect("writable");
        print_disk(&store, "after a thorough compaction", raw_bytes).await;
        let start = uptime();
        let verification = store.verify(RepositoryId("x")).await.expect("readable");
        println!("  verify: {:.1?} for {} records", uptime() - start, verification.records);
    }
    print_memory();
    store.close();
    let start = uptime();
    let store = RecordLog::open(folder.path()).expect("readable");
    store.count(filter(None)).await.expect("readable");
    println!("  start: {:.1?}", uptime() - start);
    drop(store);
    if count <= 100_000 {
        measure_table(folder.path(), texts, count);
    }
}

#[tokio::main]
async fn main() {
    let counts: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let texts = Texts::read();
    let bytes: usize = texts.0.iter().map(String::len).sum();
    println!("records of {} bytes on average", bytes / texts.0.len());
    for count in if counts.is_empty() { vec![10_000, 100_000] } else { counts } {
        measure(&texts, count).await;
    }
}
