//! Faults of a server that mirrors: failing sources, a full disk, a handover during a harvest, SIGKILL at random
//! moments.
//!
//! `OAIMEND_KILLS=200 cargo test --test program serve::mirror_faults` kills this number of times, starting with
//! `OAIMEND_SEED`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use oaimend::config::Mapping;
use oaimend_mirror::settings::MirrorSettings;
use oaimend_upstream::settings::Limits;
use serde_json::Value;

use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::harvest::{change, truth};
use crate::fixtures::load::ask;
use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{Source, fetch, post};
use oaimend_test_support::random::Random;
use oaimend_test_support::strict;

/// Writes a mapping with a mirror.
fn map(folder: &Path, id: &str, source: &Source) {
    let mappings = folder.join("mappings");
    std::fs::create_dir_all(&mappings).expect("a writable folder");
    let mapping = format!(
        "base_url = \"{}\"\n[mirror]\nprefixes = [\"oai_dc\"]\ninterval_secs = 31536000\n",
        source.base_url()
    );
    std::fs::write(mappings.join(format!("{id}.toml")), mapping).expect("a writable folder");
}

/// Waits for the end of the next harvest of a repository. Returns whether it was complete, and its failure.
fn wait_for_harvest(program: &mut Program, id: &str) -> (bool, String) {
    loop {
        let line = program.line("harvest of the mirror");
        if line["repo"] == id {
            return (line["complete"] == true, line["details"].as_str().unwrap_or_default().to_owned());
        }
    }
}

/// Starts a harvest, and waits for its end.
fn sync(program: &Program, id: &str) {
    let ended = loop {
        let accepted = post(program.admin(), &format!("/-/mirror/{id}/sync"), "");
        if accepted.status == 202 {
            let accepted: Value = serde_json::from_slice(&accepted.body).expect("JSON");
            break accepted["ended"].as_u64();
        }
        assert_eq!(accepted.status, 409, "{}", accepted.text());
        std::thread::yield_now();
    };
    loop {
        let harvest = fetch(program.admin(), &format!("/-/mirror/{id}/harvest"));
        let harvest: Value = serde_json::from_slice(&harvest.body).expect("JSON");
        if harvest["ended"].as_u64() > ended {
            assert_eq!(harvest["last"]["is_success"], true, "{harvest}");
            return;
        }
        std::thread::yield_now();
    }
}

/// The program with an admin listener.
fn start(folder: &Path) -> Program {
    Program::run(serve(folder).args(["--admin", "127.0.0.1:0"]))
}

fn oaimend(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(arguments).current_dir(folder);
    command
}

/// A harvester of the mirror that asks from the responseDate of its last list on.
#[derive(Default)]
struct Downstream {
    /// The repository that it reads.
    id: String,
    /// Identifiers with titles; `None`: deleted.
    records: BTreeMap<String, Option<String>>,
    from: Option<String>,
    /// The responseDate of the current list, and the token of its next page.
    list: Option<(String, String)>,
}

impl Downstream {
    fn of(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    /// Requests the next page. Returns whether it has ended a list; `None`: the server has not answered.
    fn read_page(&mut self, address: SocketAddr) -> Option<bool> {
        let query = match (&self.list, &self.from) {
            (Some((_, token)), _) => format!("resumptionToken={token}"),
            (None, Some(from)) => format!("metadataPrefix=oai_dc&from={from}"),
            (None, None) => "metadataPrefix=oai_dc".to_owned(),
        };
        let came = ask(address, &format!("/_mirror/{}?verb=ListRecords&{query}", self.id), |_| {});
        if !came.whole || came.status != Some(200) {
            assert!([None, Some(200), Some(503)].contains(&came.status), "{came:?}");
            return None;
        }
        let text = String::from_utf8(came.body).expect("UTF-8");
        strict::read(text.as_bytes()).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        assert!(!text.contains("badResumptionToken"), "{text}");
        for record in text.split("<record").skip(1) {
            let identifier = between(record, "<identifier>", "<").expect("a header").to_owned();
            self.records.insert(identifier, between(record, "<dc:title>", "<").map(str::to_owned));
        }
        let date = between(&text, "<responseDate>", "<").expect("a date").to_owned();
        let first_date = self.list.take().map_or(date, |(first, _)| first);
        let token = between(&text, "<resumptionToken", "</").and_then(|rest| rest.split_once('>'));
        // An empty element ends in its tag.
        match token.filter(|(tag, token)| !tag.ends_with('/') && !token.is_empty()).map(|(_, token)| token) {
            Some(token) => self.list = Some((first_date, token.to_owned())),
            None => self.from = Some(first_date),
        }
        Some(self.list.is_none())
    }

    /// Reads until a list that begins now has ended.
    fn read_to_the_end(&mut self, address: SocketAddr) {
        let mut ends = 0;
        while ends < 2 {
            ends += usize::from(self.read_page(address).expect("the server answers"));
        }
    }
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    text.split_once(start)?.1.split(end).next()
}

const FAILING_SOURCES: u64 = 20;
/// Harvests of one source before its copy must be complete.
const HARVESTS_MAX: u64 = 60;

#[test]
fn many_failing_sources_are_mirrored_completely_at_once() {
    let seed = 20_261_125;
    println!("seed {seed}");
    let sources: Vec<_> = (0..FAILING_SOURCES)
        .map(|number| Collection::failing(Random::new(seed ^ number << 32)).start())
        .collect();
    let ids: Vec<String> = (0..FAILING_SOURCES).map(|number| format!("x{number}")).collect();
    let proxy = Proxy::with(|config| {
        config.mirror.harvests_max = ids.len();
        for (id, (source, _)) in ids.iter().zip(&sources) {
            let mapping = Mapping::new(id, &source.base_url(), &Limits::default()).expect("a legal mapping");
            let interval = Some(Duration::from_secs(31_536_000));
            let mirror = Some(MirrorSettings { interval, ..MirrorSettings::default() });
            config.repositories.add_fixed(Mapping { mirror, ..mapping });
        }
    });
    let mut incomplete: Vec<(&str, u64)> = ids.iter().map(|id| (id.as_str(), 0)).collect();
    while !incomplete.is_empty() {
        incomplete.retain_mut(|(id, ended)| {
            let harvest = proxy.wait_for_harvests(id, *ended + 1);
            *ended = harvest["ended"].as_u64().expect("a number");
            assert!(*ended <= HARVESTS_MAX, "{id}: {harvest}");
            harvest["last"]["is_complete"] != true
        });
        for (id, _) in &incomplete {
            // The schedule may have begun the next harvest already.
            assert!([202, 409].contains(&post(proxy.admin(), &format!("/-/mirror/{id}/sync"), "").status));
        }
    }
    for (id, (_, collection)) in ids.iter().zip(&sources) {
        let mut downstream = Downstream::of(id);
        downstream.read_to_the_end(proxy.address());
        assert_eq!(downstream.records, truth(collection), "{id}");
    }
}

#[test]
fn full_disk_stops_the_harvest_and_not_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = Random::new(7);
    let mut big = Collection::of(700);
    for entry in big.entries.values_mut() {
        // Titles that cannot be compressed much.
        entry.title = (0..4_000).map(|_| format!("{:016x}", random.next())).collect();
    }
    let (big_source, big_collection) = big.start();
    let (small_source, _small) = Collection::of(120).start();
    map(folder.path(), "x", &small_source);
    assert!(oaimend(folder.path(), &["mirror", "sync"]).status().expect("it runs").success());
    map(folder.path(), "big", &big_source);
    // The limit is in units of 512 bytes or of 1 KiB, by the shell.
    let script = format!(
        "trap '' XFSZ; ulimit -f 16384; exec {} serve --listen 127.0.0.1:0 --admin 127.0.0.1:0",
        env!("CARGO_BIN_EXE_oaimend")
    );
    let mut program = Program::run(Command::new("sh").args(["-c", &script]).current_dir(folder.path()));
    let (is_complete, details) = wait_for_harvest(&mut program, "big");
    assert!(!is_complete && details.contains("check space and rights of the data folder"), "{details}");
    let mut downstream = Downstream::of("x");
    downstream.read_to_the_end(program.address());
    assert_eq!(downstream.records.len(), 120);
    assert_eq!(fetch(program.address(), "/big?verb=Identify").status, 200);
    let state = fetch(program.admin(), "/-/mirror/big").text();
    assert!(state.contains("\"never-harvested\"") || state.contains("\"incomplete\""), "{state}");
    drop(program);
    // With space, the harvest continues at its page.
    let before = big_source.requests().len();
    let program = start(folder.path());
    sync(&program, "big");
    let received = big_source.requests();
    let lists = received[before..].iter().filter(|received| received.target.contains("ListRecords"));
    let first = lists.map(|received| received.target.clone()).next().expect("a list");
    assert!(first.contains("resumptionToken"), "{first}");
    let harvested = fetch(program.admin(), "/-/mirror/big").text();
    let records = format!("\"records\":{}", big_collection.lock().expect("no panic").entries.len());
    assert!(harvested.replace(' ', "").contains(&records), "{harvested}");
}

#[test]
fn successor_continues_the_harvest_of_its_predecessor() {
    let folder = tempfile::tempdir().expect("a folder");
    // A commit is due after 4,000 records.
    let collection = Collection { page_len: 2_000, ..Collection::of(8_000) };
    let collection = Arc::new(Mutex::new(collection));
    let (go, gate) = mpsc::channel::<()>();
    let (gate, provider, waits) =
        (Mutex::new(gate), Arc::clone(&collection), Arc::new(AtomicBool::new(false)));
    let is_waiting = Arc::clone(&waits);
    let source = Source::start(move |_, received| {
        if received.target.contains("%2F4000") {
            is_waiting.store(true, Ordering::SeqCst);
            // It opens when the test drops the other side.
            let _ = gate.lock().expect("no panic").recv();
        }
        provider.lock().expect("no panic").reply(received)
    });
    map(folder.path(), "x", &source);
    let old = start(folder.path());
    while !waits.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    // The predecessor has no response to its last request, so the successor sends it again.
    let before = source.requests().len() - 1;
    let mut successor = oaimend(folder.path(), &["serve", "--upgrade"]);
    successor.args(["--listen", &old.address().to_string(), "--admin", &old.admin().to_string()]);
    let mut new = Program::spawn(&mut successor);
    new.line("waiting for the running oaimend");
    old.signal("-QUIT");
    let mut new = new.served();
    drop(go);
    assert_eq!(wait_for_harvest(&mut new, "x"), (true, String::new()));
    assert!(old.ended().success());
    let received = source.requests();
    let targets = received[before..].iter().map(|received| received.target.as_str());
    let lists: Vec<&str> = targets.filter(|target| target.contains("ListRecords")).collect();
    assert!(lists.len() > 1 && lists[1] == lists[0], "{lists:?}");
    assert!(lists.iter().all(|list| list.contains("resumptionToken")), "{lists:?}");
    let mut downstream = Downstream::of("x");
    downstream.read_to_the_end(new.address());
    assert_eq!(downstream.records, truth(&collection));
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Changes some records, after the last responseDate of the source.
fn change_some(collection: &Mutex<Collection>, random: &mut Random, round: usize) {
    change(collection, |collection| {
        collection.now_secs += 1_000;
        let now_secs = collection.now_secs;
        for _ in 0..1 + random.below(20) {
            let number = random.below(120);
            let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
            entry.datestamp_secs = now_secs;
            entry.deleted = random.chance(20);
            entry.title = format!("Round {round} {}", random.next());
        }
        collection.now_secs += 1_000;
    });
}

/// The longest wait of a kill after its event, in turns of the scheduler.
const TURNS_AFTER_EVENT_MAX: usize = 5_000;

#[test]
fn kill_during_harvest_compaction_and_serving_loses_nothing() {
    let seed = number("OAIMEND_SEED").map_or(20_261_124, |seed| seed as u64);
    let kills = number("OAIMEND_KILLS").unwrap_or(10);
    println!("seed {seed}, {kills} kills");
    let mut random = Random::new(seed);
    let folder = tempfile::tempdir().expect("a folder");
    // Each harvest after the first one has a few pages, and no later one repairs what it loses.
    let collection = Collection { page_len: 4, ..Collection::of(120) };
    let collection = Arc::new(Mutex::new(collection));
    let (provider, events) = (Arc::clone(&collection), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&events);
    let source = Source::start(move |_, received| {
        counted.fetch_add(1, Ordering::SeqCst);
        provider.lock().expect("no panic").reply(received)
    });
    map(folder.path(), "x", &source);
    let mut downstream = Downstream::of("x");
    for round in 0..kills {
        change_some(&collection, &mut random, round);
        let program = start(folder.path());
        // A harvest of the schedule may run already.
        assert!([202, 409].contains(&post(program.admin(), "/-/mirror/x/sync", "").status));
        let killed_at = events.load(Ordering::SeqCst) + random.below(40);
        // Most events are requests. A commit comes some time after them.
        let turns_after = random.below(TURNS_AFTER_EVENT_MAX);
        let (address, killer, events) = (program.address(), program.killer(), &events);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while events.load(Ordering::SeqCst) < killed_at {
                    std::thread::yield_now();
                }
                (0..turns_after).for_each(|_| std::thread::yield_now());
                killer.kill();
            });
            let mut failures = 0;
            while failures < 3 || events.load(Ordering::SeqCst) < killed_at {
                failures += usize::from(downstream.read_page(address).is_none());
                events.fetch_add(1, Ordering::SeqCst);
            }
        });
        drop(program);
        if random.chance(50) {
            let mut compaction =
                oaimend(folder.path(), &["mirror", "compact", "x"]).spawn().expect("it runs");
            for _ in 0..random.below(20_000) {
                std::thread::yield_now();
            }
            let _ = compaction.kill();
            let _ = compaction.wait();
        }
        let verified = oaimend(folder.path(), &["mirror", "verify"]).output().expect("it runs");
        assert!(verified.status.success(), "round {round}: {verified:?}");
    }
    let program = start(folder.path());
    // The first harvest may end an interrupted one, which has no changes since its begin.
    sync(&program, "x");
    sync(&program, "x");
    downstream.read_to_the_end(program.address());
    assert_eq!(downstream.records, truth(&collection), "the harvester of the mirror has missed a change");
    let mut first = Downstream::of("x");
    first.read_to_the_end(program.address());
    assert_eq!(first.records, truth(&collection));
    let count = fetch(program.address(), "/_mirror/x?verb=ListIdentifiers&metadataPrefix=oai_dc").text();
    let total = between(&count, "completeListSize=\"", "\"").and_then(|total| total.parse::<usize>().ok());
    assert_eq!(total.unwrap_or_else(|| count.matches("<header").count()), first.records.len());
}
