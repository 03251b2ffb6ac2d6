//! `oaimend quarantine`: on the data folder, and through the admin listener of a server that uses it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::LIST;
use crate::fixtures::source::{Harvester, Reply, Source, fetch, page_of};

fn oaimend(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// A source whose list has two records without identifiers among five. One of them has a byte that is not UTF-8.
fn source() -> Source {
    let page = page_of(5).replace("oai:x:1<", "<").replace("oai:x:3<", "<");
    let at = page.find("Title 3").expect("it is there");
    let mut bytes = page.into_bytes();
    bytes[at] = 0xe9;
    Source::start(move |_, _| Reply::xml(bytes.clone()))
}

fn folder(source: &Source) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let mapping = format!("base_url = \"{}\"\nrefetch_broken_records = false\n", source.base_url());
    std::fs::write(folder.path().join("mappings/x.toml"), mapping).expect("a writable folder");
    folder
}

/// The listed records, the one with a byte that is not UTF-8 last.
fn listed(folder: &Path, admin: &str) -> Vec<Value> {
    let output = oaimend(folder, &["quarantine", "ls", "x", "--json", "--admin", admin]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let mut json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut records: Vec<Value> = serde_json::from_value(json["records"].take()).expect("a list");
    records.sort_by_key(|record| record["offset"].as_u64());
    records
}

/// Lists, shows and removes one of two records.
fn check_commands(folder: &Path, admin: &str) {
    let records = listed(folder, admin);
    assert_eq!(records.len(), 2, "{records:?}");
    for record in &records {
        assert_eq!((&record["repository"], &record["why"]), (&"x".into(), &"missing-identifier".into()));
    }
    let key = |number: usize| records[number]["key"].as_str().expect("a key").to_owned();
    let run =
        |arguments: &[&str]| oaimend(folder, &[&["quarantine"], arguments, &["--admin", admin]].concat());
    let table = stdout(&run(&["ls"]));
    assert!(table.starts_with("repository  key ") && table.contains(&key(0)), "{table}");
    let shown = run(&["show", "x", &key(1)]).stdout;
    assert_eq!(shown, std::fs::read(folder.join("data/quarantine/x").join(key(1))).expect("it is on disk"));
    assert!(shown.contains(&0xe9));
    let removed = run(&["rm", "x", &key(1)]);
    assert_eq!(stdout(&removed), "x: 1 record removed\n");
    assert!(!folder.join("data/quarantine/x").join(key(1)).exists());
    for missing in [&["rm", "x", &key(1)], &["show", "x", &key(1)]] {
        let output = run(missing);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains("run oaimend quarantine ls x"), "{said}");
    }
    assert_eq!(stdout(&run(&["rm", "x", "--before", "2020-01-01"])), "x: 0 records removed\n");
    assert_eq!(listed(folder, admin).len(), 1);
    assert_eq!(stdout(&run(&["rm", "x", "--all"])), "x: 1 record removed\n");
    assert_eq!(stdout(&run(&["ls"])), "no quarantined records\n");
}

#[test]
fn records_are_listed_shown_and_removed() {
    let source = source();
    let folder = folder(&source);
    let program = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    let admin = program.admin().to_string();
    assert_eq!(fetch(program.address(), LIST).status, 200);
    let from_a_page = "DELETE /-/repositories/x/quarantine?all=true HTTP/1.1\r\nHost: localhost\r\n\
                       Origin: http://evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(Harvester::ask(program.admin(), from_a_page).rest().status, 403);
    let metric = |name: &str| {
        let metrics = fetch(program.admin(), "/-/metrics").text();
        let line =
            metrics.lines().find_map(|line| line.strip_prefix(&format!("{name}{{repository=\"x\"}} ")));
        line.and_then(|value| value.parse::<u64>().ok()).unwrap_or_else(|| panic!("{name} in {metrics}"))
    };
    assert_eq!(metric("oaimend_quarantine_records"), 2);
    assert!(metric("oaimend_quarantine_bytes") > 2 * 4096);
    check_commands(folder.path(), &admin);
    assert_eq!([metric("oaimend_quarantine_records"), metric("oaimend_quarantine_bytes")], [0, 0]);
    // The list is requested again, because its first page is not cached.
    assert_eq!(fetch(program.address(), LIST).status, 200);
    program.signal("-TERM");
    assert!(program.ended().success());
    check_commands(folder.path(), &admin);
}

#[test]
fn wrong_arguments_are_explained() {
    let folder = folder(&source());
    for (arguments, expected) in [
        (&["rm", "x"][..], "required"),
        (&["rm", "x", "--before", "yesterday"], "2026-01-31"),
        (&["rm", "x", "--all", "--before", "2026-01-01"], "cannot be used with"),
        (&["ls", "y"], "known ids are x"),
    ] {
        let output = oaimend(folder.path(), &[&["quarantine"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(64) && said.contains(expected), "{said}");
    }
}
