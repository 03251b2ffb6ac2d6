//! ResourceSync over HTTP: its documents, the bytes that they describe, and the client `resync` of PyPI.

use super::gateway::Mirrored;
use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{Got, post};
use oaimend::config::RecordPages;
use oaimend_base::clock;
use ring::digest::{SHA256, digest};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const FOLDER: &str = "/x/resourcesync/oai_dc";
const LISTS: [&str; 4] = ["resourcelist", "changelist", "resourcedump", "changedump"];

/// The texts between two marks.
fn between<'t>(text: &'t str, start: &str, end: &str) -> Vec<&'t str> {
    text.split(start).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

/// The value of an attribute of an entry.
fn attribute<'e>(entry: &'e str, name: &str) -> &'e str {
    between(entry, &format!(" {name}=\""), "\"").first().copied().unwrap_or_default()
}

#[track_caller]
fn list(mirrored: &Mirrored, name: &str) -> String {
    let got = mirrored.get(&format!("{FOLDER}/{name}.xml"));
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    assert_eq!(got.header("content-type"), "application/xml; charset=UTF-8");
    got.text()
}

fn entries(xml: &str) -> Vec<String> {
    between(xml, "<url>", "</url>").into_iter().map(str::to_owned).collect()
}

/// The path of the location of an entry.
fn path(mirrored: &Mirrored, entry: &str) -> String {
    let location = between(entry, "<loc>", "</loc>")[0].replace("&amp;", "&");
    let base = format!("http://{}", mirrored.proxy.address());
    location.strip_prefix(&base).expect("a URL of the server").to_owned()
}

#[track_caller]
fn check_bytes(entry: &str, bytes: &[u8]) {
    let hash = format!("sha-256:{}", hex::encode(digest(&SHA256, bytes)));
    let expected = (hash.as_str(), bytes.len().to_string());
    assert_eq!((attribute(entry, "hash"), attribute(entry, "length").to_owned()), expected, "{entry}");
}

/// Waits until a list satisfies a condition: a commit can be in the second after the clock.
#[track_caller]
fn wait_for(mirrored: &Mirrored, name: &str, condition: impl Fn(&str) -> bool) -> String {
    let start = clock::uptime();
    loop {
        let xml = list(mirrored, name);
        if condition(&xml) {
            return xml;
        }
        assert!(clock::uptime() - start < Duration::from_secs(60), "{xml}");
        std::thread::yield_now();
    }
}

/// The titles of the records that are not deleted, by the list of OAI-PMH.
fn titles(mirrored: &Mirrored) -> BTreeMap<String, String> {
    let xml = mirrored.get("/_mirror/x?verb=ListRecords&metadataPrefix=oai_dc").text();
    assert!(!xml.contains("<resumptionToken"), "{xml}");
    let live =
        between(&xml, "<record>", "</record>").into_iter().filter(|record| !record.contains("status="));
    let text = |record: &str, element: &str| between(record, &format!("<{element}>"), "</")[0].to_owned();
    live.map(|record| (text(record, "identifier"), text(record, "dc:title"))).collect()
}

fn delete(collection: &mut Collection, number: usize) {
    touch(collection, number, true);
}

fn touch(collection: &mut Collection, number: usize, deleted: bool) {
    collection.now_secs += 86_400;
    let now_secs = collection.now_secs;
    let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
    (entry.datestamp_secs, entry.deleted) = (now_secs, deleted);
    entry.title.push('!');
}

#[test]
fn lists_lead_from_the_source_description_to_the_bytes_of_the_records() {
    let mirrored = Mirrored::of(Collection::of(30));
    change(&mirrored.collection, |collection| delete(collection, 4));
    mirrored.harvest_again();
    let base = format!("http://{}", mirrored.proxy.address());
    let source = mirrored.get("/.well-known/resourcesync");
    assert_eq!(source.status, 200);
    let (formats, source) = (entries(&source.text()), source.text());
    assert!(source.contains("<rs:md capability=\"description\"/>"), "{source}");
    assert_eq!(path(&mirrored, &formats[0]), format!("{FOLDER}/capabilitylist.xml"));
    let capabilities = list(&mirrored, "capabilitylist");
    let up = format!("<rs:ln rel=\"up\" href=\"{base}/.well-known/resourcesync\"/>");
    assert!(capabilities.contains(&up), "{capabilities}");
    let linked: Vec<String> = entries(&capabilities).iter().map(|entry| path(&mirrored, entry)).collect();
    assert_eq!(linked, LISTS.map(|name| format!("{FOLDER}/{name}.xml")));

    wait_for(&mirrored, "changelist", |xml| xml.contains("change=\"deleted\""));
    let resources = list(&mirrored, "resourcelist");
    assert!(!resources.contains("00004"), "{resources}");
    let listed = entries(&resources);
    assert_eq!(listed.len(), 29);
    for entry in &listed {
        let got = mirrored.get(&path(&mirrored, entry));
        assert_eq!(got.status, 200, "{entry}");
        assert_eq!(got.header("content-type").split(';').next(), Some(attribute(entry, "type")));
        // A cache in between must not have an older one than the list.
        assert_eq!(got.header("cache-control"), "no-cache");
        check_bytes(entry, &got.body);
        let record = between(entry, "rel=\"describedby\" href=\"", "\"")[0].replace("&amp;", "&");
        let record = mirrored.get(record.strip_prefix(&base).expect("ours"));
        assert!(record.text().contains("<GetRecord>"), "{}", record.text());
    }
    let changes = entries(&list(&mirrored, "changelist"));
    let last = changes.last().expect("30 changes");
    assert_eq!((changes.len(), attribute(last, "change")), (30, "deleted"));
    let deleted = mirrored.get(&path(&mirrored, last));
    assert_eq!((deleted.status, deleted.header("cache-control")), (410, "no-cache"));
    // The source is not needed.
    change(&mirrored.collection, |collection| collection.is_down = true);
    assert_eq!(entries(&list(&mirrored, "resourcelist")).len(), 29);
}

#[test]
fn dumps_are_zip_files_with_the_same_bytes() {
    let mirrored = Mirrored::of(Collection::of(30));
    wait_for(&mirrored, "resourcelist", |xml| !entries(xml).is_empty());
    for (name, count) in [("resourcedump", 30), ("changedump", 30)] {
        let packages = entries(&list(&mirrored, name));
        assert_eq!(packages.len(), 1, "{packages:?}");
        let got = mirrored.get(&path(&mirrored, &packages[0]));
        let types = (got.header("content-type"), attribute(&packages[0], "type"));
        assert_eq!((got.status, got.whole, types), (200, true, ("application/zip", "application/zip")));
        let mut files = unzip(&got.body);
        let manifest = files.remove("manifest.xml").expect("a manifest");
        let manifest = String::from_utf8(manifest).expect("UTF-8");
        assert!(manifest.contains(&format!("capability=\"{name}-manifest\"")), "{manifest}");
        let listed = entries(&manifest);
        assert_eq!((listed.len(), files.len()), (count, count));
        for entry in listed {
            let bytes = files.remove(attribute(&entry, "path").trim_start_matches('/')).expect("a file");
            check_bytes(&entry, &bytes);
            assert_eq!(mirrored.get(&path(&mirrored, &entry)).body, bytes);
        }
    }
}

/// The files of a ZIP file by their names, as the zipfile of Python reads them.
fn unzip(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.zip");
    std::fs::write(&file, bytes).expect("writable");
    let code = "import sys,zipfile,json\nz=zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
                print(json.dumps({n:z.read(n).decode() for n in z.namelist()}))";
    let output = Command::new("python3").args(["-c", code]).arg(&file).output().expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files: BTreeMap<String, String> = serde_json::from_slice(&output.stdout).expect("JSON");
    files.into_iter().map(|(name, text)| (name, text.into_bytes())).collect()
}

#[test]
fn hostile_identifiers_have_a_url_and_no_file_name() {
    let mut collection = Collection::of(2);
    let entry = collection.entries[&identifier(0)].clone();
    for hostile in ["../../etc/passwd", "a/../b", "C:\\x", "a.xml", "50%25", "é?raw=marc#x", "\"&amp;'"] {
        collection.entries.insert(hostile.to_owned(), entry.clone());
    }
    let mirrored = Mirrored::of(collection);
    let listed = wait_for(&mirrored, "resourcelist", |xml| !entries(xml).is_empty());
    let listed = entries(&listed);
    assert_eq!((listed.len(), titles(&mirrored).len()), (9, 9));
    for entry in &listed {
        let got = mirrored.get(&path(&mirrored, entry));
        assert_eq!(got.status, 200, "{entry}");
        check_bytes(entry, &got.body);
    }
    let package = path(&mirrored, &entries(&list(&mirrored, "resourcedump"))[0]);
    for name in unzip(&mirrored.get(&package).body).keys().filter(|name| *name != "manifest.xml") {
        let number = name.strip_prefix("resources/").and_then(|name| name.strip_suffix(".xml"));
        assert!(number.is_some_and(|number| number.parse::<u64>().is_ok()), "{name}");
    }
}

#[test]
fn repositories_without_pages_or_without_a_mirror_have_no_lists() {
    let hidden = Mirrored::with(Collection::of(3), |mapping| mapping.records = RecordPages::Off, |_| {});
    let (source, _) = Collection::of(3).start();
    let live = Proxy::of(&source);
    for proxy in [&hidden.proxy, &live] {
        assert_eq!(entries(&proxy.get("/.well-known/resourcesync").text()), [""; 0]);
        for name in ["capabilitylist", "resourcelist", "changedump", "resourcelist-1-1-0-9", "other"] {
            let got = proxy.get(&format!("{FOLDER}/{name}.xml"));
            assert_eq!(got.status, 404, "{name}: {}", got.text());
        }
    }
    assert!(source.requests().is_empty(), "{:?}", source.requests());
    let mirrored = Mirrored::of(Collection::of(3));
    for unknown in ["/y/resourcesync/oai_dc/", "/x/resourcesync/marc/", "/_all/resourcesync/oai_dc/"] {
        let got = mirrored.get(&format!("{unknown}resourcelist.xml"));
        assert_eq!(got.status, 404, "{unknown}: {}", got.text());
    }
    let refused = post(mirrored.proxy.address(), &format!("{FOLDER}/resourcelist.xml"), "");
    assert_eq!(refused.status, 405);
}

#[test]
fn a_gap_is_a_failure_and_not_a_short_list() {
    let mut collection = Collection::of(12);
    collection.unreadable.insert(identifier(5));
    let mirrored = Mirrored::of(collection);
    assert_eq!(titles(&mirrored).len(), 11, "the mirror lacks a record");
    let refused = |got: Got| {
        assert_eq!((got.status, got.header("retry-after").is_empty()), (503, false), "{}", got.text());
        assert!(got.text().contains("missing in the mirror"), "{}", got.text());
    };
    for name in ["resourcelist", "resourcedump"] {
        refused(mirrored.get(&format!("{FOLDER}/{name}.xml")));
    }
    // Changes delete nothing that they do not name, so a copy goes on, and receives the record later.
    let changes = wait_for(&mirrored, "changelist", |xml| entries(xml).len() == 11);
    assert!(!changes.contains("00005"), "{changes}");
    for name in ["changelist", "changedump"] {
        let got = mirrored.get(&format!("{FOLDER}/{name}.xml"));
        assert_eq!((got.status, got.header("oaimend-gaps")), (200, "1"), "{name}: {}", got.text());
    }
    change(&mirrored.collection, |collection| collection.unreadable.clear());
    mirrored.harvest_again();
    let listed = wait_for(&mirrored, "resourcelist", |xml| entries(xml).len() == 12);
    assert!(listed.contains("00005"), "{listed}");
    let changes = wait_for(&mirrored, "changelist", |xml| entries(xml).len() == 12);
    assert!(entries(&changes)[11].contains("00005"), "{changes}");
    assert_eq!(mirrored.get(&format!("{FOLDER}/changelist.xml")).header("oaimend-gaps"), "");
}

/// A folder that `resync` keeps up to date.
struct Copy<'m> {
    mirrored: &'m Mirrored,
    folder: tempfile::TempDir,
}

impl Copy<'_> {
    /// Runs the client; `None` if it is not installed.
    fn sync(&self, arguments: &[&str]) -> Option<()> {
        let target = PathBuf::from(env!("CARGO_BIN_EXE_oaimend"));
        let base = format!("http://{}", self.mirrored.proxy.address());
        let list = |name: &str| format!("{base}{FOLDER}/{name}.xml");
        let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/resourcesync"))
            .arg("sync")
            .args(arguments)
            .args(["--delete", "--sitemap", &list("resourcelist"), "--changelist-uri", &list("changelist")])
            .args([&format!("{base}/x/record"), "copy"])
            .current_dir(self.folder.path())
            .env("CARGO_TARGET_DIR", target.ancestors().nth(2).expect("the program is two folders below"))
            .output()
            .expect("the script runs");
        if output.status.code() == Some(69) {
            return None;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("Traceback"), "{said}");
        Some(())
    }

    /// Compares the files with the list of OAI-PMH.
    #[track_caller]
    fn check(&self) {
        let files = std::fs::read_dir(self.folder.path().join("copy")).expect("the client made it");
        let copied: BTreeMap<String, String> = files
            .map(|file| {
                let file = file.expect("readable");
                let name = file.file_name().into_string().expect("UTF-8");
                let identifier = name.strip_suffix("?raw=oai_dc").expect("a record").replace("%3A", ":");
                let text = std::fs::read_to_string(file.path()).expect("UTF-8");
                (identifier, between(&text, "<dc:title>", "</")[0].to_owned())
            })
            .collect();
        assert_eq!(copied, titles(self.mirrored));
    }
}

/// `scripts/resourcesync install` installs the client. Without it the test is skipped, unless `OAIMEND_RESYNC=required`.
#[test]
fn resync_copies_a_mirror_exactly() {
    let is_required = std::env::var("OAIMEND_RESYNC").is_ok_and(|value| value == "required");
    let mirrored = Mirrored::of(Collection::of(40));
    let copy = Copy { mirrored: &mirrored, folder: tempfile::tempdir().expect("a folder") };
    wait_for(&mirrored, "resourcelist", |xml| entries(xml).len() == 40);
    if copy.sync(&["--baseline", "--hash", "sha-256"]).is_none() {
        assert!(!is_required, "run scripts/resourcesync install first");
        println!("skipped: scripts/resourcesync install was not run");
        return;
    }
    copy.check();
    for (changed, deleted) in [(3, 4), (5, 6), (4, 3)] {
        change(&mirrored.collection, |collection| {
            touch(collection, changed, false);
            delete(collection, deleted);
        });
        mirrored.harvest_again();
        // Records 4 and 3 change their state twice.
        let is_there = |xml: &str| {
            let changes = entries(xml);
            let state = |number: usize| {
                let number = format!("{number:05}?");
                changes
                    .iter()
                    .find(|entry| entry.contains(&number))
                    .map(|entry| attribute(entry, "change").to_owned())
            };
            state(changed).as_deref() == Some("updated") && state(deleted).as_deref() == Some("deleted")
        };
        wait_for(&mirrored, "changelist", is_there);
        assert!(copy.sync(&["--incremental"]).is_some());
        copy.check();
    }
}

#[test]
fn a_client_that_has_a_list_does_not_receive_it_again() {
    let mirrored = Mirrored::of(Collection::of(1_200));
    wait_for(&mirrored, "changelist", |xml| entries(xml).len() == 1_200);
    let index = mirrored.get(&format!("{FOLDER}/resourcelist.xml"));
    let part = between(&index.text(), "<loc>", "</loc>")[0].to_owned();
    let part = &part[part.find("/x/").expect("a path of the server")..];
    for path in [&format!("{FOLDER}/resourcelist.xml"), &format!("{FOLDER}/changelist.xml"), part] {
        let got = mirrored.get_with(path, "Accept-Encoding: gzip\r\n");
        let tag = got.header("etag");
        assert_eq!((got.status, got.header("content-encoding")), (200, "gzip"), "{path}");
        assert!(tag.starts_with("W/\"") && tag.ends_with("-gzip\""), "{path}: {tag}");
        let known = mirrored.get_with(path, &format!("If-None-Match: {tag}\r\n"));
        assert_eq!((known.status, known.body.len()), (304, 0), "{path}");
        assert!(known.header("etag").starts_with("W/\""), "{path}");
    }
    // The index of a version is made once, so its position stays.
    assert_eq!(mirrored.get(&format!("{FOLDER}/resourcelist.xml")).body, index.body);
    let dump = mirrored.get(&format!("{FOLDER}/resourcedump.xml")).text();
    let zip = between(&dump, "<loc>", "</loc>")[0];
    let zip = &zip[zip.find("/x/").expect("a path of the server")..];
    let got = mirrored.get_with(zip, "Accept-Encoding: gzip\r\n");
    assert_eq!((got.status, got.header("content-encoding")), (200, ""), "a ZIP file is compressed already");
    let tag = index.header("etag").to_owned();
    mirrored.harvest_again();
    let known =
        mirrored.get_with(&format!("{FOLDER}/resourcelist.xml"), &format!("If-None-Match: {tag}\r\n"));
    assert_eq!(known.status, 304, "no record has changed");
    change(&mirrored.collection, |collection| delete(collection, 7));
    mirrored.harvest_again();
    let path = format!("{FOLDER}/resourcelist.xml");
    let start = clock::uptime();
    loop {
        let got = mirrored.get_with(&path, &format!("If-None-Match: {tag}\r\n"));
        assert_eq!(got.status, 200, "a record has changed");
        if !got.header("etag").is_empty() && got.body != index.body {
            break;
        }
        assert!(clock::uptime() - start < Duration::from_secs(60), "{}", got.text());
    }
}
