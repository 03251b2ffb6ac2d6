//! Processes that end, stop, or never begin.

use super::*;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::path::PathBuf;

/// A worker whose process can be found by a text in its arguments.
pub(crate) fn marked(mark: &str, limits: XsltLimits) -> XsltWorker {
    let mark = format!("{mark}-{}", std::process::id());
    XsltWorker::new(
        WorkerProgram { arguments: vec!["libxslt.so.1".into(), mark.into()], ..program() },
        limits,
    )
}

/// The process of a marked worker.
pub(crate) fn process(mark: &str) -> Option<PathBuf> {
    let mark = format!("{mark}-{}\0", std::process::id());
    let processes =
        std::fs::read_dir("/proc").expect("the processes").filter_map(|entry| Some(entry.ok()?.path()));
    let is_marked = |path: &PathBuf| {
        let arguments = std::fs::read(path.join("cmdline")).unwrap_or_default();
        arguments.ends_with(mark.as_bytes())
    };
    processes.filter(|path| path.join("exe").exists()).find(is_marked)
}

async fn wait_for<T>(mut condition: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = condition() {
            return found;
        }
        tokio::task::yield_now().await;
    }
}

fn send(process: &std::path::Path, signal: Signal) {
    let pid = process.file_name().and_then(|name| name.to_str()?.parse().ok()).and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), signal).expect("it runs");
}

/// Transforms payloads without a pause, and does something to the process in between.
async fn transform_during(
    mark: &'static str,
    limits: XsltLimits,
    signal: Signal,
) -> Vec<Result<String, FailureKind>> {
    let worker = marked(mark, limits);
    let sheet = copy_unless_marked("", "");
    // The process exists after the first one.
    assert_eq!(transform_all(&worker, &sheet, &["0"]).await, [copied("0")]);
    let texts: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let process = process(mark).expect("it runs");
    let (results, ()) = tokio::join!(transform_all(&worker, &sheet, &texts), async {
        tokio::task::yield_now().await;
        send(&process, signal);
    });
    assert_eq!(results.len(), 2_000);
    results
        .into_iter()
        .enumerate()
        .filter(|(number, result)| *result != copied(&number.to_string()))
        .map(|(_, result)| result)
        .collect()
}

#[tokio::test]
async fn a_killed_worker_costs_no_payload() {
    assert_eq!(transform_during("killed", XsltLimits::default(), Signal::KILL).await, []);
}

#[tokio::test]
async fn a_stopped_worker_costs_one_payload() {
    assert_eq!(transform_during("stopped", small(), Signal::STOP).await, [Err(FailureKind::TimeExceeded)]);
}

#[tokio::test]
async fn a_worker_that_is_not_used_can_end() {
    let worker = marked("idle", XsltLimits::default());
    let sheet = copy_unless_marked("", "");
    for text in ["1", "2", "3"] {
        assert_eq!(transform_all(&worker, &sheet, &[text]).await, [copied(text)]);
        let process = process("idle").expect("it runs");
        send(&process, Signal::KILL);
        wait_for(|| if process.join("exe").exists() { None } else { Some(()) }).await;
    }
}

#[tokio::test]
async fn the_process_ends_with_its_last_user() {
    let worker = marked("dropped", XsltLimits::default());
    assert_eq!(transform_all(&worker, &copy_unless_marked("", ""), &["1"]).await, [copied("1")]);
    let process = process("dropped").expect("it runs");
    drop(worker);
    wait_for(|| if process.join("exe").exists() { None } else { Some(()) }).await;
}

#[tokio::test]
async fn the_process_has_no_rights() {
    let worker = marked("rights", XsltLimits::default());
    assert_eq!(transform_all(&worker, &copy_unless_marked("", ""), &["1"]).await, [copied("1")]);
    let process = process("rights").expect("it runs");
    let read = |name| std::fs::read_to_string(process.join(name)).expect("a file");
    let limits = read("limits");
    for name in ["Max open files", "Max processes", "Max core file size", "Max file size"] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        let values: Vec<&str> = line[name.len()..].split_whitespace().take(2).collect();
        assert_eq!(values, ["0", "0"], "{line}");
    }
    for name in ["Max address space", "Max cpu time"] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert!(!line[name.len()..].trim_start().starts_with("unlimited"), "{line}");
    }
    // Stdin, stdout and stderr. Nothing of the server is inherited.
    let open = std::fs::read_dir(process.join("fd")).expect("a folder").count();
    assert_eq!(open, 3);
    let environment = read("environ");
    assert!(environment.is_empty() || environment.starts_with("LD_LIBRARY_PATH="), "{environment}");
    let status = read("status");
    // Landlock sets it, where it is in force and where it is not.
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
}

async fn unavailable(program: &str, arguments: &[&str]) -> String {
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    let worker = XsltWorker::new(WorkerProgram { program: program.into(), arguments }, XsltLimits::default());
    let sheet = copy_unless_marked("", "");
    let first = transform(&worker, &sheet, "<a/>").await.expect_err("there is no worker");
    assert_eq!(first.kind, FailureKind::Unavailable);
    // At once, since another start would fail too.
    assert_eq!(transform(&worker, &sheet, "<a/>").await, Err(first.clone()));
    assert_eq!(worker.check(&sheet).await, Err(first.clone()));
    first.message
}

#[tokio::test]
async fn a_missing_library_is_named_with_its_package() {
    let message = unavailable(env!("CARGO_BIN_EXE_oaimend-xslt-worker"), &["libxslt-missing.so.9"]).await;
    assert!(
        message.contains("libxslt-missing.so.9") && message.contains("apt install libxslt1.1"),
        "{message}"
    );
    // A library without the functions.
    let message = unavailable(env!("CARGO_BIN_EXE_oaimend-xslt-worker"), &["libc.so.6"]).await;
    assert!(message.contains("xmlMemSetup"), "{message}");
}

#[tokio::test]
async fn programs_that_are_no_workers_are_unavailable() {
    let message = unavailable("/nonexistent/oaimend", &[]).await;
    assert!(message.starts_with("cannot start /nonexistent/oaimend: "), "{message}");
    let message = unavailable("/bin/true", &[]).await;
    assert!(message.starts_with("/bin/true does not become ready: "), "{message}");
}
