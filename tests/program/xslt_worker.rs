//! The hidden command that runs XSLT sheets, as a person and as oaimend starts it.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::fixtures::mirror::runtime;
use oaimend_xslt::{FailureKind, Sheet, WorkerProgram, XsltLimits, XsltWorker};

use crate::cli::{assert_exit, run, stderr};

const SHEET: &str =
    r#"<b xsl:version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:value-of select="."/></b>"#;

fn oaimend() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.arg("xslt-worker");
    command
}

#[test]
fn the_worker_needs_pipes() {
    let null = || File::open("/dev/null").expect("it exists");
    let folder = tempfile::tempdir().expect("a folder");
    let file = File::create(folder.path().join("output")).expect("a file");
    for (stdin, stdout) in [(Stdio::from(null()), Stdio::piped()), (Stdio::piped(), Stdio::from(file))] {
        let child = oaimend().stdin(stdin).stdout(stdout).stderr(Stdio::piped()).spawn();
        let output = child.and_then(|child| child.wait_with_output()).expect("it ends");
        assert_exit(&output, 64);
        assert!(stderr(&output).contains("there is nothing to start by hand"), "{}", stderr(&output));
    }
}

#[test]
fn the_worker_is_in_no_list_of_commands() {
    for arguments in [&["--help"][..], &["completions", "bash"]] {
        let output = run(arguments, b"");
        assert_exit(&output, 0);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("quarantine"), "{text}");
        assert!(arguments[0] != "--help" || !text.contains("xslt"), "{text}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    assert_exit(&run(&["manual", folder.path().to_str().expect("a path in UTF-8")], b""), 0);
    assert!(folder.path().join("oaimend-validate.1").exists());
    assert!(!folder.path().join("oaimend-xslt-worker.1").exists());
}

fn worker() -> XsltWorker {
    let program = WorkerProgram {
        program: env!("CARGO_BIN_EXE_oaimend").into(),
        arguments: vec!["xslt-worker".into()],
    };
    // The memory that the allocator of the program has reserved does not count.
    let limits = XsltLimits { memory_bytes: 32 << 20, ..XsltLimits::default() };
    XsltWorker::new(program, limits)
}

/// Whether sheets can be run on this machine. With `OAIMEND_XSLT=required` they must.
pub(crate) fn has_libxslt() -> bool {
    let sheet = Sheet::read(SHEET.into()).expect("a sheet");
    let Err(failure) = runtime().block_on(worker().check(&sheet)) else { return true };
    let is_required = std::env::var("OAIMEND_XSLT").is_ok_and(|value| value == "required");
    assert!(!is_required && failure.kind == FailureKind::Unavailable, "{failure}");
    println!("skipped: libxslt is missing; scripts/xslt install");
    false
}

#[test]
fn the_program_is_a_worker() {
    if !has_libxslt() {
        return;
    }
    let (worker, sheet) = (worker(), Sheet::read(SHEET.into()).expect("a sheet"));
    let large = "x".repeat(1 << 20);
    for text in ["é", &large] {
        let output = runtime().block_on(worker.transform(&sheet, format!("<a>{text}</a>").into_bytes()));
        assert!(output == Ok(format!("<b>{text}</b>").into_bytes()), "{:.200}", format!("{output:?}"));
    }
}
