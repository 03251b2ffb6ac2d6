//! `oaimend mirror`: the commands on the data folder, and through the admin listener of a server that uses it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::program::{NO_DUMP_RESERVE, Program, serve};
use crate::fixtures::source::Source;
use oaimend_test_support::strict;

fn oaimend(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder with a mirrored repository `c` and one that is not mirrored.
fn folder_with(source: &Source) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mappings = folder.path().join("mappings");
    std::fs::create_dir(&mappings).expect("a writable folder");
    std::fs::write(folder.path().join("oaimend.toml"), NO_DUMP_RESERVE).expect("a writable folder");
    let base_url = source.base_url();
    for (id, rest) in [("c", "[mirror]\nprefixes = [\"oai_dc\"]\n"), ("live", "")] {
        let mapping = format!("base_url = \"{base_url}\"\n{rest}");
        std::fs::write(mappings.join(format!("{id}.toml")), mapping).expect("a writable folder");
    }
    folder
}

#[test]
fn sync_harvests_and_cat_writes_the_records() {
    let mut collection = Collection::of(25);
    collection.entries.get_mut(&identifier(3)).expect("it exists").deleted = true;
    let (source, _collection) = collection.start();
    let folder = folder_with(&source);
    let output = oaimend(folder.path(), &["mirror", "sync"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "c: 24 stored, 1 deleted, 0 unchanged, 0 missing\n");

    let output = oaimend(folder.path(), &["mirror", "cat", "c", "--format", "ids"]);
    let expected: Vec<String> = (0..25).filter(|number| *number != 3).map(identifier).collect();
    let mut found: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    found.sort();
    assert_eq!((output.status.code(), found), (Some(0), expected));

    let output =
        oaimend(folder.path(), &["mirror", "cat", "c", "--from", "2020-01-03", "--until", "2020-01-05"]);
    let document = strict::read(stdout(&output).as_bytes()).expect("a well-formed document");
    assert_eq!(document.children.len(), 3, "{}", stdout(&output));

    let output = oaimend(folder.path(), &["mirror", "cat", "c", "--format", "jsonl"]);
    let deleted: Vec<Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .filter(|record| record["deleted"] == true)
        .collect();
    assert_eq!(deleted.len(), 1);
    assert_eq!(deleted[0]["identifier"], identifier(3).as_str());

    let output = oaimend(folder.path(), &["mirror", "status", "--format", "json"]);
    let status: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let status = &status["repositories"][0]["formats"][0];
    assert_eq!((&status["records"], &status["deleted"]), (&24.into(), &1.into()), "{status}");
    assert!(status["complete_until"].is_string(), "{status}");

    for command in ["verify", "compact"] {
        let output = oaimend(folder.path(), &["mirror", command]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let output = oaimend(folder.path(), &["mirror", "forget", "c"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = oaimend(folder.path(), &["mirror", "status"]);
    assert_eq!(stdout(&output), "the mirror is empty; run: oaimend mirror sync\n");
}

#[test]
fn sync_without_a_server_harvests_only_the_named_repositories() {
    let ((named, _c), (other, _other)) = (Collection::of(3).start(), Collection::of(3).start());
    let folder = folder_with(&named);
    let mapping = format!("base_url = \"{}\"\n[mirror]\n", other.base_url());
    std::fs::write(folder.path().join("mappings/other.toml"), mapping).expect("a writable folder");
    let output = oaimend(folder.path(), &["mirror", "sync", "c"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!named.requests().is_empty() && other.requests().is_empty(), "{:?}", other.requests());
}

#[test]
fn records_that_were_never_harvested_are_not_an_empty_list() {
    let (source, _collection) = Collection::of(1).start();
    let folder = folder_with(&source);
    let output = oaimend(folder.path(), &["mirror", "cat", "c"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("run: oaimend mirror sync c"), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    oaimend(folder.path(), &["mirror", "sync", "c"]);
    let output = oaimend(folder.path(), &["mirror", "cat", "c", "--prefix", "marcxml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the format marcxml"), "{}", stderr(&output));
}

#[test]
fn wrong_repositories_are_named() {
    let (source, _collection) = Collection::of(1).start();
    let folder = folder_with(&source);
    for (id, text) in [
        ("live", "is not mirrored; add a [mirror] table"),
        ("nope", "is not a mirrored repository; expected c"),
    ] {
        let output = oaimend(folder.path(), &["mirror", "sync", id]);
        assert_eq!(output.status.code(), Some(64), "{id}");
        assert!(stderr(&output).contains(text), "{}", stderr(&output));
    }
}

#[test]
fn incomplete_harvest_exits_with_1() {
    let (source, _collection) =
        Collection { fails_at: Some("metadataPrefix".to_owned()), ..Collection::of(5) }.start();
    let folder = folder_with(&source);
    let output = oaimend(folder.path(), &["mirror", "sync"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains("oai_dc is incomplete"), "{}", stdout(&output));
}

#[test]
fn sync_and_status_work_while_a_server_uses_the_data_folder() {
    let (source, collection) = Collection::of(25).start();
    let folder = folder_with(&source);
    let mut program = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    program.line("harvest of the mirror");
    let admin = program.admin().to_string();
    let remote = |arguments: &[&str]| oaimend(folder.path(), &[arguments, &["--admin", &admin]].concat());
    let output = remote(&["mirror", "sync", "c"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "c: 0 stored, 0 deleted, 0 unchanged, 0 missing\n");
    let output = remote(&["mirror", "status", "--format", "json"]);
    let status: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(status["repositories"][0]["formats"][0]["records"], 25, "{status}");
    let output = remote(&["mirror", "status"]);
    assert!(stdout(&output).lines().nth(1).is_some_and(|row| row.starts_with("c ")), "{}", stdout(&output));
    let output = remote(&["mirror", "sync", "live"]);
    assert_eq!(output.status.code(), Some(64), "{}", stderr(&output));
    collection.lock().expect("no panic").fails_at = Some("metadataPrefix".to_owned());
    let output = remote(&["mirror", "sync"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains("oai_dc is incomplete"), "{}", stdout(&output));
}

/// The output of a command on the data folder, and of the same command through the server.
#[test]
fn commands_through_a_server_print_what_they_print_without_it() {
    let mut collection = Collection::of(1_500);
    collection.entries.get_mut(&identifier(3)).expect("it exists").deleted = true;
    let (source, collection) = collection.start();
    let folder = folder_with(&source);
    // The second compaction has nothing to free.
    for command in ["sync", "compact"] {
        let output = oaimend(folder.path(), &["mirror", command]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    collection.lock().expect("no panic").entries.remove(&identifier(5));
    let commands: [&[&str]; 17] = [
        &["status"],
        &["status", "--format", "json"],
        &["plan", "--format", "json"],
        &["cat", "c"],
        &["cat", "c", "--format", "jsonl"],
        &["cat", "c", "--format", "ids", "--set", "even"],
        &["cat", "c", "--format", "ids", "--from", "2020-01-03", "--until", "2020-01-05"],
        &["cat", "c", "--prefix", "marcxml"],
        &["cat", "nope"],
        &["cat", "no pe"],
        &["verify"],
        &["verify", "nope"],
        &["verify", "c", "--against-source"],
        &["compact"],
        &["compact", "nope"],
        &["forget", "nope"],
        &["forget", "live"],
    ];
    let run = |more: &[&str]| {
        commands.map(|command| {
            let output = oaimend(folder.path(), &[&["mirror"], command, more].concat());
            (output.status.code(), stdout(&output), stderr(&output))
        })
    };
    let local = run(&[]);
    let codes = [0, 0, 0, 0, 0, 0, 0, 1, 1, 64, 0, 64, 1, 0, 64, 64, 64].map(Some);
    assert_eq!(local.each_ref().map(|(code, ..)| *code), codes, "{local:?}");
    // The server has no reason to harvest soon after a complete harvest.
    let mut program = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    let admin = program.admin().to_string();
    let remote = run(&["--admin", &admin]);
    for ((command, local), remote) in commands.iter().zip(&local).zip(&remote) {
        assert_eq!(local, remote, "{command:?}");
    }
    let output = oaimend(folder.path(), &["mirror", "forget", "c", "--admin", &admin]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("c: forgotten; its mapping has a [mirror] table"), "{output:?}");
    assert_eq!(program.line("harvest of the mirror")["stored"], 1_498, "it is harvested again");
}

#[test]
fn command_without_an_admin_listener_says_what_to_do() {
    let (source, _collection) = Collection::of(1).start();
    let folder = folder_with(&source);
    let _program = Program::start(folder.path(), &[]);
    let output = oaimend(folder.path(), &["mirror", "sync", "--admin", "127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(74));
    assert!(stderr(&output).contains("the admin listener at 127.0.0.1:1"), "{}", stderr(&output));
    std::fs::write(folder.path().join("oaimend.toml"), "[admin]\nlisten = \"off\"\n").expect("writable");
    let output = oaimend(folder.path(), &["mirror", "sync"]);
    assert_eq!(output.status.code(), Some(74));
    assert!(stderr(&output).contains("its admin listener is off"), "{}", stderr(&output));
}

#[test]
fn verify_against_the_source_names_the_differences() {
    let (source, collection) = Collection::of(30).start();
    let folder = folder_with(&source);
    let verify = || oaimend(folder.path(), &["mirror", "verify", "c", "--against-source"]);
    let output = verify();
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert_eq!(stdout(&output), "c: never harvested; run: oaimend mirror sync c\n");
    oaimend(folder.path(), &["mirror", "sync"]);
    let output = verify();
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(stdout(&output), "c oai_dc: 30 records at the source, 0 missing, 0 vanished, 0 changed\n");
    {
        let mut collection = collection.lock().expect("no panic");
        collection.entries.remove(&identifier(5));
        collection.entries.get_mut(&identifier(9)).expect("it exists").datestamp_secs += 1;
        let new = collection.entries[&identifier(6)].clone();
        collection.entries.insert(identifier(30), new);
    }
    let output = verify();
    assert_eq!(output.status.code(), Some(1));
    let expected = "c oai_dc: 30 records at the source, 1 missing, 1 vanished, 1 changed\n  \
                    missing: oai:c:00030\n  vanished: oai:c:00005\n  changed: oai:c:00009\n";
    assert_eq!(stdout(&output), expected);
    collection.lock().expect("no panic").fails_at = Some("ListIdentifiers".to_owned());
    let output = verify();
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("c oai_dc: not compared"), "{}", stdout(&output));
}

#[test]
fn records_of_a_set_that_headers_do_not_name_are_not_an_empty_list() {
    let (source, _collection) = Collection { names_set: |_| false, ..Collection::of(9) }.start();
    let folder = folder_with(&source);
    oaimend(folder.path(), &["mirror", "sync"]);
    let cat =
        |more: &[&str]| oaimend(folder.path(), &[&["mirror", "cat", "c", "--set", "even"], more].concat());
    let check_refused = |output: Output| {
        assert_eq!((output.status.code(), stdout(&output)), (Some(1), String::new()));
        assert!(stderr(&output).contains("set_membership = \"harvest\""), "{}", stderr(&output));
    };
    check_refused(cat(&[]));
    let program = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    let admin = program.admin().to_string();
    check_refused(cat(&["--admin", &admin]));
    drop(program);
    let mapping = folder.path().join("mappings/c.toml");
    let text = std::fs::read_to_string(&mapping).expect("a mapping");
    std::fs::write(&mapping, format!("{text}set_membership = \"harvest\"\n")).expect("a writable folder");
    let output = oaimend(folder.path(), &["mirror", "sync"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = cat(&["--format", "ids"]);
    assert_eq!((output.status.code(), stdout(&output).lines().count()), (Some(0), 5), "{}", stderr(&output));
}

#[test]
fn export_writes_dumps_that_are_tapes_and_copies() {
    let (source, collection) = Collection::of(25).start();
    let folder = folder_with(&source);
    assert_eq!(oaimend(folder.path(), &["mirror", "sync"]).status.code(), Some(0));
    let export = |arguments: &[&str]| {
        let output = oaimend(folder.path(), &[&["mirror", "export"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        output
    };
    let output = export(&["c", "--format", "xmltape", "-o", "c.xml.gz"]);
    assert!(stderr(&output).starts_with("25 records, 0 of them deleted; position "), "{}", stderr(&output));
    let manifest = std::fs::read(folder.path().join("c.xml.gz.manifest.json")).expect("it is there");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    let position = manifest["position"].as_str().expect("a text").to_owned();
    for command in [["tape", "index", "c.xml.gz"], ["tape", "verify", "c.xml.gz"]] {
        let output = oaimend(folder.path(), &command);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    // The tape is a repository again.
    std::fs::write(folder.path().join("mappings/tape.toml"), "tape_file = \"../c.xml.gz\"\n[mirror]\n")
        .expect("writable");
    let output = oaimend(folder.path(), &["mirror", "sync", "tape"]);
    assert_eq!(
        stdout(&output),
        "tape: 25 stored, 0 deleted, 0 unchanged, 0 missing\n",
        "{}",
        stderr(&output)
    );
    let ids = |output: &Output| -> Vec<String> {
        let identifier = |line: &str| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            line["identifier"].as_str().expect("a text").to_owned()
        };
        let mut ids: Vec<String> = stdout(output).lines().map(identifier).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&export(&["tape"])), (0..25).map(identifier).collect::<Vec<_>>());
    // Only what has changed.
    crate::fixtures::harvest::change(&collection, |collection| {
        collection.now_secs += 86_400;
        let now_secs = collection.now_secs;
        let entry = collection.entries.get_mut(&identifier(3)).expect("it exists");
        (entry.datestamp_secs, entry.deleted) = (now_secs, true);
    });
    assert_eq!(oaimend(folder.path(), &["mirror", "sync", "c"]).status.code(), Some(0));
    assert_eq!(ids(&export(&["c", "--since", &position])), [identifier(3)]);
    let csv = stdout(&export(&["c", "--format", "csv"]));
    assert_eq!(
        (csv.lines().count(), csv.lines().next().map(|line| line.starts_with("\"identifier\","))),
        (26, Some(true))
    );
    for (arguments, code) in [
        (&["none"][..], 1),
        (&["c", "--prefix", "none"], 64),
        (&["c", "--since", "x"], 64),
        (&["c", "--since", "0000000000000000-0-1"], 1),
        (&["live"], 1),
    ] {
        let output = oaimend(folder.path(), &[&["mirror", "export"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
}

/// The names in a folder that begin like this file.
fn beside(folder: &Path, name: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("readable");
    let names = entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        names.filter(|found| found.starts_with(name) || found.starts_with(".tmp")).collect();
    names.sort();
    names
}

#[test]
fn no_manifest_describes_a_dump_that_is_not_there() {
    let (source, _) = Collection::of(5).start();
    let folder = folder_with(&source);
    assert_eq!(oaimend(folder.path(), &["mirror", "sync"]).status.code(), Some(0));
    let export = || oaimend(folder.path(), &["mirror", "export", "c", "-o", "c.jsonl"]);
    // A folder with the name of the dump cannot be replaced.
    std::fs::create_dir_all(folder.path().join("c.jsonl/x")).expect("writable");
    let output = export();
    assert_eq!(output.status.code(), Some(74), "{}", stderr(&output));
    assert_eq!(beside(folder.path(), "c.jsonl"), ["c.jsonl"]);
    std::fs::remove_dir_all(folder.path().join("c.jsonl")).expect("writable");
    // A manifest that cannot be written is no reason to lose an earlier dump.
    std::fs::write(folder.path().join("c.jsonl"), "earlier").expect("writable");
    std::fs::create_dir_all(folder.path().join("c.jsonl.manifest.json/x")).expect("writable");
    let output = export();
    assert_eq!(output.status.code(), Some(74), "{}", stderr(&output));
    assert_eq!(std::fs::read(folder.path().join("c.jsonl")).expect("it is there"), b"earlier");
    std::fs::remove_dir_all(folder.path().join("c.jsonl.manifest.json")).expect("writable");
    let output = export();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(beside(folder.path(), "c.jsonl"), ["c.jsonl", "c.jsonl.manifest.json"]);
    let full = Command::new("sh")
        .args(["-c", &format!("exec {} mirror export c > /dev/full", env!("CARGO_BIN_EXE_oaimend"))])
        .current_dir(folder.path())
        .output()
        .expect("the program runs");
    assert_eq!(full.status.code(), Some(74), "{}", stderr(&full));
}
