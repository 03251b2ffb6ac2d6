//! The pages of records: forms, identifiers, statuses, headers, and what operators configure.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use oaimend::config::{Config, LivePages, Mapping, RecordPages, Robots};
use oaimend_mirror::settings::MirrorSettings;
use oaimend_upstream::settings::Limits;

use crate::fixtures::collection::{Collection, FIRST_SECS, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::program::Program;
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{Got, Harvester, Source, fetch, fetch_with, post};

pub(super) const PAGE: &str = "/x/record/oai%3Ac%3A00003";
const HARVEST_INTERVAL: Duration = Duration::from_secs(30 * 86_400);

fn settings() -> MirrorSettings {
    MirrorSettings { interval: Some(HARVEST_INTERVAL), ..MirrorSettings::default() }
}

/// The mapping `x` of a mirrored repository.
pub(super) fn mapping(source: &Source) -> Mapping {
    let mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    Mapping { mirror: Some(settings()), ..mapping }
}

/// The mirror of a collection after its first harvest.
pub(super) struct Mirrored {
    pub(super) source: Source,
    pub(super) collection: Arc<Mutex<Collection>>,
    pub(super) proxy: Proxy,
}

impl Mirrored {
    pub(super) fn of(collection: Collection) -> Self {
        Self::with(collection, |_| {}, |_| {})
    }

    pub(super) fn with(
        collection: Collection,
        tune: impl FnOnce(&mut Mapping),
        configure: impl FnOnce(&mut Config),
    ) -> Self {
        let (source, collection) = collection.start();
        let mut mapping = mapping(&source);
        tune(&mut mapping);
        let proxy = Proxy::with(|config| {
            config.repositories.add_fixed(mapping);
            configure(config);
        });
        proxy.wait_for_harvests("x", 1);
        Self { source, collection, proxy }
    }

    pub(super) fn get(&self, path: &str) -> Got {
        self.proxy.get(path)
    }

    pub(super) fn get_with(&self, path: &str, headers: &str) -> Got {
        fetch_with(self.proxy.address(), path, headers)
    }

    /// Waits for another harvest.
    #[track_caller]
    pub(super) fn harvest_again(&self) {
        let harvest = self.proxy.admin_json("/-/mirror/x/harvest");
        let ended = harvest["ended"].as_u64().expect("a number");
        let requested = post(self.proxy.admin(), "/-/mirror/x/sync", "");
        assert_eq!(requested.status, 202, "{}", requested.text());
        self.proxy.wait_for_harvests("x", ended + 1);
    }
}

/// A collection whose record 3 has these elements after its title.
pub(super) fn with_fields(fields: &str) -> Collection {
    let mut collection = Collection::of(5);
    let entry = collection.entries.get_mut(&identifier(3)).expect("it exists");
    // The provider writes titles as they are.
    entry.title = format!("Title 3</dc:title>{fields}<dc:title>Another title");
    collection
}

#[track_caller]
pub(super) fn is_html(got: &Got, status: u16, text: &str) {
    assert_eq!((got.status, got.whole), (status, true), "{}", got.text());
    assert_eq!(got.header("content-type"), "text/html; charset=UTF-8");
    assert!(got.text().starts_with("<!DOCTYPE html>") && got.text().contains(text), "{text}: {}", got.text());
}

#[test]
fn record_has_three_forms() {
    let mirrored = Mirrored::of(with_fields("<dc:type>book</dc:type>"));
    is_html(&mirrored.get(PAGE), 200, "<h1 lang=\"\" dir=\"ltr\">Title 3</h1>");
    // The address of the source is for operators only.
    assert!(!mirrored.get(PAGE).text().contains("<dd><a href=\"http://127.0.0.1"));
    is_html(&mirrored.get(PAGE), 200, " – oaimend</title>");
    is_html(&mirrored.get(PAGE), 200, "A collection");
    let xml = mirrored.get(&format!("{PAGE}.xml"));
    assert_eq!((xml.status, xml.header("content-type")), (200, "application/xml; charset=UTF-8"));
    let start = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<record xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
                 xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><header>";
    assert!(xml.text().starts_with(start) && xml.text().contains(">Title 3<"), "{}", xml.text());
    let json = mirrored.get(&format!("{PAGE}.json"));
    assert_eq!((json.status, json.header("content-type")), (200, "application/ld+json"));
    let value: serde_json::Value = serde_json::from_slice(&json.body).expect("it is JSON");
    assert_eq!(value["@type"], "Book", "{value}");
    for (accept, form) in [
        ("application/xml", &xml),
        ("text/xml;q=0.9, text/html;q=0.1", &xml),
        ("application/ld+json", &json),
        ("application/json", &json),
    ] {
        let got = mirrored.get_with(PAGE, &format!("Accept: {accept}\r\n"));
        assert_eq!((got.status, got.text()), (200, form.text()), "{accept}");
    }
    let got = mirrored.get_with(&format!("{PAGE}.xml"), "Accept: text/html\r\n");
    assert_eq!(got.text(), xml.text(), "the ending goes first");
}

#[test]
fn pages_of_mirrored_records_cause_no_request_to_the_source() {
    let mirrored = Mirrored::of(Collection::of(30));
    let before = mirrored.source.requests().len();
    for number in 0..40 {
        let page = format!("/x/record/{}", identifier(number).replace(':', "%3A"));
        for path in [page.clone(), format!("{page}.xml"), format!("{page}.json"), format!("{page}?format=y")]
        {
            let expected = if number < 30 && !path.contains('?') { 200 } else { 404 };
            assert_eq!(mirrored.get(&path).status, expected, "{path}");
        }
    }
    assert_eq!(mirrored.source.requests().len(), before);
    change(&mirrored.collection, |collection| collection.is_down = true);
    is_html(&mirrored.get(PAGE), 200, "Title 3");
}

#[test]
fn identifiers_contain_any_character() {
    let long = format!("oai:{}", "x/é".repeat(665)) + "1";
    let identifiers = [
        "a/b",
        "a//b/",
        "a b",
        "50%",
        "%2F",
        "c#d",
        "e?f=g",
        "h&i",
        "ü漢",
        "j.xml",
        "k+l;m=n,o",
        "<p>\"'",
        &long,
    ];
    let mut collection = Collection::of(1);
    let entry = collection.entries.values().next().cloned().expect("a record");
    for identifier in identifiers {
        // The provider writes identifiers as they are.
        let written = identifier.replace('&', "&amp;").replace('<', "&lt;");
        let mut entry = entry.clone();
        entry.title = format!("Title of {written}");
        collection.entries.insert(written, entry);
    }
    let mirrored = Mirrored::of(collection);
    for identifier in identifiers {
        let encoded: String = identifier.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let written = identifier.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let text = format!("Title of {}", written.replace('"', "&quot;"));
        is_html(&mirrored.get(&format!("/x/record/{encoded}")), 200, &text);
        let got = mirrored.get(&format!("/x/record/{encoded}.xml"));
        assert_eq!(got.status, 200, "{identifier}");
    }
    for (path, title) in [
        ("/x/record/a/b", "Title of a/b"),
        ("/x/record/j.xml", "Title of j.xml"),
        ("/x/record/j%2Exml", "Title of j.xml"),
        ("/x/record/%252F", "Title of %2F"),
        ("/x/record/ü漢", "Title of ü漢"),
    ] {
        is_html(&mirrored.get(path), 200, title);
    }
    for path in
        ["/x/record/a%252Fb", "/x/record/A/b", "/x/record/%2F", "/x/record/%FF", "/x/record/", "/x/record"]
    {
        assert_eq!(mirrored.get(path).status, 404, "{path}");
    }
}

#[test]
fn deleted_and_unknown_records_have_their_status() {
    let mut collection = Collection::of(5);
    let entry = collection.entries.get_mut(&identifier(3)).expect("it exists");
    (entry.deleted, entry.datestamp_secs) = (true, FIRST_SECS);
    let mirrored = Mirrored::of(collection);
    is_html(&mirrored.get(PAGE), 410, "<time datetime=\"2020-01-01T00:00:00Z\">");
    is_html(&mirrored.get(&format!("{PAGE}?format=oai_dc")), 410, "was deleted");
    is_html(&mirrored.get("/x/record/unknown"), 404, "<h1>No such record</h1>");
    is_html(&mirrored.get("/x/record/oai%3Ac%3A00002?format=marc21"), 404, "<h1>No such record</h1>");
    for (path, status, text) in [
        (format!("{PAGE}.xml"), 410, "the record was deleted\n"),
        ("/x/record/unknown.json".to_owned(), 404, "no such record\n"),
    ] {
        let got = mirrored.get(&path);
        assert_eq!((got.status, got.text().as_str()), (status, text), "{path}");
    }
}

#[test]
fn incomplete_mirror_is_unavailable() {
    for fails_at in ["verb=Identify", "verb=List", "Record"] {
        let mut collection = Collection::of(25);
        collection.fails_at = Some(fails_at.to_owned());
        let mirrored = Mirrored::of(collection);
        for path in ["/x/record/oai%3Ac%3A00001", "/x/record/unknown"] {
            let got = mirrored.get(path);
            is_html(&got, 503, "<h1>Not harvested yet</h1>");
            assert_eq!(
                (got.header("retry-after"), got.header("cache-control")),
                ("300", "no-store"),
                "{fails_at}"
            );
        }
        let got = mirrored.get("/x/record/unknown.xml");
        assert_eq!((got.status, got.text().as_str()), (503, "Not harvested yet\n"), "{fails_at}");
    }
}

#[test]
fn damaged_record_is_unavailable() {
    let Mirrored { source, proxy, .. } = Mirrored::of(Collection::of(5));
    let folder = proxy.data().join("mirror");
    let proxy = proxy.restarted(|config| {
        let files = std::fs::read_dir(&folder).expect("readable").map(|file| file.expect("readable").path());
        for log in files.filter(|path| path.extension().is_some_and(|extension| extension == "log")) {
            let mut bytes = std::fs::read(&log).expect("readable");
            let start = bytes.len() / 2;
            bytes.iter_mut().skip(start).for_each(|byte| *byte ^= 0x55);
            std::fs::write(&log, bytes).expect("writable");
        }
        config.repositories.add_fixed(mapping(&source));
    });
    let got = proxy.get(PAGE);
    is_html(&got, 503, "<h1>Record not available now</h1>");
    assert_eq!(got.header("retry-after"), "600");
    assert_eq!(proxy.get("/x/record/unknown").status, 404);
}

#[test]
fn removed_repository_is_gone() {
    let Mirrored { source, proxy, .. } = Mirrored::of(Collection::of(5));
    let got = proxy.get("/y/record/1");
    is_html(&got, 404, "<h1>No such repository</h1>");
    let proxy = proxy.restarted(|_| {});
    is_html(&proxy.get(PAGE), 410, "<h1>Repository removed</h1>");
    assert_eq!(proxy.get(&format!("{PAGE}.xml")).text(), "Repository removed\n");
    let proxy = proxy.restarted(|config| {
        config.repositories.add_fixed(Mapping { mirror: None, ..mapping(&source) });
    });
    is_html(&proxy.get(PAGE), 200, "Title 3");
    let proxy = proxy.restarted(|config| {
        let mapping = Mapping { mirror: None, live_pages: LivePages::Off, ..mapping(&source) };
        config.repositories.add_fixed(mapping);
    });
    is_html(&proxy.get(PAGE), 410, "<h1>Repository removed</h1>");
}

#[test]
fn record_pages_can_lead_to_the_source_or_be_off() {
    let link = |mapping: &mut Mapping| mapping.records = RecordPages::Link;
    let fields = "<dc:identifier>https://e.org/a?b=1&amp;c</dc:identifier>";
    let mirrored = Mirrored::with(with_fields(fields), link, |_| {});
    let got = mirrored.get(PAGE);
    assert_eq!((got.status, got.header("location")), (302, "https://e.org/a?b=1&c"), "{}", got.text());
    is_html(&mirrored.get("/x/record/oai%3Ac%3A00002"), 200, "Title 2");
    is_html(&mirrored.get(&format!("{PAGE}?format=oai_dc")), 200, "Title 3");
    assert_eq!(mirrored.get(&format!("{PAGE}.xml")).status, 200);
    let fields =
        "<dc:identifier>javascript:alert(1)</dc:identifier><dc:identifier>data:text/html,x</dc:identifier>";
    let mirrored = Mirrored::with(with_fields(fields), link, |_| {});
    is_html(&mirrored.get(PAGE), 200, "Title 3");
    let mirrored = Mirrored::with(Collection::of(5), |mapping| mapping.records = RecordPages::Off, |_| {});
    is_html(&mirrored.get(PAGE), 404, "<h1>No record pages</h1>");
    assert_eq!(mirrored.get(&format!("{PAGE}.xml")).status, 404);
}

#[test]
fn page_headers() {
    let fields = "<dc:identifier>doi:10.1000/1</dc:identifier>";
    let mirrored = Mirrored::of(with_fields(fields));
    let base = format!("http://{}{PAGE}", mirrored.proxy.address());
    for path in
        [PAGE.to_owned(), format!("{PAGE}.xml"), format!("{PAGE}.json"), "/x/record/unknown".to_owned()]
    {
        let got = mirrored.get(&path);
        let policy = got.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("script"), "{path}: {policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "strict-origin-when-cross-origin"),
            ("vary", "Accept, Accept-Encoding"),
        ] {
            assert_eq!(got.header(name), value, "{path}");
        }
        let seconds = if got.status == 200 { 300 } else { 60 };
        assert_eq!(got.header("cache-control"), format!("public, max-age={seconds}"), "{path}");
    }
    let got = mirrored.get(PAGE);
    for link in [
        "<https://doi.org/10.1000/1>; rel=\"cite-as\"".to_owned(),
        format!("<{base}.xml>; rel=\"describedby\"; type=\"application/xml\""),
        format!("<{base}.json>; rel=\"describedby\"; type=\"application/ld+json\""),
    ] {
        assert!(got.header("link").split(", ").any(|found| found == link), "{link}: {}", got.header("link"));
    }
    let head = format!("HEAD {PAGE} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n");
    let mut harvester = Harvester::ask(mirrored.proxy.address(), &head);
    let read = harvester.head();
    assert_eq!((read.status, read.header("content-length")), (200, ""), "{read:?}");
    harvester.again(&format!("GET {PAGE} HTTP/1.1\r\nHost: x\r\n\r\n"));
    let second = harvester.whole_body();
    assert_eq!((second.text(), second.header("etag")), (got.text(), got.header("etag")));
}

#[test]
fn unchanged_page_is_not_sent_again() {
    let public_url = |config: &mut Config| config.public_url = Some("http://p.example".to_owned());
    let mirrored = Mirrored::with(Collection::of(5), |_| {}, public_url);
    let first = mirrored.get(PAGE);
    let (tag, modified) = (first.header("etag"), first.header("last-modified"));
    assert!(tag.starts_with('"') && tag.ends_with('"') && modified.ends_with(" GMT"), "{first:?}");
    assert_eq!(mirrored.get(PAGE).header("etag"), tag);
    let other_pages = [format!("{PAGE}.xml"), format!("{PAGE}.json"), PAGE.replace('3', "2")];
    for path in &other_pages {
        assert_ne!(mirrored.get(path).header("etag"), tag, "{path}");
    }
    let request = |header: &str| format!("GET {PAGE} HTTP/1.1\r\nHost: x\r\n{header}\r\n");
    let mut harvester =
        Harvester::ask(mirrored.proxy.address(), &request(&format!("If-None-Match: {tag}\r\n")));
    let unchanged = harvester.head();
    assert_eq!((unchanged.status, unchanged.header("etag")), (304, tag), "{unchanged:?}");
    assert_eq!(unchanged.header("cache-control"), first.header("cache-control"));
    for header in ["If-None-Match: \"other\"\r\n".to_owned(), String::new()] {
        harvester.again(&request(&header));
        assert_eq!(harvester.whole_body().text(), first.text(), "{header}");
    }
    harvester.again(&request(&format!("If-Modified-Since: {modified}\r\n")));
    assert_eq!(harvester.head().status, 304);
    let old = "If-Modified-Since: Wed, 01 Jan 2020 00:00:00 GMT\r\n";
    assert_eq!(mirrored.get_with(PAGE, old).status, 200);
    let tag = tag.to_owned();
    let Mirrored { source, proxy, .. } = mirrored;
    let proxy = proxy.restarted(|config| {
        config.repositories.add_fixed(mapping(&source));
        public_url(config);
    });
    assert_eq!(proxy.get(PAGE).header("etag"), tag, "a restart changes nothing");
    let proxy = proxy.restarted(|config| {
        config.repositories.add_fixed(mapping(&source));
        public_url(config);
        config.gateway.title = "Another title".to_owned();
    });
    let got = proxy.get(PAGE);
    assert_ne!(got.header("etag"), tag);
    is_html(&got, 200, " – Another title</title>");
}

#[test]
fn page_shows_the_repairs_of_the_record() {
    let none = "Nothing was repaired. The record is as its source sent it.";
    let mirrored = Mirrored::of(with_fields("<dc:creator>Smith & Sons</dc:creator>"));
    let broken = mirrored.get(PAGE);
    let repair = "<ol><li><b>bare-ampersand</b><p>Writes";
    is_html(&broken, 200, repair);
    is_html(&broken, 200, "<dd><code class=\"del\" dir=\"auto\">&amp;</code></dd>");
    is_html(&broken, 200, "<dd><code class=\"ins\" dir=\"auto\">&amp;amp;</code></dd>");
    is_html(&mirrored.get("/x/record/oai%3Ac%3A00002"), 200, none);
    // The source corrects the record, which is the same after the repair.
    change(&mirrored.collection, |collection| {
        let entry = collection.entries.get_mut(&identifier(3)).expect("it exists");
        entry.title = entry.title.replace('&', "&amp;");
        entry.datestamp_secs = collection.now_secs;
    });
    mirrored.harvest_again();
    let tag = format!("If-None-Match: {}\r\n", broken.header("etag"));
    is_html(&mirrored.get_with(PAGE, &tag), 200, none);
}

#[test]
fn changed_record_has_another_tag() {
    let mirrored = Mirrored::of(Collection::of(5));
    let before = mirrored.get(PAGE);
    change(&mirrored.collection, |collection| {
        let now_secs = collection.now_secs + 86_400;
        let entry = collection.entries.get_mut(&identifier(3)).expect("it exists");
        (entry.datestamp_secs, entry.title) = (now_secs, "Changed".to_owned());
        collection.now_secs = now_secs;
    });
    mirrored.harvest_again();
    let tag = format!("If-None-Match: {}\r\n", before.header("etag"));
    let after = mirrored.get_with(PAGE, &tag);
    is_html(&after, 200, "Changed");
    assert_ne!(after.header("etag"), before.header("etag"));
}

#[test]
fn pages_are_compressed_for_clients_that_accept_it() {
    let mirrored = Mirrored::of(Collection::of(5));
    let plain = mirrored.get(PAGE);
    assert_eq!(plain.header("content-length"), plain.body.len().to_string());
    let got = mirrored.get_with(PAGE, "Accept-Encoding: gzip\r\n");
    assert_eq!((got.header("content-encoding"), got.header("vary")), ("gzip", "Accept, Accept-Encoding"));
    let mut text = String::new();
    let read = std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&got.body[..]), &mut text);
    assert_eq!((read.ok(), &text), (Some(text.len()), &plain.text()));
    let marked = plain.header("etag").trim_end_matches('"').to_owned() + "-gzip\"";
    assert_eq!(got.header("etag"), marked);
    for tag in [plain.header("etag"), got.header("etag")] {
        let headers = format!("Accept-Encoding: gzip\r\nIf-None-Match: {tag}\r\n");
        let request = format!("GET {PAGE} HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        let unchanged = Harvester::ask(mirrored.proxy.address(), &request).head();
        assert_eq!((unchanged.status, unchanged.header("etag")), (304, marked.as_str()), "{tag}");
    }
    let old = format!("GET {PAGE} HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
    let old = Harvester::ask(mirrored.proxy.address(), &old).rest();
    assert_eq!((old.text(), old.header("transfer-encoding")), (plain.text(), ""));
}

#[test]
fn host_header_has_no_influence() {
    let mirrored = Mirrored::of(Collection::of(5));
    let page = mirrored.get(PAGE);
    let address = mirrored.proxy.address();
    assert!(page.text().contains(&format!("<link rel=\"canonical\" href=\"http://{address}{PAGE}\">")));
    for head in [
        format!("GET {PAGE} HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: evil.example\r\n"),
        format!("GET http://{address}{PAGE} HTTP/1.1\r\nHost: evil.example\r\n"),
    ] {
        let got = Harvester::ask(address, &format!("{head}Connection: close\r\n\r\n")).rest();
        assert_eq!((got.text(), got.header("link")), (page.text(), page.header("link")), "{head}");
    }
    let foreign =
        format!("GET http://evil.example{PAGE} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    assert_eq!(Harvester::ask(address, &foreign).rest().status, 403);
    assert_eq!(post(address, PAGE, "").header("allow"), "GET, HEAD");
}

/// The paths of the style sheets of a page.
fn style_sheets(page: &Got) -> Vec<String> {
    let text = page.text();
    let links = text.split("<link rel=\"stylesheet\" href=\"").skip(1);
    links.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

#[test]
fn style_sheets_are_cached_for_long() {
    let mirrored = Mirrored::of(Collection::of(5));
    let paths = style_sheets(&mirrored.get(PAGE));
    let [path] = paths.as_slice() else { panic!("{paths:?}") };
    let got = mirrored.get(path);
    assert_eq!((got.status, got.header("content-type")), (200, "text/css; charset=UTF-8"));
    assert_eq!(got.header("cache-control"), "public, max-age=31536000, immutable");
    assert!(got.text().contains("prefers-color-scheme"), "{}", got.text());
    let old = mirrored.get("/-/style-0123456789abcdef.css");
    assert_eq!((old.status, old.text(), old.header("cache-control")), (200, got.text(), "no-cache"));
    assert_eq!(mirrored.get("/-/theme-1.css").status, 404);
}

#[test]
fn operators_configure_the_pages() {
    let (source, _collection) = Collection::of(5).start();
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("writable");
    let settings =
        "[gateway]\ntitle = \"Dunes & cliffs\"\ncontact = \"a@example.org\"\ntheme_css = \"theme.css\"\n";
    std::fs::create_dir(folder.path().join("mappings")).expect("a folder");
    write("theme.css", "h1 { color: teal }");
    write("oaimend.toml", settings);
    write("mappings/x.toml", &format!("base_url = \"{}\"\n[mirror]\n", source.base_url()));
    let mut program = Program::start(folder.path(), &["--mappings", "mappings"]);
    program.line("harvest of the mirror");
    let page = || fetch(program.address(), PAGE);
    is_html(&page(), 200, "<title>Title 3 – Dunes &amp; cliffs</title>");
    is_html(&page(), 200, "<a href=\"mailto:a@example.org\">");
    let theme = || {
        let paths = style_sheets(&page());
        assert_eq!(paths.len(), 2, "{paths:?}");
        fetch(program.address(), &paths[1]).text()
    };
    assert_eq!(theme(), "h1 { color: teal }");
    let tag = page().header("etag").to_owned();
    write("theme.css", "h1 { color: maroon }");
    program.signal("-HUP");
    program.line("oaimend.toml read again");
    let paths = style_sheets(&fetch(program.address(), PAGE));
    assert_eq!(fetch(program.address(), &paths[1]).text(), "h1 { color: maroon }");
    assert_ne!(fetch(program.address(), PAGE).header("etag"), tag);
    write("oaimend.toml", &settings.replace("[gateway]", "[gateway]\nenabled = false"));
    program.signal("-HUP");
    program.line("oaimend.toml read again");
    assert_eq!(fetch(program.address(), PAGE).status, 404);
}

#[test]
fn page_is_one_log_line_and_a_metric() {
    let (source, _collection) = Collection::of(5).start();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("a folder");
    let mapping = format!("base_url = \"{}\"\n[mirror]\n", source.base_url());
    std::fs::write(folder.path().join("mappings/x.toml"), mapping).expect("writable");
    let mut program = Program::start(folder.path(), &["--mappings", "mappings"]);
    program.line("harvest of the mirror");
    for (path, status, outcome) in [(PAGE, 200, "complete"), ("/x/record/unknown", 404, "refused")] {
        assert_eq!(fetch(program.address(), path).status, status);
        let line = program.line("page");
        let found = (&line["repo"], &line["verb"], &line["status"], &line["outcome"], &line["request"]);
        let line = serde_json::json!([found.0, found.1, found.2, found.3, found.4]);
        assert_eq!(line, serde_json::json!(["x", "record-page", status, outcome, path]));
    }
}

#[test]
fn pages_count_in_the_metrics_of_their_repository_only() {
    let mirrored = Mirrored::of(Collection::of(5));
    for path in [PAGE, "/x/record/unknown", "/unknown/record/1"] {
        mirrored.get(path);
    }
    let metrics = fetch(mirrored.proxy.admin(), "/-/metrics").text();
    for outcome in ["complete", "refused"] {
        let line = format!(
            "oaimend_requests_total{{outcome=\"{outcome}\",repository=\"x\",verb=\"record-page\"}} 1"
        );
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    assert!(!metrics.contains("repository=\"unknown\""), "{metrics}");
}

#[test]
fn quotas_apply_to_pages() {
    let mirrored = Mirrored::with(
        Collection::of(5),
        |_| {},
        |config| {
            config.clients.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
            config.clients.crawlers.quotas.pages.each.rate_per_minute = std::num::NonZeroU32::new(1);
        },
    );
    let headers = "X-Forwarded-For: 192.0.2.1\r\nUser-Agent: Googlebot/2.1\r\n";
    let statuses: Vec<u16> = (0..90).map(|_| mirrored.get_with(PAGE, headers).status).collect();
    assert!(statuses.contains(&200) && statuses.ends_with(&[503]), "{statuses:?}");
    let got = mirrored.get_with("/x?verb=Identify", headers);
    assert_eq!(got.status, 200, "requests to repositories have a quota of their own");
    is_html(&mirrored.get(PAGE), 200, "Title 3");
}

#[test]
fn robots_are_told_what_the_operator_allows() {
    let proxy = Proxy::with(|config| config.gateway.robots = Robots::Deny);
    assert_eq!(proxy.get("/robots.txt").text(), "User-agent: *\nAllow: /*?verb=\nDisallow: /\n");
}
