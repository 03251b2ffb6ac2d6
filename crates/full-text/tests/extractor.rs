//! Texts of PDFs, by pdftotext and by programs in its place that break each limit.

#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use oaimend_base::clock::uptime;
use oaimend_full_text::{PDFTOTEXT, TextExtractor, TextFailure, TextLimits, find_program, references_in};
use oaimend_test_support::landlock::has_landlock;
use oaimend_test_support::pdf;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const WORKER: &str = env!("CARGO_BIN_EXE_oaimend-full-text-worker");

/// Limits that a short PDF keeps on a slow machine, too.
fn limits() -> TextLimits {
    let time = Duration::from_secs(120);
    TextLimits { cpu_time: time, time, ..TextLimits::default() }
}

fn extract(program: PathBuf, limits: TextLimits, pdf: &[u8]) -> Result<String, TextFailure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(TextExtractor::new(Path::new(WORKER), &[], program, limits).text(pdf))
}

fn is_available(program: PathBuf) -> bool {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(TextExtractor::new(Path::new(WORKER), &[], program, limits()).is_available())
}

/// A shell script in place of pdftotext, in a folder of its own.
fn stub(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join(PDFTOTEXT);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn run_stub(script: &str, limits: TextLimits) -> Result<String, TextFailure> {
    let folder = tempfile::tempdir().unwrap();
    extract(stub(folder.path(), script), limits, b"%PDF-1.4 and more\n")
}

/// A program that reads each PDF but that of [`run_stub`].
fn run_stub_that_reads(script: &str, limits: TextLimits) -> Result<String, TextFailure> {
    run_stub(&format!("if grep -v 'and more'; then exit 0; fi\n{script}"), limits)
}

#[test]
fn a_program_gets_the_pdf_and_nothing_else() {
    if !has_landlock() {
        return;
    }
    let output =
        run_stub("echo \"$@\"; env | grep -v -e ^PWD= -e ^OLDPWD= -e ^SHLVL= -e ^_=; pwd; cat", limits())
            .unwrap();
    assert_eq!(output, "-q -enc UTF-8 -l 2000 - -\n/\n%PDF-1.4 and more\n");
}

/// A program that fills the memory of the machine ends before oaimend does.
#[test]
fn a_program_ends_first_without_memory() {
    if !has_landlock() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = stub(folder.path(), "exec sleep 4241");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let extractor = TextExtractor::new(Path::new(WORKER), &[], program, limits());
    let running = runtime.spawn(async move { extractor.text(b"").await });
    let process = wait_for(|| process_with(b"sleep\x004241"));
    assert_eq!(std::fs::read_to_string(process.join("oom_score_adj")).unwrap().trim(), "1000");
    running.abort();
    wait_for(|| process_with(b"sleep\x004241").is_none().then_some(()));
}

#[test]
fn a_program_ends_with_its_parent() {
    if !has_landlock() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = stub(folder.path(), "exec sleep 4243");
    // The shell starts the worker, and ends before it.
    let mut parent = Command::new("sh")
        .args(["-c", "\"$@\" & wait", "sh", WORKER, "536870912", "600", "1"])
        .arg(program)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| process_with(b"sleep\x004243"));
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_for(|| process_with(b"sleep\x004243").is_none().then_some(()));
}

/// The limit of processes does not hold for root, so nothing is left of the group either.
#[test]
fn nothing_is_left_if_nobody_waits_for_the_text() {
    if !has_landlock() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = stub(folder.path(), "sleep 4244 | sleep 1000");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let extractor = TextExtractor::new(Path::new(WORKER), &[], program, limits());
    let running = runtime.spawn(async move { extractor.text(b"").await });
    wait_for(|| (running.is_finished() || process_with(b"sleep\x004244").is_some()).then_some(()));
    running.abort();
    wait_for(|| process_with(b"sleep\x004244").is_none().then_some(()));
}

/// The process whose command line begins so.
fn process_with(start: &[u8]) -> Option<PathBuf> {
    let has_start =
        |path: &PathBuf| std::fs::read(path.join("cmdline")).is_ok_and(|line| line.starts_with(start));
    std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).find(has_start)
}

/// Looks until there is something.
fn wait_for<T>(look: impl Fn() -> Option<T>) -> T {
    let until = uptime() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(uptime() < until, "nothing came");
        std::thread::yield_now();
    }
}

#[test]
fn a_program_reads_and_writes_no_other_file() {
    if !has_landlock() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let (secret, folder) = (secret.display(), folder.path().display());
    let script = format!(
        "cat {secret} 2>&1; cat /etc/passwd; cat /proc/self/environ; ls {folder} /home /tmp; \
         echo x > {folder}/new; echo x > /tmp/oaimend-new; echo done"
    );
    let output = run_stub(&script, limits()).unwrap();
    assert!(
        output.ends_with("done\n") && !output.contains("secret\n") && !output.contains("root:"),
        "{output}"
    );
    assert!(!output.contains("/tmp:"), "{output}");
    assert!(!Path::new("/tmp/oaimend-new").exists() && !Path::new(&format!("{folder}/new")).exists());
}

#[test]
fn a_program_that_waits_or_computes_forever_is_ended() {
    if !has_landlock() {
        return;
    }
    let short = TextLimits { time: Duration::from_secs(1), ..limits() };
    // It waits for something, as all processes of a busy machine do, so its PDF can be read later.
    assert_eq!(run_stub("exec sleep 1000", short), Err(TextFailure::Interrupted));
    // It has closed the pipes, and runs on.
    assert_eq!(run_stub("exec 0<&- 1>&- 2>&-; exec sleep 1000", short), Err(TextFailure::Interrupted));
    let short = TextLimits { cpu_time: Duration::from_secs(1), ..limits() };
    assert_eq!(run_stub("while :; do :; done", short), Err(TextFailure::TimeExceeded));
}

/// The limit of processes does not hold for root, so the group ends with the first process.
#[test]
fn nothing_that_a_program_starts_is_left() {
    if !has_landlock() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let short = TextLimits { time: Duration::from_secs(1), ..limits() };
    let program = stub(folder.path(), "sleep 4242 | sleep 1000");
    // Without the right to fork, the shell ends with an error at once.
    let result = extract(program, short, b"");
    assert!(result.is_err(), "{result:?}");
    // A killed process can be seen for a moment.
    wait_for(|| process_with(b"sleep\x004242").is_none().then_some(()));
}

#[test]
fn an_endless_text_is_refused() {
    if !has_landlock() {
        return;
    }
    let limits = TextLimits { text_bytes: 1 << 20, ..limits() };
    assert_eq!(run_stub("exec yes", limits), Err(TextFailure::TextTooLong));
}

#[test]
fn memory_is_limited() {
    if !has_landlock() {
        return;
    }
    let limits = TextLimits { memory_bytes: 64 << 20, ..limits() };
    let script = "exec awk 'BEGIN { s = \"x\"; for (i = 0; i < 26; i++) s = s s; print \"done\" }'";
    assert_eq!(run_stub_that_reads(script, limits), Err(TextFailure::Unreadable));
    // 64 MiB are in the usual limit.
    assert_eq!(run_stub(script, self::limits()).as_deref(), Ok("done\n"));
}

#[test]
fn the_end_of_a_program_says_what_happened() {
    if !has_landlock() {
        return;
    }
    assert_eq!(run_stub_that_reads("exit 1", limits()), Err(TextFailure::Unreadable));
    assert_eq!(run_stub_that_reads("kill -SEGV $$", limits()), Err(TextFailure::Crashed));
    for signal in ["ABRT", "BUS", "ILL", "FPE"] {
        assert_eq!(
            run_stub_that_reads(&format!("kill -{signal} $$"), limits()),
            Err(TextFailure::Crashed),
            "{signal}"
        );
    }
    // systemd ends all processes of a service when it stops, and the kernel when no memory is left.
    for signal in ["TERM", "KILL"] {
        let ended = run_stub_that_reads(&format!("kill -{signal} $$"), limits());
        assert_eq!(ended, Err(TextFailure::Interrupted), "{signal}");
    }
    // No exit code and no message of the program looks like one that did not start: it would be tried without end.
    for code in [64, 120, 126, 127, 255] {
        assert_eq!(
            run_stub_that_reads(&format!("echo text >&2; exit {code}"), limits()),
            Err(TextFailure::Unreadable),
            "{code}"
        );
    }
    assert_eq!(extract("/no/such/program".into(), limits(), b""), Err(TextFailure::Unavailable));
}

/// A library that is missing (code 127) or of another version refuses no PDF for good.
#[test]
fn a_program_that_reads_no_pdf_is_unavailable() {
    if !has_landlock() {
        return;
    }
    for script in ["exit 127", "exit 126", "exit 1", "kill -SEGV $$"] {
        assert_eq!(run_stub(script, limits()), Err(TextFailure::Unavailable), "{script}");
    }
    for (script, expected) in
        [("exit 127", false), ("exit 0", false), ("echo text", false), ("exec cat", true)]
    {
        let folder = tempfile::tempdir().unwrap();
        let program = stub(folder.path(), script);
        assert_eq!(is_available(program), expected, "{script}");
    }
}

#[test]
fn a_pdf_that_is_longer_than_a_pipe_is_sent_whole() {
    if !has_landlock() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = stub(folder.path(), "wc -c");
    assert_eq!(extract(program, limits(), &vec![b'x'; 10 << 20]).unwrap().trim(), "10485760");
    // A program that does not read it holds nobody up.
    let program = stub(folder.path(), "echo text");
    assert_eq!(extract(program, limits(), &vec![b'x'; 10 << 20]).unwrap(), "text\n");
}

fn is_required() -> bool {
    std::env::var("OAIMEND_PDF").is_ok_and(|value| value == "required")
}

/// pdftotext, if this machine has it. With `OAIMEND_PDF=required` it must.
fn pdftotext() -> Option<PathBuf> {
    if !has_landlock() {
        return None;
    }
    let found = find_program(PDFTOTEXT);
    assert!(found.is_some() || !is_required(), "pdftotext is missing; scripts/full-text install");
    if found.is_none() {
        println!("skipped: pdftotext is missing; scripts/full-text install");
    }
    found
}

const ARTICLE: [&str; 5] = [
    "On Lines and Pages",
    "Some text with doi:10.1000/text that is no reference.",
    "References",
    "[1] A. Author. doi:10.1000/one.",
    "[2] B. Author. arXiv:1706.03762v2, 2017.",
];

#[test]
fn references_of_a_pdf_are_found() {
    let Some(program) = pdftotext() else { return };
    assert!(is_available(program.clone()));
    let text = extract(program.clone(), limits(), &pdf::pdf(&ARTICLE)).unwrap();
    let values: Vec<String> = references_in(&text).into_iter().map(|found| found.value).collect();
    assert_eq!(values, ["10.1000/one", "1706.03762"], "{text}");
    // A broken table of objects is no problem for poppler, and a bomb of a few MiB neither.
    let text = extract(program, limits(), &pdf::bomb(8, &ARTICLE)).unwrap();
    assert_eq!(references_in(&text).len(), 2, "{text}");
}

#[test]
fn hostile_pdfs_end_within_the_limits() {
    let Some(program) = pdftotext() else { return };
    let whole = pdf::pdf(&ARTICLE);
    let strict = TextLimits { cpu_time: Duration::from_secs(5), text_bytes: 1 << 20, pages: 100, ..limits() };
    for (name, hostile) in [
        ("empty", Vec::new()),
        ("no PDF", b"<html>not found</html>".to_vec()),
        ("encrypted", pdf::encrypted(&ARTICLE)),
        ("cut off", whole[..whole.len() / 3].to_vec()),
        ("nested", pdf::nested(1_000_000)),
        ("endless pages", pdf::endless_pages()),
        ("nested forms", pdf::nested_forms(9)),
        ("bomb", pdf::bomb(256, &[])),
        ("double bomb", pdf::double_bomb(512)),
        ("huge image", pdf::huge_image(200_000)),
    ] {
        let start = uptime();
        let result = extract(program.clone(), strict, &hostile);
        // Another PDF is read after one that is refused. A busy machine needs time to start and end the processes.
        assert!(uptime() - start < strict.time * 3, "{name}");
        println!("{name}: {} bytes: {:.60}", hostile.len(), format!("{result:?}"));
        assert_ne!(result, Err(TextFailure::Unavailable), "{name}");
        if let Ok(text) = result {
            assert!(references_in(&text).is_empty(), "{name}: {text}");
        }
    }
}

/// Seeds are printed, so that a failure can be repeated.
#[test]
fn damaged_pdfs_are_read_or_refused() {
    let Some(program) = pdftotext() else { return };
    let whole = pdf::pdf(&ARTICLE);
    for seed in 0..12 {
        let mut random = oaimend_test_support::random::Random::new(seed);
        let mut damaged = whole.clone();
        for _ in 0..1 + random.below(20) {
            let at = random.below(damaged.len());
            damaged[at] = random.below(256) as u8;
        }
        let result = extract(program.clone(), limits(), &damaged);
        assert_ne!(result, Err(TextFailure::Unavailable), "seed {seed}");
    }
}
