//! Real harvesters get every record with the right text through the proxy,
//! from a provider with one defect at a time.
//!
//! The work is done by tests/harvesters/run.py. A harvester that is not
//! installed is skipped and named; `OAIMEND_HARVESTERS=required` makes that a
//! failure, and `scripts/harvesters install` installs them.

#![cfg(feature = "program")]

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

#[test]
fn real_harvesters_get_every_record_through_the_proxy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("python3");
    command.arg(root.join("tests/harvesters/run.py")).arg("check").arg(env!("CARGO_BIN_EXE_oaimend"));
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
