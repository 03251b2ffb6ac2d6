//! Measures the identifier resolver: the disk space of its table, and its CPU time beside `GetRecord` of the mirror.
//!
//! `cargo bench --bench resolver` stores a million identifiers in metadata; `cargo bench --bench resolver -- 10000000`
//! another number. Both kinds of requests go to one server in turn, so other programs on the machine disturb both. The results
//! are in docs/explanation/performance.md.

use oaimend_oai::UnixSecs;
use oaimend_store::{
    Catalog, CompleteHarvest, HarvestProgress, IdentifiedCollection, IdentifiedRecord, IdentifierChanges,
    IdentifierKey, ListedFormat, NewRecord, PageCommit, RecordRepairs, RecordStatus, RepositoryId, Store,
    content_hash,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Identifiers in the metadata of a record.
const NAMED: usize = 3;
/// Records of a transaction. The resolver stores as many while it is built.
const CHANGES: usize = 50_000;
const SERVED_RECORDS: usize = 10_000;
const ROUNDS: usize = 9;
const REQUESTS: usize = 3_000;
const STAMP_SECS: UnixSecs = UnixSecs(1_800_000_000);
/// The unit of `st_blocks`, in bytes.
const DISK_BLOCK_BYTES: u64 = 512;

fn record(number: usize) -> NewRecord {
    let identifier = format!("oai:repository.example.org:article/{number}");
    let abstract_text =
        format!("Sentence {number} of an abstract that says what the article is about. ").repeat(12);
    let xml = format!(
        "<record><header><identifier>{identifier}</identifier><datestamp>2026-01-01</datestamp></header><metadata>\
         <oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>Article {number}</dc:title>\
         <dc:creator>Author, Anna</dc:creator><dc:description>{abstract_text}</dc:description>\
         <dc:identifier>https://doi.org/10.1000/article.{number}</dc:identifier>\
         <dc:identifier>https://repository.example.org/article/{number}</dc:identifier></oai_dc:dc></metadata></record>"
    );
    NewRecord {
        identifier,
        datestamp_secs: STAMP_SECS,
        set_specs: Vec::new(),
        status: RecordStatus::Live,
        content_hash: content_hash(RecordStatus::Live, &[], &[xml.as_bytes()]),
        bytes: xml.into(),
        repairs: RecordRepairs::default(),
    }
}

/// The bytes that a file takes on the disk.
fn disk_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).expect("it exists").blocks() * DISK_BLOCK_BYTES
}

/// Fills a table, changes a tenth of it, and prints its size.
async fn measure_table(store: &Store, folder: &Path, named_count: usize) {
    let records = named_count / NAMED;
    let (path, began) = (folder.join("identifiers.redb"), oaimend_base::clock::uptime());
    let keys = |number: usize, version: usize, sequence: usize| IdentifiedRecord {
        identifier: IdentifierKey::new("oai", &format!("oai:x:{number}")),
        sequence: sequence as u64,
        named: (0..NAMED)
            .map(|at| IdentifierKey::new("doi", &format!("10.1000/{number}.{version}.{at}")))
            .collect(),
    };
    for first in (0..records).step_by(CHANGES) {
        let end = (first + CHANGES).min(records);
        let changed = (first..end).map(|number| keys(number, 0, number)).collect();
        let collection = IdentifiedCollection { number: 1, next_sequence: end as u64 };
        store.identifiers.follow(IdentifierChanges { collection, records: changed }).await.expect("writable");
    }
    let secs = (oaimend_base::clock::uptime() - began).as_secs_f64();
    let per_key = |path: &Path| disk_bytes(path) as f64 / (records * NAMED) as f64;
    println!(
        "{} identifiers of {records} records: {:.1} bytes each on disk, {:.0} records a second",
        records * NAMED,
        per_key(&path),
        records as f64 / secs
    );
    for page in 0..records / 10 / 1_000 {
        let sequence = |at: usize| records + page * 1_000 + at;
        let changed: Vec<_> =
            (0..1_000).map(|at| keys((page * 7_919 + at * 31) % records, 1, sequence(at))).collect();
        let collection = IdentifiedCollection { number: 1, next_sequence: sequence(1_000) as u64 };
        store.identifiers.follow(IdentifierChanges { collection, records: changed }).await.expect("writable");
    }
    println!("after a tenth of the records has changed: {:.1} bytes each", per_key(&path));
}

async fn fill(store: &Store) {
    let format = ListedFormat {
        prefix: "oai_dc".to_owned(),
        schema: "http://www.openarchives.org/OAI/2.0/oai_dc.xsd".to_owned(),
        namespace: "http://www.openarchives.org/OAI/2.0/oai_dc/".to_owned(),
    };
    let catalog = Catalog { formats: vec![format], ..Catalog::default() };
    store.mirror.save_catalog(RepositoryId("x"), catalog).await.expect("writable");
    for first in (0..SERVED_RECORDS).step_by(100) {
        let prefix = oaimend_store::Prefix("oai_dc");
        let progress = store.mirror.progress(RepositoryId("x"), prefix).await.expect("readable");
        let last_complete = Some(CompleteHarvest { from_secs: STAMP_SECS, lead_secs: 0 });
        let page = PageCommit {
            repository: "x".to_owned(),
            prefix: "oai_dc".to_owned(),
            stamp_secs: UnixSecs(1_700_000_000),
            records: (first..first + 100).map(record).collect(),
            progress: HarvestProgress { last_complete, ..progress },
            ..PageCommit::default()
        };
        store.mirror.commit(page).await.expect("writable");
    }
}

/// A running server and a connection to it.
struct Server {
    child: Child,
    stream: BufReader<TcpStream>,
}

impl Server {
    fn start(folder: &Path) -> Self {
        std::fs::create_dir(folder.join("mappings")).expect("writable");
        let mapping = "base_url = \"http://127.0.0.1:9/oai\"\n[mirror]\ninterval_secs = 600000\n";
        std::fs::write(folder.join("mappings/x.toml"), mapping).expect("writable");
        let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "off"]).current_dir(folder);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program is built");
        let mut log = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        let address: SocketAddr = loop {
            line.clear();
            assert!(log.read_line(&mut line).is_ok_and(|length| length > 0), "the server has not started");
            let listen = line.split("\"listen\":\"").nth(1).and_then(|rest| rest.split('"').next());
            if let Some(address) = listen.and_then(|address| address.parse().ok()) {
                break address;
            }
        };
        // A full pipe would block the server.
        std::thread::spawn(move || drop(std::io::copy(&mut log, &mut std::io::sink())));
        let stream = BufReader::new(TcpStream::connect(address).expect("it listens"));
        Self { child, stream }
    }

    /// The status of a request and the length of its response.
    fn request(&mut self, path: &str) -> (u16, usize) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes()).expect("it reads");
        let (mut status, mut length, mut is_chunked) = (0, 0, false);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            self.stream.read_line(&mut line).expect("it answers");
            let lower = line.to_ascii_lowercase();
            if let Some(rest) = lower.strip_prefix("http/1.1 ") {
                status = rest.get(..3).and_then(|status| status.parse().ok()).expect("a status");
            }
            if let Some(rest) = lower.strip_prefix("content-length:") {
                length = rest.trim().parse().expect("a number");
            }
            is_chunked |= lower.starts_with("transfer-encoding: chunked");
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("the whole body");
        while is_chunked {
            line.clear();
            self.stream.read_line(&mut line).expect("a chunk");
            let chunk = usize::from_str_radix(line.trim(), 16).expect("a length");
            body.resize(chunk + 2, 0);
            self.stream.read_exact(&mut body).expect("the whole chunk");
            length += chunk;
            is_chunked = chunk > 0;
        }
        (status, length)
    }

    /// The CPU time of all its threads.
    fn cpu(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs");
        let nanos = tasks.flatten().filter_map(|task| {
            let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            stat.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    /// The CPU time of a request, as a mean over many.
    fn measure(&mut self, path: impl Fn(usize) -> String) -> Duration {
        let before = self.cpu();
        for at in 0..REQUESTS {
            let path = path((at * 7_919) % SERVED_RECORDS);
            let (status, length) = self.request(&path);
            assert!(status == 200 && length > 0, "{path}: {status}");
        }
        (self.cpu() - before) / REQUESTS as u32
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn measure_requests(folder: &Path) {
    let mut server = Server::start(folder);
    while server.request("/_resolve/oai:unknown").0 == 503 {
        std::thread::yield_now();
    }
    let identifier = |number: usize| format!("oai:repository.example.org:article/{number}");
    let get_record =
        |number| format!("/_mirror/x?verb=GetRecord&metadataPrefix=oai_dc&identifier={}", identifier(number));
    let by_identifier = |number| format!("/_resolve/{}", identifier(number));
    let by_doi = |number| format!("/_resolve/https://doi.org/10.1000/ARTICLE.{number}");
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        times[0].push(server.measure(get_record));
        times[1].push(server.measure(by_identifier));
        times[2].push(server.measure(by_doi));
    }
    let [get_record, by_identifier, by_doi] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    let ratio = |time: Duration| get_record.as_secs_f64() / time.as_secs_f64();
    println!("GetRecord of the mirror: {get_record:.1?} of CPU");
    println!("resolver by OAI identifier: {by_identifier:.1?}, {:.2} of the requests", ratio(by_identifier));
    println!("resolver by DOI: {by_doi:.1?}, {:.2} of the requests", ratio(by_doi));
}

fn main() {
    let named_count =
        std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let store = oaimend_store_local::open(folder.path()).expect("writable");
    runtime.block_on(measure_table(&store, folder.path(), named_count));
    store.close();
    let served = tempfile::tempdir().expect("a folder");
    let store = oaimend_store_local::open(&served.path().join("data")).expect("writable");
    runtime.block_on(fill(&store));
    store.close();
    drop(store);
    measure_requests(served.path());
}
