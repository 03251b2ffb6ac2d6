//! A source that lists an identifier twice: what operators see, and who answers for a suffix.

use std::path::Path;
use std::process::{Command, Output};

use oaimend_mirror::harvest::HarvestSettings;
use oaimend_oai::ErrorCode;
use oaimend_store::Duplicates;
use serde_json::Value;

use crate::fixtures::collection::{Collection, Entry, identifier};
use crate::fixtures::failover::World;
use crate::fixtures::program::{Program, serve};
use crate::fixtures::source::{Source, fetch};

/// A collection whose lists contain the identifier 3 again, with another title and an older datestamp.
fn collection() -> Collection {
    let mut collection = Collection::of(25);
    let entry = collection.entries.get(&identifier(3)).expect("it exists").clone();
    let other = Entry { title: "Other".to_owned(), datestamp_secs: entry.datestamp_secs - 1, ..entry };
    collection.repeated = [(identifier(3), other)].into();
    collection
}

fn oaimend(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// A folder with a mirrored repository `c` that has this key.
fn folder_with(source: &Source, key: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let mapping = format!("base_url = \"{}\"\n[mirror]\nprefixes = [\"oai_dc\"]\n{key}\n", source.base_url());
    std::fs::write(folder.path().join("mappings/c.toml"), mapping).expect("a writable folder");
    folder
}

#[test]
fn duplicates_are_in_the_log_and_in_the_metrics() {
    let (source, _collection) = collection().start();
    let folder = folder_with(&source, "duplicates = \"suffix\"");
    let mut program = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    let line = program.line("harvest of the mirror");
    assert_eq!((&line["duplicates"], &line["repetitions"]), (&1.into(), &0.into()), "{line}");
    let metrics = fetch(program.admin(), "/-/metrics").text();
    assert!(metrics.contains("oaimend_mirror_duplicates{repository=\"c\"} 1\n"), "{metrics}");
}

#[test]
fn duplicates_are_in_the_result_and_in_the_status() {
    let (source, _collection) = collection().start();
    for (rule, has_suffix) in
        [("", false), ("duplicates = \"first\"", false), ("duplicates = \"suffix\"", true)]
    {
        let folder = folder_with(&source, rule);
        let output = oaimend(folder.path(), &["mirror", "sync"]);
        let stored = if has_suffix { 26 } else { 25 };
        let expected = format!(
            "c: {stored} stored, 0 deleted, 0 unchanged, 0 missing; 1 duplicates: their identifier was listed \
             before, with another content\n"
        );
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), expected), "{rule}");
        let status = stdout(&oaimend(folder.path(), &["mirror", "status"]));
        assert!(status.contains("c: 1 duplicates: records whose identifier"), "{status}");
        let status = stdout(&oaimend(folder.path(), &["mirror", "status", "--format", "json"]));
        let status: Value = serde_json::from_str(&status).expect("JSON");
        let status = &status["repositories"][0];
        assert_eq!(status["formats"][0]["duplicates"], 1, "{status}");
        let last = &status["last_harvest"];
        assert_eq!((&last["duplicates"], &last["repetitions"]), (&1.into(), &0.into()), "{status}");
        let identifiers = stdout(&oaimend(folder.path(), &["mirror", "cat", "c", "--format", "ids"]));
        let suffixed = format!("{}#2", identifier(3));
        assert_eq!(identifiers.lines().any(|line| line == suffixed), has_suffix, "{identifiers}");
        let output = oaimend(folder.path(), &["mirror", "verify", "c", "--against-source"]);
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    }
}

#[test]
fn the_mirror_answers_for_its_suffixes_and_the_source_for_all_others() {
    let world = World::of(collection());
    let settings = HarvestSettings { duplicates: Duplicates::Suffix, ..HarvestSettings::default() };
    assert!(world.try_harvest_with(&settings).is_some());
    let record = |number: usize, suffix: &str| {
        format!("verb=GetRecord&metadataPrefix=oai_dc&identifier={}{suffix}", identifier(number))
    };
    for is_down in [false, true] {
        world.set_down(is_down);
        let answered = world.ask_valid(&record(3, "%232"));
        assert_eq!(answered.items()[0].identifier, format!("{}#2", identifier(3)));
        assert!(answered.body.contains("<dc:title>Other<"), "{}", answered.body);
        let formats = format!("verb=ListMetadataFormats&identifier={}%232", identifier(3));
        assert!(world.ask_valid(&formats).body.contains("<metadataPrefix>oai_dc<"));
        assert!(world.ask_valid(&record(3, "")).body.contains("<dc:title>Title 3<"));
    }
    world.set_down(false);
    for suffix in ["%233", "%2302"] {
        let answered = world.ask_valid(&record(3, suffix));
        assert_eq!(answered.summary.page.error, Some(ErrorCode::IdDoesNotExist), "{suffix}");
    }
    assert_eq!(world.ask_valid(&record(4, "%232")).summary.page.error, Some(ErrorCode::IdDoesNotExist));
}
