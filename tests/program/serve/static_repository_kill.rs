//! The stored copy of a static repository file after the end of its process: killed at random
//! moments while it loads another file, or replaced by another process. The active copy is
//! complete.

use crate::fixtures::keeping::wait_until;
use crate::fixtures::program::{Program, serve};
use crate::fixtures::source::{Got, Reply, Source, fetch};
use crate::fixtures::static_files::{Kept, file_of};
use oaimend_test_support::random::Random;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

const HEADERS: &str = "/x?verb=ListIdentifiers&metadataPrefix=oai_dc";
/// A different number for each run of the same kind.
const SEED: u64 = 0x0571_a71d;

/// The number of records in a whole list.
#[track_caller]
fn records(got: &Got) -> usize {
    assert_eq!(got.status, 200, "{}", got.text());
    assert!(got.whole, "{}", got.text());
    got.text().matches("<header>").count()
}

fn folder_of(kept: &Kept) -> PathBuf {
    kept.mappings().parent().expect("it lies in a folder").to_owned()
}

/// The files of the copies; incomplete ones are recognised by their suffix.
fn copies(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("data/static/x")).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn in_the_making(folder: &Path) -> usize {
    copies(folder).iter().filter(|name| name.ends_with(".part")).count()
}

#[test]
fn kill_leaves_the_old_or_the_new_file() {
    let kept = Kept::local(file_of(1));
    let folder = folder_of(&kept);
    let start = || Program::start(&folder, &["--mappings", "mappings"]);
    let mut random = Random::new(SEED);
    let (mut in_force, mut taken_in) = (0, 0);
    for round in 1..25 {
        kept.write(file_of(in_force + 1));
        let program = start();
        let before = records(&fetch(program.address(), HEADERS));
        assert_eq!(before, in_force + 1, "round {round} of seed {SEED}");
        let next = before + 60;
        kept.write(file_of(next));
        let (over, address) = (AtomicBool::new(false), program.address());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Any result is fine, also none.
                if let Ok(mut stream) = TcpStream::connect(address) {
                    let request = format!("GET {HEADERS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
                    let _ = stream.write_all(request.as_bytes());
                    let _ = stream.read_to_end(&mut Vec::new());
                }
                over.store(true, Ordering::Relaxed);
            });
            while in_the_making(&folder) == 0 && !over.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            for _ in 0..random.below(40_000) {
                std::thread::yield_now();
            }
            program.killer().kill();
        });
        drop(program);
        // Only the copy can be served now.
        kept.write("<html>no repository</html>");
        let program = start();
        let now = records(&fetch(program.address(), HEADERS));
        assert!([before, next].contains(&now), "round {round} of seed {SEED}: {now} records");
        taken_in += usize::from(now != before);
        in_force = before;
    }
    println!("{taken_in} of 24 files were loaded before the kill");
    kept.write(file_of(2));
    let program = start();
    assert_eq!(records(&fetch(program.address(), HEADERS)), 2);
    assert_eq!(copies(&folder).len(), 2, "nothing is left of those that were killed: {:?}", copies(&folder));
}

#[test]
fn replaced_process_keeps_the_new_copies() {
    let ((go_old, old_goes), (go_new, new_goes)) = (channel(), channel());
    let waits = Mutex::new(vec![new_goes, old_goes]);
    let source = Source::start(move |number, _| {
        let file = file_of(if number == 0 { 3 } else { 5 });
        let reply = Reply::new(200, &format!("Content-Type: text/xml\nContent-Length: {}", file.len()));
        match number {
            0 => reply.send(file),
            // Each process gets another request.
            _ => {
                let wait = waits.lock().expect("no panic").pop().expect("there are two");
                let (head, tail) = file.split_at(100);
                reply.send(head).wait(wait).send(tail)
            }
        }
    });
    let url = format!("http://{}/static.xml", source.address);
    let kept = Kept::mapped(&format!("static_file = \"{url}\"\nstatic_check_secs = 0\n"));
    let folder = folder_of(&kept);
    let old = Program::run(serve(&folder).args(["--admin", "127.0.0.1:0", "--mappings", "mappings"]));
    let address = old.address();
    assert_eq!(records(&fetch(address, HEADERS)), 3);
    std::thread::scope(|scope| {
        let in_the_old = scope.spawn(|| fetch(address, HEADERS));
        wait_until(|| in_the_making(&folder) == 1);
        let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
        command.args(["serve", "--upgrade", "--mappings", "mappings"]).current_dir(&folder);
        command.args(["--listen", &address.to_string(), "--admin", &old.admin().to_string()]);
        let mut new = Program::spawn(&mut command);
        new.line("waiting for the running oaimend");
        old.signal("-QUIT");
        let new = new.served();
        let in_the_new = scope.spawn(|| fetch(address, &format!("{HEADERS}&from=2001-01-01")));
        wait_until(|| in_the_making(&folder) == 2);
        go_old.send(()).expect("the source waits for it");
        let late = records(&in_the_old.join().expect("it has an answer"));
        assert!([3, 5].contains(&late), "{late} records");
        assert!(old.ended().success());
        go_new.send(()).expect("the source waits for it");
        assert_eq!(records(&in_the_new.join().expect("it has an answer")), 5);
        assert_eq!(copies(&folder).len(), 2, "{:?}", copies(&folder));
        new.killer().kill();
        let log = new.whole_log();
        assert!(!log.contains("file rejected"), "{log}");
    });
}
