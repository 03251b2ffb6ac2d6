//! `oaimend quarantine`: on the data folder, and through the admin listener of a server that uses it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::fixtures::broken_records::BrokenRecords;
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
fn listed(folder: &Path, admin: &[&str]) -> Vec<Value> {
    let output = oaimend(folder, &[&["quarantine", "ls", "x", "--format", "json"], admin].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let mut json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut records: Vec<Value> = serde_json::from_value(json["records"].take()).expect("a list");
    records.sort_by_key(|record| record["offset"].as_u64());
    records
}

/// Lists, shows and removes one of two records.
fn check_commands(folder: &Path, admin: &[&str]) {
    let records = listed(folder, admin);
    assert_eq!(records.len(), 2, "{records:?}");
    for record in &records {
        assert_eq!((&record["repository"], &record["why"]), (&"x".into(), &"missing-identifier".into()));
    }
    let key = |number: usize| records[number]["key"].as_str().expect("a key").to_owned();
    let run = |arguments: &[&str]| oaimend(folder, &[&["quarantine"], arguments, admin].concat());
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
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}{{repository=\"x\",state=\"open\"}} ")));
        line.and_then(|value| value.parse::<u64>().ok()).unwrap_or_else(|| panic!("{name} in {metrics}"))
    };
    assert_eq!(metric("oaimend_quarantine_records"), 2);
    assert!(metric("oaimend_quarantine_bytes") > 2 * 4096);
    check_commands(folder.path(), &["--admin", &admin]);
    assert_eq!([metric("oaimend_quarantine_records"), metric("oaimend_quarantine_bytes")], [0, 0]);
    // The list is requested again, because its first page is not cached.
    assert_eq!(fetch(program.address(), LIST).status, 200);
    program.signal("-TERM");
    assert!(program.ended().success());
    check_commands(folder.path(), &[]);
}

#[test]
fn wrong_arguments_are_explained() {
    let folder = folder(&source());
    for (arguments, expected) in [
        (&["rm", "x"][..], "required"),
        (&["rm", "x", "--before", "yesterday"], "2026-01-31"),
        (&["rm", "x", "--all", "--before", "2026-01-01"], "cannot be used with"),
        (&["rm", "x", "--all", "--resolved"], "cannot be used with"),
        (&["rm", "x", "--older-than", "1", "--before", "2026-01-01"], "cannot be used with"),
        (&["rm", "x", "--older-than", "-1"], "unexpected argument"),
        (&["ls", "--state", "gone"], r#"expected "open" or "resolved""#),
        (&["retry", "y"], "known ids are x"),
        (&["ls", "y"], "known ids are x"),
    ] {
        let output = oaimend(folder.path(), &[&["quarantine"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(64) && said.contains(expected), "{said}");
    }
}

/// The records after the lists of [`list_twice`]: 1 to 5 are open, 6 is resolved. The source has repaired 1, has lost
/// 3, refuses 4 and has deleted 5.
fn changed_records() -> (Source, std::sync::Arc<std::sync::Mutex<BrokenRecords>>) {
    BrokenRecords::of(8, &[1, 2, 3, 4, 5, 6]).start()
}

/// Lists the records before and after record 6 is repaired.
fn list_twice(address: std::net::SocketAddr, records: &std::sync::Mutex<BrokenRecords>) {
    let repair = |number| records.lock().expect("no panic").broken.remove(&number);
    assert_eq!(fetch(address, LIST).status, 200);
    assert!(repair(6));
    assert_eq!(fetch(address, LIST).status, 200);
    assert!(repair(1));
    let mut records = records.lock().expect("no panic");
    (records.gone, records.forbidden, records.deleted) = ([3].into(), [4].into(), [5].into());
}

/// Retries the records of [`list_twice`], then lists and removes them by state and age.
fn check_retry(folder: &Path, admin: &[&str]) {
    let run = |arguments: &[&str]| oaimend(folder, &[&["quarantine"], arguments, admin].concat());
    let table = stdout(&run(&["ls"]));
    let states = |state: &str| table.lines().filter(|line| line.contains(state)).count();
    assert_eq!((states("  open  "), states("  resolved  ")), (5, 1), "{table}");
    let columns: Vec<usize> =
        table.lines().map(|line| line.rfind("  ").expect("the last column follows blanks")).collect();
    assert!(columns.iter().all(|column| *column == columns[0]), "the columns are aligned:\n{table}");

    let output = run(&["retry", "x"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for (number, expected) in [
        (1, "resolved      oai:x:1\n"),
        (2, "still broken  oai:x:2: mismatched-tags\n"),
        (3, "gone          oai:x:3\n"),
        (4, "failed        oai:x:4: "),
        (5, "resolved      oai:x:5: the source has deleted the record\n"),
    ] {
        assert!(text.contains(&format!("  {expected}")), "{number}: {text}");
    }
    assert!(!text.contains("oai:x:6"), "it is resolved: {text}");
    let sums = "x: 5 records requested: 2 resolved, 1 still broken, 1 gone, 1 failed\n";
    assert!(text.ends_with(sums), "{text}");

    let json = |arguments: &[&str]| -> Vec<Value> {
        let output = run(&[&["ls", "x", "--format", "json"], arguments].concat());
        let mut json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        serde_json::from_value(json["records"].take()).expect("a list")
    };
    let mut resolved: Vec<String> = json(&["--state", "resolved"])
        .iter()
        .map(|record| {
            assert_eq!(record["state"], "resolved");
            assert!(record["age_secs"].is_u64() && record["resolved_at"].is_string(), "{record}");
            record["identifier"].to_string()
        })
        .collect();
    resolved.sort();
    assert_eq!(resolved, ["\"oai:x:1\"", "\"oai:x:5\"", "\"oai:x:6\""]);
    let open = json(&["--state", "open"]);
    let key = |identifier: &str| {
        let record = open.iter().find(|record| record["identifier"] == identifier);
        record.expect("it is open")["key"].as_str().expect("a key").to_owned()
    };
    let output = run(&["retry", "x", &key("oai:x:2")]);
    let text = stdout(&output);
    assert!(
        text.ends_with("x: 1 record requested: 0 resolved, 1 still broken, 0 gone, 0 failed\n"),
        "{text}"
    );
    let output = run(&["retry", "x", "0000"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("run oaimend quarantine ls x"), "{said}");

    assert_eq!(stdout(&run(&["rm", "x", "--resolved", "--older-than", "1"])), "x: 0 records removed\n");
    assert_eq!(stdout(&run(&["rm", "x", "--older-than", "1"])), "x: 0 records removed\n");
    assert_eq!(stdout(&run(&["rm", "x", "--resolved"])), "x: 3 records removed\n");
    assert_eq!(json(&[]).len(), 3);
    assert_eq!(stdout(&run(&["rm", "x", "--all"])), "x: 3 records removed\n");
    let output = run(&["retry", "x"]);
    let sums = "x: 0 records requested: 0 resolved, 0 still broken, 0 gone, 0 failed\n";
    assert_eq!((stdout(&output).as_str(), output.status.code()), (sums, Some(0)));
}

#[test]
fn records_are_retried_through_the_server_and_without_it() {
    for runs in [true, false] {
        let (source, records) = changed_records();
        let folder = folder(&source);
        std::fs::write(folder.path().join("oaimend.toml"), "[cache]\nenabled = false\n").expect("writable");
        let program = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
        let admin = program.admin().to_string();
        let of_running = ["--admin", admin.as_str()];
        list_twice(program.address(), &records);
        if !runs {
            program.signal("-TERM");
            assert!(program.ended().success());
        }
        check_retry(folder.path(), if runs { &of_running } else { &[] });
    }
}

#[test]
fn harvest_of_the_mirror_resolves_entries() {
    let (source, records) = BrokenRecords::of(3, &[1]).start();
    let folder = folder(&source);
    let mapping = std::fs::read_to_string(folder.path().join("mappings/x.toml")).expect("it is there");
    let mapping = format!("{mapping}[mirror]\nprefixes = [\"oai_dc\"]\n");
    std::fs::write(folder.path().join("mappings/x.toml"), mapping).expect("writable");
    let sync = || {
        let output = oaimend(folder.path(), &["mirror", "sync", "x"]);
        assert!(stdout(&output).starts_with("x: "), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let state = || listed(folder.path(), &[])[0]["state"].clone();
    sync();
    assert_eq!(state(), "open");
    records.lock().expect("no panic").broken.clear();
    sync();
    assert_eq!(state(), "resolved");
}
