//! Real harvesters get every record with the right text through the proxy: from a provider with one
//! defect at a time, from whole repositories with all six verbs, and from the mirror. One repository
//! runs third-party software, two speak OAI-PMH 1.x. More harvesters get whole lists from broken and
//! poisoned sources, and an error in bounded time from dead ones.
//!
//! tests/harvesters/run.py, repositories.py, mirrored.py, searched.py, viewed.py, indexed.py, gathered.py, crossed.py,
//! deposited.py and sources.py do the work. They skip harvesters that are not installed; the captured output of the test
//! names them. With `OAIMEND_HARVESTERS=required` they fail instead.
//! `scripts/harvesters install` installs them.

use std::path::Path;
use std::process::Command;

#[test]
fn real_harvesters_get_every_record() {
    run("run.py", &["check"]);
}

#[test]
fn real_harvesters_get_whole_repositories() {
    run("repositories.py", &[]);
}

#[test]
fn real_harvesters_get_whole_repositories_from_the_mirror() {
    run("mirrored.py", &[]);
}

#[test]
fn real_harvesters_get_query_sets_and_searches() {
    run("searched.py", &[]);
}

#[test]
fn real_harvesters_get_a_view_and_what_has_left_it() {
    run("viewed.py", &[]);
}

#[test]
fn real_harvesters_get_the_index_of_repositories() {
    run("indexed.py", &[]);
}

#[test]
fn real_harvesters_get_a_tape_and_a_federation() {
    run("gathered.py", &[]);
}

#[test]
fn real_harvesters_get_formats_of_crosswalks() {
    run("crossed.py", &[]);
}

#[test]
fn real_harvesters_get_what_was_written_to_a_local_repository() {
    run("deposited.py", &[]);
}

#[test]
fn real_harvesters_get_whole_lists_from_bad_sources() {
    run("sources.py", &[]);
}

fn run(script: &str, arguments: &[&str]) {
    let mut command = Command::new("python3");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harvesters");
    command.arg(folder.join(script)).args(arguments).arg(env!("CARGO_BIN_EXE_oaimend"));
    if std::env::var("OAIMEND_HARVESTERS").is_ok_and(|value| value == "required") {
        command.arg("--required");
    }
    let output = command.output().expect("python3 runs");
    // The test harness captures this and shows it on a failure.
    print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script} failed");
}
