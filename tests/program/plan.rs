//! `oaimend plan`: the schedule for the repositories of a table, and the policies of the paper.

use std::path::Path;
use std::process::{Command, Output};

use oaimend_test_support::strict;
use serde_json::Value;

/// Four repositories, three of type T1 and one of type T4 of the paper.
const TABLE: &str = "id,records,changes_per_day,weight\n\
                     a,1000,100,1\n\
                     b,1000,100,1\n\
                     c,1000,100,\n\
                     \"large, busy\",10000,5000,1\n";

fn plan(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(["plan", "--input", "table.csv"]).args(arguments).current_dir(folder);
    command.output().expect("the program runs")
}

fn folder(table: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("table.csv"), table).expect("writable");
    folder
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn document(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(&plan(folder, &[arguments, &["--format", "json"]].concat()))).expect("JSON")
}

#[test]
fn repositories_of_a_table_are_planned_without_a_mirror() {
    let folder = folder(TABLE);
    let text = stdout(&plan(folder.path(), &[]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "repository        records   updates/day  interval");
    assert!(lines[1].starts_with("a                    1000         100.0  1 d "), "{text}");
    assert!(lines[4].starts_with("large, busy         10000        5000.0  "), "{text}");
    assert!(lines[7].starts_with("this plan ") && lines[7].ends_with("0.9500"), "{text}");
    assert_eq!(lines.len(), 9, "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else is written");
}

#[test]
fn policies_have_the_costs_of_the_paper() {
    let folder = folder(TABLE);
    std::fs::write(folder.path().join("even.csv"), "id,records,changes_per_day\nx,1000,100\ny,10000,5000\n")
        .expect("writable");
    let arguments = ["--freshness", "0.98", "--compare", "--planned", "even.csv"];
    let policies = &document(folder.path(), &arguments)["policies"];
    let ratio = |policy: &str| policies[policy]["cost_ratio"].as_f64().expect("a number");
    assert_eq!(ratio("oap"), 1.0);
    // Figure 3 of the paper: 75 % T1, θ = 0.98.
    assert!((ratio("uap") - 1.706).abs() < 0.001, "{policies:#}");
    assert!(ratio("unap") > ratio("uap"), "more busy repositories were expected: {policies:#}");
    assert!(policies["unap"]["freshness"].as_f64() > Some(0.98), "{policies:#}");
    let text = stdout(&plan(folder.path(), &arguments));
    let line = text.lines().find(|line| line.starts_with("UAP ")).expect("a line");
    assert!(line.starts_with("UAP   equal intervals  ") && line.ends_with(" 1.706     0.9800"), "{text}");
    assert!(text.contains("\nUNAP  equal intervals for the planned table "), "{text}");
    // Other costs have other ratios: without a cost of updates, that of the harvests alone.
    let policies =
        &document(folder.path(), &["--freshness", "0.98", "--compare", "--update-cost", "0"])["policies"];
    assert!(policies["uap"]["cost_ratio"].as_f64() > Some(2.0), "{policies:#}");
    assert_eq!(policies["unap"], Value::Null, "without a planned table it is UAP");
}

#[test]
fn a_cost_weight_chooses_the_freshness() {
    let folder = folder(TABLE);
    let freshness = |weight: &str| {
        let document = document(folder.path(), &["--cost-weight", weight]);
        let combined = document["combined_cost"]["freshness"].as_f64().expect("a number");
        assert_eq!(document["freshness_target"].as_f64(), Some(combined));
        combined
    };
    assert!(freshness("10000") < freshness("100000"));
    let text = stdout(&plan(folder.path(), &["--cost-weight", "100000"]));
    assert!(text.contains("a freshness of 0.9860 costs least"), "{text}");
    std::fs::write(folder.path().join("idle.csv"), "id,records,changes_per_day\na,1,0\n").expect("writable");
    for (wrong, message) in [
        (&["--cost-weight", "1"][..], "a freshness below 0.5 costs least"),
        (&["--cost-weight", "0"][..], "expected a number above 0"),
        (&["--cost-weight", "5", "--freshness", "0.9"][..], "cannot be used with"),
        (&["--planned", "table.csv"][..], "--compare"),
        (&["--cost-weight", "5", "--harvest-cost", "0"][..], "harvests that cost something"),
        (&["--compare", "--planned", "idle.csv"][..], "idle.csv: no repository changes"),
    ] {
        let output = plan(folder.path(), wrong);
        assert_eq!(output.status.code(), Some(64), "{wrong:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(message), "{wrong:?}: {text}");
    }
}

#[test]
fn the_chart_shows_each_policy() {
    let folder = folder(TABLE);
    for (arguments, names) in [
        (&["--svg", "plan.svg"][..], &["harvests per day", "equal intervals", "this schedule"][..]),
        (&["--svg", "plan.svg", "--compare"][..], &["relative to OAP", ">\nUAP\n<", ">\nIOAP\n<"][..]),
    ] {
        stdout(&plan(folder.path(), arguments));
        let svg = std::fs::read(folder.path().join("plan.svg")).expect("it is written");
        assert_eq!(strict::read(&svg).expect("a well-formed document").name, "svg");
        let text = String::from_utf8_lossy(&svg);
        names.iter().for_each(|name| assert!(text.contains(name), "{name}: {text}"));
    }
}

#[test]
fn faults_of_a_table_are_named_with_line_and_column() {
    let folder = folder("id,records,changes_per_day\na,1,1\nb,many,1\na,1,1\n");
    let output = plan(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(64));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        text,
        "oaimend: the table has faults:\n\
         table.csv:3:2: records must be a whole number from 0 to 10000000000, found \"many\"\n\
         table.csv:4:1: the id \"a\" is in line 2 too\n"
    );
    std::fs::remove_file(folder.path().join("table.csv")).expect("it exists");
    assert_eq!(plan(folder.path(), &[]).status.code(), Some(74));
}
