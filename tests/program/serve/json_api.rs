//! The JSON API: all kinds of repositories, cursors, faults, and real clients.
//!
//! The test with real clients needs `scripts/api install`. Without it the test is skipped, and its output says so; with
//! `OAIMEND_API=required` it fails instead.

use super::gateway::Mirrored;
use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{Got, Harvester, Reply, Source, fetch, fetch_with, post};
use oaimend::config::{Config, CorsOrigins, Mapping, RecordPages, ServeFrom, Views};
use oaimend_store::{TokenKey, TokenUse};
use oaimend_upstream::settings::Limits;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::Command;

const RECORDS: &str = "/_api/v1/records?repository=x";

#[track_caller]
fn read(got: &Got) -> Value {
    assert_eq!((got.status, got.header("content-type")), (200, "application/json"), "{}", got.text());
    serde_json::from_slice(&got.body).expect("JSON")
}

/// The detail of a problem.
#[track_caller]
fn problem(got: &Got, status: u16) -> String {
    assert_eq!(
        (got.status, got.header("content-type")),
        (status, "application/problem+json"),
        "{}",
        got.text()
    );
    let problem: Value = serde_json::from_slice(&got.body).expect("JSON");
    assert_eq!(problem["status"], json!(status), "{problem}");
    assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()), "{problem}");
    problem["detail"].as_str().expect("a detail").to_owned()
}

/// The identifiers of all pages, and the number of pages.
#[track_caller]
fn harvest(address: SocketAddr, path: &str) -> (Vec<String>, usize) {
    let (mut identifiers, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = read(&fetch(address, &format!("{path}{cursor}")));
        let records = page["records"].as_array().expect("a list");
        identifiers
            .extend(records.iter().map(|record| record["identifier"].as_str().expect("a text").to_owned()));
        pages += 1;
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (identifiers, pages),
        }
    }
}

fn numbered(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers.map(identifier).collect()
}

/// The mirror of a collection, which alone answers.
fn of_mirror(collection: Collection, configure: impl FnOnce(&mut Config)) -> Mirrored {
    Mirrored::with(collection, |mapping| mapping.serve = ServeFrom::Mirror, configure)
}

#[test]
fn a_mirrored_repository_is_listed_in_pages_of_any_length() {
    let mirrored = of_mirror(Collection::of(250), |_| {});
    let address = mirrored.proxy.address();
    for (limit, pages) in [("", 3), ("&limit=250", 3), ("&limit=7", 36), ("&limit=249", 3)] {
        let (identifiers, count) = harvest(address, &format!("{RECORDS}{limit}"));
        assert_eq!((identifiers, count), (numbered(0..250), pages), "{limit}");
    }
    let page = read(&mirrored.get(&format!("{RECORDS}&limit=1&set=even")));
    assert_eq!(page["completeListSize"], json!(125));
    let record = &page["records"][0];
    assert_eq!((&record["deleted"], &record["sets"]), (&json!(false), &json!(["even"])), "{record}");
    let metadata = record["metadata"].as_str().expect("XML");
    assert!(metadata.starts_with("<oai_dc:dc ") && metadata.contains("Title 0"), "{metadata}");
    let sparse = read(&mirrored.get(&format!("{RECORDS}&limit=1&fields=identifier,dublinCore")));
    assert_eq!(
        sparse["records"][0],
        json!({"identifier": identifier(0), "dublinCore": {"title": ["Title 0"]}})
    );
    let (headers, _) = harvest(address, &format!("{RECORDS}&fields=identifier"));
    assert_eq!(headers, numbered(0..250));
    let none = read(&mirrored.get(&format!("{RECORDS}&from=1990-01-01&until=1990-01-02T00:00:00Z")));
    assert_eq!((&none["records"], &none["next"]), (&json!([]), &Value::Null));
}

#[test]
fn a_list_that_is_read_again_is_the_same_until_it_changes() {
    let mirrored = of_mirror(Collection::of(250), |_| {});
    let list = |parameters: &str| {
        let (mut records, mut sizes, mut cursor) = (Vec::new(), Vec::new(), String::new());
        loop {
            let page = read(&mirrored.get(&format!("{RECORDS}{parameters}{cursor}")));
            records.extend(page["records"].as_array().expect("a list").iter().cloned());
            sizes.push((page["completeListSize"].as_u64(), page["records"].as_array().map(Vec::len)));
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return (records, sizes),
            }
        }
    };
    let lists = ["", "&fields=identifier,dublinCore", "&fields=metadata", "&set=even", "&limit=30"];
    let first: Vec<_> = lists.iter().map(|parameters| list(parameters)).collect();
    for (parameters, first) in lists.iter().zip(&first) {
        assert_eq!(&list(parameters), first, "{parameters}");
    }
    let (whole, sparse, small) = (&first[0].0, &first[1].0, &first[4].0);
    assert!(whole.len() == 250 && whole == small, "{} records", whole.len());
    assert!(sparse.iter().all(|record| record["metadata"].is_null() && record["dublinCore"].is_object()));
    change(&mirrored.collection, |collection| {
        let now_secs = collection.now_secs;
        let entry = collection.entries.get_mut(&identifier(7)).expect("it exists");
        (entry.title, entry.datestamp_secs) = ("New".to_owned(), now_secs);
    });
    mirrored.harvest_again();
    let (changed, _) = list("&fields=identifier,dublinCore");
    let changed: Vec<_> = changed.iter().filter(|record| !sparse.contains(record)).collect();
    let expected = json!({"identifier": identifier(7), "dublinCore": {"title": ["New"]}});
    assert_eq!(changed, [&expected]);
}

#[test]
fn changes_during_a_list_lose_nothing() {
    let mirrored = of_mirror(Collection::of(30), |_| {});
    let first = read(&mirrored.get(&format!("{RECORDS}&limit=4")));
    change(&mirrored.collection, |collection| {
        for number in [0, 9] {
            let now_secs = collection.now_secs;
            let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
            (entry.title, entry.datestamp_secs) = ("New".to_owned(), now_secs);
        }
    });
    mirrored.harvest_again();
    let next = first["next"].as_str().expect("a cursor");
    let (rest, _) = harvest_from(mirrored.proxy.address(), &format!("{RECORDS}&limit=4"), next);
    for number in 4..30 {
        // Record 9 is in a later list: its change is after the responseDate of this one.
        assert!(number == 9 || rest.contains(&identifier(number)), "{number}: {rest:?}");
    }
    let from = first["responseDate"].as_str().expect("a date");
    let (changed, _) = harvest(mirrored.proxy.address(), &format!("{RECORDS}&from={from}"));
    assert!(changed.contains(&identifier(0)) && changed.contains(&identifier(9)), "{changed:?}");
}

fn harvest_from(address: SocketAddr, path: &str, cursor: &str) -> (Vec<String>, usize) {
    let page = read(&fetch(address, &format!("{path}&cursor={cursor}")));
    let mut identifiers: Vec<String> = page["records"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|r| Some(r["identifier"].as_str()?.to_owned()))
        .collect();
    match page["next"].as_str() {
        Some(next) => {
            let (rest, pages) = harvest_from(address, path, next);
            identifiers.extend(rest);
            (identifiers, pages + 1)
        }
        None => (identifiers, 1),
    }
}

#[test]
fn every_kind_of_repository_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("some.toml"), "query = \"title\"\n").expect("writable");
    let (live, _) = Collection::of(25).start();
    let mirrored = of_mirror(Collection::of(25), |config| {
        config.map("live", &live.base_url()).expect("a legal mapping");
        config.views = Views::new(folder.path().to_owned());
        assert_eq!(config.views.reload(&config.repositories.all()), []);
    });
    mirrored.proxy.wait_for_results("/_search.json?q=title", 25);
    let address = mirrored.proxy.address();
    let listed = read(&mirrored.get("/_api/v1/repositories"));
    let ids: Vec<_> = listed["repositories"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|r| (r["id"].clone(), r["kind"].clone()))
        .collect();
    let expected = [
        ("_all", "all"),
        ("_federation", "federation"),
        ("_view/some", "view"),
        ("live", "live"),
        ("x", "mirrored"),
    ];
    assert_eq!(ids, expected.map(|(id, kind)| (json!(id), json!(kind))));
    let second = read(&mirrored.get("/_api/v1/repositories?limit=2"));
    let cursor = second["next"].as_str().expect("a cursor");
    let third = read(&mirrored.get(&format!("/_api/v1/repositories?limit=3&cursor={cursor}")));
    assert_eq!((&third["repositories"][0]["id"], &third["next"]), (&json!("_view/some"), &Value::Null));
    for (id, kind) in expected {
        let encoded = id.replace('/', "%2F");
        // The source orders a page as it wants, and the members of the federation repeat records.
        for limit in ["", "&limit=3", "&limit=10"] {
            let path = format!("/_api/v1/records?repository={encoded}{limit}");
            let (mut found, _) = harvest(address, &path);
            found.sort();
            found.dedup();
            assert_eq!(found, numbered(0..25), "{path}");
        }
        let searched = mirrored.get(&format!("/_api/v1/search?repository={encoded}&limit=1"));
        if id == "x" {
            assert_eq!(read(&searched)["total"], json!(25));
        } else {
            assert!(problem(&searched, 400).contains("is not searched"), "{id}");
        }
        let described = read(&mirrored.get(&format!("/_api/v1/repositories/{encoded}")));
        assert_eq!((&described["id"], &described["kind"]), (&json!(id), &json!(kind)), "{described}");
        assert!(
            described["granularity"].as_str().is_some_and(|text| text.starts_with("YYYY")),
            "{described}"
        );
        let formats = read(&mirrored.get(&format!("/_api/v1/formats?repository={encoded}")));
        assert!(formats["formats"].as_array().is_some_and(|all| all.iter().any(|f| f["prefix"] == "oai_dc")));
        let record = format!("/_api/v1/record?repository={encoded}&identifier={}", identifier(3));
        assert_eq!(read(&mirrored.get(&record))["identifier"], json!(identifier(3)), "{id}");
        let unknown = mirrored.get(&format!("/_api/v1/record?repository={encoded}&identifier=oai:c:none"));
        problem(&unknown, 404);
        // The source of the live repository has every format.
        if id != "live" && id != "_federation" {
            problem(&mirrored.get(&format!("{record}&prefix=none")), 404);
        }
    }
    let sets = read(&mirrored.get("/_api/v1/sets?repository=x&limit=1"));
    assert_eq!(sets["sets"].as_array().map(Vec::len), Some(1));
    let next = sets["next"].as_str().expect("a cursor");
    let rest = read(&mirrored.get(&format!("/_api/v1/sets?repository=x&cursor={next}")));
    assert_eq!(rest["next"], Value::Null, "{rest}");
}

#[test]
fn a_search_finds_what_the_page_of_results_has() {
    let mirrored = Mirrored::of(Collection::of(45));
    mirrored.proxy.wait_for_results("/_search.json?q=title", 45);
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = read(&mirrored.get(&format!("/_api/v1/search?q=title&limit=20{cursor}")));
        assert_eq!(page["total"], json!(45));
        found.extend(page["items"].as_array().expect("a list").iter().map(|item| item["identifier"].clone()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let identifiers: std::collections::BTreeSet<String> = found.iter().map(Value::to_string).collect();
    assert_eq!((found.len(), identifiers.len()), (45, 45));
    // A cursor continues its own search only.
    let other = mirrored.get(&format!("/_api/v1/search?q=other{cursor}"));
    problem(&other, 404);
    let json = read(&mirrored.get("/_search.json?q=title"));
    let first = read(&mirrored.get("/_api/v1/search?q=title"));
    for key in ["identifier", "repository", "url", "title", "changed"] {
        assert_eq!(first["items"][0][key], json["items"][0][key], "{key}");
    }
    let described = read(&mirrored.get("/_api/v1/openapi.json"));
    let parameters = described["paths"]["/_api/v1/search"]["get"]["parameters"].as_array().expect("a list");
    let limit = parameters.iter().find(|parameter| parameter["name"] == "limit").expect("it is described");
    assert_eq!(json!(first["items"].as_array().map(Vec::len)), limit["schema"]["default"]);
    let got = mirrored.get("/_api/v1/search?q=title");
    let known =
        mirrored.get_with("/_api/v1/search?q=title", &format!("If-None-Match: {}\r\n", got.header("etag")));
    assert_eq!((known.status, known.body.len()), (304, 0));
}

#[test]
fn a_repository_without_record_pages_is_not_searched() {
    let (source, collection) = Collection::of(3).start();
    let visible = Mapping::new("y", &source.base_url(), &Limits::default()).expect("a legal mapping");
    let visible = Mapping { mirror: super::gateway::mapping(&source).mirror, ..visible };
    let mirrored = Mirrored::with(
        Collection::of(5),
        |mapping| mapping.records = RecordPages::Off,
        |config| config.repositories.add_fixed(visible),
    );
    mirrored.proxy.wait_for_harvests("y", 1);
    change(&collection, |collection| {
        let now_secs = collection.now_secs;
        let entry = collection.entries.get_mut(&identifier(0)).expect("it exists");
        (entry.title, entry.datestamp_secs) = ("Renamed title".to_owned(), now_secs);
    });
    assert_eq!(post(mirrored.proxy.admin(), "/-/mirror/y/sync", "").status, 202);
    // This change is after the harvests of both, so the index has followed them, too.
    mirrored.proxy.wait_for_results("/_search.json?q=renamed", 1);
    let found = read(&mirrored.get("/_api/v1/search?q=title"));
    assert_eq!(found["total"], json!(3));
    let of = |item: &Value| item["repository"].clone();
    let repositories: Vec<_> = found["items"].as_array().expect("a list").iter().map(of).collect();
    assert_eq!(repositories, ["y", "y", "y"].map(|id| json!(id)));
    assert!(problem(&mirrored.get("/_api/v1/search?repository=x"), 400).contains("is not searched"));
    assert_eq!(harvest(mirrored.proxy.address(), RECORDS).0, numbered(0..5), "harvesters get it, too");
}

#[test]
fn cursors_are_signed_and_continue_their_own_list() {
    let mirrored = of_mirror(Collection::of(30), |_| {});
    let path = format!("{RECORDS}&limit=5");
    let page = read(&mirrored.get(&path));
    let cursor = page["next"].as_str().expect("a cursor");
    let mut forged = cursor.to_owned();
    forged.replace_range(cursor.len() - 1.., if cursor.ends_with('A') { "B" } else { "A" });
    let foreign = TokenKey::new([1; 32]).seal(TokenUse::Api, &"x").expect("short enough");
    let key = TokenKey::open(mirrored.proxy.data()).expect("the key of the server");
    let relabelled =
        key.seal(TokenUse::MirrorList, &"x").expect("short enough").replace("oaimirror1_", "oaiapi1_");
    for (wrong, status) in [
        (forged.as_str(), 404),
        (&foreign, 404),
        (&relabelled, 404),
        ("oaiapi1_A", 404),
        ("oaiapi1_", 400),
        ("x", 400),
    ] {
        problem(&mirrored.get(&format!("{path}&cursor={wrong}")), status);
    }
    for other in [
        format!("/_api/v1/records?repository=_all&limit=5&cursor={cursor}"),
        format!("/_api/v1/records?repository=_mirror/x&cursor={cursor}"),
        format!("{path}&set=even&cursor={cursor}"),
        format!("{path}&from=2001-01-01&cursor={cursor}"),
        format!("{path}&fields=identifier&cursor={cursor}"),
        format!("/_api/v1/sets?repository=x&cursor={cursor}"),
        format!("/_api/v1/repositories?cursor={cursor}"),
        format!("/_api/v1/search?cursor={cursor}"),
    ] {
        let detail = problem(&mirrored.get(&other), 404);
        assert!(detail.contains("begin the list again"), "{other}: {detail}");
    }
    let longer = read(&mirrored.get(&format!("{RECORDS}&limit=20&cursor={cursor}")));
    assert_eq!(longer["records"].as_array().map(Vec::len), Some(20), "the limit may change");
}

#[test]
fn bad_requests_are_problems_that_say_what_to_change() {
    let mirrored = of_mirror(Collection::of(5), |_| {});
    for (path, status, text) in [
        ("/_api/v1/records", 400, "repository is missing"),
        ("/_api/v1/records?repository=none", 404, "/_api/v1/repositories"),
        ("/_api/v1/records?repository=_search", 404, "no such repository"),
        ("/_api/v1/repositories/none", 404, "no such repository"),
        ("/_api/v1/repositories/x?a=1", 400, "unknown"),
        ("/_api/v1/records?repository=x&limit=0", 400, "from 1 to 1000"),
        ("/_api/v1/records?repository=x&limit=1001", 400, "from 1 to 1000"),
        ("/_api/v1/search?limit=101", 400, "from 1 to 100"),
        ("/_api/v1/search?repository=none", 404, "no such repository"),
        ("/_api/v1/search?repository=_view/none", 404, "no such repository"),
        ("/_api/v1/search?repository=_mirror/none", 404, "no such repository"),
        ("/_api/v1/search?repository=_mirror/x", 400, "ID instead of _mirror/ID"),
        ("/_api/v1/search?repository=_all", 400, "leave repository out"),
        ("/_api/v1/records?repository=x&colour=red", 400, "known are repository"),
        ("/_api/v1/records?repository=x&prefix=a&prefix=a", 400, "repeated"),
        ("/_api/v1/records?repository=x&fields=title", 400, "among identifier"),
        ("/_api/v1/records?repository=x&from=yesterday", 400, "from is not"),
        ("/_api/v1/records?repository=x&from=2001-02-30", 400, "from is not"),
        ("/_api/v1/records?repository=x&from=2001-02-02&until=2001-02-01", 400, "until"),
        ("/_api/v1/records?repository=x&prefix=none", 404, "cannotDisseminateFormat"),
        ("/_api/v1/openapi.json?x", 400, "unknown"),
        ("/_api/v1/", 404, "openapi.json"),
        ("/_api/v2/records", 404, "openapi.json"),
    ] {
        let detail = problem(&mirrored.get(path), status);
        assert!(detail.contains(text), "{path}: {detail}");
    }
    let long = format!("{RECORDS}&set={}", "a".repeat(20_000));
    assert_eq!(mirrored.get(&long).status, 414);
}

#[test]
fn only_get_and_head_are_allowed() {
    let mirrored =
        Mirrored::with(Collection::of(5), |_| {}, |config| config.gateway.cors_origins = CorsOrigins::Any);
    let address = mirrored.proxy.address();
    let send = |method: &str, path: &str, headers: &str| {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n"
        );
        Harvester::ask(address, &request).rest()
    };
    for path in [RECORDS, "/_api/v1/openapi.json", "/_api/v1/repositories/x", "/_api/v1/search"] {
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
            let refused = send(method, path, "");
            problem(&refused, 405);
            assert_eq!(refused.header("allow"), "GET, HEAD", "{method} {path}");
        }
    }
    let preflight =
        send("OPTIONS", RECORDS, "Origin: http://e.org\r\nAccess-Control-Request-Method: GET\r\n");
    assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (204, "*"));
    let request = format!("HEAD {RECORDS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let head = Harvester::ask(address, &request).rest();
    let length: usize = head.header("content-length").parse().expect("a length");
    assert!(head.status == 200 && length > 100 && head.body.is_empty(), "{head:?}");
    let got = fetch_with(address, "/_api/v1/openapi.json", "Origin: http://e.org\r\n");
    assert_eq!((got.status, got.header("access-control-allow-origin")), (200, "*"));
    assert_eq!(got.text(), include_str!("../../../docs/reference/openapi.json"));
    assert_eq!(got.header("content-security-policy"), "default-src 'none'; sandbox");
}

#[test]
fn a_source_that_fails_is_no_empty_list() {
    let source = Source::start(|_, _| Reply::new(503, "Retry-After: 7\r\n").send("down"));
    let proxy = Proxy::of(&source);
    for path in
        [RECORDS, "/_api/v1/sets?repository=x", "/_api/v1/formats?repository=x", "/_api/v1/repositories/x"]
    {
        let got = proxy.get(path);
        let detail = problem(&got, 503);
        assert!(detail.contains("Retry:") && !got.header("retry-after").is_empty(), "{path}: {detail}");
        assert!(got.header("proxy-status").starts_with("oaimend; error="), "{path}: {got:?}");
    }
    // The mirror is not complete before its first harvest.
    let (source, collection) = Collection::of(3).start();
    collection.lock().expect("no test panics while it holds this").is_down = true;
    let mut mapping = super::gateway::mapping(&source);
    mapping.serve = oaimend::config::ServeFrom::Mirror;
    let proxy = Proxy::with(|config| config.repositories.add_fixed(mapping));
    problem(&proxy.get(RECORDS), 503);
}

#[test]
fn a_page_that_was_changed_after_its_start_was_delivered_is_a_conflict() {
    let (source, collection) = Collection::of(9).start();
    let proxy = Proxy::with(|config| {
        config.map("x", &source.base_url()).expect("a legal mapping");
        config.cache.enabled = false;
    });
    let first = read(&proxy.get(&format!("{RECORDS}&limit=4")));
    let path = format!("{RECORDS}&limit=4&cursor={}", first["next"].as_str().expect("a cursor"));
    change(&collection, |collection| {
        collection.entries.remove(&identifier(1));
    });
    let detail = problem(&proxy.get(&path), 409);
    assert!(detail.contains("begin the list again"), "{detail}");
}

#[test]
fn a_cursor_that_has_expired_is_gone() {
    let (source, _) = Collection::of(250).start();
    let proxy = Proxy::with(|config| config.map("x", &source.base_url()).expect("a legal mapping"));
    let path = format!("{RECORDS}&limit=1000");
    let first = read(&proxy.get(&path));
    let path = format!("{path}&cursor={}", first["next"].as_str().expect("a cursor"));
    // The mirror does not continue a list of the source.
    let proxy = proxy.restarted(|config| {
        let mapping = super::gateway::mapping(&source);
        config.repositories.add_fixed(Mapping { serve: ServeFrom::Mirror, ..mapping });
    });
    proxy.wait_for_harvests("x", 1);
    let detail = problem(&proxy.get(&path), 410);
    assert!(
        detail.contains("has expired") && detail.contains("begin the list again without cursor"),
        "{detail}"
    );
    let described = read(&proxy.get("/_api/v1/openapi.json"));
    assert!(described["paths"]["/_api/v1/records"]["get"]["responses"]["410"].is_object());
    assert_eq!(harvest(proxy.address(), RECORDS).0, numbered(0..250));
}

#[test]
fn schemathesis_finds_nothing_and_a_generated_client_lists_all_records() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("writable");
    let (source, _) = Collection::of(120).start();
    let base_url = source.base_url();
    let write = |id: &str, text: &str| {
        std::fs::write(folder.path().join(format!("mappings/{id}.toml")), text).expect("writable");
    };
    write("x", &format!("base_url = \"{base_url}\"\nallow_private = true\n[mirror]\n"));
    write("live", &format!("base_url = \"{base_url}\"\nallow_private = true\n"));
    write("own", "kind = \"local\"\n");
    let program = Program::run(serve(folder.path()).args(["--mappings", "mappings"]));
    let address = program.address();
    crate::fixtures::keeping::wait_until(|| {
        let found = fetch(address, "/_search.json?q=title");
        found.status == 200 && found.text().contains("\"total\": 120")
    });
    let root = env!("CARGO_MANIFEST_DIR");
    let output = Command::new(format!("{root}/scripts/api"))
        .args(["check", &format!("http://{address}"), "x", "120"])
        .output()
        .expect("a shell");
    print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(69) {
        let is_required = std::env::var("OAIMEND_API").is_ok_and(|value| value == "required");
        assert!(!is_required, "run scripts/api install first");
        println!("skipped: scripts/api install was not run");
        return;
    }
    assert!(output.status.success());
}
