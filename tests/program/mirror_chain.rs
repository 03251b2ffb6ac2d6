//! A chain of mirrors, each of which harvests the one before: the delay of changes, records that arrive twice, and the
//! cost of two ways to harvest, beside the formulas of Suleman and Fox ("Designing Protocols in Support of Digital Library
//! Componentization", analysis of components in a chain). The clocks are moved, so days pass in a second.

use crate::fixtures::mirror::{Answered, Mirror, ask, live, pages, request_at, runtime};
use crate::fixtures::source::{Reply, Source};
use oaimend::config::Mapping;
use oaimend_mirror::harvest::{HarvestSettings, HarvestTurn, Harvester};
use oaimend_oai::Request;
use oaimend_repository::{Event, EventStream, HarvesterTraits, Repository, RepositoryRequest};
use oaimend_test_support::random::Random;
use oaimend_upstream::settings::Limits;
use oaimend_upstream::{LiveRepository, SourceClients};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

const START_SECS: i64 = 1_700_000_000;
const HOUR_SECS: i64 = 3_600;
/// The mirrors of a chain, without its source.
const MIRRORS: usize = 3;
const RECORDS: usize = 200;
const PAGE_RECORDS_MAX: usize = 100;
const SEED: u64 = 20_261_127;
/// The duration of a harvest is small, but not zero.
const HARVEST_SECS: i64 = 5;

/// The records that a mirror received, as pairs of identifier and version.
#[derive(Debug, Default)]
struct Received {
    known: BTreeSet<(String, i64)>,
    /// Records that were received again, unchanged.
    repeated: usize,
    /// When each version of a record was received first.
    arrivals: Vec<(i64, String)>,
}

/// A repository that counts what a harvester receives from it.
struct Counted {
    inner: LiveRepository,
    /// Whether requests keep the properties of their harvester, so that they are not widened.
    keeps_traits: bool,
    received: Arc<Mutex<Received>>,
}

impl Repository for Counted {
    fn answer(&self, request: RepositoryRequest) -> EventStream {
        let traits = if self.keeps_traits { request.harvester } else { HarvesterTraits::default() };
        let mut events = self.inner.answer(RepositoryRequest { harvester: traits, ..request });
        let (sender, counted) = mpsc::channel(4);
        let received = Arc::clone(&self.received);
        let session = async move {
            while let Some(event) = events.next().await {
                if let Event::Records(records) = &event {
                    let mut received = received.lock().expect("no panic");
                    for record in records {
                        let version = version(&record.xml);
                        if received.known.insert((record.identifier.clone(), version)) {
                            received.arrivals.push((version, record.identifier.clone()));
                        } else {
                            received.repeated += 1;
                        }
                    }
                }
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        };
        EventStream::new(counted, Box::pin(session))
    }
}

/// The time of the change that a record shows: it is the title.
fn version(xml: &str) -> i64 {
    let title = xml.split_once("<dc:title>").and_then(|(_, rest)| rest.split_once("</dc:title>"));
    title.and_then(|(title, _)| title.parse().ok()).expect("a title")
}

fn identifier(number: usize) -> String {
    format!("oai:chain:{number:04}")
}

/// A server with the view of a mirror.
fn serve(mirror: &Mirror) -> Source {
    let (view, clock) = (mirror.view("x", PAGE_RECORDS_MAX), mirror.clock());
    Source::start(move |_, received| {
        let query = received.target.split_once('?').map_or("", |(_, query)| query);
        let traits = received.headers.get(HarvesterTraits::HEADER);
        let harvester = traits.map(|traits| HarvesterTraits::read(traits)).unwrap_or_default();
        let request = Request::parse(query.as_bytes()).expect("a request of a harvester");
        let request = RepositoryRequest { harvester, ..request_at("http://mirror.example/x", request) };
        let mut events = view.answer(request);
        let mut body = Vec::new();
        runtime().block_on(async {
            while let Some(event) = events.next().await {
                match event {
                    Event::Body(piece) => body.extend_from_slice(&piece),
                    Event::Failed(failure, _) => panic!("{query}: {failure:?}"),
                    _ => {}
                }
            }
        });
        let date = httpdate::fmt_http_date(clock.now());
        Reply::whole(200, &format!("Content-Type: text/xml\nDate: {date}"), body)
    })
}

/// The repository of a server, as the mirror requests it.
fn live_source(server: &Source, mirror: &Mirror) -> LiveRepository {
    let mapping = Mapping::new("x", &server.base_url(), &Limits::default()).expect("a mapping").source;
    let store = mirror.store();
    let client = SourceClients::new(store.static_files.clone()).client_for(&mapping).expect("a client");
    LiveRepository { mapping, client, store, clock: mirror.clock() }
}

fn harvester(source: Counted, mirror: &Mirror) -> Harvester {
    let stores = mirror.stores();
    Harvester {
        id: "x".to_owned(),
        source: Arc::new(source),
        store: stores.store,
        stamps: stores.stamps,
        clock: mirror.clock(),
        via: "1.1 test".to_owned(),
        base_url: "http://mirror.example/x".to_owned(),
        turn: HarvestTurn::default(),
    }
}

/// A source and its chain of mirrors.
struct Chain {
    source: Mirror,
    servers: Vec<Source>,
    mirrors: Vec<Mirror>,
    harvesters: Vec<Harvester>,
    received: Vec<Arc<Mutex<Received>>>,
}

impl Chain {
    /// A chain after the first harvests. `keeps_traits` says whether its mirrors state their properties.
    fn new(keeps_traits: bool) -> Self {
        let source = Mirror::new(START_SECS);
        source.describe("x", &["oai_dc"], &[]);
        let record = |number| live(&identifier(number), &[], &START_SECS.to_string());
        source.commit("x", "oai_dc", (0..RECORDS).map(record).collect(), true);
        let (servers, mirrors) = (Vec::new(), Vec::new());
        let mut chain = Self { source, servers, mirrors, harvesters: Vec::new(), received: Vec::new() };
        for _ in 0..MIRRORS {
            chain.extend(keeps_traits);
        }
        for at in 0..MIRRORS {
            chain.harvest(at, START_SECS + 10 * (at as i64 + 1));
            chain.received[at].lock().expect("no panic").arrivals.clear();
        }
        chain
    }

    /// Adds a mirror of the last one.
    fn extend(&mut self, keeps_traits: bool) {
        let mirror = Mirror::new(START_SECS);
        let is_first = self.mirrors.is_empty();
        let before = self.mirrors.last().unwrap_or(&self.source);
        let server = serve(before);
        let received = Arc::default();
        // The source is a usual one, which widens no request.
        let keeps_traits = keeps_traits || is_first;
        let source = Counted { inner: live_source(&server, &mirror), keeps_traits, received };
        self.received.push(Arc::clone(&source.received));
        self.harvesters.push(harvester(source, &mirror));
        self.servers.push(server);
        self.mirrors.push(mirror);
    }

    fn set_time(&self, secs: i64) {
        self.source.set_time(secs);
        self.mirrors.iter().for_each(|mirror| mirror.set_time(secs));
    }

    /// A mirror harvests the one before.
    fn harvest(&self, at: usize, secs: i64) {
        self.set_time(secs);
        let settings = HarvestSettings::default();
        let harvest = self.harvesters[at].run(&settings, &|_| {});
        let summary = runtime().block_on(harvest).expect("a harvest");
        assert!(summary.is_complete(), "{summary:?}");
    }
}

/// The figures of a run.
#[derive(Debug, Default)]
struct Figures {
    changes: usize,
    /// The delays until the last mirror received a change, in seconds.
    delays: Vec<i64>,
    /// Records that each mirror received again, for each harvest.
    repeated: Vec<f64>,
}

/// Runs a chain for some intervals of its mirrors. About `changes` records change between two harvests.
fn run(keeps_traits: bool, interval_secs: i64, changes: i64) -> Figures {
    let chain = Chain::new(keeps_traits);
    let mut random = Random::new(SEED);
    let harvests = 16;
    let mut figures = Figures::default();
    let mut events: BTreeMap<i64, Vec<Option<usize>>> = BTreeMap::new();
    // A change is `None`, and the harvest of a mirror its number. The mirrors of a chain do not know of each other.
    for at in 0..MIRRORS {
        let phase_secs = 100 + random.below(usize::try_from(interval_secs).expect("short")) as i64;
        for turn in 0..harvests {
            events.entry(START_SECS + phase_secs + turn * interval_secs).or_default().push(Some(at));
        }
    }
    let end_secs = START_SECS + (harvests - 3) * interval_secs;
    let pause_secs = interval_secs / changes;
    let mut secs = START_SECS + 200;
    while secs < end_secs {
        events.entry(secs).or_default().push(None);
        secs += 1 + random.below(usize::try_from(2 * pause_secs).expect("short")) as i64;
    }
    for (secs, due) in events {
        for event in due {
            match event {
                Some(at) => {
                    chain.harvest(at, secs);
                    let mut received = chain.received[at].lock().expect("no panic");
                    let arrivals = std::mem::take(&mut received.arrivals);
                    if at + 1 == MIRRORS {
                        figures.delays.extend(arrivals.iter().map(|(changed_secs, _)| secs - changed_secs));
                    }
                }
                None => {
                    chain.set_time(secs);
                    figures.changes += 1;
                    let changed = live(&identifier(random.below(RECORDS)), &[], &secs.to_string());
                    chain.source.commit("x", "oai_dc", vec![changed], true);
                }
            }
        }
    }
    let repeated = |received: &Arc<Mutex<Received>>| received.lock().expect("no panic").repeated;
    figures.repeated =
        chain.received.iter().map(|received| repeated(received) as f64 / harvests as f64).collect();
    figures
}

fn print(name: &str, figures: &Figures) {
    let (max, sum) = (figures.delays.iter().max(), figures.delays.iter().sum::<i64>());
    let mean = sum / i64::try_from(figures.delays.len()).expect("few");
    let count = figures.delays.len();
    let Figures { changes, repeated, .. } = figures;
    println!(
        "{name}: {changes} changes, {count} arrived, delay max {max:?} s, mean {mean} s, repeated {repeated:.2?}"
    );
}

#[test]
fn delays_of_a_chain_add_up_and_it_repeats_nothing() {
    println!("seed {SEED}");
    let interval_secs = 6 * HOUR_SECS;
    let figures = run(false, interval_secs, 40);
    print("intervals of 6 hours", &figures);
    let bound_secs = MIRRORS as i64 * (interval_secs + HARVEST_SECS);
    let (max, sum) = (figures.delays.iter().max(), figures.delays.iter().sum::<i64>());
    assert!(max.is_some_and(|&max| max <= bound_secs), "{max:?}, {bound_secs}");
    // Each mirror adds half of its interval on average; the phases of three mirrors differ by up to a whole one.
    let mean = sum / figures.delays.len() as i64;
    assert!(mean > interval_secs / 2 && mean < bound_secs, "{mean}");
    // Stamps have seconds, and only changed records get new ones: an overlap is a second, and does not grow.
    assert!(figures.repeated.iter().all(|&repeated| repeated < 1.0), "{:?}", figures.repeated);
}

#[test]
fn short_intervals_repeat_two_hours_of_changes_unless_the_harvester_is_a_mirror() {
    println!("seed {SEED}");
    let (interval_secs, changes) = (HOUR_SECS / 2, 10);
    let wide = run(false, interval_secs, changes);
    print("intervals of half an hour, other harvesters", &wide);
    let narrow = run(true, interval_secs, changes);
    print("intervals of half an hour, mirrors of oaimend", &narrow);
    // The first mirror harvests a source that widens nothing.
    for repeated in &wide.repeated[1..] {
        // Two hours are four intervals.
        assert!((2.5..6.0).contains(&(repeated / changes as f64)), "{:?}", wide.repeated);
    }
    assert!(narrow.repeated.iter().all(|&repeated| repeated < 1.0), "{:?}", narrow.repeated);
    let arrived = |figures: &Figures| figures.delays.len();
    assert_eq!(arrived(&wide), arrived(&narrow), "both receive the same changes");
}

#[test]
fn lists_of_records_cost_less_than_identifiers_and_single_records() {
    let mirror = Mirror::new(START_SECS);
    mirror.describe("x", &["oai_dc"], &[]);
    let count = 250;
    let record = |number| live(&identifier(number), &[], "A title of some length, as records have it");
    mirror.commit("x", "oai_dc", (0..count).map(record).collect(), true);
    mirror.pass_time(10);
    let view = mirror.view("x", PAGE_RECORDS_MAX);
    let bytes = |pages: &[Answered]| -> usize { pages.iter().map(|page| page.body.len()).sum() };
    let of_lists = pages(&view, "verb=ListRecords&metadataPrefix=oai_dc", || {});
    let headers = pages(&view, "verb=ListIdentifiers&metadataPrefix=oai_dc", || {});
    let identifiers: Vec<String> =
        headers.iter().flat_map(|page| page.items()).map(|item| item.identifier).collect();
    let get = |identifier: &String| {
        ask(&view, &format!("verb=GetRecord&metadataPrefix=oai_dc&identifier={identifier}"))
    };
    let single: Vec<_> = identifiers.iter().map(get).collect();
    let batches = count.div_ceil(PAGE_RECORDS_MAX);
    // Algorithm A: ⌈n/k⌉ requests. Algorithm B: ⌈n/k⌉ + n.
    assert_eq!(of_lists.len(), batches);
    assert_eq!(headers.len() + single.len(), batches + count);
    let (of_a, of_b) = (bytes(&of_lists), bytes(&headers) + bytes(&single));
    println!("A: {} requests, {of_a} bytes; B: {} requests, {of_b} bytes", batches, batches + count);
    // h and I by the formulas: B transfers n (I + h) bytes more than A. A list has one head for each page.
    let item = |page: &Answered| page.body.len() / page.items().len();
    let (identifier_bytes, record_bytes) = (item(&headers[0]), item(&of_lists[0]));
    let head_bytes = single[0].body.len().saturating_sub(record_bytes);
    let expected = of_a + count * (identifier_bytes + head_bytes);
    let ratio = of_b as f64 / expected as f64;
    assert!((0.95..1.05).contains(&ratio), "{of_b} bytes, {expected} by the formula");
}

#[test]
fn another_mirror_learns_the_number_of_all_records() {
    let mirror = Mirror::new(START_SECS);
    mirror.describe("x", &["oai_dc"], &[]);
    let record = |number| live(&identifier(number), &[], &START_SECS.to_string());
    mirror.commit("x", "oai_dc", (0..150).map(record).collect(), true);
    mirror.pass_time(10);
    let server = serve(&mirror);
    for (keeps_traits, expected) in [(true, Some(150)), (false, None)] {
        let copy = Mirror::new(START_SECS + 20);
        let source = Counted { inner: live_source(&server, &copy), keeps_traits, received: Arc::default() };
        let settings = HarvestSettings::default();
        let summary = runtime().block_on(harvester(source, &copy).run(&settings, &|_| {}));
        assert_eq!(summary.expect("a harvest").total_elements.get("oai_dc").copied(), expected);
    }
}
