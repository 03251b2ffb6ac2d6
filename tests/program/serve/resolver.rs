//! Requests to the identifier resolver: pages, JSON, redirects, lists, and what other services know.

use super::gateway::{Mirrored, is_html, mapping, with_fields};
use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::lists::error_page;
use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::Proxy;
use crate::fixtures::source::{Got, Harvester, Reply, Source, fetch, fetch_with, post};
use oaimend::config::{Config, Mapping, RecordPages, Service};
use oaimend_base::clock::uptime;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

const JSON: &str = "Accept: application/json\r\n";
const DOI: &str = "<dc:identifier>https://doi.org/10.1000/ABC</dc:identifier>";
/// How long a test waits for a response that is not ready yet.
const READY_WITHIN: Duration = Duration::from_secs(60);
const WANTED: &str = "oai:c:00003";

/// The response once the identifiers are known.
#[track_caller]
fn ready(address: SocketAddr, path: &str, headers: &str) -> Got {
    let until = uptime() + READY_WITHIN;
    loop {
        let got = fetch_with(address, path, headers);
        if got.status != 503 {
            return got;
        }
        assert!(uptime() < until, "{path}: {}", got.text());
        assert!(!got.header("retry-after").is_empty(), "{:?}", got.headers);
    }
}

#[track_caller]
fn json_at(address: SocketAddr, path: &str) -> Value {
    let got = ready(address, path, JSON);
    assert_eq!(got.header("content-type"), "application/json", "{}", got.text());
    serde_json::from_slice(&got.body).unwrap_or_else(|error| panic!("{error}: {}", got.text()))
}

fn identifiers(items: &Value) -> Vec<&str> {
    let items = items.as_array().expect("an array").iter();
    items.map(|item| item["identifier"].as_str().expect("a string")).collect()
}

fn post_list(address: SocketAddr, body: &str) -> Got {
    let length = body.len();
    let request = format!(
        "POST /_resolve HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    Harvester::ask(address, &request).whole_body()
}

#[test]
fn an_identifier_leads_to_its_records_as_page_and_as_json() {
    let mirrored = Mirrored::of(with_fields(DOI));
    let address = mirrored.proxy.address();
    let found = json_at(address, "/_resolve/oai:c:00003");
    assert_eq!(identifiers(&found["records"]), [WANTED], "{found:#}");
    let record = &found["records"][0];
    assert_eq!(record["url"], format!("http://{address}/x/record/oai%3Ac%3A00003"));
    let format = &record["formats"][0];
    assert_eq!((&format["metadataPrefix"], &format["isDeleted"]), (&json!("oai_dc"), &json!(false)));
    for (link, status) in [("mirror", 200), ("repository", 200)] {
        let url = format[link].as_str().expect("a URL");
        let path = url.strip_prefix(&format!("http://{address}")).expect("a URL of this server");
        let got = mirrored.get(path);
        assert!(got.status == status && got.text().contains("Title 3"), "{}", got.text());
    }
    for written in [
        "10.1000/abc",
        "10.1000%2Fabc",
        "doi:10.1000/ABC",
        "https://doi.org/10.1000/abc",
        "https:/doi.org/10.1000/abc",
        "http%3A%2F%2Fdx.doi.org%2F10.1000%2Fabc",
    ] {
        let found = json_at(address, &format!("/_resolve/{written}"));
        assert_eq!(identifiers(&found["namedBy"]), [WANTED], "{written}: {found:#}");
        assert_eq!(found["meanings"], json!({"doi": "10.1000/abc"}), "{written}");
    }
    let page = mirrored.get_with("/_resolve?identifier=+doi%3A10.1000%2Fabc", "Accept: text/html\r\n");
    is_html(&page, 200, "<a href=\"/x/record/oai%3Ac%3A00003\">");
    assert!(page.text().contains("as its identifier"), "{}", page.text());
    assert_eq!((page.header("cache-control"), page.header("vary")), ("no-cache", "Accept, Accept-Encoding"));
    let known = mirrored.get_with(
        "/_resolve?identifier=+doi%3A10.1000%2Fabc",
        &format!("Accept: text/html\r\nIf-None-Match: {}\r\n", page.header("etag")),
    );
    assert_eq!(known.status, 304);
    is_html(&mirrored.get("/_resolve"), 200, "Find an identifier");
    is_html(&mirrored.get("/_resolve/oai:unknown"), 404, "No mirrored record has or names this identifier.");
    assert_eq!(mirrored.get_with("/_resolve/oai:unknown", JSON).status, 404);
    assert!(mirrored.get("/robots.txt").text().contains("Disallow: /_resolve\n"));
}

#[test]
fn go_leads_to_the_best_record_of_this_server() {
    let mirrored = Mirrored::of(with_fields(DOI));
    let address = mirrored.proxy.address();
    let got = ready(address, "/_resolve/10.1000/abc?go", "");
    assert_eq!((got.status, got.header("location")), (303, "/x/record/oai%3Ac%3A00003"));
    assert_eq!(mirrored.get(got.header("location")).status, 200);
    for path in ["/_resolve/10.1000/abc?go&noredirect", "/_resolve/10.1000/abc?noredirect"] {
        is_html(&mirrored.get(path), 200, WANTED);
    }
    // Nothing of the request is in the URL.
    for path in [
        "/_resolve/https://evil.example/?go",
        "/_resolve//evil.example?go",
        "/_resolve/%0d%0aLocation:%20http://evil.example/?go",
        "/_resolve/oai:unknown?go",
    ] {
        let got = mirrored.get(path);
        assert_eq!((got.status, got.header("location")), (404, ""), "{path}: {}", got.text());
    }
    change(&mirrored.collection, |collection| {
        let entry = collection.entries.get_mut(&identifier(3)).expect("it exists");
        entry.deleted = true;
        entry.datestamp_secs = collection.now_secs;
    });
    mirrored.harvest_again();
    assert_eq!(ready(address, "/_resolve/10.1000/abc?go", "").status, 404, "the record names nothing");
    assert_eq!(mirrored.get("/_resolve/oai:c:00003?go").status, 410);
    is_html(&mirrored.get("/_resolve/oai:c:00003"), 200, "<td>deleted</td>");
}

#[test]
fn links_wait_for_the_first_harvest_of_each_repository() {
    let broken = Source::start(|_, _| Reply::whole(500, "", "broken"));
    let mut of_broken = mapping(&broken);
    of_broken.source_mut().id = "y".to_owned();
    let mirrored =
        Mirrored::with(with_fields(DOI), |_| {}, |config| config.repositories.add_fixed(of_broken));
    let found = ready(mirrored.proxy.address(), "/_resolve/oai:c:00003?go", "");
    assert_eq!(found.status, 303, "{}", found.text());
    for path in [
        "/_resolve/oai:unknown?go",
        "/_openurl?rft_id=info:doi/10.9999/none",
        "/_openurl?rft_id=info:doi/10.9999/none&svc_id=info:lanl-repo/svc/identifiers.list",
    ] {
        let got = mirrored.get(path);
        assert_eq!((got.status, got.header("location")), (503, ""), "{path}: {}", got.text());
        assert!(got.text().contains("not harvested completely: y."), "{path}: {}", got.text());
        assert!(!got.header("retry-after").is_empty(), "{path}: {:?}", got.headers);
    }
    // No repository can have what nothing describes.
    assert_eq!(mirrored.get("/_openurl?aulast=Berg&date=2019").status, 404);
}

#[test]
fn without_pages_the_resolver_speaks_json_and_leads_to_the_mirror() {
    let mirrored = Mirrored::with(with_fields(DOI), |_| {}, |config| config.gateway.enabled = false);
    let address = mirrored.proxy.address();
    let found = json_at(address, "/_resolve/10.1000/abc");
    assert_eq!((&found["namedBy"][0]["url"], identifiers(&found["namedBy"])), (&Value::Null, vec![WANTED]));
    let got = mirrored.get("/_resolve/10.1000/abc?go");
    let location = got.header("location");
    assert!(got.status == 303 && location.starts_with("/_mirror/x?verb=GetRecord&"), "{location}");
    assert!(mirrored.get(location).text().contains("Title 3"));
    assert_eq!(mirrored.get("/_resolve").status, 400);
}

#[test]
fn repositories_without_record_pages_are_left_out_as_in_the_search() {
    let without = |mapping: &mut Mapping| mapping.records = RecordPages::Off;
    let mirrored = Mirrored::with(with_fields(DOI), without, |_| {});
    for path in ["/_resolve/10.1000/abc", "/_resolve/oai:c:00003"] {
        assert_eq!(ready(mirrored.proxy.address(), path, "").status, 404, "{path}");
    }
}

#[test]
fn two_repositories_with_the_same_doi_are_both_found() {
    let (second, _) = with_fields(DOI).start();
    let mut of_second = mapping(&second);
    of_second.source_mut().id = "y".to_owned();
    of_second.mirror.as_mut().expect("it is mirrored").priority = 7;
    let mirrored =
        Mirrored::with(with_fields(DOI), |_| {}, |config| config.repositories.add_fixed(of_second));
    mirrored.proxy.wait_for_harvests("y", 1);
    let found = json_at(mirrored.proxy.address(), "/_resolve/10.1000/abc");
    let repositories: Vec<&Value> =
        found["namedBy"].as_array().expect("an array").iter().map(|item| &item["repository"]).collect();
    assert_eq!(repositories, ["y", "x"], "by priority");
    let got = mirrored.get("/_resolve/10.1000/abc?go");
    assert_eq!(got.header("location"), "/y/record/oai%3Ac%3A00003");
}

#[test]
fn lists_of_identifiers_have_limits() {
    let mirrored = Mirrored::of(with_fields(DOI));
    let address = mirrored.proxy.address();
    json_at(address, "/_resolve/oai:c:00001");
    for body in
        ["[\"10.1000/abc\", \"oai:c:00001\", \"oai:unknown\"]", "10.1000/abc\r\noai:c:00001\n\noai:unknown"]
    {
        let got = post_list(address, body);
        assert_eq!(got.status, 200, "{}", got.text());
        let found: Value = serde_json::from_slice(&got.body).expect("JSON");
        let counts = found["results"]
            .as_array()
            .expect("an array")
            .iter()
            .map(|result| (identifiers(&result["records"]).len(), identifiers(&result["namedBy"]).len()));
        assert_eq!(counts.collect::<Vec<_>>(), [(0, 1), (1, 0), (0, 0)], "{found:#}");
    }
    let many = |count: usize| "oai:c:00001\n".repeat(count);
    assert_eq!(post_list(address, &many(1_000)).status, 200);
    for (body, status) in [
        (many(1_001).as_str(), 413),
        ("x".repeat((1 << 20) + 1).as_str(), 413),
        ("", 400),
        ("[\"open", 400),
        ("[1, 2]", 400),
        ("\n \n", 400),
    ] {
        let got = post_list(address, body);
        assert_eq!(got.status, status, "{:.100}: {}", body, got.text());
    }
    assert_eq!(post(address, "/_resolve/oai:c:00001", "").status, 405);
}

#[test]
fn hostile_identifiers_are_text_or_refused() {
    let mirrored = Mirrored::of(with_fields(DOI));
    let address = mirrored.proxy.address();
    json_at(address, "/_resolve/oai:c:00001");
    let long = format!("/_resolve/{}", "x".repeat(100 << 10));
    for (path, status) in [
        ("/_resolve/%FF%FE", 400),
        ("/_resolve/%00", 404),
        ("/_resolve/%0d%0aSet-Cookie:%20a=b", 404),
        ("/_resolve/%3Cscript%3Ealert(1)%3C/script%3E", 404),
        ("/_resolve/..%2f..%2fetc%2fpasswd", 404),
        ("/_resolve/%2525%", 404),
        ("/_resolve/doi:10.1000/%E2%80%AEabc", 404),
        (long.as_str(), 414),
    ] {
        for accept in ["Accept: text/html\r\n", JSON] {
            let got = mirrored.get_with(path, accept);
            assert_eq!(got.status, status, "{path:.60}: {}", got.text());
            assert!(got.whole && got.header("set-cookie").is_empty(), "{:?}", got.headers);
            assert!(!got.text().contains("<script>alert") || accept == JSON, "{}", got.text());
        }
    }
    let list = json!(["\u{0}", "x".repeat(100 << 10), "</script>", "\r\n"]).to_string();
    let got = post_list(address, &list);
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(
        serde_json::from_slice::<Value>(&got.body).expect("JSON")["results"].as_array().map(Vec::len),
        Some(3)
    );
}

/// The response of a service to GetRecord.
fn record_page() -> String {
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
     xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ \
     http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\"><responseDate>2026-01-01T00:00:00Z</responseDate>\
     <request verb=\"GetRecord\" identifier=\"oai:c:00003\" metadataPrefix=\"oai_dc\">http://s.example/oai</request>\
     <GetRecord><record><header><identifier>oai:c:00003</identifier><datestamp>2020-01-01</datestamp></header>\
     <metadata><oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
     xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ \
     http://www.openarchives.org/OAI/2.0/oai_dc.xsd\"><dc:title>A</dc:title></oai_dc:dc></metadata></record>\
     </GetRecord></OAI-PMH>"
        .to_owned()
}

fn service(name: &str, source: &Source) -> Service {
    let link = "https://search.example/r?id={identifier}";
    Service::new(name, &source.base_url(), link).expect("a legal service")
}

fn states(found: &Value) -> Vec<(&str, &str, Option<&str>)> {
    let services = found["services"].as_array().expect("an array").iter();
    services
        .map(|service| {
            let [name, state] = ["name", "state"].map(|key| service[key].as_str().unwrap_or_default());
            (name, state, service["url"].as_str())
        })
        .collect()
}

#[test]
fn services_that_have_the_record_are_named_and_asked_once() {
    let (having, without) = (Source::page(record_page()), Source::page(error_page("idDoesNotExist")));
    let services = vec![service("One", &having), service("Two <i>", &without)];
    let configure = |config: &mut Config| {
        config.services = services;
        config.clients.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
    };
    let mirrored = Mirrored::with(with_fields(DOI), |_| {}, configure);
    let address = mirrored.proxy.address();
    let link = "https://search.example/r?id=oai%3Ac%3A00003";
    // By its OAI identifier, and by a DOI that its record names.
    for path in ["/_resolve/oai:c:00003", "/_resolve/10.1000/abc", "/_resolve/oai:c:00003"] {
        let found = json_at(address, path);
        assert_eq!(states(&found), [("One", "found", Some(link)), ("Two <i>", "not-found", None)], "{path}");
    }
    let page = mirrored.get("/_resolve/oai:c:00003").text();
    assert!(
        page.contains(&format!("<a rel=\"nofollow\" href=\"{link}\"><bdi>One</bdi></a> has the record")),
        "{page}"
    );
    assert!(page.contains("Two &lt;i&gt;") && !page.contains("<i>"), "{page}");
    let requests = having.requests();
    assert_eq!(requests.len(), 1, "the response is kept");
    assert!(
        requests[0].target.contains("verb=GetRecord&identifier=oai%3Ac%3A00003"),
        "{}",
        requests[0].target
    );
    assert!(!requests[0].headers["via"].is_empty());
    // Lists and crawlers make no service work.
    assert_eq!(post_list(address, "oai:c:00004").status, 200);
    let headers = "Accept: application/json\r\nX-Forwarded-For: 192.0.2.1\r\nUser-Agent: Googlebot/2.1\r\n";
    let crawler = ready(address, "/_resolve/oai:c:00004", headers);
    assert!(crawler.text().contains("\"not-requested\""), "{}", crawler.text());
    assert_eq!(crawler.status, 200);
    assert_eq!(having.requests().len(), 1);
}

#[test]
fn a_service_that_hangs_is_named_and_delays_no_page_beyond_the_bound() {
    let (hanging, having) = (Source::start(|_, _| Reply::new(200, "").hang()), Source::page(record_page()));
    let broken = Source::page("<html>not OAI</html>");
    let services = vec![service("Hangs", &hanging), service("Has", &having), service("Broken", &broken)];
    let mirrored = Mirrored::with(with_fields(DOI), |_| {}, |config| config.services = services);
    let address = mirrored.proxy.address();
    for (path, bound) in [("/_resolve/oai:c:00003", 8), ("/_resolve/oai:c:00003", 2)] {
        let began = uptime();
        let found = json_at(address, path);
        assert!(uptime() - began < Duration::from_secs(bound), "{:?}", uptime() - began);
        let states: Vec<_> = states(&found).into_iter().map(|(name, state, _)| (name, state)).collect();
        assert_eq!(states, [("Hangs", "not-reached"), ("Has", "found"), ("Broken", "not-reached")]);
        assert_eq!(identifiers(&found["records"]), [WANTED], "the mirror answers nevertheless");
    }
}

#[test]
fn a_service_that_did_not_get_its_turn_is_not_blamed() {
    let hanging: Vec<Source> = (0..9).map(|_| Source::start(|_, _| Reply::new(200, "").hang())).collect();
    let having = Source::page(record_page());
    let mut services: Vec<Service> = hanging.iter().map(|source| service("Hangs", source)).collect();
    services.push(service("Has", &having));
    let mirrored = Mirrored::with(with_fields(DOI), |_| {}, |config| config.services = services);
    let address = mirrored.proxy.address();
    for (last_hanging, of_having) in [("busy", "busy"), ("not-reached", "found")] {
        let found = json_at(address, "/_resolve/oai:c:00003");
        let states: Vec<&str> = states(&found).into_iter().map(|(_, state, _)| state).collect();
        assert_eq!(states, [&["not-reached"; 8][..], &[last_hanging, of_having]].concat());
    }
    assert_eq!(having.requests().len(), 1);
}

#[test]
fn a_service_does_not_lead_to_private_addresses() {
    let inside = Source::page(record_page());
    let to = inside.base_url().replace("127.0.0.1", "169.254.169.254");
    let redirecting = Source::start(move |_, _| Reply::redirect(302, &to));
    let elsewhere = inside.base_url();
    let other_port = Source::start(move |_, _| Reply::redirect(302, &elsewhere));
    let services = vec![service("A", &redirecting), service("B", &other_port)];
    let mirrored = Mirrored::with(with_fields(DOI), |_| {}, |config| config.services = services);
    let found = json_at(mirrored.proxy.address(), "/_resolve/oai:c:00003");
    assert!(states(&found).iter().all(|(_, state, _)| *state == "not-reached"), "{found:#}");
    assert_eq!(inside.requests().len(), 0);
}

fn folder_with(source: &Source, settings: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let mapping = format!(
        "base_url = \"{}\"\nallow_private = true\n[mirror]\ninterval_secs = 600000\n",
        source.base_url()
    );
    std::fs::write(folder.path().join("mappings/x.toml"), mapping).expect("a writable folder");
    std::fs::write(folder.path().join("oaimend.toml"), settings).expect("a writable folder");
    folder
}

fn start(folder: &Path) -> Program {
    Program::run(serve(folder).args(["--admin", "127.0.0.1:0"]))
}

fn wait_for(is_so: impl Fn() -> bool) {
    let until = uptime() + READY_WITHIN;
    while !is_so() {
        assert!(uptime() < until, "it takes too long");
        std::thread::yield_now();
    }
}

#[test]
fn results_are_exact_after_the_process_was_killed() {
    let (source, collection) = with_fields(DOI).start();
    let folder = folder_with(&source, "");
    let program = start(folder.path());
    wait_for(|| fetch(program.address(), "/_resolve/10.1000/abc").status == 200);
    program.killer().kill();
    program.ended();
    for round in 0..6 {
        change(&collection, |collection| {
            collection.now_secs += 86_400;
            let datestamp_secs = collection.now_secs;
            let entry = collection.entries.get_mut(&identifier(3)).expect("it exists");
            entry.datestamp_secs = datestamp_secs;
            entry.title =
                format!("Title</dc:title><dc:identifier>10.1000/{round}</dc:identifier><dc:title>More");
        });
        let program = start(folder.path());
        post(program.admin(), "/-/mirror/x/sync", "");
        let (now, before) =
            (format!("/_resolve/10.1000/{round}"), format!("/_resolve/10.1000/{}", round - 1));
        wait_for(|| fetch(program.address(), &now).status == 200);
        assert_eq!(fetch(program.address(), &before).status, 404, "round {round}");
        program.killer().kill();
        program.ended();
    }
}

#[test]
fn services_of_the_settings_are_checked_and_read_again() {
    let having = Source::page(record_page());
    let (source, _) = Collection::of(5).start();
    let service = |name: &str, base_url: &str| {
        format!(
            "[[services]]\nname = \"{name}\"\nbase_url = \"{base_url}\"\nlink = \"https://s.example/{{identifier}}\"\n"
        )
    };
    let folder = folder_with(&source, &service("First", &having.base_url()));
    let mut program = start(folder.path());
    wait_for(|| fetch(program.address(), "/_resolve/oai:c:00003").status == 200);
    let found = json_at(program.address(), "/_resolve/oai:c:00003");
    assert_eq!(states(&found), [("First", "found", Some("https://s.example/oai%3Ac%3A00003"))]);
    std::fs::write(folder.path().join("oaimend.toml"), service("Second", &having.base_url()))
        .expect("writable");
    program.signal("-HUP");
    program.line("oaimend.toml read again");
    let found = json_at(program.address(), "/_resolve/oai:c:00003");
    assert_eq!(states(&found)[0].0, "Second");
    for (settings, fault) in [
        ("[[services]]\nname = \"A\"\n".to_owned(), "a service has no base_url"),
        (service("A", "ftp://x/"), "is not a base URL"),
        (service("A", "http://x/") + &service("A", "http://y/"), "two services have the name"),
        (service("A", "http://x/").replace("{identifier}", ""), "is not a link"),
        ("services = 1\n".to_owned(), "expected [[services]] tables"),
    ] {
        std::fs::write(folder.path().join("oaimend.toml"), settings).expect("writable");
        let mut validate = std::process::Command::new(env!("CARGO_BIN_EXE_oaimend"));
        let output = validate.arg("validate").current_dir(folder.path()).output().expect("the program runs");
        let text =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && text.contains(fault), "{fault}: {text}");
    }
}

#[test]
fn no_repository_is_no_error() {
    let proxy = Proxy::with(|_: &mut Config| {});
    assert_eq!(ready(proxy.address(), "/_resolve/10.1000/abc", JSON).status, 404);
}
