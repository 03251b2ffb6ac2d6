//! SIGKILL at random moments under load: later responses are complete or errors, the store opens,
//! and no promise to a harvester is lost.
//!
//! `OAIMEND_KILLS=200 cargo test --test program serve::kill` kills this number of times, starting
//! with `OAIMEND_SEED`.

use crate::fixtures::lists::{page, records_in, token_in};
use crate::fixtures::load::{Kind, PUBLIC_URL, SIZES, Scene, Wanted, ask, put_aside};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy;
use crate::fixtures::source::{ReceivedRequest, Reply, Source, fetch};
use oaimend_test_support::random::Random;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The number of concurrent harvesters.
const HARVESTERS: usize = 6;
/// The number of rounds that share a repository; it limits its lists and the pages of its
/// quarantine.
const ROUNDS_A_REPOSITORY: usize = 8;

/// Puts load on the program and kills it after a number of responses.
fn load_until_killed(program: &Program, scene: &Scene, repository: &str, seed: u64, pieces: usize) {
    let (read, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for harvester in 0..HARVESTERS {
            let (read, over, killer, address) = (&read, &over, program.killer(), program.address());
            scope.spawn(move || {
                let mut random = Random::new(seed ^ (harvester as u64) << 32);
                while !over.load(Ordering::Relaxed) {
                    let wanted = scene.next(&mut random, repository);
                    let came = ask(address, &wanted.path(), |_| {
                        if read.fetch_add(1, Ordering::Relaxed) == pieces {
                            killer.kill();
                            over.store(true, Ordering::Relaxed);
                        }
                    });
                    scene.judge(&wanted, &came);
                }
            });
        }
    });
}

/// The program with as many repositories as the rounds need.
fn start(folder: &Path) -> Program {
    Program::run(serve(folder).args(["--admin", "127.0.0.1:0", "--public-url", PUBLIC_URL]))
}

#[test]
fn kill_loses_no_promised_state() {
    let seed = number("OAIMEND_SEED").map_or(20_261_122, |seed| seed as u64);
    let kills = number("OAIMEND_KILLS").unwrap_or(20);
    println!("seed {seed}, {kills} kills");
    let repository = |round: usize| format!("x{}", round / ROUNDS_A_REPOSITORY);
    let scene = Scene::new(&(0..kills).map(repository).collect());
    let mut random = Random::new(seed);
    for round in 0..kills {
        let program = start(scene.folder.path());
        // Earlier promises are kept, and cached pages are unchanged.
        let before = repository(round.saturating_sub(1));
        let there = put_aside(&program, &before, false);
        let given = scene.given.lock().expect("no panic").aside.clone();
        let lost: Vec<_> = given.iter().filter(|key| key.0 == before && !there.contains(key)).collect();
        assert!(lost.is_empty(), "round {round}: lost from the quarantine: {lost:?}");
        let id = repository(round);
        for number in 0..SIZES.len() {
            let wanted = Wanted { kind: Kind::Token, repository: id.clone(), number };
            scene.judge(&wanted, &ask(program.address(), &wanted.path(), |_| {}));
        }
        load_until_killed(&program, &scene, &id, random.next(), random.below(2500));
    }
    scene.check_all(&start(scene.folder.path()));
    let given = scene.given.lock().expect("no panic");
    assert!(given.whole > kills && given.broken > 0, "the load was none");
}

#[test]
fn killed_first_start_does_not_break_the_next() {
    let all = ["quarantine", "quarantine/index.redb", "ledger.redb", "token.key", "cache"];
    for (round, file) in all.into_iter().cycle().take(4 * all.len()).enumerate() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command: Command = serve(folder.path());
        let program = Program::spawn(command.args(["--admin", "off"]));
        let path = folder.path().join("data").join(file);
        while !path.exists() {
            std::thread::yield_now();
        }
        // A little later each time.
        for _ in 0..round * 20 {
            std::thread::yield_now();
        }
        drop(program);
        let again = Program::start(folder.path(), &[]);
        assert_eq!(fetch(again.address(), "/-/readyz").status, 200, "killed when {file} was there");
    }
}

/// How long the ledger may leave a page unsynced, doubled for a slow disk.
const LEDGER_SYNCED_AFTER: Duration = Duration::from_secs(2);

/// A source of two lists: one of three pages, whose tokens expire if `is_restarted`, and an endless
/// one.
fn expiring(received: &ReceivedRequest, is_restarted: bool) -> Reply {
    let token = received.target.split_once("resumptionToken=").map_or("", |(_, token)| token);
    let number = |prefix: &str| token.strip_prefix(prefix)?.parse::<usize>().ok();
    if let Some(number) = number("endless").or(received.target.contains("set=endless").then_some(0)) {
        return Reply::xml(page(number..number + 1, &format!("endless{}", number + 1)));
    }
    let prefix = if is_restarted { "new" } else { "old" };
    let at = if token.is_empty() { Some(0) } else { number(prefix) };
    let Some(at) = at else {
        return Reply::xml(concat!(
            "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">",
            "<responseDate>2026-01-02T03:04:05Z</responseDate><request>http://source.example/oai</request>",
            "<error code=\"badResumptionToken\">gone</error></OAI-PMH>"
        ));
    };
    let next = if at < 2 { format!("{prefix}{}", at + 1) } else { String::new() };
    Reply::xml(page(at * 5..at * 5 + 5, &next))
}

#[test]
fn ledger_is_synced_within_two_seconds_under_load() {
    let is_restarted = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&is_restarted);
    let source = Source::start(move |_, received| expiring(received, shared.load(Ordering::Relaxed)));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let map = format!("x={}", source.base_url());
    let program = Program::start(folder.path(), &["--map", &map]);
    let first = fetch(program.address(), proxy::LIST).text();
    let token = token_in(&first).expect("the list continues");
    let until = oaimend_base::clock::uptime() + LEDGER_SYNCED_AFTER;
    let mut other = fetch(program.address(), &format!("{}&set=endless", proxy::LIST)).text();
    let mut pages = 0;
    while oaimend_base::clock::uptime() < until {
        let next = token_in(&other).unwrap_or_else(|| panic!("the list has no end: {other}"));
        other = fetch(program.address(), &format!("/x?verb=ListRecords&resumptionToken={next}")).text();
        pages += 1;
    }
    println!("{pages} pages of another list");
    drop(program);
    is_restarted.store(true, Ordering::Relaxed);
    let program = Program::start(folder.path(), &["--map", &map]);
    let (mut found, mut token) = (records_in(&first), Some(token));
    while let Some(next) = token {
        let got = fetch(program.address(), &format!("/x?verb=ListRecords&resumptionToken={next}"));
        assert!(got.status == 200 && got.whole, "{}", got.text());
        assert!(!got.text().contains("badResumptionToken"), "the ledger has lost the page: {}", got.text());
        for (number, count) in records_in(&got.text()) {
            *found.entry(number).or_insert(0) += count;
        }
        token = token_in(&got.text());
    }
    assert_eq!(found, (0..15).map(|number| (number, 1)).collect());
}
