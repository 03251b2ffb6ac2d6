//! Logs and reloads: one line per page, stored broken pages, reloaded mappings.

use crate::config;
use crate::fixtures::keeping::{identify, wait_until};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Reply, Source, fetch, page_of};
use oaimend::config::{Config, Flags, MappingChanges, MappingsReload};
use serde_json::Value;

fn mapped(base_url: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("writable");
    map(&folder, base_url);
    folder
}

fn map(folder: &tempfile::TempDir, base_url: &str) {
    let text = format!("base_url = \"{base_url}\"\n");
    std::fs::write(folder.path().join("mappings/x.toml"), text).expect("writable");
}

#[test]
fn each_page_is_one_log_line() {
    let page = page_of(3).replace("Title 1", "Q&A").replace(
        "</ListRecords>",
        "<resumptionToken cursor=\"100\" completeListSize=\"1234\">b</resumptionToken></ListRecords>",
    );
    let folder = mapped(&Source::page(page.clone()).base_url());
    let source = Source::page(page);
    map(&folder, &source.base_url());
    let mut program = Program::start(folder.path(), &["--mappings", "mappings"]);
    let address = program.address();
    assert_eq!(fetch(address, "/x?verb=ListRecords&resumptionToken=a%2Fb").status, 200);
    let line = program.line("page");
    let wanted = [
        ("repo", Value::from("x")),
        ("verb", "ListRecords".into()),
        ("token", "a/b".into()),
        ("cursor", 100.into()),
        ("total", 1234.into()),
        ("status", 200.into()),
        ("outcome", "complete".into()),
        ("records", 3.into()),
        ("repairs", 1.into()),
        ("quarantined", 0.into()),
        ("attempts", 1.into()),
    ];
    for (key, value) in wanted {
        assert_eq!(line[key], value, "{key} in {line}");
    }
    assert!(
        line["timestamp"].is_string() && line["ts"].is_null() && line["ms"].is_u64() && line["set"].is_null(),
        "{line}"
    );
    assert_eq!(fetch(address, &format!("{LIST}&set=maps")).status, 200);
    assert_eq!(program.line("page")["set"], "maps");
}

#[test]
fn sighup_reloads_mappings() {
    let (old, new) = (Source::page(page_of(1)), Source::page(page_of(2)));
    let folder = mapped(&old.base_url());
    let mut program = Program::start(folder.path(), &["--mappings", "mappings"]);
    let address = program.address();
    std::fs::write(folder.path().join("mappings/x.toml"), "base_url = 7\n").expect("writable");
    program.signal("-HUP");
    let fault = program.line("");
    assert!(fault["message"].to_string().contains("the repository is unchanged"), "{fault}");
    assert_eq!(fetch(address, LIST).status, 200);
    assert_eq!(old.requests().len(), 1);
    map(&folder, &new.base_url());
    program.signal("-HUP");
    let line = program.line("mappings read again");
    assert_eq!((&line["added"], &line["changed"]), (&Value::Null, &"x".into()), "{line}");
    assert_eq!(fetch(address, LIST).status, 200);
    assert_eq!((old.requests().len(), new.requests().len()), (1, 1));
}

#[test]
fn cached_pages_of_a_removed_repository_are_deleted() {
    let source = Source::page(identify("kept"));
    let folder = mapped(&source.base_url());
    for id in ["y", "z"] {
        let mapping = folder.path().join(format!("mappings/{id}.toml"));
        std::fs::copy(folder.path().join("mappings/x.toml"), mapping).expect("writable");
    }
    let ids = ["x", "y", "z"];
    let pages = |id: &str| {
        let pages = std::fs::read_dir(folder.path().join("data/cache").join(id)).ok()?;
        Some(pages.flatten().filter(|page| page.path().extension().is_none()).count())
    };
    let mut program = Program::start(folder.path(), &["--mappings", "mappings"]);
    for id in ids {
        let path = format!("/{id}?verb=Identify");
        assert_eq!(fetch(program.address(), &path).status, 200);
        program.line("page");
    }
    wait_until(|| ids.map(pages) == [Some(1); 3]);
    let remove = |id| std::fs::remove_file(folder.path().join(format!("mappings/{id}.toml")));
    remove("y").expect("writable");
    program.signal("-HUP");
    wait_until(|| ids.map(pages) == [Some(1), None, Some(1)]);
    drop(program);
    remove("z").expect("writable");
    // The pages may be deleted before or after the program serves.
    let mut program = Program::spawn(serve(folder.path()).args(["--mappings", "mappings", "--admin", "off"]));
    let line = program.line("the cached pages of removed repositories are deleted");
    assert_eq!(line["pages"], 1, "{line}");
    assert_eq!(ids.map(pages), [Some(1), None, None]);
}

#[test]
fn default_folder_of_mappings_may_appear_later() {
    let source = Source::page(page_of(1));
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = Program::start(folder.path(), &[]);
    assert_eq!(fetch(program.address(), LIST).status, 404);
    let mappings = folder.path().join("mappings");
    std::fs::create_dir(&mappings).expect("writable");
    std::fs::write(mappings.join("x.toml"), format!("base_url = \"{}\"\n", source.base_url()))
        .expect("writable");
    let line = program.line("mappings read again");
    assert_eq!((&line["added"], &line["removed"]), (&"x".into(), &Value::Null), "{line}");
    assert_eq!(fetch(program.address(), LIST).status, 200);
    // A folder that disappears takes no repository with it, and is reported once.
    let elsewhere = folder.path().join("elsewhere");
    std::fs::rename(&mappings, &elsewhere).expect("writable");
    program.line("mappings: cannot be read");
    // The changed settings make the program look at the folder again.
    std::fs::write(folder.path().join("oaimend.toml"), "[connections]\nmax = 100\n").expect("writable");
    program.line("oaimend.toml read again");
    std::fs::rename(&elsewhere, &mappings).expect("writable");
    program.line("the mappings folder can be read again");
    assert_eq!(fetch(program.address(), LIST).status, 200);
    program.signal("-TERM");
    let log = program.whole_log();
    assert_eq!(log.matches("the repositories are unchanged").count(), 1, "{log}");
}

#[test]
fn oai_errors_of_the_source_are_seen() {
    let refusal = "<?xml version=\"1.0\"?><OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
                   <responseDate>2020-01-01T00:00:00Z</responseDate><request>http://source.example/oai</request>\
                   <error code=\"badResumptionToken\">gone</error></OAI-PMH>";
    let source = Source::start(move |_, _| Reply::xml(refusal));
    let folder = mapped(&source.base_url());
    let mut program =
        Program::run(serve(folder.path()).args(["--mappings", "mappings", "--admin", "127.0.0.1:0"]));
    let got = fetch(program.address(), "/x?verb=ListRecords&resumptionToken=t1");
    assert!(got.status == 200 && got.text().contains("badResumptionToken"), "{got:?}");
    let line = program.line("page");
    assert_eq!(
        (&line["outcome"], &line["oai_error"]),
        (&"oai-error".into(), &"badResumptionToken".into()),
        "{line}"
    );
    let metrics = fetch(program.admin(), "/-/metrics").text();
    for counted in [
        "oaimend_oai_errors_total{code=\"badResumptionToken\",repository=\"x\"} 1",
        "oaimend_requests_total{outcome=\"oai-error\",repository=\"x\",verb=\"ListRecords\"} 1",
    ] {
        assert!(metrics.contains(counted), "{counted} is not in\n{metrics}");
    }
    let reported = fetch(program.admin(), "/-/repositories/x").text();
    assert!(reported.contains("\"badResumptionToken\": 1"), "{reported}");
    let page = fetch(program.admin(), "/x/").text();
    assert!(page.contains("A list ended early, because the source refused the resumptionToken"), "{page}");
}

#[test]
fn wrong_filter_of_the_log_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for (filter, named) in [("dbug", "dbug"), ("info,verbose", "verbose"), ("oaimend=loud", "oaimend=loud")] {
        let output = serve(folder.path()).env("OAIMEND_LOG", filter).output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(said.contains(&format!("OAIMEND_LOG: \"{named}\" is not a filter; expected")), "{said}");
    }
}

#[test]
fn sighup_reloads_settings() {
    let source = Source::page(page_of(1));
    let folder = mapped(&source.base_url());
    let write = |text: &str| std::fs::write(folder.path().join("oaimend.toml"), text).expect("writable");
    write("[connections]\nuri_bytes_max = 9000\n");
    let mut program = Program::start(folder.path(), &["--mappings", "mappings"]);
    let address = program.address();
    let long = format!("{LIST}&set={}", "a".repeat(8500));
    assert_eq!(fetch(address, &long).status, 200);
    program.line("page");
    write("[connections]\nuri_bytes_max = 8200\n[limits]\nrecord_bytes_max = 7\n");
    program.signal("-HUP");
    let fault = program.line("");
    assert!(fault["message"].to_string().contains("the previous settings stay in effect"), "{fault}");
    assert_eq!(fetch(address, &long).status, 200, "no half of a broken file counts");
    write("listen = \"127.0.0.1:1\"\n[connections]\nuri_bytes_max = 8200\n");
    program.signal("-HUP");
    program.line("oaimend.toml read again; listen takes effect after a restart");
    assert_eq!(fetch(address, &long).status, 414);
    assert_eq!(fetch(address, LIST).status, 200);
}

#[test]
fn changed_limits_apply_to_mappings() {
    let source = Source::page(page_of(20));
    let folder = mapped(&source.base_url());
    let write = |text: &str| std::fs::write(folder.path().join("oaimend.toml"), text).expect("writable");
    write("");
    let mut program = Program::start(folder.path(), &["--mappings", "mappings"]);
    let address = program.address();
    assert_eq!(fetch(address, LIST).status, 200);
    write("[limits]\nresponse_bytes_max = 1024\n");
    program.signal("-HUP");
    program.line("oaimend.toml read again");
    program.line("mappings read again");
    assert_eq!(fetch(address, &format!("{LIST}&set=maps")).status, 502);
}

#[test]
fn broken_page_is_stored_as_received() {
    let page = page_of(2).replace("Title 1", "Q&A");
    let served = page.clone();
    let source = Source::start(move |_, received| {
        if received.target.contains("set=html") {
            Reply::xml("<html><body>no</body></html>")
        } else if received.target.contains("set=clean") {
            Reply::xml(page_of(2))
        } else {
            Reply::xml(served.clone())
        }
    });
    let proxy = Proxy::of(&source);
    for set in ["clean", "html", "maps"] {
        proxy.get(&format!("{LIST}&set={set}"));
    }
    let folder = proxy.data().join("broken/x");
    let kept = |name: &str| loop {
        // It is written while the response is sent.
        if let Ok(bytes) = std::fs::read(folder.join(name)) {
            break bytes;
        }
        std::thread::yield_now();
    };
    assert_eq!(kept("bare-ampersand.xml"), page.as_bytes());
    let about: Value = serde_json::from_slice(&kept("bare-ampersand.json")).expect("JSON");
    assert_eq!(about["needed"], serde_json::json!(["bare-ampersand"]));
    assert!(about["request"].as_str().is_some_and(|request| request.contains("set=maps")), "{about}");
    assert_eq!(kept("html-page.xml"), b"<html><body>no</body></html>");
    let files = std::fs::read_dir(&folder).expect("a folder").count();
    assert!(files <= 6, "nothing of the clean page: {files}");
}

#[test]
fn reload_with_faults_keeps_the_configuration() {
    let folder = config::folder(&[
        ("mappings/x.toml", "base_url = \"http://one.example/oai\"\n"),
        ("mappings/y.toml", "base_url = \"http://one.example/oai\"\n"),
    ]);
    let path = folder.path();
    let config = Config::load(&Flags { mappings: Some(path.join("mappings")), ..Flags::default() });
    let repositories = config.expect("no faults").repositories;
    let base_url = |id| repositories.find(id).map(|mapping| mapping.source.base_url.to_string());
    assert_eq!(repositories.reload().expect("readable"), MappingsReload::Unchanged);
    let before = repositories.find("x").expect("it is mapped");

    config::write(path, "mappings/x.toml", "base_url = \"http://two.example/oai\"\nbroken\n");
    config::write(path, "mappings/y.toml", "base_url = \"http://three.example/oai\"\n");
    config::write(path, "mappings/z.toml", "base_url = 1\n");
    let MappingsReload::Changed { changes, faults } = repositories.reload().expect("readable") else {
        panic!("there are faults")
    };
    assert_eq!(changes, MappingChanges { changed: vec!["y".to_owned()], ..MappingChanges::default() });
    assert_eq!(faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(base_url("x").as_deref(), Some("http://one.example/oai"), "the mapping is unchanged");
    assert_eq!(base_url("y").as_deref(), Some("http://three.example/oai"), "others change");
    assert_eq!(base_url("z"), None);
    assert_eq!(repositories.reload().expect("readable"), MappingsReload::Unchanged, "reported once");

    config::write(path, "mappings/x.toml", "base_url = \"http://one.example/oai\"\n# repaired\n");
    std::fs::remove_file(path.join("mappings/z.toml")).expect("it is there");
    std::fs::remove_file(path.join("mappings/y.toml")).expect("it is there");
    config::write(path, "mappings/v.toml", "base_url = \"http://four.example/oai\"\n");
    let (added, removed) = (vec!["v".to_owned()], vec!["y".to_owned()]);
    let changes = MappingChanges { added, removed, ..MappingChanges::default() };
    let expected = MappingsReload::Changed { changes, faults: Vec::new() };
    assert_eq!(repositories.reload().expect("readable"), expected);
    assert_eq!((base_url("y"), base_url("z")), (None, None));
    let after = repositories.find("x").expect("it is mapped");
    assert!(std::sync::Arc::ptr_eq(&before, &after), "it keeps its connections");

    std::fs::remove_dir_all(path.join("mappings")).expect("it is there");
    assert!(repositories.reload().is_err());
    assert!(base_url("x").is_some(), "the mapping is unchanged");
}

#[test]
fn metrics_describe_requests_the_process_and_circuits() {
    let source = Source::page(page_of(3));
    let proxy = Proxy::of(&source);
    let got = proxy.get(LIST);
    let count = "oaimend_request_duration_seconds_count{outcome=\"complete\",repository=\"x\"} 1";
    let metrics = loop {
        let metrics = fetch(proxy.admin(), "/-/metrics").text();
        // The request is counted after its last byte was sent.
        if metrics.contains(count) {
            break metrics;
        }
        std::thread::yield_now();
    };
    for line in [
        &format!("oaimend_sent_bytes_total{{repository=\"x\"}} {}", got.body.len()),
        &format!("oaimend_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")),
        "oaimend_circuit_open{repository=\"x\"} 0",
        "process_resident_memory_bytes ",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}
