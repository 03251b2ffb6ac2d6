//! Dumps: forms, ranges, manifests, increments, and what is refused.

use super::gateway::Mirrored;
use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::program::{NO_DUMP_RESERVE, Program, serve};
use crate::fixtures::source::{Got, fetch, fetch_with, post};
use oaimend_mirror::settings::MirrorSettings;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const JSONL: &str = "/_dump?repository=x";

fn mirrored(count: usize) -> Mirrored {
    let mut collection = Collection::of(count);
    collection.entries.get_mut(&identifier(1)).expect("it exists").deleted = true;
    Mirrored::with(collection, |_| {}, |config| config.mirror.aggregate = true)
}

/// Changes a record at the source, and waits for its harvest.
fn change_record(mirrored: &Mirrored, number: usize, deleted: bool) {
    change(&mirrored.collection, |collection| {
        collection.now_secs += 86_400;
        let now_secs = collection.now_secs;
        let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
        (entry.datestamp_secs, entry.deleted) = (now_secs, deleted);
        entry.title.push('!');
    });
    mirrored.harvest_again();
}

fn json(got: &Got) -> Value {
    serde_json::from_slice(&got.body).unwrap_or_else(|error| panic!("{error}: {}", got.text()))
}

#[track_caller]
fn whole(mirrored: &Mirrored, path: &str) -> Got {
    let got = mirrored.get(path);
    assert_eq!((got.status, got.whole), (200, true), "{path}: {}", got.text());
    got
}

/// The records of a dump in JSON lines: whether each is deleted, and its element.
fn records(dump: &Got) -> BTreeMap<String, (bool, String)> {
    let text = dump.text();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    let record = |line: Value| {
        let text = |name: &str| line[name].as_str().expect("a text").to_owned();
        (text("identifier"), (line["deleted"] == true, text("record")))
    };
    let found: Vec<_> = lines.map(record).collect();
    let count = found.len();
    let records = BTreeMap::from_iter(found);
    assert_eq!(records.len(), count, "an identifier comes twice");
    records
}

#[track_caller]
fn refused(got: &Got, status: u16, text: &str) {
    assert_eq!(got.status, status, "{}", got.text());
    assert_eq!(got.header("content-type"), "application/problem+json");
    let problem = json(got);
    assert_eq!(problem["status"], status);
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(text)), "{text}: {problem}");
}

fn tool(name: &str, arguments: &[&str]) -> std::process::Output {
    let target = PathBuf::from(env!("CARGO_BIN_EXE_oaimend"));
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(name))
        .args(arguments)
        .env("CARGO_TARGET_DIR", target.ancestors().nth(2).expect("the program is two folders below"))
        .output()
        .expect("the script runs")
}

#[test]
fn a_dump_has_all_records_and_tombstones_and_a_manifest_describes_it() {
    let mirrored = mirrored(250);
    let dump = whole(&mirrored, JSONL);
    let found = records(&dump);
    assert_eq!((found.len(), found[&identifier(1)].0, found[&identifier(2)].0), (250, true, false));
    assert!(found[&identifier(2)].1.contains("<dc:title>Title 2</dc:title>"), "{}", found[&identifier(2)].1);
    assert_eq!(dump.header("content-type"), "application/jsonl");
    let link = dump.header("link").to_owned();
    let manifest_url = link.strip_prefix('<').and_then(|link| link.split_once(">; rel=\"describedby\""));
    let base = format!("http://{}", mirrored.proxy.address());
    let manifest_path =
        manifest_url.expect("a link").0.strip_prefix(&base).expect("a URL of this server").to_owned();
    let manifest = json(&whole(&mirrored, &manifest_path));
    assert_eq!((&manifest["records"], &manifest["deleted"]), (&250.into(), &1.into()), "{manifest}");
    assert_eq!(manifest["bytes"], dump.body.len());
    assert_eq!(manifest["position"], dump.header("oaimend-position"));
    assert_eq!(manifest["etag"], dump.header("etag"));
    assert_eq!(manifest["gaps"], Value::Array(Vec::new()));
    let digest = ring::digest::digest(&ring::digest::SHA256, &dump.body);
    assert_eq!(manifest["sha256"], hex::encode(digest));
    // The URL of the position has the same bytes, also after a change.
    let path = dump.header("content-location").strip_prefix(&base).expect("a URL of this server").to_owned();
    change_record(&mirrored, 3, false);
    let again = whole(&mirrored, &path);
    assert_eq!((&again.body, again.header("etag")), (&dump.body, dump.header("etag")));
    let now = whole(&mirrored, JSONL);
    assert_ne!(now.header("etag"), dump.header("etag"));
    assert!(records(&now)[&identifier(3)].1.contains("Title 3!"));
    let known = mirrored.get_with(JSONL, &format!("If-None-Match: {}\r\n", now.header("etag")));
    assert_eq!((known.status, known.body.len()), (304, 0));
}

#[test]
fn an_interrupted_download_is_resumed_and_two_dumps_are_never_joined() {
    let mirrored = mirrored(120);
    let dump = whole(&mirrored, JSONL);
    let (etag, half) = (dump.header("etag").to_owned(), dump.body.len() / 2);
    let rest =
        |tag: &str, range: &str| mirrored.get_with(JSONL, &format!("If-Range: {tag}\r\nRange: {range}\r\n"));
    let part = rest(&etag, &format!("bytes={half}-"));
    assert_eq!((part.status, part.whole), (206, true));
    let shown = format!("bytes {half}-{}/{}", dump.body.len() - 1, dump.body.len());
    assert_eq!(part.header("content-range"), shown);
    assert_eq!([&dump.body[..half], &part.body].concat(), dump.body);
    let tail = mirrored.get_with(JSONL, "Range: bytes=-7\r\n");
    assert_eq!((tail.status, tail.body.as_slice()), (206, &dump.body[dump.body.len() - 7..]));
    let beyond = mirrored.get_with(JSONL, &format!("Range: bytes={}-\r\n", dump.body.len()));
    refused(&beyond, 416, "range");
    assert_eq!(beyond.header("content-range"), format!("bytes */{}", dump.body.len()));
    for tag in [format!("W/{etag}"), "\"other\"".to_owned(), "Fri, 27 Nov 2026 00:00:00 GMT".to_owned()] {
        let got = rest(&tag, "bytes=5-");
        assert_eq!((got.status, &got.body), (200, &dump.body), "{tag}");
    }
    assert_eq!(mirrored.get_with(JSONL, "Range: bytes=9-3,x\r\n").status, 200);
    change_record(&mirrored, 3, true);
    let got = rest(&etag, &format!("bytes={half}-"));
    assert_eq!((got.status, got.whole), (200, true));
    assert_ne!(got.header("etag"), etag);
    assert!(records(&got)[&identifier(3)].0);
    // The URL of the position resumes the old dump.
    let path = dump.header("content-location");
    let path = &path[path.find("/_dump").expect("the path of a dump")..];
    let old = mirrored.get_with(path, &format!("If-Range: {etag}\r\nRange: bytes={half}-\r\n"));
    assert_eq!((old.status, &old.body[..]), (206, &dump.body[half..]));
}

#[test]
fn nothing_new_is_the_same_dump_and_increments_follow_it() {
    let mirrored = mirrored(30);
    let dump = whole(&mirrored, JSONL);
    assert_eq!(whole(&mirrored, JSONL).header("etag"), dump.header("etag"));
    let mut copy = records(&dump);
    let mut position = dump.header("oaimend-position").to_owned();
    let mut counts = Vec::new();
    for (number, deleted) in [(3, true), (4, false), (3, false)] {
        change_record(&mirrored, number, deleted);
        let increment = whole(&mirrored, &format!("{JSONL}&since={position}"));
        counts.push(records(&increment).len());
        copy.extend(records(&increment));
        increment.header("oaimend-position").clone_into(&mut position);
    }
    assert_eq!(counts, [1, 1, 1]);
    assert_eq!(copy, records(&whole(&mirrored, JSONL)));
    let empty = whole(&mirrored, &format!("{JSONL}&since={position}"));
    assert_eq!((empty.body.len(), empty.header("content-length")), (0, "0"));
}

#[test]
fn all_repositories_are_dumped_as_one_with_their_prefixes() {
    let mirrored = mirrored(30);
    let found = records(&whole(&mirrored, "/_dump?repository=_all"));
    assert_eq!(found.len(), 30);
    assert!(found[&identifier(2)].1.contains("<setSpec>x:even</setSpec>"), "{}", found[&identifier(2)].1);
    let even = records(&whole(&mirrored, "/_dump?repository=x&set=even"));
    assert_eq!((even.len(), even.contains_key(&identifier(1))), (15, false));
    mirrored.proxy.wait_for_results("/_search.json?q=title:2", 1);
    let query = records(&whole(&mirrored, "/_dump?repository=_all&query=title:2"));
    assert_eq!(query.keys().collect::<Vec<_>>(), [&identifier(2)]);
}

#[test]
fn a_view_is_dumped_with_what_has_left_it() {
    let (source, collection) = Collection::of(30).start();
    let folder = tempfile::tempdir().expect("a folder");
    for (path, content) in [
        (
            "mappings/x.toml",
            format!("base_url = \"{}\"\n[mirror]\ninterval_secs = 86400\n", source.base_url()),
        ),
        ("views/v.toml", "query = \"title:lighthouse\"\n".to_owned()),
        ("oaimend.toml", NO_DUMP_RESERVE.to_owned()),
    ] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        std::fs::write(path, content).expect("writable");
    }
    let set_title = |number: usize, title: &str| {
        change(&collection, |collection| {
            collection.now_secs += 86_400;
            let now_secs = collection.now_secs;
            let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
            (entry.datestamp_secs, entry.title) = (now_secs, title.to_owned());
        });
    };
    set_title(3, "A lighthouse");
    set_title(4, "Another lighthouse");
    let program =
        Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0", "--mappings", "mappings"]));
    let address = program.address();
    let dump = |since: &str| {
        let path = format!("/_dump?repository=_view%2Fv{since}");
        let mut got = fetch(address, &path);
        while got.status == 503 {
            got = fetch(address, &path);
        }
        assert_eq!(got.status, 200, "{}", got.text());
        got
    };
    let mut first = dump("");
    while records(&first).len() < 2 {
        first = dump("");
    }
    assert_eq!(records(&first).keys().collect::<Vec<_>>(), [&identifier(3), &identifier(4)]);
    set_title(3, "A harbour");
    post(program.admin(), "/-/mirror/x/sync", "");
    let since = format!("&since={}", first.header("oaimend-position"));
    let mut increment = dump(&since);
    while records(&increment).is_empty() {
        increment = dump(&since);
    }
    let found = records(&increment);
    assert_eq!((found.len(), found[&identifier(3)].0), (1, true));
}

#[test]
fn pandas_reads_as_many_records_as_the_manifest_says() {
    let mut collection = Collection::of(40);
    "=1+1, \"quoted\"".clone_into(&mut collection.entries.get_mut(&identifier(5)).expect("it exists").title);
    collection.entries.get_mut(&identifier(1)).expect("it exists").deleted = true;
    let mirrored = Mirrored::of(collection);
    for form in ["csv", "jsonl"] {
        let path = format!("{JSONL}&format={form}");
        let dump = whole(&mirrored, &path);
        let manifest = json(&whole(&mirrored, &path.replace("/_dump", "/_dump/manifest")));
        assert_eq!((&manifest["records"], &manifest["deleted"]), (&40.into(), &1.into()));
        let file = mirrored.proxy.data().join("dump");
        std::fs::write(&file, &dump.body).expect("a writable folder");
        let output = tool("scripts/pandas", &["read", form, file.to_str().expect("UTF-8")]);
        if output.status.code() == Some(69) {
            let required = std::env::var_os("OAIMEND_PANDAS").is_some_and(|value| value == "required");
            assert!(!required, "pandas is missing: run scripts/pandas install");
            eprintln!("not checked with pandas: run scripts/pandas install");
            continue;
        }
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((&found["records"], &found["deleted"]), (&manifest["records"], &manifest["deleted"]));
        let expected: Vec<String> = (0..40).map(identifier).collect();
        assert_eq!(found["identifiers"], serde_json::json!(expected), "{form}");
        if form == "csv" {
            let titles = found["titles"].as_array().expect("a list");
            assert!(titles.iter().any(|title| title == "'=1+1, \"quoted\""), "{titles:?}");
        }
    }
}

#[test]
fn hostile_parameters_and_positions_are_refused() {
    let mirrored = mirrored(5);
    let position = whole(&mirrored, JSONL).header("oaimend-position").to_owned();
    let (store, rest) = position.split_once('-').expect("a position");
    for (path, status, text) in [
        ("/_dump".to_owned(), 400, "repository is missing"),
        ("/_dump?repository=none".to_owned(), 404, "no repository none"),
        ("/_dump?repository=..%2F..%2Fetc".to_owned(), 404, "no repository"),
        ("/_dump?repository=_view%2Fnone".to_owned(), 404, "no view"),
        (format!("{JSONL}&prefix=none"), 400, "no format none"),
        (format!("{JSONL}&prefix=%3Cx%3E"), 400, ""),
        (format!("{JSONL}&set=%00"), 400, ""),
        (format!("{JSONL}&query=none:x"), 400, "query"),
        (format!("{JSONL}&format=zip"), 400, "xmltape"),
        (format!("{JSONL}&since=x"), 400, "no position"),
        (format!("{JSONL}&since=0000000000000000-{rest}"), 410, "not of this store"),
        (format!("{JSONL}&since={store}-9-1700000000"), 410, "removed"),
        (format!("{JSONL}&since={store}-0-253402300799"), 410, "later than the store"),
        (format!("{JSONL}&position={store}-0-1"), 410, "not kept"),
        (format!("{JSONL}&set=even&since={position}"), 400, "make a view"),
        ("/_dump/manifest?repository=none".to_owned(), 404, "no repository"),
    ] {
        refused(&mirrored.get(&path), status, text);
    }
    let posted = post(mirrored.proxy.address(), JSONL, "");
    assert_eq!((posted.status, posted.header("allow")), (405, "GET, HEAD"));
}

#[test]
fn a_repository_that_was_forgotten_has_no_increments() {
    let mirrored = mirrored(5);
    let position = whole(&mirrored, JSONL).header("oaimend-position").to_owned();
    let all = whole(&mirrored, "/_dump?repository=_all").header("oaimend-position").to_owned();
    let ended = mirrored.proxy.admin_json("/-/mirror/x/harvest")["ended"].as_u64().expect("a number");
    let kept = format!("{JSONL}&position={position}");
    whole(&mirrored, &kept);
    let forgotten = post(mirrored.proxy.admin(), "/-/mirror/x/forget", "");
    assert_eq!(forgotten.status, 200, "{}", forgotten.text());
    // The dumps of the removed records are gone, from the disk too.
    refused(&mirrored.get(&kept), 410, "not kept");
    refused(&mirrored.get(&format!("/_dump?repository=_all&position={all}")), 410, "not kept");
    let files = std::fs::read_dir(mirrored.proxy.data().join("dumps")).expect("readable");
    let names: Vec<_> = files.map(|file| file.expect("readable").file_name()).collect();
    assert_eq!(names, ["store.id"]);
    let got = mirrored.get(JSONL);
    if got.status != 200 {
        refused(&got, 503, "not harvested");
        assert!(!got.header("retry-after").is_empty());
    }
    // The schedule may harvest it at once.
    let requested = post(mirrored.proxy.admin(), "/-/mirror/x/sync", "");
    assert!(matches!(requested.status, 202 | 409), "{}", requested.text());
    mirrored.proxy.wait_for_harvests("x", ended + 1);
    refused(&mirrored.get(&format!("{JSONL}&since={position}")), 410, "without `since`");
    refused(&mirrored.get(&format!("/_dump?repository=_all&since={all}")), 410, "without `since`");
    assert_eq!(records(&whole(&mirrored, JSONL)).len(), 5);
}

#[test]
fn known_gaps_are_named_and_a_first_harvest_that_is_not_complete_has_no_dump() {
    let mut collection = Collection::of(25);
    collection.unreadable.insert(identifier(7));
    let mirrored = Mirrored::of(collection);
    let dump = whole(&mirrored, JSONL);
    assert_eq!((records(&dump).len(), dump.header("oaimend-gaps")), (24, "1"));
    let manifest = json(&whole(&mirrored, "/_dump/manifest?repository=x"));
    assert_eq!(manifest["gaps"], serde_json::json!([{"repository": "x", "records": 1, "cause": "mirror"}]));
    let mut down = Collection::of(25);
    down.is_down = true;
    let down = Mirrored::with(down, |mapping| mapping.mirror = Some(MirrorSettings::default()), |_| {});
    refused(&down.get(JSONL), 503, "completely");
}

#[test]
fn damaged_records_are_never_left_out_silently() {
    use crate::fixtures::mirror::{damage_last_block, segments};
    let mirrored = mirrored(25);
    whole(&mirrored, JSONL);
    change_record(&mirrored, 3, false);
    for segment in segments(&mirrored.proxy.data().join("mirror")) {
        damage_last_block(&segment);
    }
    let got = mirrored.get("/_dump?repository=x&format=csv");
    refused(&got, 503, "damaged");
}

#[test]
fn a_head_request_has_the_headers_of_the_dump() {
    let mirrored = mirrored(5);
    let dump = whole(&mirrored, JSONL);
    let address = mirrored.proxy.address();
    let request = format!("HEAD {JSONL} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let head = crate::fixtures::source::Harvester::ask(address, &request).head();
    for name in ["etag", "content-length", "link", "repr-digest", "accept-ranges"] {
        assert_eq!(head.header(name), dump.header(name), "{name}");
        assert!(!head.header(name).is_empty(), "{name}");
    }
    assert_eq!(fetch_with(address, JSONL, "Accept-Encoding: gzip\r\n").header("content-encoding"), "");
}
