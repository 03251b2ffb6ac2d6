//! Measures lists of the mirror in derived formats, beside the same lists in the format that is read.
//!
//! `cargo bench -p oaimend-crosswalks` prints the speed of each format as a part of the speed without a crosswalk, in pages
//! per CPU second of the whole process: the median of all rounds, and their range. Rounds of all formats alternate. A
//! first list reads all records from the store and converts them, and a later one finds pages and converted records in memory,
//! as it finds the pages without a crosswalk there. The results are in docs/explanation/performance.md.

#[path = "pages.rs"]
#[allow(dead_code, reason = "only whole pages are used")]
mod pages;

use oaimend_base::clock::{Clock as _, SystemClock};
use oaimend_crosswalks::{
    BUILT_IN, ConvertedRecords, CrosswalkChoice, CrosswalkChoices, CrosswalkRepository, CrosswalkSettings,
    QuarantineSettings,
};
use oaimend_mirror::Stamps;
use oaimend_mirror::view::{MirrorRepository, MirroredSource, ViewOptions, ViewStores};
use oaimend_oai::{Request, UnixSecs};
use oaimend_repository::{Event, HarvesterTraits, Repository, RepositoryRequest};
use oaimend_store::{
    Catalog, CompleteHarvest, HarvestProgress, ListedFormat, NewRecord, PageCommit, RecordRepairs,
    RecordStatus, RepositoryId, Store, content_hash,
};
use oaimend_xslt::{WorkerProgram, XsltLimits, XsltWorker};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RECORDS: usize = 3_000;
const ROUNDS: usize = 15;

/// The source formats with their namespaces, and the formats that are made of them.
const MEASURED: [(pages::Format, &str, &str, &[&str]); 2] = [
    (
        pages::Format::OaiDc,
        "oai_dc",
        "http://www.openarchives.org/OAI/2.0/oai_dc/",
        &["oai_datacite", "mods", "didl", "DIDL.identifiers", "mets", "schema_org"],
    ),
    (pages::Format::Marcxml, "marcxml", "http://www.loc.gov/MARC21/slim", &["oai_dc"]),
];

fn records(format: pages::Format) -> Vec<NewRecord> {
    let page = pages::page(format, RECORDS, 0, 20_261_123);
    let page = String::from_utf8_lossy(&page);
    let texts = page.split("<record>").skip(1).filter_map(|rest| rest.split_once("</record>"));
    let record = |(number, (text, _)): (usize, (&str, &str))| {
        let bytes = format!("<record>{text}</record>");
        NewRecord {
            identifier: format!("oai:repository.example.org:article/{number}"),
            datestamp_secs: UnixSecs(1_700_000_000),
            content_hash: content_hash(RecordStatus::Live, &[], &[bytes.as_bytes()]),
            set_specs: Vec::new(),
            status: RecordStatus::Live,
            bytes: bytes.into(),
            repairs: RecordRepairs::default(),
        }
    };
    texts.enumerate().map(record).collect()
}

async fn fill(store: &Store, stores: &ViewStores, format: pages::Format, prefix: &str, namespace: &str) {
    let (prefix, namespace) = (prefix.to_owned(), namespace.to_owned());
    let listed = ListedFormat { prefix: prefix.clone(), schema: String::new(), namespace };
    let catalog = Catalog { formats: vec![listed], ..Catalog::default() };
    store.mirror.save_catalog(RepositoryId(&prefix), catalog).await.expect("writable");
    let last_complete = Some(CompleteHarvest { from_secs: UnixSecs(1_700_000_000), lead_secs: 0 });
    let progress = HarvestProgress { last_complete, ..HarvestProgress::default() };
    let (repository, records) = (prefix.clone(), records(format));
    let page = PageCommit { repository, prefix, records, progress, ..PageCommit::default() };
    stores.stamps.commit(page, SystemClock.now_secs()).await.expect("writable");
}

/// The CPU time of all threads so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).expect("below a second"))
}

/// The whole list: its bytes, and the CPU time that it took.
async fn list(repository: &dyn Repository, prefix: &str) -> (usize, Duration) {
    let mut query = format!("verb=ListRecords&metadataPrefix={prefix}");
    let (start, mut bytes) = (cpu_time(), 0);
    loop {
        let request = Request::parse(query.as_bytes()).expect("a legal request");
        let echo = Arc::new(request.to_echo("http://proxy.example/x"));
        let request = RepositoryRequest {
            request,
            echo,
            via: String::new(),
            harvester: HarvesterTraits::default(),
            in_one_piece: false,
            reports_records: false,
        };
        let (mut events, mut token) = (repository.answer(request), None);
        while let Some(event) = events.next().await {
            match event {
                Event::Body(piece) => bytes += piece.len(),
                Event::End(summary) => {
                    assert_eq!((summary.items.quarantined(), summary.page.error), (0, None));
                    token = summary.page.token;
                }
                Event::Failed(failure, _) => panic!("{failure:?}"),
                Event::Head(_) | Event::Records(_) | Event::Quarantined(_) => {}
            }
        }
        match token {
            Some(token) => query = format!("verb=ListRecords&resumptionToken={token}"),
            None => return (bytes, cpu_time() - start),
        }
    }
}

/// The lists of a format.
struct Row {
    prefix: &'static str,
    /// The repository whose memory has the list; `None`: each list is the first one.
    later: Option<CrosswalkRepository>,
    times: Vec<Duration>,
    bytes: usize,
}

impl Row {
    fn new(prefix: &'static str, later: Option<CrosswalkRepository>) -> Self {
        Self { prefix, later, times: Vec::new(), bytes: 0 }
    }

    fn name(&self) -> String {
        format!("{}, {} list", self.prefix, if self.later.is_some() { "later" } else { "first" })
    }

    /// Prints the speed as a part of that of the format that is read.
    fn print(&self, source: &[Duration]) {
        let pairs = source.iter().zip(&self.times);
        let mut ratios: Vec<f64> =
            pairs.map(|(source, derived)| source.as_secs_f64() / derived.as_secs_f64()).collect();
        ratios.sort_by(f64::total_cmp);
        println!(
            "  {}: {:.2} of the speed ({:.2} to {:.2}), {:.1?}, {} bytes",
            self.name(),
            ratios[ROUNDS / 2],
            ratios[0],
            ratios[ROUNDS - 1],
            median(&self.times),
            self.bytes
        );
    }
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() / 2]
}

fn repository(store: &Store, stores: ViewStores, id: &str) -> CrosswalkRepository {
    let source = MirroredSource { id: id.to_owned(), ..MirroredSource::default() };
    let view = MirrorRepository::new(stores, ViewOptions::default(), source);
    let choices = BUILT_IN.iter().map(|row| (row.prefix.to_owned(), CrosswalkChoice::BuiltIn));
    let worker = XsltWorker::new(WorkerProgram::this_program("none"), XsltLimits::default());
    let settings = CrosswalkSettings {
        repository: id.to_owned(),
        crosswalks: CrosswalkChoices(choices.collect()).crosswalks("http://proxy.example", &worker, None),
        known_formats: None,
        converted: ConvertedRecords::default(),
        collections: None,
        quarantine: QuarantineSettings {
            store: Arc::clone(&store.quarantine),
            bytes_max: 1 << 30,
            fails_pages: false,
            is_by_set: false,
        },
        spool_bytes_max: 1 << 26,
        token_key: store.token_key.clone(),
        clock: Arc::new(SystemClock),
    };
    CrosswalkRepository::new(Box::new(view), settings)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = oaimend_store_local::open(folder.path()).expect("a data folder");
    let stamps = Arc::new(Stamps::open(Arc::clone(&store.mirror)).await.expect("readable"));
    // Each has an empty memory of pages.
    let stores = || {
        let (mirror, stamps) = (Arc::clone(&store.mirror), Arc::clone(&stamps));
        ViewStores::new(mirror, stamps, store.token_key.clone(), Arc::new(SystemClock))
    };
    for (format, id, namespace, derived) in MEASURED {
        fill(&store, &stores(), format, id, namespace).await;
        let later = repository(&store, stores(), id);
        let mut rows: Vec<Row> = [id]
            .iter()
            .chain(derived)
            .flat_map(|prefix| [Row::new(prefix, None), Row::new(prefix, Some(later.clone()))])
            .collect();
        // The first round fills the memory.
        for round in 0..=ROUNDS {
            for row in &mut rows {
                let repository = row.later.clone().unwrap_or_else(|| repository(&store, stores(), id));
                let (bytes, time) = list(&repository, row.prefix).await;
                row.bytes = bytes;
                if round > 0 {
                    row.times.push(time);
                }
            }
        }
        println!("{RECORDS} records in {id}:");
        let (sources, derived) = rows.split_at(2);
        for row in sources {
            println!("  {}: {:.1?}, {} bytes", row.name(), median(&row.times), row.bytes);
        }
        for (number, row) in derived.iter().enumerate() {
            row.print(&sources[number % 2].times);
        }
    }
    store.close();
}
