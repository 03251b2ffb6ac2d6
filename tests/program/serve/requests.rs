//! Requests of harvesters and operators to `oaimend serve`, and their responses.

use crate::fixtures::program::Program;
use crate::fixtures::proxy::{LIST, Proxy, records};
use crate::fixtures::source::{Got, Harvester, Reply, Source, fetch, fetch_with, page_of};
use oaimend::config::Config;
use oaimend::serve::{Running, Server};
use oaimend_base::error::Error;
use std::sync::mpsc::channel;

/// Sends a request with any method; `tail` contains further headers and the body.
fn ask(proxy: &Proxy, start: &str, tail: &str) -> Got {
    let request = format!("{start} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{tail}");
    Harvester::ask(proxy.address(), &request).rest()
}

fn post(proxy: &Proxy, path: &str, form: &str) -> Got {
    let length = form.len();
    let tail =
        format!("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}");
    ask(proxy, &format!("POST {path}"), &tail)
}

#[test]
fn response_headers() {
    let source = Source::start(|_, _| {
        Reply::whole(200, "Content-Type: application/xml\nETag: \"x\"\nSet-Cookie: a=b", page_of(3))
    });
    let proxy = Proxy::of(&source);
    let got = proxy.get(LIST);
    assert_eq!((got.status, got.whole), (200, true));
    assert_eq!(records(&got.text()), records(&page_of(3)));
    assert_eq!(got.header("content-type"), "text/xml; charset=UTF-8");
    assert_eq!(got.header("cache-status"), "oaimend; fwd=miss; fwd-status=200");
    assert!(got.header("via").starts_with("1.1 oaimend-"), "{got:?}");
    // The length of the output, not of the source's page, if the page was complete before its head
    // was sent.
    let length = got.header("content-length");
    assert!(length.is_empty() || length == got.body.len().to_string(), "{length}");
    for absent in ["etag", "set-cookie", "proxy-status"] {
        assert_eq!(got.header(absent), "", "{absent}");
    }
    let received = source.requests();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].target, "/oai?verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(received[0].headers["user-agent"], concat!("oaimend/", env!("CARGO_PKG_VERSION")));
    assert_eq!(received[0].headers["accept-encoding"], "gzip, deflate, br, zstd");
    assert!(received[0].headers["via"].starts_with("1.1 oaimend-"));
}

#[test]
fn get_head_post_and_http_2_are_equivalent() {
    let source = Source::page(page_of(2));
    let proxy = Proxy::of(&source);
    let got = proxy.get(LIST);
    let form = "verb=ListRecords&metadataPrefix=oai_dc";
    for posted in [post(&proxy, "/x", form), post(&proxy, "/x?verb=ListRecords", "metadataPrefix=oai_dc")] {
        assert_eq!((posted.status, posted.text()), (200, got.text()));
    }
    let head = ask(&proxy, &format!("HEAD {LIST}"), "\r\n");
    assert_eq!((head.status, head.header("content-type")), (200, "text/xml; charset=UTF-8"));
    assert_eq!((head.header("transfer-encoding"), head.body.len()), ("", 0));
    let (status, body) = http_2(&proxy, LIST);
    assert_eq!((status, body.as_deref()), (200, Ok(got.body.as_slice())));
    let received = source.requests();
    assert_eq!(received.len(), 5);
    assert!(received.iter().all(|received| received.target == "/oai?verb=ListRecords&metadataPrefix=oai_dc"));
}

/// Sends an HTTP/2 request without TLS; returns the body, or the error that aborted it.
fn http_2(proxy: &Proxy, path: &str) -> (u16, Result<Vec<u8>, String>) {
    let url = format!("http://{}{path}", proxy.address());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build();
        let answer = client.expect("a client").get(url).send().await.expect("an answer");
        assert_eq!(answer.version(), http::Version::HTTP_2);
        let status = answer.status().as_u16();
        let body = answer.bytes().await.map(|bytes| bytes.to_vec());
        (status, body.map_err(|error| format!("{error:?}")))
    })
}

#[test]
fn connection_is_reused() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::of(&source);
    let requests = format!("GET {LIST} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut harvester = Harvester::ask(proxy.address(), &requests);
    let first = harvester.whole_body();
    harvester.again("GET /x?verb=Nonsense HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(harvester.whole_body().text().contains("badVerb"));
    harvester.again(&requests);
    assert_eq!(harvester.whole_body().text(), first.text());
}

#[test]
fn other_methods_and_long_forms_are_refused() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::of(&source);
    for method in ["PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT"] {
        assert_eq!(ask(&proxy, &format!("{method} /x?verb=Identify"), "\r\n").status, 405, "{method}");
    }
    assert_eq!(ask(&proxy, "PUT /x", "\r\n").header("allow"), "GET, HEAD, POST");
    let long = format!("verb=ListSets&resumptionToken={}", "x".repeat(64 << 10));
    assert_eq!(post(&proxy, "/x", &long).status, 413);
    assert_eq!(source.requests().len(), 0);
    let longest = format!("verb={}", "x".repeat((64 << 10) - 5));
    assert!(post(&proxy, "/x", &longest).text().contains("badVerb"));
    assert_eq!(post(&proxy, "/x", &format!("{longest}x")).status, 413);
}

#[test]
fn expect_100_continue() {
    let proxy = Proxy::of(&Source::page(""));
    let head = "POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 8\r\nExpect: 100-continue\r\n\r\n";
    let mut harvester = Harvester::ask(proxy.address(), head);
    assert_eq!(harvester.head().status, 100);
    harvester.again("verb=Bad");
    assert!(harvester.rest().text().contains("badVerb"));
}

#[test]
fn invalid_requests_never_reach_the_source() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::of(&source);
    for (query, code) in [
        ("", "badVerb"),
        ("verb=identify", "badVerb"),
        ("verb=Identify&verb=Identify", "badVerb"),
        ("verb=ListRecords", "badArgument"),
        ("verb=ListRecords&metadataPrefix=a&metadataPrefix=b", "badArgument"),
        ("verb=ListRecords&resumptionToken=a&set=b", "badArgument"),
        ("verb=GetRecord&identifier=%22%3E%3Cx&metadataPrefix=a&from=b", "badArgument"),
        ("verb=Identify&%3Cscript%3E=1", "badArgument"),
        ("verb=ListSets&resumptionToken=\u{e9}%E9", "badArgument"),
    ] {
        let got = proxy.get(&format!("/x?{query}"));
        let xml = got.text();
        assert_eq!((got.status, got.header("content-type")), (200, "text/xml; charset=UTF-8"), "{query}");
        assert!(xml.contains(&format!("<error code=\"{code}\">")), "{query}: {xml}");
        assert!(xml.contains(&format!("<request>http://{}/x</request>", proxy.address())), "{xml}");
        assert!(!xml.contains("<script"), "{xml}");
    }
    assert_eq!(source.requests().len(), 0);
}

#[test]
fn public_url_is_in_responses() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::with(|config| {
        config.public_url = Some("https://oai.example.org/mended".into());
        config.map("x", &source.base_url()).expect("a legal mapping");
    });
    assert!(proxy.get("/x").text().contains("<request>https://oai.example.org/mended/x</request>"));
    assert!(proxy.get("/").text().contains("https://oai.example.org/mended/x?verb=Identify"));
}

#[test]
fn unknown_repository_is_404() {
    let proxy = Proxy::with(|config| {
        for id in ["one", "two.three_4-5"] {
            config.map(id, "http://127.0.0.1:1/oai").expect("a legal mapping");
        }
    });
    let known = |text: String| text.contains("href=\"/one/\"") && text.contains("href=\"/two.three_4-5/\"");
    for path in ["/three?verb=Identify", "/one/two", "/_x", "/-/metrics", "/-/repositories"] {
        let got = proxy.get(path);
        assert_eq!((got.status, got.header("content-type")), (404, "text/html; charset=UTF-8"), "{path}");
        assert!(known(got.text()), "{path}");
    }
    let page = proxy.get("/");
    assert_eq!(page.status, 200);
    assert!(page.header("content-security-policy").starts_with("default-src 'none'; style-src 'self';"));
    assert!(known(page.text()));
}

#[test]
fn friends_robots_and_health() {
    let proxy = Proxy::with(|config| config.map("x", "http://127.0.0.1:1/oai").expect("a legal mapping"));
    let friends = proxy.get("/friends.xml");
    let url = format!("http://{}/x", proxy.address());
    assert!(friends.text().contains(&format!("<baseURL id=\"x\">{url}</baseURL>")), "{}", friends.text());
    let robots = proxy.get("/robots.txt").text();
    for path in ["/_api/", "/_dump", "/_changes", "/_resolve"] {
        assert!(robots.contains(&format!("Disallow: {path}\n")), "{robots}");
    }
    assert!(!robots.contains("/x") && !robots.contains("Disallow: /\n"), "{robots}");
    for address in [proxy.address(), proxy.admin()] {
        for path in ["/-/livez", "/-/readyz"] {
            let got = fetch(address, path);
            assert_eq!((got.status, got.text().as_str()), (200, "ok\n"), "the source has no say in {path}");
        }
    }
}

#[test]
fn request_loop_is_detected() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::of(&source);
    let via = proxy.get("/").header("via").to_owned();
    let got = fetch_with(proxy.address(), LIST, &format!("Via: 1.0 other, {via}\r\n"));
    assert_eq!((got.status, got.header("proxy-status")), (503, "oaimend; error=proxy_loop_detected"));
    assert_eq!(source.requests().len(), 0);
    let other = fetch_with(proxy.address(), LIST, "Via: 1.1 oaimend-0123456789abcdef\r\n");
    assert_eq!(other.status, 200, "another oaimend in front of this one is no loop");
    let received = &source.requests()[0].headers["via"];
    assert_eq!(received, &format!("1.1 oaimend-0123456789abcdef, {via}"));
}

#[test]
fn http_proxy_serves_only_mapped_sources() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::of(&source);
    let base = source.base_url();
    let ask = |url: &str| {
        let host = url.split('/').nth(2).expect("an absolute URL");
        let request = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        Harvester::ask(proxy.address(), &request).rest()
    };
    let got = ask(&format!("{base}?verb=ListSets&set=1"));
    assert!(got.text().contains(&format!("<request>{base}</request>")), "{got:?}");
    let got = ask(&format!("{base}?verb=ListSets"));
    assert_eq!((got.status, records(&got.text())), (200, records(&page_of(1))));
    for elsewhere in
        [format!("{base}/other?verb=ListSets"), "http://127.0.0.1:1/oai?verb=ListSets".to_owned()]
    {
        assert_eq!(ask(&elsewhere).status, 403, "{elsewhere}");
    }
    assert_eq!(ask(&format!("http://{}{LIST}", proxy.address())).status, 200);
}

#[test]
fn admin_shows_counters_and_failures() {
    let source = Source::start(|number, _| match number {
        0 => Reply::xml(page_of(2)),
        _ => Reply::raw("SSH-2.0-OpenSSH_9.2\r\n"),
    });
    let proxy = Proxy::of(&source);
    proxy.get(LIST);
    proxy.get(LIST);
    proxy.get("/x?verb=Nonsense");
    // A request is counted after its response was sent, which we may have read earlier.
    while proxy.admin_json("/-/repositories/x")["requests"] != 3 {
        std::thread::yield_now();
    }
    let metrics = fetch(proxy.admin(), "/-/metrics").text();
    for line in [
        "oaimend_requests_total{outcome=\"complete\",repository=\"x\",verb=\"ListRecords\"} 1",
        "oaimend_requests_total{outcome=\"failed\",repository=\"x\",verb=\"ListRecords\"} 1",
        "oaimend_requests_total{outcome=\"refused\",repository=\"x\",verb=\"none\"} 1",
        "oaimend_source_failures_total{reason=\"http-protocol\",repository=\"x\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    let reported = proxy.admin_json("/-/repositories/x");
    assert_eq!((&reported["id"], &reported["base_url"]), (&"x".into(), &source.base_url().into()));
    assert_eq!((&reported["requests"], &reported["source_failures"]), (&3.into(), &1.into()));
    assert_eq!(reported["last_failure"]["reason"], "http-protocol");
    assert_eq!(proxy.admin_json("/-/repositories")["repositories"][0], reported);
    assert_eq!(proxy.admin_json("/-/repositories/x/repairs")["repairs"], serde_json::json!([]));
    assert_eq!(proxy.admin_json("/-/repositories/x/quarantine")["records"], serde_json::json!([]));
    for unknown in ["/-/repositories/y", "/-/repositories/x/quarantine/00", "/-/x", "/y", "/x/y"] {
        assert_eq!(fetch(proxy.admin(), unknown).status, 404, "{unknown}");
    }
}

#[test]
fn admin_is_read_only_and_checks_the_host() {
    let proxy = Proxy::with(|config| config.admin_hosts.push("node.example".to_owned()));
    let ask = |method: &str, host: &str| ask_admin(&proxy, &format!("{method} /-/metrics"), host, "");
    let port = proxy.admin().port();
    for host in
        [format!("127.0.0.1:{port}"), format!("localhost:{port}"), "LOCALHOST".into(), "[::1]:80".into()]
    {
        assert_eq!(ask("GET", &host), 200, "{host}");
    }
    for allowed in ["node.example", "Node.Example:8081", "192.0.2.1", "[2001:db8::1]:8081"] {
        assert_eq!(ask("GET", allowed), 200, "{allowed}");
    }
    for foreign in
        ["evil.example", "evil.example:8081", "127.0.0.1.evil.example", "localhost.evil.example", ""]
    {
        assert_eq!(ask("GET", foreign), 403, "{foreign}");
    }
    for method in ["POST", "DELETE", "PUT"] {
        assert_eq!(ask(method, "localhost"), 405, "{method}");
    }
    for probe in ["/-/livez", "/-/readyz"] {
        assert_eq!(ask_admin(&proxy, &format!("GET {probe}"), "probe.example", ""), 200, "{probe}");
        assert_eq!(ask_admin(&proxy, &format!("POST {probe}"), "probe.example", ""), 403, "{probe}");
    }
    assert_eq!(ask_admin(&proxy, "GET /-/livez/../metrics", "probe.example", ""), 403);
}

/// The status of the admin listener for a request with these fields of the head.
fn ask_admin(proxy: &Proxy, start: &str, host: &str, field: &str) -> u16 {
    let request = format!("{start} HTTP/1.1\r\nHost: {host}\r\n{field}Connection: close\r\n\r\n");
    Harvester::ask(proxy.admin(), &request).rest().status
}

#[test]
fn admin_refuses_changes_by_web_pages() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::of(&source);
    let origins =
        ["Origin: http://evil.example\r\n", "Origin: null\r\n", "Origin: http://localhost:8081\r\n"];
    for origin in origins {
        for start in [
            "PURGE /-/cache/x",
            "POST /-/repositories/x/quarantine/retry",
            "DELETE /-/repositories/x/quarantine?all=true",
            "PUT /-/metrics",
        ] {
            assert_eq!(ask_admin(&proxy, start, "localhost", origin), 403, "{start} {origin}");
        }
        for start in ["GET /-/metrics", "HEAD /-/metrics", "GET /x/"] {
            assert_eq!(ask_admin(&proxy, start, "localhost", origin), 200, "{start} {origin}");
        }
    }
    // Without a cache, only the origin decides.
    assert_ne!(ask_admin(&proxy, "PURGE /-/cache/x", "localhost", ""), 403);
}

#[test]
fn address_in_use_names_the_flag() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound");
    let data = tempfile::tempdir().expect("a temporary folder");
    let mut config = Config::on_loopback(data.path());
    config.listen = address;
    let error = Server::bind(config).err().expect("it is taken");
    let text = format!("cannot listen on {address}: Address already in use (os error 98)");
    assert_eq!(
        error.to_string(),
        format!("{text}; choose another one by --listen ADDR, or listen in oaimend.toml")
    );
    assert_eq!((error.exit_code(), error.retry()), (74, true));
    let mut config = Config::on_loopback(data.path());
    config.admin = Some(address);
    let error = Server::bind(config).err().expect("it is taken");
    assert_eq!(
        error.to_string(),
        format!("{text}; choose another one by --admin ADDR, --admin off, or admin.listen in oaimend.toml")
    );
}

#[test]
fn unwritable_data_folder_is_named() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let error = Running::start(Config::on_loopback(file.path())).err().expect("a file is no folder");
    assert!(matches!(error, Error::File { .. }), "{error}");
    assert!(error.to_string().ends_with("name a folder that can be written to with --data"), "{error}");
}

#[test]
fn stop_closes_the_ports() {
    let proxy = Proxy::with(|_| {});
    let (public, admin) = (proxy.address(), proxy.admin());
    proxy.running.stop();
    for address in [public, admin] {
        assert!(std::net::TcpStream::connect(address).is_err(), "{address}");
    }
}

#[test]
fn stop_finishes_requests_in_flight() {
    let (go, wait) = channel();
    let wait = std::sync::Mutex::new(Some(wait));
    let source = Source::start(move |_, _| {
        let page = page_of(3);
        let (first, rest) = page.split_at(page.len() / 2);
        let wait = wait.lock().expect("no panic").take().expect("asked once");
        Reply::new(200, &format!("Content-Length: {}", page.len())).send(first).wait(wait).send(rest)
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = Program::start(folder.path(), &["--map", &format!("x={}", source.base_url())]);
    let address = program.address();
    let mut harvester =
        Harvester::ask(address, &format!("GET {LIST} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    assert_eq!(harvester.head().status, 200);
    program.signal("-TERM");
    while fetch(address, "/-/readyz").status != 503 {
        std::thread::yield_now();
    }
    assert_eq!(fetch(address, LIST).status, 503, "nothing new");
    go.send(()).expect("the source waits");
    let mut body = Vec::new();
    while let Some(chunk) = harvester.chunk().filter(|chunk| !chunk.is_empty()) {
        body.extend(chunk);
    }
    assert!(String::from_utf8_lossy(&body).trim_end().ends_with("</OAI-PMH>"));
    assert!(program.ended().success());
    let said = program.whole_log();
    assert!(said.contains("\"outcome\":\"complete\""), "{said}");
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).expect("readable").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["data"], "no pid file, no socket");
}

#[test]
fn empty_arguments_do_not_reach_the_source() {
    let source = Source::page(page_of(2));
    let proxy = Proxy::of(&source);
    let list = "verb=ListRecords&metadataPrefix=oai_dc";
    for (query, code) in [
        (format!("{list}&set="), "badArgument"),
        (format!("{list}&set"), "badArgument"),
        (format!("{list}&from="), "badArgument"),
        (format!("{list}&until="), "badArgument"),
        ("verb=ListIdentifiers&metadataPrefix=".to_owned(), "badArgument"),
        ("verb=ListMetadataFormats&identifier=".to_owned(), "badArgument"),
        ("verb=GetRecord&metadataPrefix=oai_dc&identifier=".to_owned(), "badArgument"),
        ("verb=ListRecords&resumptionToken=".to_owned(), "badResumptionToken"),
        ("verb=ListSets&resumptionToken=".to_owned(), "badResumptionToken"),
        ("verb=".to_owned(), "badVerb"),
    ] {
        for got in [proxy.get(&format!("/x?{query}")), post(&proxy, "/x", &query)] {
            assert!(got.text().contains(&format!("<error code=\"{code}\">")), "{query}: {}", got.text());
            assert!(got.text().contains("<request>http"), "no argument is repeated: {}", got.text());
        }
    }
    assert!(source.requests().is_empty());
}
