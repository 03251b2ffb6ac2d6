//! The promise of the mirror, with the real parts of the program: an incremental harvester misses no record, whether
//! the source or the mirror answered.
//!
//! Records change, the source fails in the middle of lists, the mirror is harvested from time to time, the program
//! restarts, and harvesters of all kinds request incremental lists. In the end each copy must be equal to the source.
//! `mirror_simulation` of the crate of rules simulates far more runs without the program.
//!
//! `OAIMEND_PROMISE_RUNS=200` makes more runs, `OAIMEND_SEED=7` sets another first seed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fixtures::collection::{Collection, Entry, identifier};
use crate::fixtures::failover::World;
use crate::fixtures::mirror::{Answered, Item};
use oaimend_test_support::random::Random;
use oaimend_test_support::{each, report};

const RUNS: u64 = 6;
const STEPS: usize = 120;
const RECORDS: usize = 40;
const LIST: &str = "verb=ListRecords&metadataPrefix=oai_dc";

/// The `from` of the next list.
#[derive(Clone, Copy, Debug)]
enum Kind {
    FirstDate,
    LastDate,
    StartClock,
    EndClock,
    LastDatestamp,
}

/// A harvester with its copy: the title of each record, none if it is deleted.
struct Client {
    kind: Kind,
    from: Option<String>,
    copy: BTreeMap<String, Option<String>>,
    last_datestamp: Option<String>,
    /// The list that is being harvested: its start, its first responseDate, and its token.
    list: Option<(String, Option<String>, Option<String>)>,
    /// The number of responses of the mirror.
    failovers: usize,
}

impl Client {
    fn new(kind: Kind) -> Self {
        Self { kind, from: None, copy: BTreeMap::new(), last_datestamp: None, list: None, failovers: 0 }
    }

    /// Requests the next page. Returns whether the list is complete.
    fn step(&mut self, world: &World) -> bool {
        let now = world.mirror.now();
        let (started, first_date, token) = self.list.take().unwrap_or((now, None, None));
        let query = match (&token, &self.from) {
            (Some(token), _) => format!("verb=ListRecords&resumptionToken={token}"),
            (None, Some(from)) => format!("{LIST}&from={from}"),
            (None, None) => LIST.to_owned(),
        };
        let page = world.ask(&query);
        if page.failure.is_some() {
            self.list = Some((started, first_date, token));
            return false;
        }
        self.failovers += usize::from(page.summary.end.failed_over.is_some());
        match page.kind().as_str() {
            "ListRecords" => self.keep(page.items()),
            "noRecordsMatch" => {}
            // The harvester begins the list again.
            "badResumptionToken" => return false,
            other => panic!("{query}: {other}"),
        }
        let date = date_of(&page);
        let first_date = first_date.unwrap_or_else(|| date.clone());
        if page.summary.page.token.is_some() {
            self.list = Some((started, Some(first_date), page.summary.page.token));
            return false;
        }
        self.from = match self.kind {
            Kind::FirstDate => Some(first_date),
            Kind::LastDate => Some(date),
            Kind::StartClock => Some(started),
            Kind::EndClock => Some(world.mirror.now()),
            Kind::LastDatestamp => self.last_datestamp.clone(),
        };
        true
    }

    fn keep(&mut self, items: Vec<Item>) {
        for item in items {
            self.last_datestamp = self.last_datestamp.take().max(Some(item.datestamp));
            self.copy.insert(item.identifier, (!item.is_deleted).then_some(item.title));
        }
    }
}

fn date_of(page: &Answered) -> String {
    let (_, rest) = page.body.split_once("<responseDate>").expect("each response has one");
    rest.split('<').next().unwrap_or_default().to_owned()
}

/// Changes a record now.
fn change(world: &World, random: &mut Random) {
    let mut collection = world.collection();
    let now_secs = collection.now_secs;
    let number = random.below(RECORDS + RECORDS / 4);
    let entry = Entry {
        datestamp_secs: now_secs,
        deleted: random.chance(20),
        title: format!("Title {}", random.below(1_000_000)),
        set: "",
    };
    collection.entries.insert(identifier(number), entry);
}

/// Runs one world; the error names a record that a harvester misses.
fn run(seed: u64) -> Result<usize, String> {
    let mut random = Random::new(seed);
    let mut world = World::of(Collection { page_len: 6, ..Collection::of(RECORDS) });
    let kinds = [Kind::FirstDate, Kind::LastDate, Kind::StartClock, Kind::EndClock, Kind::LastDatestamp];
    let mut clients: Vec<Client> = kinds.into_iter().map(Client::new).collect();
    for _ in 0..STEPS {
        world.pass_time([1, 40, 900, 20_000][random.below(4)]);
        match random.below(20) {
            0..6 => change(&world, &mut random),
            6..8 => {
                let is_down = random.chance(50);
                world.collection().is_down = is_down;
            }
            8 => drop(world.try_harvest()),
            9 if random.chance(30) => world = world.restart(),
            _ => {
                let client = random.below(clients.len());
                let _is_complete = clients[client].step(&world);
            }
        }
    }
    // At the end the source is up, and each harvester ends its list and requests one more.
    world.collection().is_down = false;
    world.pass_time(7 * 3_600);
    for client in &mut clients {
        for _ in 0..2 {
            let ended = (0..200).any(|_| client.step(&world));
            assert!(ended, "seed {seed}: a list does not end");
        }
    }
    let truth: BTreeMap<String, Option<String>> = {
        let collection = world.collection();
        let entries = collection.entries.iter();
        entries.map(|(id, entry)| (id.clone(), (!entry.deleted).then(|| entry.title.clone()))).collect()
    };
    for client in &clients {
        if let Some((id, title)) = truth.iter().find(|(id, title)| client.copy.get(*id) != Some(title)) {
            let has = client.copy.get(id);
            return Err(format!("seed {seed}: {:?} has {has:?} of {id}, not {title:?}", client.kind));
        }
    }
    Ok(clients.iter().map(|client| client.failovers).sum())
}

#[test]
fn no_harvester_misses_a_record_while_the_source_and_its_mirror_take_turns() {
    let number = |variable: &str, usual: u64| {
        std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let first = number("OAIMEND_SEED", 20_261_123);
    let seeds: Vec<u64> = (first..first + number("OAIMEND_PROMISE_RUNS", RUNS)).collect();
    println!("seeds {first} to {}", first + seeds.len() as u64 - 1);
    let failovers = AtomicUsize::new(0);
    let failures = each(&seeds, |&seed| match run(seed) {
        Ok(count) => {
            failovers.fetch_add(count, Ordering::Relaxed);
            None
        }
        Err(missed) => Some(missed),
    });
    report("runs", seeds.len(), &failures);
    let failovers = failovers.into_inner();
    println!("{failovers} responses of the mirror");
    assert!(failovers >= 5 * seeds.len(), "the mirror answered {failovers} times only");
}
