//! `oaimend mirror plan`: the intervals of the mirrored repositories, their cost and their freshness.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::fixtures::collection::{Collection, DAY_SECS, identifier};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::source::Source;
use oaimend_test_support::strict;

fn oaimend(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// A collection of 100 records, some of which were changed in the last 90 days.
fn collection(recent: usize) -> Source {
    let mut collection = Collection::of(100);
    let now_secs = oaimend_base::clock::unix_secs(oaimend_base::clock::now());
    for number in 0..recent {
        let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
        entry.datestamp_secs = now_secs.minus(2 * DAY_SECS).0;
    }
    collection.start().0
}

/// A folder with the harvested repositories `active` and `quiet`, and `new` without a harvest.
fn folder() -> (tempfile::TempDir, [Source; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let (active, quiet) = (collection(100), collection(0));
    let write = |id: &str, source: &Source, rest: &str| {
        let mapping = format!("base_url = \"{}\"\n[mirror]\n{rest}", source.base_url());
        std::fs::write(folder.path().join(format!("mappings/{id}.toml")), mapping).expect("writable");
    };
    write("active", &active, "");
    write("quiet", &quiet, "");
    stdout(&oaimend(folder.path(), &["mirror", "sync"]));
    write("new", &quiet, "interval_secs = 86400\n");
    (folder, [active, quiet])
}

#[test]
fn plan_harvests_active_repositories_more_often() {
    let (folder, _sources) = folder();
    let plan: Value =
        serde_json::from_str(&stdout(&oaimend(folder.path(), &["mirror", "plan", "--format", "json"])))
            .expect("JSON");
    let [active, new, quiet] = [0, 1, 2].map(|index| &plan["repositories"][index]);
    assert_eq!([&active["id"], &new["id"], &quiet["id"]], ["active", "new", "quiet"]);
    assert_eq!((&active["records"], &new["records"]), (&100.into(), &0.into()));
    assert_eq!((&quiet["updates_per_sec"], &quiet["interval_secs"]), (&0.0.into(), &604_800.0.into()));
    assert_eq!((&new["updates_per_sec"], &new["interval_secs"]), (&Value::Null, &86_400.0.into()));
    let per_day = active["updates_per_sec"].as_f64().expect("a rate") * 86_400.0;
    assert!((per_day - 100.0 * 201.0_f64.ln() / 90.0).abs() < 0.01, "{per_day}");
    let interval_secs = active["interval_secs"].as_f64().expect("a time");
    assert!((3_600.0..604_800.0).contains(&interval_secs), "{plan:#}");
    assert!(plan["plan"]["freshness"].as_f64() >= Some(0.95), "{plan:#}");
    let cost = |plan: &Value| plan["harvests_per_sec"].as_f64().expect("a number");
    assert!(cost(&plan["plan"]) < cost(&plan["uniform"]), "{plan:#}");
}

#[test]
fn tables_are_aligned_and_name_what_is_unknown() {
    let (folder, _sources) = folder();
    let text = stdout(&oaimend(folder.path(), &["mirror", "plan", "--freshness", "0.99"]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "repository       records   updates/day  interval");
    assert_eq!(lines[3], "quiet                100           0.0  7 d");
    assert_eq!(lines[2], "new                    0       unknown  1 d (fixed)");
    assert!(lines[1].starts_with("active               100           5.9  "), "{text}");
    assert!(lines[6].starts_with("this plan ") && lines[6].ends_with("0.9900"), "{text}");
    assert!(text.ends_with("before the first complete harvest: new\n"), "{text}");
}

#[test]
fn chart_is_an_svg_document() {
    let (folder, _sources) = folder();
    stdout(&oaimend(folder.path(), &["mirror", "plan", "--svg", "plan.svg"]));
    let svg = std::fs::read(folder.path().join("plan.svg")).expect("it is written");
    let root = strict::read(&svg).expect("a well-formed document");
    assert_eq!(root.name, "svg");
    let text = String::from_utf8_lossy(&svg);
    for expected in ["harvests per day", "equal intervals", "this schedule"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    // One line for each plan, beside the axes.
    assert!(text.matches("<polyline").count() >= 4, "{text}");
}

#[test]
fn freshness_outside_its_range_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for wrong in ["1", "0.4", "all"] {
        let output = oaimend(folder.path(), &["mirror", "plan", "--freshness", wrong]);
        assert_eq!(output.status.code(), Some(64), "{wrong}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("expected a number from 0.5 to less than 1"), "{text}");
    }
    let output = oaimend(folder.path(), &["mirror", "plan"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no mapping has a [mirror] table"));
}

#[test]
fn plan_works_while_a_server_uses_the_data_folder() {
    let (folder, _sources) = folder();
    let before: Value =
        serde_json::from_str(&stdout(&oaimend(folder.path(), &["mirror", "plan", "--format", "json"])))
            .expect("JSON");
    let program = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    let admin = program.admin().to_string();
    let output = stdout(&oaimend(folder.path(), &["mirror", "plan", "--format", "json", "--admin", &admin]));
    let after: Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!(before["repositories"][0], after["repositories"][0]);
}
