//! Measures the search index beside bare tantivy: disk space, indexing with its memory, and searches.
//!
//! `cargo bench -p oaimend-search` measures 100,000 records; `cargo bench -p oaimend-search -- 1000000` other numbers.
//! Indexing is measured in CPU time, and searches by the fastest of five runs, so other work of the machine counts less.
//! Each index is written by a process of its own with the allocator of the program, so that no memory of another one
//! counts. It reads the whole mirror first, so that the cache of the mirror does not count either.
//! The results are in docs/explanation/performance.md.

use oaimend_base::clock;
use oaimend_oai::UnixSecs;
use oaimend_record::{RecordDocument, WorkDescription};
use oaimend_search::query::{QueryLanguage, parse};
use oaimend_search::{Highlighter, IndexSettings, Ranking, RecordFilter, SearchHits, SearchIndex};
use oaimend_store::{
    Identifier, ListFilter, ListQuery, MirrorStore, NewRecord, PageCommit, Prefix, RecordRepairs,
    RecordStatus, RepositoryId, content_hash,
};
use oaimend_store_local::RecordLog;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tantivy::aggregation::AggregationCollector;
use tantivy::aggregation::agg_req::Aggregations;
use tantivy::collector::{Count, TopDocs};
use tantivy::query::{BooleanQuery, Query, TermQuery};
use tantivy::schema::{IndexRecordOption, STORED, STRING, Schema, TEXT};
use tantivy::{Index, Searcher, TantivyDocument, Term};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The memory of the writers in MiB: a large one to compare with, and the default.
const MEMORY_MIB: [usize; 2] = [128, 32];
/// The folder of the index of bare tantivy.
const BARE: &str = "bare";
/// The first argument of the processes that write an index.
const INDEX: &str = "write-index";
const PAGE_RECORDS: usize = 1_000;
const REPOSITORIES: usize = 20;
const FIELDS: [&str; 10] = [
    "title",
    "creator",
    "subject",
    "description",
    "publisher",
    "date",
    "type",
    "identifier",
    "language",
    "rights",
];

/// Makes texts whose words are as frequent as those of a language (Zipf).
struct Words {
    random: fastrand::Rng,
    words: Vec<String>,
}

impl Words {
    fn new() -> Self {
        let mut random = fastrand::Rng::with_seed(20_261_126);
        let syllables =
            ["ka", "ter", "lo", "min", "es", "ra", "tion", "ver", "sch", "ing", "o", "pla", "net", "ur"];
        let word = |random: &mut fastrand::Rng| -> String {
            (0..random.usize(1..5)).map(|_| syllables[random.usize(..syllables.len())]).collect()
        };
        let words = (0..60_000).map(|number| format!("{}{}", word(&mut random), shown(number))).collect();
        Self { random, words }
    }

    fn word(&mut self) -> &str {
        let exponent = self.random.f64() * (self.words.len() as f64).ln();
        let rank = (exponent.exp() as usize).min(self.words.len() - 1);
        &self.words[rank]
    }

    fn text(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word().to_owned()).collect::<Vec<_>>().join(" ")
    }

    fn name(&mut self) -> String {
        let (family, given) = (self.random.usize(..30_000), self.random.usize(..500));
        format!("{}, {}", capitalised(&self.words[family]), capitalised(&self.words[given]))
    }

    fn metadata(&mut self, number: usize) -> String {
        let title = capitalised(&self.text(9));
        let creators: String = (0..2).map(|_| format!("<dc:creator>{}</dc:creator>", self.name())).collect();
        let subjects: String = (0..3)
            .map(|_| format!("<dc:subject>{}</dc:subject>", self.words[self.random.usize(..2_000)]))
            .collect();
        let count = self.random.usize(60..180);
        let description = self.text(count);
        let year = self.random.u16(1980..2027);
        let kind = ["article", "thesis", "book", "dataset"][self.random.usize(..4)];
        let language = ["en", "en", "en", "de", "fr", "es"][self.random.usize(..6)];
        let publisher = &self.words[self.random.usize(..300)];
        format!(
            "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ \
             http://www.openarchives.org/OAI/2.0/oai_dc.xsd\"><dc:title>{title}</dc:title>{creators}{subjects}\
             <dc:description>{description}</dc:description><dc:publisher>{publisher}</dc:publisher>\
             <dc:date>{year}</dc:date><dc:type>{kind}</dc:type>\
             <dc:identifier>https://doi.org/10.5555/{number}</dc:identifier><dc:language>{language}</dc:language>\
             <dc:rights>https://creativecommons.org/licenses/by/4.0/</dc:rights></oai_dc:dc>"
        )
    }

    fn record(&mut self, number: usize) -> NewRecord {
        let identifier = format!("oai:repository.example.org:article/{number}");
        let xml = format!(
            "<record xmlns=\"http://www.openarchives.org/OAI/2.0/\"><header><identifier>{identifier}</identifier>\
             <datestamp>2024-01-01T00:00:00Z</datestamp></header><metadata>{}</metadata></record>",
            self.metadata(number)
        );
        NewRecord {
            identifier,
            datestamp_secs: UnixSecs(1_700_000_000),
            set_specs: Vec::new(),
            status: RecordStatus::Live,
            content_hash: content_hash(RecordStatus::Live, &[], &[xml.as_bytes()]),
            bytes: xml.into(),
            repairs: RecordRepairs::default(),
        }
    }
}

/// A number in letters, so that words differ.
fn shown(number: usize) -> String {
    let mut rest = number;
    let mut letters = String::new();
    while rest > 0 {
        letters.push(char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
    }
    letters
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// The time of the fastest of five runs, in milliseconds: the others wait for other work of the machine.
fn fastest_ms<T>(mut work: impl FnMut() -> T) -> f64 {
    let times = (0..5).map(|_| {
        let began = clock::uptime();
        work();
        clock::uptime().saturating_sub(began).as_secs_f64() * 1_000.0
    });
    times.fold(f64::INFINITY, f64::min)
}

/// CPU time of the process, in seconds.
fn cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: f64 = fields[11..13].iter().map(|field| field.parse::<f64>().unwrap_or_default()).sum();
    ticks / 100.0
}

/// Memory of the process without files, in MiB.
fn memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux 4.5");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
}

/// Waits until the threads that merge segments have ended.
fn wait_for_merges() {
    loop {
        let began = cpu_secs();
        std::thread::park_timeout(Duration::from_secs(1));
        if cpu_secs() - began < 0.05 {
            return;
        }
    }
}

/// Indexes, and merges segments: the CPU time in seconds, and the growth of the memory in MiB. The result of the work is
/// dropped after the merges.
fn indexed<T>(work: impl FnOnce() -> T) -> (f64, f64) {
    let is_done = AtomicBool::new(false);
    let before = memory_mib();
    std::thread::scope(|scope| {
        let peak = scope.spawn(|| {
            let mut peak = 0.0_f64;
            while !is_done.load(Ordering::Relaxed) {
                peak = peak.max(memory_mib());
                std::thread::park_timeout(Duration::from_millis(5));
            }
            peak
        });
        let began = cpu_secs();
        let _open = work();
        wait_for_merges();
        let secs = cpu_secs() - began;
        is_done.store(true, Ordering::Relaxed);
        (secs, peak.join().expect("it does not panic") - before)
    })
}

/// The costs of an index.
struct IndexCosts {
    /// CPU time of reading the mirror alone.
    reading_secs: f64,
    /// CPU time of indexing, with reading.
    secs: f64,
}

/// Writes an index in a process of its own.
fn measure_index(folder: &Path, name: &str, mib: usize) -> IndexCosts {
    let program = std::env::current_exe().expect("Linux");
    let mut command = std::process::Command::new(program);
    command.arg(INDEX).arg(folder).args([name, &mib.to_string()]);
    // The memory in use, without what the allocator keeps for later. Huge pages are off in the program too.
    command.env("MIMALLOC_PURGE_DELAY", "0").env("MIMALLOC_ALLOW_THP", "0");
    let output = command.stderr(std::process::Stdio::inherit()).output().expect("a process");
    let output = String::from_utf8(output.stdout).expect("UTF-8");
    let numbers: Vec<f64> = output.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let [reading_secs, secs, growth_mib] = numbers[..] else { panic!("no measurement: {output}") };
    println!(
        "{name} with {mib} MiB: {secs:.1} s, of which reading {reading_secs:.1} s; memory grows by {growth_mib:.0} MiB"
    );
    IndexCosts { reading_secs, secs }
}

/// The process that writes an index.
fn write_index(arguments: &[String]) {
    let [folder, name, mib] = arguments else { panic!("a folder, a name and a number of MiB") };
    let (folder, mib) = (Path::new(folder), mib.parse().expect("a number"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mirror = RecordLog::open(&folder.join("mirror")).expect("a store");
    let (reading, _) = indexed(|| runtime.block_on(each_record(&mirror, |_, _| {})));
    let index = folder.join(name);
    let (secs, growth_mib) = if name == BARE {
        std::fs::create_dir(&index).expect("a folder");
        indexed(|| runtime.block_on(index_bare(&mirror, &index, mib)))
    } else {
        indexed(|| {
            let index = open(&index, mib);
            runtime.block_on(index.follow(&mirror, None)).expect("the index is writable");
            index
        })
    };
    println!("{reading} {secs} {growth_mib}");
}

fn folder_bytes(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
}

fn repository(number: usize) -> String {
    format!("repository{number}")
}

async fn fill(mirror: &RecordLog, count: usize) -> usize {
    let mut words = Words::new();
    let mut bytes = 0;
    for page in 0..count.div_ceil(PAGE_RECORDS) {
        let repository = repository(page % REPOSITORIES);
        let records: Vec<NewRecord> =
            (0..PAGE_RECORDS).map(|number| words.record(page * PAGE_RECORDS + number)).collect();
        bytes += records.iter().map(|record| record.bytes.len()).sum::<usize>();
        let progress = mirror
            .progress(RepositoryId(&repository), Prefix("oai_dc"))
            .await
            .expect("the store is readable");
        let stamp_secs = UnixSecs(1_800_000_000 + page as i64);
        let page = PageCommit {
            repository,
            prefix: "oai_dc".to_owned(),
            stamp_secs,
            records,
            progress,
            ..PageCommit::default()
        };
        mirror.commit(page).await.expect("the page is stored");
    }
    bytes
}

/// Reads all records of the mirror.
async fn each_record(mirror: &RecordLog, mut visit: impl FnMut(&str, RecordDocument)) {
    for number in 0..REPOSITORIES {
        let mut after = None;
        loop {
            let filter = ListFilter {
                repository: repository(number),
                prefix: "oai_dc".to_owned(),
                ..ListFilter::default()
            };
            let query = ListQuery { filter, after, count_max: 500, bytes_max: 4 << 20, with_bytes: true };
            let page = mirror.list(query).await.expect("the store is readable");
            for record in page.records {
                let text = std::str::from_utf8(&record.bytes).expect("UTF-8");
                visit(&record.identifier, RecordDocument::read(text).expect("well-formed"));
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
}

/// An index that a program with tantivy would make: ten fields of text with positions, the identifier stored.
async fn index_bare(mirror: &RecordLog, folder: &Path, memory_mib: usize) {
    let mut builder = Schema::builder();
    let identifier = builder.add_text_field("id", STRING | STORED);
    let fields = FIELDS.map(|name| builder.add_text_field(name, TEXT));
    let index = Index::create_in_dir(folder, builder.build()).expect("a folder");
    let mut writer = index.writer_with_num_threads(1, memory_mib << 20).expect("a writer");
    each_record(mirror, |id, document| {
        let mut indexed = TantivyDocument::default();
        indexed.add_text(identifier, id);
        for field in &document.metadata {
            if let Some(place) = FIELDS.iter().position(|name| *name == field.name) {
                indexed.add_text(fields[place], &field.text.value);
            }
        }
        writer.add_document(indexed).expect("the index is writable");
    })
    .await;
    writer.commit().expect("the index is writable");
    writer.wait_merging_threads().expect("the index is writable");
}

fn open(folder: &Path, memory_mib: usize) -> SearchIndex {
    let settings = IndexSettings { memory_max_bytes: memory_mib << 20 };
    SearchIndex::open(folder, settings).expect("a folder for the index")
}

/// Searches as words that must match, all or one.
fn queries() -> Vec<(Vec<String>, bool)> {
    let mut words = Words::new();
    let mut queries = Vec::new();
    for number in 0..300 {
        let count = 1 + number % 3;
        queries.push(((0..count).map(|_| words.word().to_owned()).collect(), number % 2 == 0));
    }
    queries
}

fn search_bare(searcher: &Searcher, words: &[String], is_and: bool, facets: &Aggregations) -> usize {
    let field = searcher.schema().get_field("words").expect("a field");
    let term = |word: &String| -> Box<dyn Query> {
        let named = FIELDS.map(|name| -> Box<dyn Query> {
            let term = Term::from_field_text(field, &format!("{name}\0{word}"));
            Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
        });
        Box::new(BooleanQuery::union(named.into()))
    };
    let terms: Vec<Box<dyn Query>> = words.iter().map(term).collect();
    let query = if is_and { BooleanQuery::intersection(terms) } else { BooleanQuery::union(terms) };
    let facets = AggregationCollector::from_aggs(facets.clone(), Default::default());
    let collectors = (TopDocs::with_limit(20).order_by_score(), Count, facets);
    let (top, count, _) = searcher.search(&query, &collectors).expect("a search");
    for (_, address) in top {
        searcher.doc::<TantivyDocument>(address).expect("a document");
    }
    count
}

fn request(words: &[String], is_and: bool) -> SearchHits {
    let language = if is_and { QueryLanguage::Dlese } else { QueryLanguage::Odl };
    SearchHits {
        query: parse(language, &words.join(" ")).expect("a query"),
        // As pages filter.
        filter: RecordFilter {
            repositories: Some((0..REPOSITORIES).map(repository).collect()),
            prefix: None,
        },
        ranking: Ranking::Relevance,
        offset: 0,
        count_max: 20,
        with_facets: true,
    }
}

/// What a result page reads of the mirror.
async fn show(mirror: &RecordLog, index: &SearchIndex, request: &SearchHits) {
    let found = index.search(request).expect("a search");
    let mut highlighter = Highlighter::of(&request.query);
    for hit in found.hits {
        let repository = RepositoryId(&hit.repository);
        let record = mirror.record(repository, Prefix(&hit.prefix), Identifier(&hit.identifier)).await;
        let record = record.expect("the store is readable").expect("a record");
        let document = RecordDocument::read(&String::from_utf8_lossy(&record.bytes)).expect("well-formed");
        let work = WorkDescription::of(&document);
        for text in work.core.titles.iter().chain(&work.core.descriptions) {
            highlighter.snippet("description", &text.value, work.language().as_deref());
        }
    }
}

/// Prints the disk space of each field.
fn print_fields(searcher: &Searcher) {
    for segment in searcher.space_usage().expect("readable").segments() {
        let parts = [
            ("terms", segment.termdict()),
            ("postings", segment.postings()),
            ("positions", segment.positions()),
            ("columns", segment.fast_fields()),
        ];
        for (name, part) in parts {
            let fields = part.fields().map(|field| format!(" {} {:?}", field.field_name(), field.total()));
            println!("segment of {}: {name}:{}", segment.num_docs(), fields.collect::<String>());
        }
        println!("segment of {}: store {:?}", segment.num_docs(), segment.store().total());
    }
}

fn report(name: &str, mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("{name:<28} median {median:8.3} ms  p99 {p99:8.3} ms");
    (median, p99)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((INDEX, arguments)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return write_index(arguments);
    }
    let count = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(100_000);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mirror = RecordLog::open(&path("mirror")).expect("a store");
    let bytes = runtime.block_on(fill(&mirror, count));
    println!("{count} records of {} bytes, {} MB", bytes / count, bytes / 1_000_000);
    drop(mirror);

    let [_, mib] = MEMORY_MIB;
    let [_, ours] = MEMORY_MIB.map(|mib| measure_index(folder.path(), &format!("search{mib}"), mib));
    let bare = measure_index(folder.path(), BARE, mib);
    println!(
        "speed of bare tantivy: {:.2}, without reading {:.2}",
        bare.secs / ours.secs,
        (bare.secs - bare.reading_secs) / (ours.secs - ours.reading_secs)
    );
    let mirror = RecordLog::open(&path("mirror")).expect("a store");
    let ratio = |name: &str| folder_bytes(&path(name)) as f64 / bytes as f64;
    let folder = path(&format!("search{mib}"));
    println!("size of the records: {:.3}, bare tantivy {:.3}", ratio(&format!("search{mib}")), ratio(BARE));
    let opened = Index::open_in_dir(&folder).expect("an index");
    let searcher = opened.reader().expect("a reader").searcher();
    print_fields(&searcher);
    // Opened again, so that both see the segments after the last merge.
    let index = open(&folder, mib);

    let facets = ["repository", "type", "year", "language", "access"]
        .map(|name| (name.to_owned(), serde_json::json!({"terms": {"field": name, "size": 50}})));
    let facets = serde_json::Value::Object(facets.into_iter().collect());
    let facets: Aggregations = serde_json::from_value(facets).expect("aggregations");
    let (mut ours, mut theirs, mut pages) = (Vec::new(), Vec::new(), Vec::new());
    for (words, is_and) in queries() {
        let request = request(&words, is_and);
        theirs.push(fastest_ms(|| search_bare(&searcher, &words, is_and, &facets)));
        ours.push(fastest_ms(|| index.search(&request).expect("a search")));
        pages.push(fastest_ms(|| runtime.block_on(show(&mirror, &index, &request))));
    }
    let (theirs, ours) = (report("bare tantivy", theirs), report("search", ours));
    println!("ratio: median {:.2}, p99 {:.2}", ours.0 / theirs.0, ours.1 / theirs.1);
    report("search with 20 records", pages);
}
