//! `oaimend tape`: tapes of a mirror, of a source and of files, and the tapes of other programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

use oaimend_mirror::status::{FormatStatus, RepositoryStatus};
use serde_json::{Value, json};

use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::source::{ReceivedRequest, Reply, Source, page_of};
use crate::fixtures::static_files::Kept;
use crate::fixtures::static_lists::{between, pages};

fn oaimend(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oaimend"));
    command.args(arguments).current_dir(folder).output().expect("the program runs")
}

#[track_caller]
fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = oaimend(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The message of a command that fails with this code.
#[track_caller]
fn fails(code: i32, folder: &Path, arguments: &[&str]) -> String {
    let output = oaimend(folder, arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    stderr(&output)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder with the mirrored repository `c`.
fn folder_with(source: &Source) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let mapping = format!("base_url = \"{}\"\n[mirror]\n", source.base_url());
    fs::write(folder.path().join("mappings/c.toml"), mapping).expect("a writable folder");
    folder
}

/// A proxy with the tape as repository `x`.
fn served(tape: &Path) -> crate::fixtures::proxy::Proxy {
    Kept::mapped(&format!("tape_file = {:?}\n", tape.display().to_string())).serve()
}

/// The records of a list without the line breaks between them, in the order of their identifiers.
fn records(pages: &[String]) -> Vec<String> {
    let mut records: Vec<String> =
        pages.iter().flat_map(|page| between(page, "<record>", "</record>")).map(str::to_owned).collect();
    records.sort();
    records
}

fn collection() -> Collection {
    let mut collection = Collection::of(25);
    collection.entries.get_mut(&identifier(3)).expect("it exists").deleted = true;
    collection.entries.get_mut(&identifier(4)).expect("it exists").title =
        "]]&gt; &amp; <![CDATA[</tape>]]>".to_owned();
    collection
}

#[test]
fn a_mirror_becomes_a_tape_that_serves_the_same_records() {
    let (source, _collection) = collection().start();
    let folder = folder_with(&source);
    let build = ["tape", "build", "c.xml.gz", "--from-mirror", "c"];
    let never = fails(1, folder.path(), &build);
    assert!(never.contains("c was never harvested; run: oaimend mirror sync c"), "{never}");
    succeeds(folder.path(), &["mirror", "sync"]);
    let built = succeeds(folder.path(), &build);
    assert!(built.starts_with("c.xml.gz: 25 records, 1 of them deleted, in oai_dc; 2 sets; "), "{built}");
    let verified = succeeds(folder.path(), &["tape", "verify", "c.xml.gz", "--format", "json"]);
    let verified: Value = serde_json::from_str(&verified).expect("JSON");
    assert_eq!((&verified["records"], &verified["index"]["state"]), (&json!(25), &json!("right")));

    let proxy = served(&folder.path().join("c.xml.gz"));
    // The payload declares what the elements around it declare at the source.
    let declaration = " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";
    let from_tape = records(&pages(&proxy, "ListRecords", "metadataPrefix=oai_dc"));
    let from_tape: Vec<String> = from_tape.iter().map(|record| record.replacen(declaration, "", 1)).collect();
    // The same records come from the source through the proxy.
    let live = crate::fixtures::proxy::Proxy::of(&source);
    let from_source = records(&pages(&live, "ListRecords", "metadataPrefix=oai_dc"));
    assert_eq!(from_tape.len(), 25);
    assert_eq!(from_tape, from_source);
    let even = records(&pages(&proxy, "ListRecords", "metadataPrefix=oai_dc&set=even"));
    assert_eq!(even.len(), 13);

    // The server that uses the data folder goes on.
    let server = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    let admin = server.admin().to_string();
    let again = ["tape", "build", "set.xml.gz", "--from-mirror", "c", "--set", "even", "--admin", &admin];
    let built = succeeds(folder.path(), &again);
    assert!(built.starts_with("set.xml.gz: 13 records in oai_dc; 1 sets"), "{built}");
}

/// An admin listener of a mirror with the repository `c`. The first status says that nothing is missing, and each later one
/// has these formats.
fn changing_mirror(later: Vec<FormatStatus>) -> Source {
    let record = "<record xmlns=\"http://www.openarchives.org/OAI/2.0/\"><header><identifier>oai:c:1</identifier>\
        <datestamp>2021-01-01</datestamp></header><metadata><m:m xmlns:m=\"urn:m\"/></metadata></record>";
    let looks = AtomicU64::new(0);
    Source::start(move |_: usize, received: &ReceivedRequest| {
        let path = received.target.split('?').next().unwrap_or_default();
        let body = match path {
            "/-/mirror/c" => {
                let is_first = looks.fetch_add(1, Ordering::SeqCst) == 0;
                let formats = if is_first { vec![complete_format(0)] } else { later.clone() };
                json!(RepositoryStatus { id: "c".to_owned(), formats, ..RepositoryStatus::default() })
            }
            "/-/mirror/c/description" => {
                json!({"base_url": null, "name": null, "admin_emails": [], "granularity": "", "formats": [], "sets": []})
            }
            _ => json!({
                "identifier": "oai:c:1", "datestamp": "2021-01-01", "deleted": false, "setSpecs": [], "record": record
            }),
        };
        Reply::whole(200, "Content-Type: application/json", format!("{body}\n"))
    })
}

fn complete_format(missing: u64) -> FormatStatus {
    let complete_until = Some("2021-01-02T00:00:00Z".to_owned());
    FormatStatus { prefix: "oai_dc".to_owned(), missing, complete_until, ..FormatStatus::default() }
}

#[test]
fn a_gap_that_appears_while_a_mirror_is_read_is_a_gap_of_the_tape() {
    let folder = tempfile::tempdir().expect("a folder");
    let build = |later: Vec<FormatStatus>, options: &[&str]| {
        let source = changing_mirror(later);
        let admin = source.base_url().replace("http://", "").replace("/oai", "");
        let build =
            ["tape", "build", "c.xml.gz", "--from-mirror", "c", "--format", "json", "--admin", &admin];
        oaimend(folder.path(), &[&build[..], options].concat())
    };
    let damaged = FormatStatus { damaged: 1, ..complete_format(0) };
    for (later, text) in [
        (vec![complete_format(2)], "2 records are missing, so no tape is written"),
        (vec![damaged], "1 records are damaged"),
        (Vec::new(), "never harvested"),
    ] {
        let refused = build(later, &[]);
        assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(text), "{}", stderr(&refused));
        assert!(!folder.path().join("c.xml.gz").exists());
    }
    let other = FormatStatus { prefix: "other".to_owned(), ..complete_format(0) };
    let replaced = build(vec![other], &["--accept-gaps"]);
    assert!(stderr(&replaced).contains("the mirror has removed the format"), "{}", stderr(&replaced));
    let accepted = build(vec![complete_format(2)], &["--accept-gaps"]);
    let built: Value = serde_json::from_slice(&accepted.stdout).expect("JSON");
    assert_eq!(
        (&built["records"], &built["missing"]),
        (&json!(1), &json!([{"source": "oai_dc", "records": 2}]))
    );
}

#[test]
fn a_source_becomes_a_tape_only_when_nothing_is_missing() {
    let (source, collection) = collection().start();
    let folder = tempfile::tempdir().expect("a folder");
    collection.lock().expect("no panic").fails_at = Some("verb=".to_owned());
    let base_url = source.base_url();
    let build = ["tape", "build", "c.xml.gz", "--from", &base_url];
    let failed = fails(1, folder.path(), &build);
    assert!(failed.contains("is not complete") && failed.contains("no tape was written"), "{failed}");
    assert!(!folder.path().join("c.xml.gz").exists());
    collection.lock().expect("no panic").fails_at = None;
    let other =
        fails(64, folder.path(), &["tape", "build", "c.xml.gz", "--from", &base_url, "--set", "even"]);
    assert!(other.contains("c.xml.gz.harvest holds another harvest"), "{other}");
    let built = succeeds(folder.path(), &build);
    assert!(built.starts_with("c.xml.gz: 25 records, 1 of them deleted, in oai_dc; 2 sets; "), "{built}");
    assert!(!folder.path().join("c.xml.gz.harvest").exists());

    // A record beyond repair is a gap.
    collection.lock().expect("no panic").unreadable.insert(identifier(5));
    let build = ["tape", "build", "gap.xml.gz", "--from", &base_url];
    let refused = fails(1, folder.path(), &build);
    assert!(refused.contains("1 records are missing, so no tape is written"), "{refused}");
    assert!(!folder.path().join("gap.xml.gz").exists());
    let built = succeeds(folder.path(), &[&build[..], &["--accept-gaps", "--format", "json"]].concat());
    let built: Value = serde_json::from_str(&built).expect("JSON");
    assert_eq!(built["missing"], json!([{ "source": "oai_dc", "records": 1 }]));
    assert_eq!(built["records"], 24);
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("a writable folder");
    path
}

#[test]
fn saved_responses_records_and_tapes_become_a_tape() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let first =
        page_of(3).replace("</ListRecords>", "<resumptionToken>a&amp;b</resumptionToken></ListRecords>");
    write(folder, "1.xml", &first);
    let second = page_of(5)
        .replace(" metadataPrefix=\"oai_dc\">http", " resumptionToken=\"a&amp;b\">http")
        .replace("Title 4", "Title 4 & more");
    write(folder, "2.xml", &second);
    let record = "<?xml version=\"1.0\"?>\n<record xmlns=\"http://www.openarchives.org/OAI/2.0/\"><header>\
        <identifier>oai:x:9</identifier><datestamp>2021-01-01</datestamp></header><metadata><m:m xmlns:m=\"urn:m\">]]&gt;</m:m>\
        </metadata></record>";
    write(folder, "9.xml", record);
    let missing = fails(1, folder, &["tape", "build", "a.xml.gz", "1.xml"]);
    assert!(missing.contains("1.xml: 1 page or more is missing"), "{missing}");
    let unknown = fails(64, folder, &["tape", "build", "a.xml.gz", "1.xml", "2.xml", "9.xml"]);
    assert!(
        unknown
            .contains("the format of the record oai:x:9 is not known; name its metadataPrefix with --prefix"),
        "{unknown}"
    );
    let build = ["tape", "build", "a.xml.gz", "--prefix", "mine", "1.xml", "2.xml", "9.xml"];
    let output = oaimend(folder, &build);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let built = String::from_utf8_lossy(&output.stdout);
    assert!(built.starts_with("a.xml.gz: 6 records in oai_dc, mine; "), "{built}");
    assert!(stderr(&output).contains("3 records are left out"), "{}", stderr(&output));
    let again = succeeds(folder, &["tape", "build", "b.xml.gz", "a.xml.gz"]);
    assert!(again.starts_with("b.xml.gz: 6 records in oai_dc, mine; "), "{again}");

    let different = page_of(1).replace("Title 0", "Another title");
    write(folder, "other.xml", different);
    let refused = fails(1, folder, &["tape", "build", "c.xml.gz", "1.xml", "2.xml", "other.xml"]);
    assert!(refused.contains("the record oai:x:0 of oai_dc is also at byte"), "{refused}");
    assert!(!folder.join("c.xml.gz").exists());
    write(folder, "cut.xml", page_of(3).split_at(1_500).0);
    let cut = fails(1, folder, &["tape", "build", "c.xml.gz", "cut.xml"]);
    assert!(cut.contains("cut.xml: 1 records cannot be repaired, or the file ends early"), "{cut}");
    write(folder, "page.html", "<html><body>busy</body></html>");
    fails(2, folder, &["tape", "build", "c.xml.gz", "page.html"]);
    fails(74, folder, &["tape", "build", "c.xml.gz", "none.xml"]);
    fails(64, folder, &["tape", "build", "c.xml.gz"]);
    assert!(!folder.join("c.xml.gz").exists());
}

#[test]
fn faults_of_tapes_are_named_with_their_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "1.xml", page_of(3));
    succeeds(folder, &["tape", "build", "a.xml.gz", "1.xml"]);
    fs::remove_file(folder.join("a.xml.gz.idx")).expect("a file");
    succeeds(folder, &["tape", "verify", "a.xml.gz"]);
    succeeds(folder, &["tape", "index", "a.xml.gz"]);
    let mut index = fs::read(folder.join("a.xml.gz.idx")).expect("a file");
    index[5_000] ^= 1;
    fs::write(folder.join("a.xml.gz.idx"), index).expect("a disk");
    let wrong = fails(1, folder, &["tape", "verify", "a.xml.gz"]);
    assert!(wrong.contains("run: oaimend tape index a.xml.gz"), "{wrong}");
    let bytes = fs::read(folder.join("a.xml.gz")).expect("a tape");
    write(folder, "cut.xml.gz", &bytes[..bytes.len() - 30]);
    let cut = fails(1, folder, &["tape", "verify", "cut.xml.gz"]);
    assert!(cut.contains("cut.xml.gz: at byte"), "{cut}");
    fails(1, folder, &["tape", "index", "cut.xml.gz"]);
    let other = fails(2, folder, &["tape", "verify", "1.xml"]);
    assert!(other.contains("this is no XMLtape"), "{other}");
}

/// Runs `scripts/tapes`; `None` if `scripts/tapes install` was not run. With `OAIMEND_TAPES=required` that is a failure.
fn other_programs(arguments: &[&str]) -> Option<Output> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_oaimend"));
    let target = program.ancestors().nth(2).expect("the program is two folders below");
    if !target.join("tapes/ready").exists() {
        let is_required = std::env::var("OAIMEND_TAPES").is_ok_and(|value| value == "required");
        assert!(!is_required, "run scripts/tapes install first");
        println!("skipped: scripts/tapes install was not run");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/tapes");
    let output = Command::new(script).args(arguments).env("CARGO_TARGET_DIR", target).output().expect("sh");
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    Some(output)
}

#[test]
fn other_programs_read_our_tapes() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let hostile = "<![CDATA[</record></tapeRecord>]]>]]&gt;<?tapeRecord?><!-- <tapeRecord> --><tapeRecord \
        xmlns=\"http://library.lanl.gov/2005-08/aDORe/XMLtape/\"><record/></tapeRecord>\u{e9}";
    write(folder, "1.xml", page_of(300).replace("Title 7<", &format!("{hostile}<")));
    succeeds(folder, &["tape", "build", "a.xml.gz", "1.xml"]);
    let Some(output) = other_programs(&["read", &folder.join("a.xml.gz").display().to_string()]) else {
        return;
    };
    let read: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(read["agree"], true, "{read}");
    let records = read["records"].as_array().expect("a list");
    assert_eq!(records.len(), 300);
    assert_eq!((&records[7][0], &records[7][1]), (&json!("oai:x:7"), &json!("2020-01-01")));
    assert!(
        records[7][2].as_str().is_some_and(|xml| xml.contains("<?tapeRecord?>") && xml.contains('\u{e9}')),
        "{}",
        records[7]
    );
}

#[test]
fn tapes_of_xml_tape_are_verified_written_again_and_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, payloads) = (folder.path(), folder.path().join("payloads"));
    fs::create_dir(&payloads).expect("a writable folder");
    for number in 100..150 {
        let dc = format!(
            "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>Letter {number} &amp; more</dc:title></oai_dc:dc>"
        );
        write(&payloads, &number.to_string(), dc);
    }
    let theirs = folder.join("theirs.xml");
    let arguments = [theirs.display().to_string(), payloads.display().to_string()];
    if other_programs(&["write", &arguments[0], &arguments[1]]).is_none() {
        return;
    }
    succeeds(folder, &["tape", "verify", "theirs.xml"]);
    let built = succeeds(folder, &["tape", "build", "ours.xml.gz", "theirs.xml"]);
    assert!(built.starts_with("ours.xml.gz: 50 records in oai_dc; "), "{built}");
    succeeds(folder, &["tape", "index", "theirs.xml"]);
    for tape in ["theirs.xml", "ours.xml.gz"] {
        let proxy = served(&folder.join(tape));
        let records = records(&pages(&proxy, "ListRecords", "metadataPrefix=oai_dc"));
        assert_eq!(records.len(), 50, "{tape}");
        assert!(records[7].contains("<dc:title>Letter 107 &amp; more</dc:title>"), "{}", records[7]);
    }
    // As one gzip member it has no index, and is written again.
    let gzip = Command::new("gzip").args(["-k", "theirs.xml"]).current_dir(folder).status().expect("gzip");
    assert!(gzip.success());
    succeeds(folder, &["tape", "verify", "theirs.xml.gz"]);
}

#[test]
fn a_forgotten_name_of_the_tape_replaces_no_saved_response() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = page_of(1);
    for name in ["a.xml", "b.xml"] {
        std::fs::write(folder.path().join(name), &saved).expect("writable");
    }
    let said = fails(64, folder.path(), &["tape", "build", "a.xml", "b.xml"]);
    assert!(said.contains("a.xml exists and is no tape"), "{said}");
    assert_eq!(std::fs::read_to_string(folder.path().join("a.xml")).expect("it is there"), saved);
}
