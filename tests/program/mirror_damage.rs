//! Damaged blocks of a mirror: lists fail until the records are fetched again, or until their loss is accepted.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::fixtures::collection::Collection;
use crate::fixtures::mirror::{damage_last_block, segments};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::source::{Source, fetch};

const RECORDS: usize = 1_400;

fn oaimend(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

/// Runs a command that must succeed, and returns its output.
#[track_caller]
fn run(folder: &Path, arguments: &[&str]) -> String {
    let output = oaimend(folder, arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// A harvested mirror of a source, in a folder.
fn mirrored(source: &Source) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mappings = folder.path().join("mappings");
    std::fs::create_dir(&mappings).expect("writable");
    let mapping = format!(
        "base_url = \"{}\"\n[mirror]\nprefixes = [\"oai_dc\"]\ninterval_secs = 31536000\n",
        source.base_url()
    );
    std::fs::write(mappings.join("c.toml"), mapping).expect("writable");
    std::fs::write(folder.path().join("oaimend.toml"), "[mirror]\naggregate = true\n").expect("writable");
    run(folder.path(), &["mirror", "sync"]);
    folder
}

fn damage(folder: &Path) {
    let segments = segments(&folder.join("data/mirror"));
    damage_last_block(segments.first().expect("a segment"));
}

fn start(folder: &Path) -> (Program, String) {
    let program = Program::run(serve(folder).args(["--admin", "127.0.0.1:0"]));
    let admin = program.admin().to_string();
    (program, admin)
}

/// The status of a list and the number of its records, over all pages.
fn list(program: &Program, path: &str, verb: &str) -> (u16, usize) {
    let mut query = format!("verb={verb}&metadataPrefix=oai_dc");
    let mut records = 0;
    loop {
        let got = fetch(program.address(), &format!("{path}?{query}"));
        let text = got.text();
        records += text.matches("<header").count();
        let token = text.split_once("<resumptionToken").and_then(|(_, rest)| {
            let (token, _) = rest.split_once('>')?.1.split_once("</resumptionToken>")?;
            (!token.is_empty()).then(|| token.to_owned())
        });
        match token {
            Some(token) => query = format!("verb={verb}&resumptionToken={token}"),
            None => return (got.status, records),
        }
    }
}

#[test]
fn damaged_lists_fail_until_the_records_are_fetched_again() {
    let (source, _collection) = Collection::of(RECORDS).start();
    let folder = mirrored(&source);
    damage(folder.path());
    let (program, admin) = start(folder.path());
    for path in ["/_mirror/c", "/_all"] {
        let (status, records) = list(&program, path, "ListRecords");
        assert!(status == 503 && records < RECORDS, "{path}: {status}, {records} records");
        // The headers are not damaged.
        assert_eq!(list(&program, path, "ListIdentifiers"), (200, RECORDS), "{path}");
    }
    // The damage has no names yet: the harvest looks for it, because a list has met it.
    let synced = run(folder.path(), &["mirror", "sync", "c", "--admin", &admin]);
    assert!(synced.contains(" stored"), "{synced}");
    for path in ["/_mirror/c", "/_all"] {
        assert_eq!(list(&program, path, "ListRecords"), (200, RECORDS), "{path}");
    }
    assert!(run(folder.path(), &["mirror", "verify", "--admin", &admin]).contains(", 0 damaged"));
}

#[test]
fn accepted_loss_opens_the_lists() {
    let (source, _collection) = Collection::of(RECORDS).start();
    for is_remote in [false, true] {
        let folder = mirrored(&source);
        damage(folder.path());
        let server = is_remote.then(|| start(folder.path()));
        let admin = server.as_ref().map_or(Vec::new(), |(_, admin)| vec!["--admin", admin.as_str()]);
        let with = |arguments: &[&'static str]| [arguments, admin.as_slice()].concat();
        let output = oaimend(folder.path(), &with(&["mirror", "verify"]));
        assert_eq!(output.status.code(), Some(1));
        let advice = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(advice.contains("oaimend mirror accept-loss c"), "{advice}");
        let exported = oaimend(folder.path(), &with(&["mirror", "cat", "c", "--format", "ids"]));
        assert_ne!(exported.status.code(), Some(0), "an export without them is not complete");
        let accepted = run(folder.path(), &with(&["mirror", "accept-loss", "c"]));
        let missing = accepted.strip_prefix("c: ").and_then(|rest| rest.split_once(' ')).expect("a number").0;
        let missing: usize = missing.parse().expect("a number");
        assert!((1..RECORDS).contains(&missing), "{accepted}");
        let status = run(folder.path(), &with(&["mirror", "status", "--format", "json"]));
        let status: Value = serde_json::from_str(&status).expect("JSON");
        let format = &status["repositories"][0]["formats"][0];
        assert_eq!((&format["missing"], &format["damaged"]), (&missing.into(), &0.into()), "{status}");
        let exported = run(folder.path(), &with(&["mirror", "cat", "c", "--format", "ids"]));
        assert_eq!(exported.lines().count(), RECORDS - missing);
        let (program, _) = server.unwrap_or_else(|| start(folder.path()));
        for path in ["/_mirror/c", "/_all"] {
            assert_eq!(list(&program, path, "ListRecords"), (200, RECORDS - missing), "{path}");
        }
    }
}
