//! Full texts of mirrored records: which ones are fetched, how politely, and what their references become.
//!
//! A script in place of pdftotext writes what it reads, so that these tests need no poppler. The last one uses it.

use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::source::{Got, ReceivedRequest, Reply, Source, fetch, post};
use oaimend_base::clock::uptime;
use oaimend_full_text::{PDFTOTEXT, find_program};
use oaimend_test_support::landlock::has_landlock;
use oaimend_test_support::pdf;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a test waits for something that happens in the background.
const WITHIN: Duration = Duration::from_secs(120);
const PDF: &str =
    "%PDF-1.4\nReferences\n[1] A. Author. doi:10.1000/1.\n[2] B. Author. doi:10.1000/none, 2001.\n";

/// A repository whose host has PDFs, too.
struct Site {
    source: Source,
    collection: Arc<Mutex<Collection>>,
    folder: tempfile::TempDir,
}

/// The response for a path beside the base URL.
type Files = dyn Fn(&str, usize) -> Reply + Send + Sync;

impl Site {
    /// A site with five records, of which these have further elements. `BASE` in an element is the URL of the site. `files`
    /// answers the n-th request for a path, from 0.
    fn new(
        fields: &'static [(usize, &'static str)],
        files: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Mutex::new(Collection::of(5)));
        let (collection, files): (_, Box<Files>) = (Arc::clone(&shared), Box::new(files));
        let counts = Mutex::new(std::collections::BTreeMap::<String, usize>::new());
        let source = Source::start(move |_, received: &ReceivedRequest| {
            if received.target.starts_with("/oai") {
                return collection.lock().expect("no test panics while it holds this").reply(received);
            }
            let mut counts = counts.lock().expect("no test panics while it holds this");
            let count = counts.entry(received.target.clone()).or_default();
            *count += 1;
            files(&received.target, *count - 1)
        });
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = Self { source, collection: shared, folder };
        for (number, fields) in fields {
            site.set_fields(*number, fields);
        }
        site.set_stub("exec cat");
        site.write_mapping("x", "", 1_000_000);
        site
    }

    fn set_fields(&self, number: usize, fields: &str) {
        let base = self.source.base_url();
        let fields = fields.replace("BASE", base.trim_end_matches("/oai"));
        let mut collection = self.collection.lock().expect("no test panics while it holds this");
        let now_secs = collection.now_secs;
        let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
        entry.title = format!("Title {number}</dc:title>{fields}<dc:title>Another title");
        entry.datestamp_secs = now_secs;
    }

    fn set_stub(&self, script: &str) {
        let folder = self.folder.path().join("bin");
        std::fs::create_dir_all(&folder).expect("writable");
        let path = folder.join(PDFTOTEXT);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("writable");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("ours");
    }

    fn write_mapping(&self, id: &str, keys: &str, requests_per_minute: u32) {
        let folder = self.folder.path().join("mappings");
        std::fs::create_dir_all(&folder).expect("writable");
        let base_url = self.source.base_url();
        let text = format!(
            "base_url = \"{base_url}\"\nheaders = {{ X-Secret = \"secret\" }}\n{keys}\n[crosswalks]\noaimend_links = \"built-in\"\n\
             [mirror]\ninterval_secs = 2592000\n[full_texts]\nrequests_per_minute_max = {requests_per_minute}\nbytes_max = 10000\n"
        );
        std::fs::write(folder.join(format!("{id}.toml")), text).expect("writable");
    }

    fn start(&self) -> Program {
        self.start_with_path(&format!("{}:/usr/bin:/bin", self.folder.path().join("bin").display()))
    }

    fn start_with_path(&self, path: &str) -> Program {
        Program::run(serve(self.folder.path()).args(["--admin", "127.0.0.1:0"]).env("PATH", path))
    }

    /// The requests for a path.
    fn requests(&self, path: &str) -> Vec<ReceivedRequest> {
        self.source.requests().into_iter().filter(|request| request.target == path).collect()
    }
}

/// Repeats `look` until it finds something.
#[track_caller]
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = uptime() + WITHIN;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(uptime() < until, "{what}");
    }
}

/// The value of a metric; 0 if it is not there.
fn metric(program: &Program, name: &str) -> Option<u64> {
    let text = fetch(program.admin(), "/-/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
    line.and_then(|value| value.parse().ok())
}

fn outcomes(program: &Program, outcome: &str) -> u64 {
    let name = format!("oaimend_full_texts_total{{outcome=\"{outcome}\",repository=\"x\"}}");
    metric(program, &name).unwrap_or_default()
}

/// Waits until this many full texts have these outcomes.
#[track_caller]
fn wait_for_outcomes(program: &Program, expected: &[(&str, u64)]) {
    for (outcome, count) in expected {
        wait_for(outcome, || (outcomes(program, outcome) == *count).then_some(()));
    }
}

/// Starts the program again and waits until it has examined what it knows. No harvest is due.
#[track_caller]
fn restart(site: &Site, program: Program) -> Program {
    program.killer().kill();
    program.ended();
    drop(program);
    let program = site.start();
    let waiting = || metric(&program, "oaimend_full_texts_waiting{repository=\"x\"}");
    wait_for("all records are examined", || (waiting() == Some(0)).then_some(()));
    program
}

/// The links of a record, when they are ready.
#[track_caller]
fn links(address: SocketAddr, number: usize) -> Value {
    let path = format!("/x/record/{}.links.json", identifier(number).replace(':', "%3A"));
    let ready = |got: Got| (got.status == 200).then_some(got);
    let got = wait_for("the links are ready", || ready(fetch(address, &path)));
    serde_json::from_slice(&got.body).expect("it is JSON")
}

/// The links of a record in both directions: field, basis and identifier or record.
fn named(links: &Value, direction: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let citation = |citation: &Value| {
        let records = citation["records"].as_array().expect("an array").iter();
        let records: Vec<String> = records.map(|record| text(&record["identifier"])).collect();
        let named = text(&citation["identifier"]["value"]);
        format!("{} {} {named}: {}", text(&citation["field"]), text(&citation["basis"]), records.join(" "))
    };
    links[direction].as_array().expect("an array").iter().map(citation).collect()
}

fn file(target: &str) -> Reply {
    match target {
        "/robots.txt" => Reply::new(404, ""),
        "/2.pdf" => Reply::whole(200, "Content-Type: application/pdf", PDF),
        other => panic!("{other} is not allowed"),
    }
}

const CITING: &[(usize, &str)] =
    &[(1, "<dc:identifier>doi:10.1000/1</dc:identifier>"), (2, "<dc:relation>BASE/2.pdf</dc:relation>")];

#[test]
fn references_of_full_texts_are_guesses() {
    if !has_landlock() {
        return;
    }
    let site = Site::new(CITING, |target, _| file(target));
    let program = site.start();
    wait_for_outcomes(&program, &[("read", 1)]);
    let two = links(program.address(), 2);
    let guesses = ["fullText guess 10.1000/1: oai:c:00001", "fullText guess 10.1000/none: "];
    // The URL is in a relation, too.
    assert_eq!(named(&two, "cites")[1..], guesses);
    assert_eq!(named(&links(program.address(), 1), "citedBy"), ["fullText guess : oai:c:00002"]);
    let page = fetch(program.address(), "/x/record/oai%3Ac%3A00002").text();
    assert!(page.contains(", a guess: read by a program"), "{page}");
    let record = |prefix: &str| {
        let query = format!("verb=GetRecord&metadataPrefix={prefix}&identifier=oai:c:00002");
        fetch(program.address(), &format!("/_mirror/x?{query}")).text()
    };
    let cites = "<cites field=\"fullText\" basis=\"guess\"><identifier kind=\"doi\">10.1000/1</identifier>\
                 <record repository=\"x\">oai:c:00001</record></cites>";
    assert!(record("oaimend_links").contains(cites), "{}", record("oaimend_links"));
    // A guess does not move the datestamp.
    let stamp = |text: String| text.split_once("<datestamp>").map(|(_, rest)| rest[..20].to_owned());
    assert_eq!(stamp(record("oaimend_links")), stamp(record("oai_dc")));
    // The request says who it is, and nothing secret.
    let [request] = &site.requests("/2.pdf")[..] else { panic!("one request") };
    assert!(request.headers["user-agent"].starts_with("oaimend/"), "{request:?}");
    assert!(!request.headers.contains_key("x-secret"), "{request:?}");
    assert_eq!(site.requests("/robots.txt").len(), 1);
    // It is fetched once, also by the next process.
    let program = restart(&site, program);
    assert_eq!(named(&links(program.address(), 1), "citedBy"), ["fullText guess : oai:c:00002"]);
    assert_eq!(site.requests("/2.pdf").len(), 1);
    // A record that changes, and has no full text after that.
    site.set_fields(2, "<dc:relation>BASE/2.pdf</dc:relation><dc:relation>10.1000/none</dc:relation>");
    harvest(&program);
    let program = restart(&site, program);
    assert_eq!(site.requests("/2.pdf").len(), 1);
    let two = links(program.address(), 2);
    let expected = ["relation mentioned 10.1000/none: ", "fullText guess 10.1000/1: oai:c:00001"];
    assert_eq!(named(&two, "cites")[1..], expected);
    site.set_fields(2, "");
    harvest(&program);
    wait_for("the guesses are removed", || (links(program.address(), 2)["cites"] == json!([])).then_some(()));
    assert_eq!(links(program.address(), 1)["citedBy"], json!([]));
    assert_eq!(site.requests("/2.pdf").len(), 1);
}

/// Requests a harvest of `x` and waits for its end.
#[track_caller]
fn harvest(program: &Program) {
    let ended = || {
        let text = fetch(program.admin(), "/-/mirror/x/harvest").text();
        let status: Value = serde_json::from_str(&text).expect("it is JSON");
        status["ended"].as_u64().expect("a number")
    };
    let before = ended();
    assert_eq!(post(program.admin(), "/-/mirror/x/sync", "").status, 202);
    wait_for("the harvest ends", || (ended() > before).then_some(()));
}

const REFUSED: &[(usize, &str)] = &[
    (0, "<dc:relation>BASE/large.pdf</dc:relation>"),
    (1, "<dc:relation>BASE/elsewhere.pdf</dc:relation>"),
    (2, "<dc:relation>BASE/login.pdf</dc:relation><dc:relation>http://other.example/2.pdf</dc:relation>"),
    (3, "<dc:relation>BASE/missing.pdf</dc:relation><dc:source>BASE/moved.pdf</dc:source>"),
    (4, "<dc:relation>BASE/loop.pdf</dc:relation>"),
];

#[test]
fn full_texts_that_cannot_be_read_are_refused_once() {
    if !has_landlock() {
        return;
    }
    let site = Site::new(REFUSED, |target, _| match target {
        "/robots.txt" => Reply::redirect(302, "/elsewhere.txt"),
        "/large.pdf" => Reply::whole(200, "", [PDF.as_bytes(), &[b' '; 10_000]].concat()),
        "/elsewhere.pdf" => Reply::redirect(302, "http://127.0.0.2:1/1.pdf"),
        "/login.pdf" => Reply::whole(200, "Content-Type: application/pdf", "<html>Log in</html>"),
        "/moved.pdf" => Reply::redirect(301, "/2.pdf"),
        "/2.pdf" => Reply::whole(200, "", PDF),
        "/loop.pdf" => Reply::redirect(307, "/loop.pdf"),
        _ => Reply::new(404, ""),
    });
    let program = site.start();
    wait_for_outcomes(&program, &[("too-large", 1), ("redirect", 2), ("not-pdf", 1), ("read", 1)]);
    assert_eq!(outcomes(&program, "status"), 0, "the second URL works");
    assert_eq!(links(program.address(), 3)["cites"].as_array().map(Vec::len), Some(4));
    assert_eq!(site.requests("/loop.pdf").len(), 6);
    let before = site.source.requests().len();
    let _program = restart(&site, program);
    let of_files =
        |requests: Vec<ReceivedRequest>| requests.iter().filter(|of| !of.target.starts_with("/oai")).count();
    assert_eq!(of_files(site.source.requests().split_off(before)), 0);
}

#[test]
fn the_second_url_waits_for_its_turn() {
    if !has_landlock() {
        return;
    }
    let fields: &[(usize, &str)] =
        &[(2, "<dc:relation>BASE/missing.pdf</dc:relation><dc:relation>BASE/2.pdf</dc:relation>")];
    let site = Site::new(fields, |target, _| match target {
        "/missing.pdf" => Reply::new(404, ""),
        target => file(target),
    });
    site.write_mapping("x", "", 120);
    let program = site.start();
    wait_for_outcomes(&program, &[("read", 1)]);
    assert_eq!(["/robots.txt", "/missing.pdf", "/2.pdf"].map(|path| site.requests(path).len()), [1, 1, 1]);
}

#[test]
fn validate_says_what_to_install() {
    let site = Site::new(CITING, |target, _| file(target));
    let validate = |path: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_oaimend"));
        let output = command.arg("validate").current_dir(site.folder.path()).env("PATH", path).output();
        let output = output.expect("the program is built");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let with_stub = site.folder.path().join("bin");
    assert!(validate("/nowhere").contains("install poppler-utils"));
    assert!(!validate(&with_stub.display().to_string()).contains("poppler"));
}

#[test]
fn robots_txt_is_followed() {
    if !has_landlock() {
        return;
    }
    let site = Site::new(CITING, |target, _| match target {
        "/robots.txt" => {
            Reply::whole(200, "", "User-agent: *\nAllow: /\n\nUser-agent: oaimend\nDisallow: /*.pdf\n")
        }
        other => panic!("{other} is not allowed"),
    });
    let program = site.start();
    wait_for_outcomes(&program, &[("robots", 1)]);
    assert_eq!(site.requests("/2.pdf").len(), 0);
    let waiting = || metric(&program, "oaimend_full_texts_waiting{repository=\"x\"}");
    wait_for("it waits", || (waiting() == Some(1)).then_some(()));
}

#[test]
fn a_server_that_is_busy_is_left_alone() {
    if !has_landlock() {
        return;
    }
    let fields: &[(usize, &str)] =
        &[(2, "<dc:relation>BASE/busy.pdf</dc:relation><dc:relation>BASE/2.pdf</dc:relation>")];
    let site = Site::new(fields, |target, _| match target {
        "/busy.pdf" => Reply::new(503, "Retry-After: 1"),
        target => file(target),
    });
    let program = site.start();
    // The second URL works.
    wait_for_outcomes(&program, &[("read", 1)]);
    assert_eq!((outcomes(&program, "later"), site.requests("/busy.pdf").len()), (0, 1));
    let site = Site::new(CITING, |target, _| match target {
        "/2.pdf" => Reply::new(503, "Retry-After: 1"),
        target => file(target),
    });
    let program = site.start();
    wait_for_outcomes(&program, &[("later", 1)]);
    assert_eq!(site.requests("/2.pdf").len(), 1);
}

#[test]
fn nothing_is_fetched_without_robots_txt() {
    if !has_landlock() {
        return;
    }
    let replies: [fn() -> Reply; 3] = [
        || Reply::new(500, ""),
        || Reply::new(408, ""),
        || Reply::redirect(302, "http://127.0.0.2:1/robots.txt"),
    ];
    for reply in replies {
        let site = Site::new(CITING, move |target, _| match target {
            "/robots.txt" => reply(),
            other => panic!("{other} is not allowed"),
        });
        let program = site.start();
        wait_for("robots.txt is requested", || (!site.requests("/robots.txt").is_empty()).then_some(()));
        let waiting = || metric(&program, "oaimend_full_texts_waiting{repository=\"x\"}");
        wait_for("it waits", || (waiting() == Some(1)).then_some(()));
        // No attempt was made.
        assert_eq!((outcomes(&program, "later"), site.requests("/robots.txt").len()), (0, 1));
    }
}

#[test]
fn hidden_repositories_have_no_full_texts() {
    let site = Site::new(CITING, |target, _| file(target));
    site.write_mapping("hidden", "records = \"off\"", 1_000_000);
    let program = site.start();
    wait_for_outcomes(&program, &[("read", 1)]);
    let waiting = |id: &str| metric(&program, &format!("oaimend_full_texts_waiting{{repository=\"{id}\"}}"));
    wait_for("a round has ended", || waiting("x"));
    assert_eq!((waiting("hidden"), site.requests("/2.pdf").len()), (None, 1));
}

#[test]
fn the_log_says_what_to_install() {
    let site = Site::new(CITING, |target, _| panic!("{target} is not allowed"));
    let mut program =
        Program::spawn(serve(site.folder.path()).args(["--admin", "off"]).env("PATH", "/nowhere"));
    let line = program.line("full texts are not fetched");
    assert!(line["message"].as_str().is_some_and(|text| text.contains("install poppler-utils")), "{line}");
}

#[test]
fn the_worker_needs_pipes() {
    let worker = |output: Stdio| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_oaimend"));
        command.args(["full-text-worker", "1073741824", "10", "1", "/bin/echo"]);
        let child = command.stdin(Stdio::piped()).stdout(output).stderr(Stdio::piped()).spawn();
        child.and_then(|child| child.wait_with_output()).expect("it ends")
    };
    let file = std::fs::File::open("/dev/null").expect("it exists");
    let refused = worker(file.into());
    assert_eq!(refused.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nothing to start by hand"), "{refused:?}");
    if has_landlock() {
        let started = worker(Stdio::piped());
        assert_eq!(String::from_utf8_lossy(&started.stdout), "-q -enc UTF-8 -l 1 - -\n");
    }
}

/// pdftotext, if this machine has it. With `OAIMEND_PDF=required` it must.
fn has_pdftotext() -> bool {
    let is_required = std::env::var("OAIMEND_PDF").is_ok_and(|value| value == "required");
    let found = find_program(PDFTOTEXT);
    assert!(found.is_some() || !is_required, "pdftotext is missing; scripts/full-text install");
    if found.is_none() {
        println!("skipped: pdftotext is missing; scripts/full-text install");
    }
    found.is_some()
}

#[test]
fn hostile_pdfs_do_not_stop_the_others() {
    if !has_landlock() || !has_pdftotext() {
        return;
    }
    let fields: &[(usize, &str)] = &[
        (0, "<dc:relation>BASE/forms.pdf</dc:relation>"),
        (1, "<dc:identifier>doi:10.1000/1</dc:identifier><dc:relation>BASE/encrypted.pdf</dc:relation>"),
        (2, "<dc:relation>BASE/good.pdf</dc:relation>"),
        (3, "<dc:relation>BASE/pages.pdf</dc:relation>"),
    ];
    let lines = ["An article", "References", "[1] A. Author. doi:10.1000/1."];
    let site = Site::new(fields, move |target, _| match target {
        "/forms.pdf" => Reply::whole(200, "", pdf::nested_forms(9)),
        "/encrypted.pdf" => Reply::whole(200, "", pdf::encrypted(&lines)),
        "/pages.pdf" => Reply::whole(200, "", pdf::endless_pages()),
        "/good.pdf" => Reply::whole(200, "", pdf::pdf(&lines)),
        _ => Reply::new(404, ""),
    });
    let path = std::env::var("PATH").expect("tests have a path");
    let program = site.start_with_path(&path);
    // Versions of poppler differ in what they read, and a fast machine fills the memory before the time is over.
    let ended = ["read", "unreadable", "time-exceeded", "crashed", "text-too-long"];
    let count = || ended.iter().map(|outcome| outcomes(&program, outcome)).sum::<u64>();
    wait_for("all PDFs have ended", || (count() == 4).then_some(()));
    assert!(outcomes(&program, "unreadable") > 0, "the encrypted one cannot be read");
    assert_eq!(named(&links(program.address(), 2), "cites")[1..], ["fullText guess 10.1000/1: oai:c:00001"]);
    // It serves on.
    assert_eq!(fetch(program.address(), "/x?verb=Identify").status, 200);
}
