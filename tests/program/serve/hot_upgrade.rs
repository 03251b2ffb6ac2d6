//! One process takes over from another under load: no request is refused, no response is aborted,
//! no promise is lost.

use crate::fixtures::keeping::{IDENTIFY, TOKEN_PAGE, identify, request};
use crate::fixtures::load::{Came, PUBLIC_URL, Scene, ask};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::records;
use crate::fixtures::source::{Got, Harvester, Reply, Source, fetch, last_page_of, record};
use oaimend_test_support::random::Random;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

/// The command of the process that takes over.
fn next(old: &Program, folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(["serve", "--upgrade", "--public-url", PUBLIC_URL]).current_dir(folder);
    command.args(["--listen", &old.address().to_string(), "--admin", &old.admin().to_string()]);
    command
}

/// Starts the new process; the old one may still run.
#[track_caller]
fn upgrade(old: &Program, command: &mut Command) -> Program {
    let mut new = Program::spawn(command);
    new.line("waiting for the running oaimend");
    old.signal("-QUIT");
    new.served()
}

#[track_caller]
fn ended_well(old: Program) {
    assert!(old.ended().success());
    let log = old.whole_log();
    assert!(!log.contains("\"level\":\"ERROR\""), "{log}");
}

/// A harvester that reuses its connection as long as possible.
struct Keeping {
    address: SocketAddr,
    connection: Option<Harvester>,
}

impl Keeping {
    fn ask(&mut self, path: &str) -> Came {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut harvester = match self.connection.take() {
            Some(mut harvester) => {
                harvester.again(&request);
                harvester
            }
            None => Harvester::ask(self.address, &request),
        };
        let Got { status, headers, body, whole } = harvester.whole_body();
        let closes = headers.get("connection").is_some_and(|said| said == "close");
        self.connection = (!closes).then_some(harvester);
        let head = headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        Came { status: Some(status), head, body, whole }
    }
}

/// A harvester with HTTP/2.
struct Http2(tokio::runtime::Runtime, reqwest::Client, SocketAddr);

impl Http2 {
    fn of(address: SocketAddr) -> Self {
        let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build();
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        Self(runtime, client.expect("a client"), address)
    }

    fn ask(&self, path: &str) -> Came {
        self.0.block_on(async {
            let got = self.1.get(format!("http://{}{path}", self.2)).send().await.expect("an answer");
            let status = Some(got.status().as_u16());
            let head = format!("{:?}", got.headers());
            let body = got.bytes().await.expect("a whole body").to_vec();
            Came { status, head, body, whole: true }
        })
    }
}

/// Notifies all threads when a harvester fails.
struct Falls<'a>(&'a AtomicBool);

impl Drop for Falls<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

const UPGRADES: usize = 4;

#[test]
fn upgrade_under_load_loses_nothing() {
    let seed = 20_261_123;
    println!("seed {seed}");
    let scene = Scene::new(&BTreeSet::from(["x".to_owned()]));
    let folder = scene.folder.path();
    let mut program =
        Program::run(serve(folder).args(["--admin", "127.0.0.1:0", "--public-url", PUBLIC_URL]));
    let (address, over) = (program.address(), AtomicBool::new(false));
    let answered = |count: usize| {
        while scene.given.lock().expect("no panic").whole < count {
            assert!(!over.load(Ordering::Relaxed), "a harvester fell");
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        for harvester in 0..6 {
            let (scene, over) = (&scene, &over);
            scope.spawn(move || {
                let _falls = Falls(over);
                let mut random = Random::new(seed ^ (harvester as u64) << 32);
                let mut keeping = Keeping { address, connection: None };
                let http_2 = Http2::of(address);
                while !over.load(Ordering::Relaxed) {
                    let wanted = scene.next(&mut random, "x");
                    let path = wanted.path();
                    let came = match harvester {
                        0..3 => ask(address, &path, |_| {}),
                        3..5 => keeping.ask(&path),
                        _ => http_2.ask(&path),
                    };
                    assert!(came.whole && came.status == Some(200), "{wanted:?}: {came:?}");
                    scene.judge(&wanted, &came);
                }
            });
        }
        // Whatever fails, the harvesters have to stop.
        let upgraded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for number in 1..=UPGRADES {
                answered(number * 40);
                let new = upgrade(&program, &mut next(&program, folder));
                ended_well(std::mem::replace(&mut program, new));
            }
            answered((UPGRADES + 1) * 40);
        }));
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = upgraded {
            std::panic::resume_unwind(panic);
        }
    });
    scene.check_all(&program);
    let given = scene.given.lock().expect("no panic");
    assert_eq!((given.refused, given.broken), (0, 0));
}

/// A source that sends the first half of a page at once and the rest on a signal; later pages are
/// sent at once.
fn in_two(page: String) -> (Sender<()>, Source) {
    let (go, wait) = channel();
    let wait = Mutex::new(Some(wait));
    let source = Source::start(move |_, received| {
        if received.target.contains("verb=Identify") {
            return Reply::xml(identify("quick"));
        }
        let Some(wait) = wait.lock().expect("no panic").take() else { return Reply::xml(page.clone()) };
        let (first, rest) = page.split_at(page.find(&record(5)).expect("it is there"));
        Reply::new(200, &format!("Content-Length: {}", page.len())).send(first).wait(wait).send(rest)
    });
    (go, source)
}

/// The program in front of it with that page in flight, and the process that has taken over.
fn upgraded_within(source: &Source, folder: &Path) -> (Program, Harvester, Program) {
    std::fs::create_dir(folder.join("mappings")).expect("writable");
    let mapping = format!("base_url = \"{}\"\n", source.base_url());
    std::fs::write(folder.join("mappings/x.toml"), mapping).expect("writable");
    let old = Program::run(serve(folder).args(["--admin", "127.0.0.1:0", "--public-url", PUBLIC_URL]));
    let mut reading = Harvester::ask(old.address(), &request(old.address(), TOKEN_PAGE));
    assert_eq!(reading.head().status, 200);
    let new = upgrade(&old, &mut next(&old, folder));
    assert!(fetch(new.address(), IDENTIFY).whole);
    (old, reading, new)
}

/// Reads to the end; returns whether the response is complete.
fn rest(mut reading: Harvester) -> (String, bool) {
    let mut body = Vec::new();
    loop {
        match reading.chunk() {
            Some(chunk) if chunk.is_empty() => break (String::from_utf8_lossy(&body).into_owned(), true),
            Some(chunk) => body.extend(chunk),
            None => break (String::from_utf8_lossy(&body).into_owned(), false),
        }
    }
}

#[test]
fn page_in_flight_is_finished_by_the_old_process() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (go, source) = in_two(last_page_of(9));
    let (old, reading, new) = upgraded_within(&source, folder.path());
    go.send(()).expect("the source waits");
    let (text, whole) = rest(reading);
    assert!(whole && records(&text) == records(&last_page_of(9)), "{text}");
    ended_well(old);
    let received = source.requests().len();
    let again = fetch(new.address(), TOKEN_PAGE);
    assert_eq!(again.header("cache-status"), "oaimend; fwd=miss; fwd-status=200", "it was not kept");
    assert_eq!(source.requests().len(), received + 1);
}

#[test]
fn next_request_on_a_kept_connection_is_answered() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (go, source) = in_two(last_page_of(9));
    std::fs::create_dir(folder.path().join("mappings")).expect("writable");
    let mapping = format!("base_url = \"{}\"\n", source.base_url());
    std::fs::write(folder.path().join("mappings/x.toml"), mapping).expect("writable");
    let old = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0", "--public-url", PUBLIC_URL]));
    // The connection is to be kept: the head of the page leaves before the handover.
    let kept = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut reading = Harvester::ask(old.address(), &kept(TOKEN_PAGE));
    assert_eq!(reading.head().status, 200);
    let new = upgrade(&old, &mut next(&old, folder.path()));
    go.send(()).expect("the source waits");
    while reading.chunk().is_some_and(|chunk| !chunk.is_empty()) {}
    reading.again(&kept(IDENTIFY));
    let got = reading.whole_body();
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    assert_eq!(got.header("connection"), "close");
    assert_eq!(fetch(new.address(), IDENTIFY).status, 200);
    ended_well(old);
}

#[test]
fn unquarantinable_record_aborts_the_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let page = last_page_of(9).replace("<identifier>oai:x:6</identifier>", "<identifier></identifier>");
    let (go, source) = in_two(page);
    let (old, reading, new) = upgraded_within(&source, folder.path());
    go.send(()).expect("the source waits");
    let (text, whole) = rest(reading);
    assert!(!whole && !text.contains(&record(7)) && !text.contains("</ListRecords>"), "{text}");
    assert!(old.ended().success());
    let quarantine = || fetch(new.admin(), "/-/repositories/x/quarantine").text();
    assert!(!quarantine().contains("resumptionToken=t1"));
    let again = fetch(new.address(), TOKEN_PAGE);
    assert!(again.whole && again.text().contains(&record(7)), "{again:?}");
    assert!(quarantine().contains("resumptionToken=t1"));
}

#[test]
fn sigquit_without_successor_changes_nothing() {
    let source = Source::page(identify("x"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let map = format!("x={}", source.base_url());
    let mut old = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0", "--map", &map]));
    for _ in 0..2 {
        old.signal("-QUIT");
        let said = old.line("SIGQUIT is ignored, because no process takes over");
        assert_eq!(said["level"], "ERROR");
        assert!(fetch(old.address(), IDENTIFY).whole);
    }
    let new = upgrade(&old, next(&old, folder.path()).args(["--map", &map]));
    assert!(fetch(new.address(), IDENTIFY).whole);
    assert!(old.ended().success());
}

#[test]
fn handover_socket_is_private() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let old = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    let mut new = Program::spawn(&mut next(&old, folder.path()));
    new.line("waiting for the running oaimend");
    let mode = |path: &str| {
        let about = std::fs::metadata(folder.path().join(path)).expect("it is there");
        about.permissions().mode() & 0o777
    };
    assert_eq!((mode("data/upgrade"), mode("data/upgrade/socket")), (0o700, 0o600));
    old.signal("-QUIT");
    let new = new.served();
    assert!(!folder.path().join("data/upgrade").exists());
    assert_eq!(fetch(new.address(), "/-/readyz").status, 200);
}

#[test]
fn failed_successor_leaves_the_old_process() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut old = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().expect("it is bound").to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(["serve", "--upgrade", "--admin", "off", "--listen", &taken]).current_dir(folder.path());
    let mut new = Program::spawn(&mut command);
    new.line("waiting for the running oaimend");
    old.signal("-QUIT");
    assert_eq!(new.ended().code(), Some(74));
    old.line("SIGQUIT is ignored, because no process takes over");
    assert_eq!(fetch(old.address(), "/-/readyz").status, 200);
}

#[test]
fn successor_takes_the_place_of_a_killed_process() {
    let source = Source::page(identify("x"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let map = format!("x={}", source.base_url());
    let old = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0", "--map", &map]));
    let mut new = Program::spawn(next(&old, folder.path()).args(["--map", &map]));
    new.line("waiting for the running oaimend");
    old.signal("-KILL");
    let new = new.served();
    assert_eq!(new.address(), old.address());
    assert!(fetch(new.address(), IDENTIFY).whole);
}

#[test]
fn process_starts_again_if_its_successor_dies_during_the_handover() {
    let source = Source::page(identify("x"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let map = format!("x={}", source.base_url());
    let mut old = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0", "--map", &map]));
    let address = old.address();
    // A successor that takes the sockets, waits for the data folder, and ends.
    std::fs::create_dir(folder.path().join("data/upgrade")).expect("writable");
    let listener = std::os::unix::net::UnixListener::bind(folder.path().join("data/upgrade/socket"));
    let listener = listener.expect("a free path");
    old.signal("-QUIT");
    let (mut stream, _) = listener.accept().expect("the old process connects");
    let mut message = [0; 17];
    stream.read_exact(&mut message).expect("the message with the sockets");
    stream.write_all(b"taken").expect("the old process reads");
    assert_eq!(stream.read_to_end(&mut Vec::new()).expect("readable"), 0, "the data folder is free");
    drop(stream);
    old.line("the new process has ended before it could serve");
    old.line("serving");
    assert!(fetch(address, IDENTIFY).whole);
    old.signal("-TERM");
    assert!(old.ended().success(), "it has the same process id");
}

#[test]
fn sigterm_ends_the_wait_with_a_failure() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let old = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    for signal in ["-TERM", "-INT", "-QUIT"] {
        let mut new = Program::spawn(&mut next(&old, folder.path()));
        new.line("waiting for the running oaimend");
        new.signal(signal);
        assert_eq!(new.ended().code(), Some(74), "{signal}");
    }
    assert_eq!(fetch(old.address(), "/-/readyz").status, 200);
}

#[test]
fn upgrade_without_predecessor_starts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = Program::run(serve(folder.path()).args(["--admin", "off", "--upgrade"]));
    assert_eq!(fetch(program.address(), "/-/readyz").status, 200);
}
