//! A view whose process is killed while it follows the mirror, and while its definition changes: an incremental harvester
//! misses no record and keeps none that has left.

use crate::fixtures::collection::{Collection, DAY_SECS, identifier};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::source::{Source, fetch, post};
use oaimend_base::clock::uptime;
use oaimend_test_support::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// How long the view may take to contain what the source has.
const EXACT_WITHIN: Duration = Duration::from_secs(60);
const SEED: u64 = 0x11_26;
const RECORDS: usize = 1_500;
const ROUNDS: usize = 8;
/// The definitions: a query, and one with a set. Half of the records are in the set `even`.
const DEFINITIONS: [&str; 2] =
    ["query = \"lighthouse\"\n", "query = \"lighthouse harbour\"\nsets = [\"x:even\"]\n"];

/// A harvester of the view with `from` = responseDate.
#[derive(Default)]
struct Harvester {
    from: Option<String>,
    /// Whether each identifier is live.
    copy: BTreeMap<String, bool>,
}

impl Harvester {
    /// Harvests one list; without effect if a request fails.
    fn harvest(&mut self, address: SocketAddr) {
        let from = self.from.as_ref().map_or_else(String::new, |from| format!("&from={from}"));
        let mut request = format!("/_view/v?verb=ListIdentifiers&metadataPrefix=oai_dc{from}");
        let (mut received, mut response_date) = (BTreeMap::new(), None);
        loop {
            let got = fetch(address, &request);
            if got.status != 200 || !got.whole {
                return;
            }
            let text = got.text();
            assert!(!text.contains("<error") || text.contains("\"noRecordsMatch\""), "{text}");
            response_date = response_date.or_else(|| between(&text, "<responseDate>", "<"));
            for header in text.split("<header").skip(1) {
                let identifier = between(header, "<identifier>", "<").expect("a header has one");
                received.insert(identifier, !header.starts_with(" status=\"deleted\""));
            }
            match between(&text, "<resumptionToken", "</").and_then(|token| between(&token, ">", "\0")) {
                Some(token) if !token.trim().is_empty() => {
                    let token: String = url::form_urlencoded::byte_serialize(token.as_bytes()).collect();
                    request = format!("/_view/v?verb=ListIdentifiers&resumptionToken={token}");
                }
                _ => break,
            }
        }
        self.copy.extend(received);
        self.from = response_date;
    }

    fn live(&self) -> BTreeSet<String> {
        self.copy.iter().filter(|(_, is_live)| **is_live).map(|(identifier, _)| identifier.clone()).collect()
    }
}

/// The text after `start`, up to `end` or to its own end.
fn between(text: &str, start: &str, end: &str) -> Option<String> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end).map_or(rest, |(text, _)| text).to_owned())
}

fn define(folder: &Path, definition: &str) {
    std::fs::write(folder.join("views/v.toml"), definition).expect("a writable folder");
}

fn folder_with(source: &Source) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["mappings", "views"] {
        std::fs::create_dir(folder.path().join(name)).expect("a writable folder");
    }
    let mapping = format!("base_url = \"{}\"\nallow_private = true\n[mirror]\n", source.base_url());
    std::fs::write(folder.path().join("mappings/x.toml"), mapping).expect("a writable folder");
    define(folder.path(), DEFINITIONS[0]);
    folder
}

fn start(folder: &Path) -> Program {
    Program::run(serve(folder).args(["--admin", "127.0.0.1:0"]))
}

/// Gives some records other titles, as of the next day.
fn retitle(collection: &Mutex<Collection>, random: &mut Random) {
    let mut collection = collection.lock().expect("no test panics while it holds this");
    collection.now_secs += DAY_SECS;
    let datestamp_secs = collection.now_secs;
    for _ in 0..200 {
        let entry = collection.entries.get_mut(&identifier(random.below(RECORDS))).expect("it exists");
        entry.title = ["Lighthouse", "Harbour", "Title"][random.below(3)].to_owned();
        entry.datestamp_secs = datestamp_secs;
    }
}

/// The identifiers of a definition, by what the source has.
fn expected(collection: &Mutex<Collection>, definition: usize) -> BTreeSet<String> {
    let collection = collection.lock().expect("no test panics while it holds this");
    let is_member = |title: &str, set: &str| match definition {
        0 => title == "Lighthouse",
        _ => set == "even" && (title == "Lighthouse" || title == "Harbour"),
    };
    let members = collection.entries.iter().filter(|(_, entry)| is_member(&entry.title, entry.set));
    members.map(|(identifier, _)| identifier.clone()).collect()
}

#[test]
fn a_killed_process_leaves_no_ghost_in_a_view_and_misses_nothing() {
    println!("seed {SEED}");
    let mut random = Random::new(SEED);
    let mut collection = Collection::of(RECORDS);
    collection.page_len = 100;
    let (source, collection) = collection.start();
    let folder = folder_with(&source);
    let mut harvester = Harvester::default();
    for round in 0..ROUNDS {
        let program = start(folder.path());
        harvester.harvest(program.address());
        retitle(&collection, &mut random);
        post(program.admin(), "/-/mirror/x/sync", "");
        define(folder.path(), DEFINITIONS[round / 2 % 2]);
        for _ in 0..random.below(40) {
            harvester.harvest(program.address());
        }
        program.killer().kill();
        program.ended();
    }
    let program = start(folder.path());
    for (turn, definition) in [(0, 1), (1, 0)] {
        define(folder.path(), DEFINITIONS[definition]);
        post(program.admin(), "/-/mirror/x/sync", "");
        let (began, expected) = (uptime(), expected(&collection, definition));
        while harvester.live() != expected {
            assert!(
                uptime() - began < EXACT_WITHIN,
                "turn {turn}: {:?}",
                harvester.live().symmetric_difference(&expected).take(20).collect::<Vec<_>>()
            );
            harvester.harvest(program.address());
        }
        assert!(expected.len() > 100, "{}", expected.len());
    }
}
