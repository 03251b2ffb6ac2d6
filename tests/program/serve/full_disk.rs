//! A server whose disk is full for a while: it says so, and works again without a restart.

use super::local_folders::document;
use super::local_repositories::{dublin_core, send, write_token};
use crate::fixtures::program::{NO_DUMP_RESERVE, Program};
use crate::fixtures::proxy::LIST;
use crate::fixtures::source::{Source, fetch, page_of, record};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Limits the length of the files of a program: 0 makes each write fail, as on a full disk.
fn limit_files(program: &Program, limit: Option<u64>) {
    let id = Pid::from_raw(program.id().cast_signed()).expect("a running program");
    // Only the soft limit changes, so it can be raised again. The program has inherited ours.
    let maximum = getrlimit(Resource::Fsize).maximum;
    let limit = Rlimit { current: limit.or(maximum), maximum };
    prlimit(Some(id), Resource::Fsize, limit).expect("our own child");
}

/// Runs a program that gets an error, and no signal, for a file that is too long.
fn start(folder: &Path, arguments: &str) -> Program {
    let script = format!(
        "trap '' XFSZ; exec {} serve --listen 127.0.0.1:0 --admin 127.0.0.1:0 {arguments}",
        env!("CARGO_BIN_EXE_oaimend"),
    );
    Program::run(Command::new("sh").args(["-c", &script]).current_dir(folder))
}

fn metrics(program: &Program) -> String {
    fetch(program.admin(), "/-/metrics").text()
}

#[test]
fn full_disk_is_reported_until_the_stores_work_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let broken = page_of(3).replace(
        &record(1),
        &record(1).replace("<identifier>oai:x:1</identifier>", "<identifier></identifier>"),
    );
    let source = Source::page(broken);
    let program = start(folder.path(), &format!("--map x={}", source.base_url()));
    assert_eq!(fetch(program.address(), "/-/readyz").status, 200);
    assert!(metrics(&program).contains("oaimend_store_failed{store=\"quarantine\"} 0"));

    limit_files(&program, Some(0));
    let failed = fetch(program.address(), LIST);
    assert!(failed.status == 503 || !failed.whole, "a record that cannot go to quarantine fails its page");
    for address in [program.address(), program.admin()] {
        let ready = fetch(address, "/-/readyz");
        assert_eq!(ready.status, 503);
        assert!(ready.text().contains("quarantine"), "{}", ready.text());
    }
    assert_eq!(fetch(program.address(), "/-/livez").status, 200);
    assert!(metrics(&program).contains("oaimend_store_failed{store=\"quarantine\"} 1"));

    limit_files(&program, None);
    while fetch(program.address(), "/-/readyz").status != 200 {
        std::thread::yield_now();
    }
    assert!(metrics(&program).contains("oaimend_store_failed{store=\"quarantine\"} 0"));
    // The failure of the same request is in memory for some seconds.
    let got = fetch(program.address(), &format!("{LIST}&from=2000-01-01"));
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    let quarantined = fetch(program.admin(), "/-/repositories/x/quarantine").text();
    assert!(quarantined.contains("missing-identifier"), "{quarantined}");
}

#[test]
fn a_dump_on_a_full_disk_is_refused_and_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("writable");
    std::fs::write(folder.path().join("mappings/a.toml"), "kind = \"local\"\n").expect("writable");
    std::fs::write(folder.path().join("oaimend.toml"), NO_DUMP_RESERVE).expect("writable");
    let program = start(folder.path(), "--mappings mappings");
    let authorization = format!("Authorization: Bearer {}\r\n", write_token(folder.path(), "a", &[]));
    for number in 0..30 {
        let url = format!("PUT /a/record/oai:a:{number}?metadataPrefix=oai_dc");
        let record = dublin_core(&format!("Title {number}"));
        let put = send(program.address(), &url, &authorization, record.as_bytes());
        assert_eq!(put.status, 201, "{}", put.text());
    }
    // The id of the store and the time of the next lists are on disk from here on.
    assert_eq!(fetch(program.address(), "/_changes").status, 200);
    let kept = || {
        let files = std::fs::read_dir(folder.path().join("data/dumps")).expect("readable");
        files.map(|file| file.expect("readable").file_name()).collect::<BTreeSet<_>>()
    };
    for form in ["jsonl", "csv", "xmltape"] {
        let path = format!("/_dump?repository=a&format={form}");
        let before = kept();
        for limit in [0, 1_000] {
            limit_files(&program, Some(limit));
            let refused = fetch(program.address(), &path);
            assert_eq!((refused.status, refused.whole), (503, true), "{form}: {}", refused.text());
            assert_eq!(refused.header("content-type"), "application/problem+json");
            assert!(!refused.header("retry-after").is_empty());
            assert_eq!(kept(), before, "{form}");
        }
        limit_files(&program, None);
        let dump = fetch(program.address(), &path);
        assert_eq!((dump.status, dump.whole), (200, true), "{form}: {}", dump.text());
    }
}

#[test]
fn a_folder_on_a_full_disk_deletes_nothing_and_is_published_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |path: &str| folder.path().join(path);
    std::fs::create_dir(file("mappings")).expect("writable");
    std::fs::create_dir(file("records")).expect("writable");
    std::fs::write(file("mappings/a.toml"), "kind = \"local\"\nfolder = \"../records\"\n").expect("writable");
    for name in ["kept", "removed"] {
        std::fs::write(file(&format!("records/{name}.xml")), document(name)).expect("writable");
    }
    let mut program = start(folder.path(), "--mappings mappings");
    let list =
        |program: &Program| fetch(program.address(), "/a?verb=ListRecords&metadataPrefix=oai_dc").text();
    let count = |list: &str, part: &str| list.matches(part).count();
    while count(&list(&program), "<metadata>") < 2 {
        std::thread::yield_now();
    }

    limit_files(&program, Some(0));
    std::fs::remove_file(file("records/removed.xml")).expect("writable");
    std::fs::write(file("records/new.xml"), document("new")).expect("writable");
    program.line("the changes of the folder are not stored");
    assert_eq!(count(&list(&program), "deleted"), 0);

    limit_files(&program, None);
    let published = loop {
        let list = list(&program);
        if list.contains(">new<") && list.contains("deleted") {
            break list;
        }
        std::thread::yield_now();
    };
    assert_eq!((count(&published, "<metadata>"), count(&published, "deleted")), (2, 1), "{published}");
}
