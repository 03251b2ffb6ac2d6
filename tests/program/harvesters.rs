//! Real harvesters get every record with the right text through the proxy: from a provider with one
//! defect at a time, and from whole repositories with all six verbs. One repository runs
//! third-party software, two speak OAI-PMH 1.x.
//!
//! tests/harvesters/run.py and repositories.py do the work. Harvesters that are not installed are
//! skipped and named. `OAIMEND_HARVESTERS=required` turns that into a failure; `scripts/harvesters
//! install` installs them.

use std::io::Write as _;
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
        // Writes around the test harness, which hides the output of passing tests.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
}
