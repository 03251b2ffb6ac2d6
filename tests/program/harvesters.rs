//! Real harvesters get every record with the right text through the proxy:
//! from a provider with one defect at a time, and from whole repositories by all
//! six verbs, one that software of others serves and two of OAI-PMH 1.x.
//!
//! The work is done by tests/harvesters/run.py and repositories.py. What is not
//! installed is skipped and named; `OAIMEND_HARVESTERS=required` makes that a
//! failure, and `scripts/harvesters install` installs it.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

#[test]
fn real_harvesters_get_every_record_through_the_proxy() {
    run("run.py", &["check"]);
}

#[test]
fn real_harvesters_get_whole_repositories_through_the_proxy() {
    run("repositories.py", &[]);
}

fn run(script: &str, arguments: &[&str]) {
    let mut command = Command::new("python3");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harvesters");
    command.arg(folder.join(script)).args(arguments).arg(env!("CARGO_BIN_EXE_oaimend"));
    if std::env::var("OAIMEND_HARVESTERS").is_ok_and(|wish| wish == "required") {
        command.arg("--required");
    }
    let output = command.output().expect("python3 runs");
    let told = String::from_utf8_lossy(&output.stdout);
    for line in told.lines().filter(|line| line.starts_with("skipped: ")) {
        // Past the test harness, which keeps what a passing test prints to itself.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
}
