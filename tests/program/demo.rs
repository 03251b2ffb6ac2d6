//! `oaimend demo` prints correct pages and working commands.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use oaimend::demo::fetch;

fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    // Not the project's folder: all pages are compiled in.
    command.arg("demo").args(arguments).current_dir(std::env::temp_dir());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running demonstration; it ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        terminate(&self.0);
        let _ = self.0.wait();
    }
}

/// Sends SIGTERM, as a service manager does; the program may have ended already.
fn terminate(demo: &Child) {
    let _ = Command::new("kill").args(["-TERM", &demo.id().to_string()]).stderr(Stdio::null()).status();
}

/// Starts the demonstration and reads its output up to the last line.
fn start() -> (Running, Vec<String>) {
    let mut running = Running(demo(&[]).spawn().expect("the program starts"));
    let stdout = BufReader::new(running.0.stdout.take().expect("stdout is piped"));
    let mut lines = Vec::new();
    for line in stdout.lines() {
        let line = line.expect("it prints UTF-8");
        let last = line.contains("Ctrl-C");
        lines.push(line);
        if last {
            return (running, lines);
        }
    }
    panic!("it ended by itself: {lines:?}");
}

/// The value of a label.
#[track_caller]
fn labelled<'a>(lines: &'a [String], label: &str) -> &'a str {
    let labelled = lines.iter().filter_map(|line| line.trim().split_once(' '));
    let found = labelled.into_iter().find(|(name, _)| *name == label).map(|(_, value)| value);
    found.expect("a line with that label").trim()
}

fn page(url: &str) -> String {
    String::from_utf8_lossy(&fetch(url).expect("it answers").body).into_owned()
}

#[test]
fn once_prints_a_page_before_and_after() {
    let output = demo(&["--once"]).output().expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("it prints UTF-8");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "- <dc:title>Fish & chips: notes on coastal cuisine</dc:title>",
        "+ <dc:title>Fish &amp; chips: notes on coastal cuisine</dc:title>",
        r"- <dc:title>Caf\xE9 culture in S\xE3o Paulo</dc:title>",
        "+ <dc:title>Café culture in São Paulo</dc:title>",
        "+ <dc:title>Harbour songs, 1890–1914</dc:title>",
    ] {
        assert!(text.lines().any(|shown| shown.trim() == line), "{line}\n{text}");
    }
    assert!(!text.contains('\x1b'), "no colours into a pipe");
}

#[test]
fn list_ends_in_the_mirror_while_the_repository_is_down() {
    let output = demo(&["--once"]).output().expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("it prints UTF-8");
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let start =
        lines.iter().position(|line| *line == "A list while the repository is down:").expect("a heading");
    let pages = &lines[start + 1..start + 4];
    let expected = [
        "page 1  4 records from the repository",
        "(the repository stops)",
        "page 2  7 records from the mirror",
    ];
    assert_eq!(pages, expected, "{text}");
}

#[test]
fn harvest_gets_all_repairable_records() {
    let (_running, lines) = start();
    let base_url = labelled(&lines, "repaired");
    let mut titles = Vec::new();
    let mut arguments = "verb=ListRecords&metadataPrefix=oai_dc".to_owned();
    loop {
        let page = page(&format!("{base_url}?{arguments}"));
        let texts = page.split("<dc:title").skip(1).filter_map(|rest| rest.split_once('>'));
        titles.extend(texts.filter_map(|(_, rest)| Some(rest.split_once("</dc:title>")?.0.to_owned())));
        let token = page.split_once("<resumptionToken").and_then(|(_, rest)| rest.split_once('>'));
        match token.and_then(|(_, rest)| rest.split_once('<')) {
            Some((token, _)) if !token.is_empty() => {
                arguments = format!("verb=ListRecords&resumptionToken={token}");
            }
            _ => break,
        }
    }
    assert_eq!(
        titles,
        [
            "Tides &amp; timetables of the northern ferries",
            "Fish &amp; chips: notes on coastal cuisine",
            "Café culture in São Paulo",
            "Harbour songs, 1890–1914",
            "Salt &amp; iron: a chemistry of rust",
            "The shipping forecast as poetry",
            "Lighthouses of the inner isles",
            "Seagulls grow bolder (p &lt; 0.05)",
            "Nets, knots and floats",
            "Emoji for sailors: 🚢",
        ]
    );
    let quarantine = labelled(&lines, "quarantine").trim_start_matches("curl ");
    assert!(page(quarantine).contains("oai:demo.example.org:10"), "the tenth record is in quarantine");
}

#[test]
fn printed_harvester_command_prints_all_titles() {
    let venv = Path::new(env!("CARGO_BIN_EXE_oaimend")).ancestors().nth(2).expect("a target folder");
    let programs = venv.join("harvesters-venv/bin");
    if !programs.join("python3").exists() {
        let is_required = std::env::var("OAIMEND_HARVESTERS").is_ok_and(|value| value == "required");
        assert!(!is_required, "Sickle is missing: scripts/harvesters install");
        println!("skipped: Sickle is missing; scripts/harvesters install");
        return;
    }
    let (_running, lines) = start();
    let path = std::env::join_paths([programs, "/usr/bin".into(), "/bin".into()]).expect("a legal path");
    let output = Command::new("sh")
        .args(["-c", labelled(&lines, "harvester")])
        .env("PATH", path)
        .output()
        .expect("sh is everywhere");
    let titles = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(titles.lines().count(), 10, "{titles}");
    assert!(titles.contains("Harbour songs, 1890–1914"), "{titles}");
}

#[test]
fn every_verb_is_answered_under_the_proxy_url() {
    let (_running, lines) = start();
    let base_url = labelled(&lines, "repaired");
    for (arguments, wanted) in [
        ("verb=Identify", format!("<baseURL>{base_url}</baseURL>")),
        ("verb=ListMetadataFormats", "<metadataPrefix>oai_dc</metadataPrefix>".to_owned()),
        ("verb=ListSets", "<setName>Notes &amp; papers</setName>".to_owned()),
        ("verb=ListIdentifiers&metadataPrefix=oai_dc", "oai:demo.example.org:4".to_owned()),
        (
            "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:demo.example.org:6",
            "&lt;p&gt;First printed in 1952&lt;br&gt;and never corrected.".to_owned(),
        ),
        ("verb=Nonsense", "badVerb".to_owned()),
    ] {
        let page = page(&format!("{base_url}?{arguments}"));
        assert!(page.contains(&wanted), "{arguments}: {page}");
        assert!(page.contains(&format!(">{base_url}</request>")), "{arguments}: {page}");
    }
}

#[test]
fn pages_lead_from_the_overview_to_the_record() {
    let (_running, lines) = start();
    for (label, text) in [
        ("overview", "<h1>Repositories</h1>"),
        ("records", "/demo/records/"),
        ("operators", "State of the server"),
    ] {
        let page = page(labelled(&lines, label));
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains(text), "{label}: {page}");
    }
    let page = page(labelled(&lines, "record"));
    assert!(page.contains("<title>Harbour songs, 1890–1914 – oaimend</title>"), "{page}");
}

#[test]
fn index_lists_both_repositories() {
    let (_running, lines) = start();
    let index = labelled(&lines, "index").trim_start_matches("curl ").trim_matches('\'');
    let page = page(index);
    for name in ["demo", "catalogue"] {
        assert!(page.contains(&format!("<dc:title>{name}</dc:title>")), "{page}");
    }
}

#[test]
fn resolver_and_federation_span_both_repositories() {
    let (_running, lines) = start();
    let resolved = page(labelled(&lines, "resolver"));
    for identifier in ["oai%3Ademo.example.org%3A4", "oai%3Alibrary.example.org%3A1903"] {
        assert!(resolved.contains(identifier), "{identifier}: {resolved}");
    }
    let url = labelled(&lines, "federation").trim_start_matches("curl ").trim_matches('\'');
    let (mut identifiers, mut next) = (String::new(), url.to_owned());
    loop {
        let list = page(&next);
        identifiers.push_str(&list);
        let token = list.split_once("<resumptionToken").and_then(|(_, rest)| rest.split_once('>'));
        match token.and_then(|(_, rest)| rest.split_once('<')) {
            Some((token, _)) if !token.is_empty() => {
                let (base, _) = url.split_once('?').expect("a query");
                next = format!("{base}?verb=ListRecords&resumptionToken={token}");
            }
            _ => break,
        }
    }
    for identifier in ["oai:demo.example.org:12<", "oai:library.example.org:1904<"] {
        assert!(identifiers.contains(identifier), "{identifier}: {identifiers}");
    }
}

#[test]
fn search_finds_a_record_at_once() {
    let (_running, lines) = start();
    let page = page(labelled(&lines, "search"));
    assert!(page.contains("<mark>Harbour</mark> songs, 1890–1914"), "{page}");
}

#[test]
fn runs_until_sigterm() {
    let (mut running, lines) = start();
    assert!(
        page(&format!("{}?verb=Identify", labelled(&lines, "broken"))).contains("Harbour Notes & Papers")
    );
    assert!(running.0.try_wait().expect("its state can be asked").is_none(), "it is still there");
    terminate(&running.0);
    assert!(running.0.wait().expect("it ends").success());
    let data = std::env::temp_dir().join(format!("oaimend-demo-{}", running.0.id()));
    assert!(!data.exists(), "it leaves nothing behind");
}
