//! The pages of the gateway in headless Chromium: layout, accessibility, keyboard, policy and meta tags.
//!
//! `tests/browser/check.mjs` does the work. The test is skipped if `scripts/browser install` was not run; its captured
//! output says so. With `OAIMEND_BROWSER=required` it fails instead. The screenshots are in
//! `target/browser/screenshots`.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use oaimend::config::{Mapping, Views};
use oaimend_mirror::settings::MirrorSettings;
use oaimend_upstream::settings::Limits;
use serde_json::{Value, json};

use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::proxy::{LIST, Proxy};

const RECORDS: usize = 30;
/// The numbers of the records with special fields.
const ARTICLE: usize = 3;
const HOSTILE: usize = 4;
const ARABIC: usize = 5;
const LONG: usize = 6;
const DELETED: usize = 7;

#[test]
fn browsers_show_the_pages() {
    let target = target_folder();
    if !target.join("browser/installed.json").exists() {
        let is_required = std::env::var("OAIMEND_BROWSER").is_ok_and(|value| value == "required");
        assert!(!is_required, "run scripts/browser install first");
        println!("skipped: scripts/browser install was not run");
        return;
    }
    let (source, _collection) = collection().start();
    let mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    let interval = Some(Duration::from_secs(30 * 86_400));
    let mirror = Some(MirrorSettings { interval, ..MirrorSettings::default() });
    let folder = tempfile::tempdir().expect("a folder");
    let view = "repository_name = \"Ferries\"\ndescription = \"Works about ferries\"\nquery = \"ferries\"\n";
    std::fs::write(folder.path().join("ferries.toml"), view).expect("a writable folder");
    let proxy = Proxy::with(|config| {
        config.search.enabled = true;
        config.repositories.add_fixed(Mapping { mirror, ..mapping });
        config.views = Views::new(folder.path().to_owned());
        assert_eq!(config.views.reload(&config.repositories.all()), []);
    });
    proxy.wait_for_harvests("x", 1);
    proxy.wait_for_results("/_search.json", (RECORDS - 1) as u64);
    let described = proxy.data().join("pages.json");
    let check = json!({
        "base": format!("http://{}", proxy.address()),
        "screenshots": target.join("browser/screenshots"),
        "pages": pages(&format!("http://{}", proxy.admin())),
    });
    std::fs::write(&described, check.to_string()).expect("a writable folder");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scripts/browser");
    let output = Command::new(script)
        .args(["check".as_ref(), described.as_os_str()])
        .env("CARGO_TARGET_DIR", &target)
        .output()
        .expect("the script runs");
    // The test harness captures this and shows it on a failure.
    print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "the pages have faults");
}

/// The folder for build results: the program is in its subfolder `debug` or `release`.
fn target_folder() -> PathBuf {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_oaimend"));
    program.ancestors().nth(2).expect("the program is two folders below").to_owned()
}

fn collection() -> Collection {
    let mut collection = Collection::of(RECORDS);
    let mut set_title = |number: usize, title: &str| {
        collection.entries.get_mut(&identifier(number)).expect("it exists").title = title.to_owned();
    };
    // The provider writes titles as they are.
    set_title(
        ARTICLE,
        "Tides of the northern ferries</dc:title><dc:creator>Berg, Anna</dc:creator><dc:creator>Holm, Lars</dc:creator>\
         <dc:type>article</dc:type><dc:date>2019-04-05</dc:date><dc:language>en</dc:language>\
         <dc:publisher>Harbour Press</dc:publisher><dc:identifier>https://doi.org/10.1234/tides.7</dc:identifier>\
         <dc:identifier>https://repository.example/items/7</dc:identifier><dc:subject>tides</dc:subject>\
         <dc:description>A study of timetables & of the water under them.</dc:description>\
         <dc:title xml:lang=\"de\">Gezeiten der Nordf\u{e4}hren",
    );
    let script = "&lt;script&gt;globalThis.hasRun = true&lt;/script&gt;";
    let image = "&lt;img src=x onerror=\"globalThis.hasRun = true\"&gt;";
    set_title(
        HOSTILE,
        &format!(
            "{script}{image}</dc:title><dc:identifier>javascript:globalThis.hasRun=true</dc:identifier>\
             <dc:identifier>data:text/html,{script}</dc:identifier><dc:creator>\" onmouseover=\"globalThis.hasRun=true</dc:creator>\
             <dc:description xml:lang=\"en&quot; onfocus=&quot;globalThis.hasRun=true\">{script}</dc:description>\
             <script xmlns=\"http://www.w3.org/1999/xhtml\">globalThis.hasRun = true</script><dc:title>{image}"
        ),
    );
    set_title(
        ARABIC,
        "\u{645}\u{62f}\u{648}\u{627}\u{62c}\u{632}\u{631} \u{627}\u{644}\u{628}\u{62d}\u{631}</dc:title>\
         <dc:creator>\u{641}\u{627}\u{637}\u{645}\u{629} \u{627}\u{644}\u{641}\u{647}\u{631}\u{64a}\u{629}</dc:creator>\
         <dc:description xml:lang=\"ar\">\u{62f}\u{631}\u{627}\u{633}\u{629} \u{641}\u{64a} (ferries) \u{627}\u{644}\u{634}\u{645}\u{627}\u{644}</dc:description>\
         <dc:title xml:lang=\"en\">Tides",
    );
    let word = "Donaudampfschifffahrt".repeat(20);
    set_title(
        LONG,
        &format!("{word}</dc:title><dc:subject>{word}</dc:subject><dc:title>{}", "long title ".repeat(60)),
    );
    for (number, work) in WORKS.into_iter().enumerate() {
        let [title, creator, year, work_type, language, description] = work;
        let fields = format!(
            "{title}</dc:title><dc:creator>{creator}</dc:creator><dc:date>{year}</dc:date><dc:type>{work_type}</dc:type>\
             <dc:language>{language}</dc:language><dc:description>{description}</dc:description>\
             <dc:rights>https://creativecommons.org/licenses/by/4.0/</dc:rights><dc:title>{title}"
        );
        set_title(FIRST_WORK + number, &fields);
    }
    collection.entries.get_mut(&identifier(DELETED)).expect("it exists").deleted = true;
    collection
}

/// The number of the first of [`WORKS`].
const FIRST_WORK: usize = 10;
/// Works that a search for ferries finds: title, creator, year, type, language, abstract.
const WORKS: [[&str; 6]; 6] = [
    [
        "Ferries and the growth of harbour towns, 1880\u{2013}1914",
        "Nordahl, Ingrid",
        "2004",
        "doctoralThesis",
        "en",
        "Steam ferries moved markets as much as people. The thesis follows twelve towns through the books of their harbours.",
    ],
    [
        "Electric ferries: two winters of battery data",
        "Okafor, Chidi",
        "2021",
        "dataset",
        "en",
        "Charge and temperature of the batteries of three ferries, every ten seconds, with the timetable of each crossing.",
    ],
    [
        "F\u{e4}hren im Eis",
        "Lindqvist, Sara",
        "1998",
        "book",
        "de",
        "Wie Ferries und F\u{e4}hren im Winter fahren: ein Handbuch f\u{fc}r Reedereien.",
    ],
    [
        "Queueing at island ferries",
        "Mac Aodha, Niamh",
        "2016",
        "article",
        "en",
        "A model of summer queues shows that one more ferry shortens the wait less than a booked place does.",
    ],
    [
        "Songs of the ferrymen",
        "Rossi, Paola",
        "2011",
        "sound",
        "it",
        "Recordings made on the last rowed ferries of the lagoon.",
    ],
    [
        "The ferry that did not return",
        "Holm, Lars",
        "2019",
        "report",
        "en",
        "Report of the inquiry, with the log of the ferry and the weather of that night.",
    ],
];

/// The pages to open. `tests/browser/check.mjs` describes the fields. `admin` is the URL of the admin listener.
fn pages(admin: &str) -> Value {
    let record = |number: usize| format!("/x/record/{}", identifier(number).replace(':', "%3A"));
    let get_record = |form: &str| {
        let identifier = identifier(HOSTILE).replace(':', "%3A");
        format!("/x{form}?verb=GetRecord&identifier={identifier}&metadataPrefix=oai_dc")
    };
    json!([
        {
            "name": "record", "path": record(ARTICLE),
            "links_to": ["https://doi.org/10.1234/tides.7", "https://repository.example/items/7"],
            "metadata": {
                "highwirePress": {
                    "title": "Tides of the northern ferries",
                    "author": ["Berg, Anna", "Holm, Lars"],
                    "publication_date": "2019/04/05",
                    "doi": "10.1234/tides.7",
                },
                "dublinCore": {
                    "creator": ["Berg, Anna", "Holm, Lars"],
                    "publisher": "Harbour Press",
                },
            },
        },
        { "name": "record-hostile", "path": record(HOSTILE) },
        { "name": "record-hostile-xml", "path": format!("{}.xml", record(HOSTILE)), "is_xml": true },
        { "name": "record-right-to-left", "path": record(ARABIC) },
        { "name": "record-long", "path": record(LONG) },
        { "name": "overview", "path": "/", "links_to": ["/x/", "/x/records/"] },
        { "name": "overview-filtered", "path": "/?q=nothing" },
        { "name": "repository", "path": "/x/", "links_to": ["/x/records/", "/x/sets/even/"] },
        { "name": "repository-unknown", "path": "/y/", "status": 404 },
        {
            "name": "search", "path": "/_search?q=ferries", "links_to": [record(ARTICLE)],
            "metadata": { "coins": { "length": 8 } },
        },
        {
            "name": "search-one", "path": "/_search?q=title:northern",
            "metadata": { "coins": {
                "length": 1,
                "0": {
                    "genre": "article", "atitle": "Tides of the northern ferries", "au": ["Berg, Anna", "Holm, Lars"],
                    "date": "2019-04-05", "pub": "Harbour Press", "language": "en",
                },
            } },
        },
        { "name": "search-pages", "path": "/_search?q=title&page=2", "links_to": ["/_search?q=title"] },
        { "name": "search-chosen", "path": "/_search?q=ferries&type=Article", "links_to": ["/_search?q=ferries"] },
        { "name": "search-hostile", "path": "/_search?q=script" },
        { "name": "search-right-to-left", "path": "/_search?q=%D8%A7%D9%84%D8%A8%D8%AD%D8%B1" },
        { "name": "search-empty", "path": "/_search", "links_to": ["/_recent"] },
        { "name": "search-nothing", "path": "/_search?q=zeppelin&year=2001", "links_to": ["/_search?q=zeppelin"] },
        { "name": "search-fault", "path": "/_search?q=nofield:x", "status": 400 },
        { "name": "recent", "path": "/_recent", "links_to": ["/x/"] },
        { "name": "browse-creators", "path": "/x/browse/creators/", "links_to": ["/x/browse/titles/"] },
        { "name": "browse-years", "path": "/x/browse/years/", "links_to": ["/_search?repository=x&year=2019"] },
        { "name": "view", "path": "/_view/ferries", "links_to": ["/_view/ferries?verb=ListSets"] },
        { "name": "months", "path": "/x/records/" },
        { "name": "list", "path": "/x/records/", "follow": "/x/records/2", "links_to": [record(ARTICLE)] },
        { "name": "sets", "path": "/x/sets/" },
        { "name": "set", "path": "/x/sets/even/" },
        { "name": "response-identify", "path": "/x?verb=Identify" },
        { "name": "response-formats", "path": "/x?verb=ListMetadataFormats" },
        { "name": "response-sets", "path": "/x?verb=ListSets" },
        { "name": "response-records", "path": LIST, "links_to": [record(ARTICLE)] },
        { "name": "response-identifiers", "path": LIST.replace("Records", "Identifiers") },
        { "name": "response-record", "path": get_record(""), "links_to": [get_record("/xml")] },
        { "name": "response-hostile-xml", "path": get_record("/xml"), "is_xml": true },
        { "name": "response-error", "path": "/x?verb=Nothing" },
        { "name": "operator-overview", "base": admin, "path": "/", "links_to": ["/-/status"] },
        { "name": "operator-repository", "base": admin, "path": "/x/", "links_to": ["/x/quarantine/"] },
        { "name": "operator-status", "base": admin, "path": "/-/status", "links_to": ["/x/"] },
        { "name": "operator-quarantine", "base": admin, "path": "/x/quarantine/" },
        { "name": "record-deleted", "path": record(DELETED), "status": 410 },
        { "name": "record-unknown", "path": "/x/record/unknown", "status": 404 },
    ])
}
