//! `oaimend check` as a command: its arguments, exit codes and the formats of its report.

use crate::check::general_rules;
use crate::fixtures::provider::Fault::{ContentType, Edit, Nothing};
use crate::fixtures::provider::Provider;
use crate::fixtures::provider::When::{Always, Is};
use crate::fixtures::source::Source;
use oaimend_check::RULES;
use std::process::{Command, Output};

#[test]
fn profile_limits_the_report_and_the_exit_code() {
    let (source, _) = Provider::default().start(Is(ITEM), Edit("https://source.example/item/0", "/0"));
    let url = source.base_url();
    for (profile, status, counts) in [
        ("oai", 0, "0 fail, 0 warnings, 0 advice"),
        ("base", 1, "1 fail, 0 warnings, 0 advice"),
        ("openaire", 1, "1 fail, 0 warnings, 1 advice"),
    ] {
        let output = program(&["--profile", profile, &url]);
        let table = text(&output.stdout);
        assert_eq!(output.status.code(), Some(status), "{table}");
        assert!(table.contains(counts), "{profile}: {table}");
        assert!(table.starts_with(&format!("The rules of the profile {profile}: ")), "{table}");
    }
    let output = program(&[&url]);
    assert_eq!(output.status.code(), Some(0), "advice is no failure");
}

const ITEM: &str = "verb=GetRecord&identifier=oai%3Asource.example%3A0&metadataPrefix=oai_dc";

/// A source with a failure, a warning and advice, whose texts contain markup.
fn source_with_markup() -> Source {
    let (edited, _) = Provider::default()
        .script(Always, Edit("oai@source.example", "&lt;script&gt;alert(1)&lt;/script&gt;&amp;"));
    let (dated, _) = Provider::default().script(Is(ITEM), Edit("2019-05-01", "&lt;b&gt;May&lt;/b&gt;"));
    let (plain, _) = Provider::default().script(Is("verb=oaimendNoSuchVerb"), Edit(">wrong<", "><"));
    Source::start(move |number, received| match &received.target {
        target if target.contains("Identify") => edited(number, received),
        target if target.contains("NoSuchVerb") => plain(number, received),
        _ => dated(number, received),
    })
}

#[test]
fn html_report_is_one_escaped_file_without_script() {
    let source = source_with_markup();
    let output = program(&["--format", "html", &source.base_url()]);
    let page = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{page}");
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">") && page.ends_with("</html>"), "{page}");
    for forbidden in ["<script", "<b>", "<img", "<link", " src=", " href=", "url(", "@import", "onclick"] {
        assert!(!page.contains(forbidden), "{forbidden}: {page}");
    }
    for expected in [
        "&lt;script&gt;alert(1)&lt;/script&gt;&amp;",
        "&lt;b&gt;May&lt;/b&gt;",
        "<style>",
        "Content-Security-Policy",
        "Rules that fail",
        "Warnings: ",
        "Advice: ",
        "Set adminEmail to an address that somebody reads",
        source.base_url().as_str(),
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    for entry in RULES.iter().filter(|entry| !entry.rule.is_of_profile()) {
        assert!(page.contains(&format!("<th scope=\"row\">{}</th>", entry.name)), "{}", entry.name);
    }
    let output = program(&["--format", "html", "--profile", "base", &source.base_url()]);
    let page = text(&output.stdout);
    assert!(page.contains("against the rules of BASE") && !page.contains(">no-verb<"), "{page}");
}

#[test]
fn junit_report_is_well_formed_and_counts_failures() {
    let source = source_with_markup();
    let output = program(&["--format", "junit", &source.base_url()]);
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{report}");
    let mut reader = quick_xml::Reader::from_str(&report);
    let mut names = Vec::new();
    loop {
        match reader.read_event().expect("it is well-formed") {
            quick_xml::events::Event::Eof => break,
            quick_xml::events::Event::Start(tag) | quick_xml::events::Event::Empty(tag) => {
                names.push(tag.name().0.to_string());
            }
            _ => {}
        }
    }
    let count = |name: &str| names.iter().filter(|other| *other == name).count();
    assert_eq!([count("testcase"), count("failure"), count("skipped")], [general_rules(), 1, 3], "{report}");
    assert_eq!(count("system-out"), 2, "a warning and advice: {report}");
    let counts = format!("tests=\"{}\" failures=\"1\" errors=\"0\" skipped=\"3\"", general_rules());
    assert!(report.contains(&counts), "{report}");
    assert!(report.contains("received: &quot;&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;"), "{report}");
}

#[test]
fn unknown_formats_and_times_are_refused() {
    let output = program(&["--format", "yaml", "http://127.0.0.1:9/oai"]);
    assert_eq!(output.status.code(), Some(64), "{}", text(&output.stderr));
    let output = program(&["--time-max-secs", "0", "http://127.0.0.1:9/oai"]);
    assert_eq!(output.status.code(), Some(64), "{}", text(&output.stderr));
}

fn program(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.arg("check").args(arguments).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it prints UTF-8")
}

#[test]
fn command_prints_a_table_and_exits_with_1_on_failures() {
    let (source, _) = Provider::default().start(Always, Nothing);
    let output = program(&[&source.base_url()]);
    let table = text(&output.stdout);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{table}");
    assert!(!table.contains('\x1b'), "no colours into a pipe");
    let rows: Vec<&str> = table.lines().skip(1).take(general_rules()).collect();
    for (row, entry) in rows.iter().zip(RULES.iter().filter(|entry| !entry.rule.is_of_profile())) {
        assert!(row.contains(&format!("  {}  ", entry.name)) || row.contains(&format!(" {} ", entry.name)));
        assert!(row.ends_with(&format!("  {}", entry.section)), "{row}");
    }
    let verdicts = rows.iter().filter(|row| row.starts_with("holds     ")).count();
    assert_eq!(verdicts, general_rules() - 3, "{table}");
    let (source, _) = Provider::default().start(Is("verb=ListSets"), ContentType("application/xml"));
    let output = program(&[&source.base_url()]);
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{table}");
    for line in [
        "            request:   verb=ListSets",
        "            received:  application/xml",
        "            expected:  The content type is text/xml, with the charset UTF-8 or no charset.",
        "            remedy:    Send Content-Type: text/xml; charset=UTF-8.",
    ] {
        assert!(table.lines().any(|other| other == line), "{line}\n{table}");
    }
    assert!(table.contains(" 1 fail, 0 warnings, 0 advice, 3 not judged; "), "{table}");
}

#[test]
fn command_prints_json() {
    let (source, _) = Provider::default().start(Is("verb=ListSets"), ContentType("application/xml"));
    let output = program(&["--format", "json", &source.base_url()]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let counts = ["base_url", "fails", "warnings", "not_judged", "holds"].map(|key| report[key].clone());
    let expected = serde_json::json!([source.base_url(), 1, 0, 3, general_rules() - 4]);
    assert_eq!(serde_json::Value::from(counts.to_vec()), expected);
    let found =
        report["rules"].as_array().expect("a list").iter().find(|rule| rule["rule"] == "content-type");
    assert_eq!(
        *found.expect("it is listed"),
        serde_json::json!({
            "rule": "content-type",
            "verdict": "fails",
            "section": "3.1.2",
            "expected": "The content type is text/xml, with the charset UTF-8 or no charset.",
            "request": "verb=ListSets",
            "received": "application/xml",
            "responses": 1,
            "remedy": "Send Content-Type: text/xml; charset=UTF-8.",
        })
    );
}

#[test]
fn command_accepts_a_mapping_id() {
    let (source, _) = Provider::default().start(Always, Nothing);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("mine.toml");
    std::fs::write(file, format!("base_url = \"{}\"\n", source.base_url())).expect("it can be written to");
    let mappings = folder.path().to_str().expect("a path in UTF-8");
    let output = program(&["mine", "--mappings", mappings]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(&source.base_url()));
    let output = program(&["yours", "--mappings", mappings]);
    assert_eq!(output.status.code(), Some(64));
    assert_eq!(
        text(&output.stderr),
        "oaimend: \"yours\" is not a repository id; expected mine or a base URL\n"
    );
    let output = program(&["ftp://x.example/oai"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(text(&output.stderr).contains("is not a base URL"), "{}", text(&output.stderr));
}
