//! A server whose disk is full for a while: it says so, and works again without a restart.

use crate::fixtures::program::Program;
use crate::fixtures::proxy::LIST;
use crate::fixtures::source::{Source, fetch, page_of, record};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::process::Command;

/// Limits the length of the files of a program: 0 makes each write fail, as on a full disk.
fn limit_files(program: &Program, limit: Option<u64>) {
    let id = Pid::from_raw(program.id().cast_signed()).expect("a running program");
    // Only the soft limit changes, so it can be raised again. The program has inherited ours.
    let maximum = getrlimit(Resource::Fsize).maximum;
    let limit = Rlimit { current: limit.or(maximum), maximum };
    prlimit(Some(id), Resource::Fsize, limit).expect("our own child");
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
    let script = format!(
        "trap '' XFSZ; exec {} serve --listen 127.0.0.1:0 --admin 127.0.0.1:0 --map x={}",
        env!("CARGO_BIN_EXE_oaimend"),
        source.base_url()
    );
    let program = Program::run(Command::new("sh").args(["-c", &script]).current_dir(folder.path()));
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
