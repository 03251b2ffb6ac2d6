//! The command line as scripts see it: exit codes, streams, the format of the report. Every test
//! runs the real program.

use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use serde_json::{Value, json};

const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd">
<responseDate>2026-01-02T03:04:05Z</responseDate>
<request verb="ListRecords" metadataPrefix="oai_dc">http://example.org/oai</request>
<ListRecords>
"#;
const TAIL: &str = "<resumptionToken cursor=\"0\">page-2</resumptionToken>\n</ListRecords>\n</OAI-PMH>\n";
/// A title with an element whose prefix is unknown.
const BEYOND_REPAIR: &[u8] = b"b</dc:title><zz:mystery>?</zz:mystery><dc:title>b";

/// A record with that title, unescaped.
fn record(number: usize, title: &[u8]) -> Vec<u8> {
    let mut record = format!(
        "<record><header><identifier>oai:x:{number}</identifier><datestamp>2026-01-01</datestamp></header>\
         <metadata><oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>"
    )
    .into_bytes();
    record.extend_from_slice(title);
    record.extend_from_slice(b"</dc:title></oai_dc:dc></metadata></record>\n");
    record
}

/// A page of records with these titles.
pub(crate) fn page(titles: &[&[u8]]) -> Vec<u8> {
    let mut page = HEAD.as_bytes().to_vec();
    for (index, title) in titles.iter().enumerate() {
        page.extend(record(index + 1, title));
    }
    page.extend_from_slice(TAIL.as_bytes());
    page
}

fn oaimend(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program to its end with this input.
pub(crate) fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = oaimend(arguments).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let input = input.to_vec();
    // A program that refuses its input early closes the pipe; the write error is expected.
    let feeder = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("the program ends");
    feeder.join().expect("the feeder ends");
    output
}

#[track_caller]
pub(crate) fn assert_exit(output: &Output, code: i32) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "stderr: {stderr}");
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs `repair --report`; returns its output and the lines of the report.
fn run_with_report(input: &[u8]) -> (Output, Vec<Value>) {
    let folder = tempfile::tempdir().expect("a folder for the report");
    let path = folder.path().join("report.jsonl");
    let output = run(&["repair", "--report", path.to_str().expect("a path in UTF-8")], input);
    let report = std::fs::read_to_string(&path).expect("the report is there");
    let lines = report.lines().map(|line| serde_json::from_str(line).expect("a line is JSON"));
    (output, lines.collect())
}

#[test]
fn repair_leaves_a_clean_page_unchanged() {
    let clean = page(&[b"A", "ü &amp; b".as_bytes()]);
    for arguments in [&["repair"][..], &["repair", "-"]] {
        let output = run(arguments, &clean);
        assert_exit(&output, 0);
        assert!(output.stdout == clean);
        assert_eq!(stderr(&output), "");
    }
}

#[test]
fn repair_reports_its_changes() {
    let broken = page(&[b"A", b"AT&T", b"caf\xe9"]);
    let (output, report) = run_with_report(&broken);
    assert_exit(&output, 0);
    assert!(output.stdout == page(&[b"A", b"AT&amp;T", "café".as_bytes()]));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    assert!(stderr(&output).starts_with("oaimend: <stdin>: repaired, 3 items kept, "));

    let offset = |needle: &[u8]| broken.windows(needle.len()).position(|window| window == needle);
    assert_eq!(
        report[..2],
        [
            json!({"repair": "bare-ampersand", "offset": offset(b"&T"), "record": "oai:x:2",
                   "original": "&", "replacement": "&amp;"}),
            json!({"repair": "windows-1252-byte", "offset": offset(b"\xe9"), "record": "oai:x:3",
                   "original_hex": "e9", "replacement": "é"}),
        ]
    );
    let summary = &report[2]["summary"];
    assert_eq!(summary["outcome"], "repaired");
    assert_eq!(summary["version"], "2.0");
    assert_eq!(summary["records"], 3);
    assert_eq!(summary["quarantined"], 0);
    assert_eq!(summary["repairs"], json!({"bare-ampersand": 1, "windows-1252-byte": 1}));
    assert_eq!(summary["decoded_as"], "UTF-8");
    assert!(summary["held_bytes_peak"].is_u64());
    assert_eq!(report.len(), 3);
}

#[test]
fn repair_exits_with_1_for_a_quarantined_record() {
    let broken = page(&[b"A", BEYOND_REPAIR, b"C"]);
    let (output, report) = run_with_report(&broken);
    assert_exit(&output, 1);
    let text = String::from_utf8(output.stdout).expect("the output is UTF-8");
    assert!(text.contains("oai:x:1") && !text.contains("oai:x:2") && text.contains("oai:x:3"));
    let lost: Vec<_> = report.iter().filter(|line| line.get("quarantined").is_some()).collect();
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0]["quarantined"], "oai:x:2");
    assert!(lost[0]["offset"].is_u64() && lost[0]["length"].is_u64() && lost[0]["why"].is_string());
    assert_eq!(report.last().expect("a summary")["summary"]["quarantined"], 1);
}

#[test]
fn repair_closes_truncated_input_and_exits_with_1() {
    let whole = page(&[b"A", b"B", b"C"]);
    let cut = whole.windows(7).position(|window| window == b"oai:x:3").expect("the third record");
    let (output, report) = run_with_report(&whole[..cut]);
    assert_exit(&output, 1);
    let text = String::from_utf8(output.stdout).expect("the output is UTF-8");
    assert!(text.contains("<!-- oaimend: input ended early, list is incomplete -->"), "{text}");
    assert!(text.trim_end().ends_with("</OAI-PMH>") && !text.contains("resumptionToken"));
    assert_eq!(report.last().expect("a summary")["summary"]["outcome"], "truncated");
}

#[test]
fn repair_exits_with_2_for_other_input() {
    let html = b"<!DOCTYPE html>\n<html><body><h1>502 Bad Gateway</h1></body></html>\n";
    let repository = b"<Repository xmlns=\"http://www.openarchives.org/OAI/2.0/static-repository\"/>";
    for (input, word) in [
        (&html[..], "HTML"),
        (b"", "empty"),
        (b"{\"error\": 1}", "JSON"),
        (repository, "serve it with static_file in a mapping"),
    ] {
        let (output, report) = run_with_report(input);
        assert_exit(&output, 2);
        assert!(output.stdout.is_empty());
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
        assert_eq!(report.last().expect("a summary")["summary"]["outcome"], "not-oai");
    }
}

#[test]
fn repair_exits_with_1_if_nothing_is_kept() {
    let mut broken = HEAD.as_bytes().to_vec();
    broken.extend(record(1, BEYOND_REPAIR));
    broken.extend_from_slice(b"</ListRecords></OAI-PMH>");
    let output = run(&["repair"], &broken);
    assert_exit(&output, 1);
    assert!(output.stdout.is_empty());
}

#[test]
fn repair_rewrites_the_request() {
    let output = run(
        &[
            "repair",
            "--base-url",
            "http://proxy.example/x",
            "--request",
            "metadataPrefix=oai_dc&verb=ListRecords&set=a%26b",
        ],
        &page(&[b"A"]),
    );
    assert_exit(&output, 0);
    let text = String::from_utf8(output.stdout).expect("the output is UTF-8");
    let wanted = "<request verb=\"ListRecords\" metadataPrefix=\"oai_dc\" set=\"a&amp;b\">http://proxy.example/x</request>";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn repairs_that_are_off_by_default_can_be_enabled() {
    const PREFIX: &str = " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";
    let location = "xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ \
        http://www.openarchives.org/OAI/2.0/oai_dc.xsd\"";
    let page = String::from_utf8(page(&["MÃ¼ller, GrÃ¶ÃŸe".as_bytes()])).expect("a page in UTF-8");
    let used = page.replace("<oai_dc:dc ", &format!("<oai_dc:dc {location} "));
    assert_ne!(used, page);
    let output = run(&["repair"], used.as_bytes());
    assert_exit(&output, 0);
    assert_eq!(String::from_utf8_lossy(&output.stdout), used, "both are off");
    let output = run(&["repair", "--enable", "payload-xsi", "--enable", "double-encoded"], used.as_bytes());
    assert_exit(&output, 0);
    let text = String::from_utf8(output.stdout).expect("the output is UTF-8");
    let payload = text.split_once("<metadata>").map_or("", |(_, payload)| payload);
    assert!(payload.contains(PREFIX) && payload.contains("Müller, Größe"), "{text}");
}

#[test]
fn wrong_usage_exits_with_64() {
    for arguments in [
        &[][..],
        &["no-such-command"],
        &["repair", "--no-such-flag"],
        &["repair", "a", "b"],
        &["repair", "--request", "verb=Identify"],
        &["repair", "--enable", "bare-ampersand"],
        &["repair", "--base-url", "ftp://x.example/", "--request", "verb=Identify"],
        &["repair", "--base-url", "http://x.example/", "--request", "metadataPrefix=oai_dc"],
        &["repair", "--base-url", "http://x.example/", "--request", "verb=Identify&verb=Identify"],
        &["repair", "--base-url", "http://x.example/", "--request", "verb=Identify&colour=red"],
        &["explain", "no-such-repair-at-all"],
        &["completions", "no-such-shell"],
        &["serve", "--listen", "8080"],
    ] {
        let output = run(arguments, b"");
        assert_exit(&output, 64);
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn name_as_a_listen_address_gets_an_example() {
    for option in ["--listen", "--admin"] {
        let output = run(&["serve", option, "localhost:8080"], b"");
        assert_exit(&output, 64);
        let text = stderr(&output);
        assert!(text.contains("an IP address and a port such as 127.0.0.1:8080, not a name"), "{text}");
    }
    assert!(stderr(&run(&["mirror", "status", "--admin", "localhost:1"], b"")).contains("such as 127.0.0.1"));
}

#[test]
fn unreadable_files_exit_with_74() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing.xml");
    let missing = missing.to_str().expect("a path in UTF-8");
    let output = run(&["repair", missing], b"");
    assert_exit(&output, 74);
    assert!(stderr(&output).contains(missing));

    let nowhere = format!("{missing}/report.jsonl");
    let output = run(&["repair", "--report", &nowhere], &page(&[b"A"]));
    assert_exit(&output, 74);
    assert!(stderr(&output).contains(&nowhere) && output.stdout.is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_exits_with_74() {
    let full = File::options().write(true).open("/dev/full").expect("/dev/full is there");
    let mut command = oaimend(&["repair"]);
    let mut child = command.stdout(full).spawn().expect("the program starts");
    child.stdin.take().expect("stdin is piped").write_all(&page(&[b"A"])).expect("it reads");
    let output = child.wait_with_output().expect("the program ends");
    assert_exit(&output, 74);
    assert!(stderr(&output).contains("stdout"));
}

#[test]
fn closed_pipe_is_not_an_error() {
    let long = page(&vec![&b"A"[..]; 20_000]);
    let mut child = oaimend(&["repair"]).spawn().expect("the program starts");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("stdin is piped");
    drop(stdin.write_all(&long));
    drop(stdin);
    let output = child.wait_with_output().expect("the program ends");
    assert_exit(&output, 0);
    assert_eq!(stderr(&output), "");
}

#[test]
fn help_and_version_exit_with_0() {
    for arguments in [&["--help"][..], &["repair", "--help"], &["help", "explain"]] {
        let output = run(arguments, b"");
        assert_exit(&output, 0);
        assert!(!output.stdout.is_empty() && output.stderr.is_empty());
    }
    let help = run(&["--help"], b"").stdout;
    assert!(String::from_utf8_lossy(&help).contains("Environment:\n  OAIMEND_LOG "), "it names the variable");
    let output = run(&["--version"], b"");
    assert_exit(&output, 0);
    assert_eq!(output.stdout, format!("oaimend {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
}

#[test]
fn explain_describes_every_repair_and_suggests_the_nearest() {
    let list = run(&["explain"], b"");
    assert_exit(&list, 0);
    let list = String::from_utf8(list.stdout).expect("the list is UTF-8");
    for entry in oaimend_repair::catalog::CATALOG {
        assert!(list.lines().any(|line| line.starts_with(&format!("{} ", entry.name))), "{}", entry.name);
        let output = run(&["explain", entry.name], b"");
        assert_exit(&output, 0);
        let text = String::from_utf8(output.stdout).expect("the entry is UTF-8");
        assert!(text.starts_with(entry.name) && text.contains(entry.certainty.name()));
        assert!(!text.contains('\x1b'), "no colours into a pipe");
    }
    let reasons = oaimend_repair::QuarantineReason::ALL.iter().map(|reason| reason.name());
    let of_crosswalks = oaimend_crosswalks::Unconverted::ALL.iter().map(|reason| reason.name());
    for name in
        reasons.chain(of_crosswalks).chain(oaimend_repair::NotOai::ALL.iter().map(|reason| reason.name()))
    {
        let output = run(&["explain", name], b"");
        assert_exit(&output, 0);
        assert!(output.stdout.len() > name.len() + 80, "{name}");
    }
    let output = run(&["explain", "bare-ampersant"], b"");
    assert_exit(&output, 64);
    assert!(stderr(&output).contains("did you mean bare-ampersand?"), "{}", stderr(&output));
}

#[test]
fn completions_contain_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell], b"");
        assert_exit(&output, 0);
        let script = String::from_utf8(output.stdout).expect("the script is UTF-8");
        assert!(script.contains("repair") && script.contains("explain"), "{shell}");
    }
}

#[test]
fn manual_has_a_page_for_each_command() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().to_str().expect("the path is UTF-8");
    let output = run(&["manual", path], b"");
    assert_exit(&output, 0);
    for name in ["oaimend.1", "oaimend-repair.1", "oaimend-mirror-sync.1"] {
        let page = std::fs::read_to_string(folder.path().join(name)).expect("the page is written");
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
    let missing = run(&["manual", &format!("{path}/missing")], b"");
    assert_exit(&missing, 74);
}

/// The peak resident memory of the process, in KiB.
#[cfg(target_os = "linux")]
fn peak_kib(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).expect("a number").parse().expect("digits")
}

#[cfg(target_os = "linux")]
#[test]
fn memory_is_independent_of_response_length() {
    const LENGTH: usize = 300 << 20;
    let text = "Lorem ipsum dolor sit amet &amp; consectetur. ".repeat(30);
    let mut block = Vec::new();
    for number in 0..700 {
        // One record in ten is broken.
        let tail = if number % 10 == 0 { " R & D" } else { "" };
        block.extend(record(number, format!("{text}{tail}").as_bytes()));
    }

    let mut child = oaimend(&["repair"]).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let reader = thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    stdin.write_all(HEAD.as_bytes()).expect("it reads");
    let blocks = LENGTH / block.len();
    for _ in 0..blocks {
        stdin.write_all(&block).expect("it reads");
    }
    // The process has read all but the content of the pipe, and still runs, so it can be measured.
    let peak = peak_kib(&child);
    stdin.write_all(TAIL.as_bytes()).expect("it reads");
    drop(stdin);
    let written = reader.join().expect("the reader ends").expect("it writes");
    assert_exit(&child.wait_with_output().expect("the program ends"), 0);
    let grown = blocks * 70 * "amp;".len();
    assert_eq!(written as usize, HEAD.len() + blocks * block.len() + grown + TAIL.len());
    assert!(peak < 48 << 10, "{peak} KiB");
}

#[test]
fn compressed_input_is_detected() {
    let clean = page(&[b"A", b"B"]);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&clean).expect("memory takes all bytes");
    let gzip = encoder.finish().expect("memory takes all bytes");
    let zstd = zstd::encode_all(&clean[..], 3).expect("memory takes all bytes");
    for coded in [&gzip, &zstd] {
        let output = run(&["repair"], coded);
        assert_exit(&output, 0);
        assert!(output.stdout == clean);
    }
}

#[test]
fn broken_compression_is_truncated_input() {
    let clean = page(&[b"A", b"B", b"C"]);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(&clean).expect("memory takes all bytes");
    let gzip = encoder.finish().expect("memory takes all bytes");
    let mut wrong_sum = gzip.clone();
    let sum = wrong_sum.len() - 8;
    wrong_sum[sum] ^= 1;
    // Without the end of the compressed data, with a wrong checksum, and cut in the third record.
    let cut = gzip.len() - TAIL.len() - 100;
    for (broken, records) in [(&gzip[..gzip.len() - 4], 3), (&wrong_sum, 3), (&gzip[..cut], 2)] {
        let (output, report) = run_with_report(broken);
        assert_exit(&output, 1);
        assert!(stderr(&output).contains("gzip"), "{}", stderr(&output));
        let summary = &report.last().expect("a summary")["summary"];
        assert_eq!(summary["outcome"], "truncated");
        assert_eq!(summary["records"], records);
    }
}
