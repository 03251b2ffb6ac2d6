//! Slow, endless or too many connections: each is limited, and the next client is served as usual.

use crate::fixtures::program::Program;
use crate::fixtures::proxy::{LIST, Proxy, at_once, records};
use crate::fixtures::source::{Got, Harvester, Reply, Source, fetch, fetch_with, page_of};
use oaimend::config::Connections;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn bounded(source: &Source, bound: impl FnOnce(&mut Connections)) -> Proxy {
    Proxy::with(|config| {
        // The requests must not be coalesced.
        config.cache.enabled = false;
        config.repositories.add_fixed(at_once(source));
        bound(&mut config.connections);
    })
}

/// Checks that another client is served.
#[track_caller]
fn others_are_answered(proxy: &Proxy) {
    let got = proxy.get(LIST);
    assert_eq!((got.status, got.whole), (200, true), "{got:?}");
    assert_eq!(records(&got.text()), records(&page_of(1)));
}

fn connect(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(proxy.address()).expect("the proxy listens")
}

/// Reads until the proxy closes the connection.
fn rest(mut stream: &TcpStream) -> String {
    let mut read = Vec::new();
    // A reset ends a connection as well as a close does.
    let _ = stream.read_to_end(&mut read);
    String::from_utf8_lossy(&read).into_owned()
}

/// Reads until the proxy has sent this text, or closes the connection.
fn until_said(mut stream: &TcpStream, what: &str) -> String {
    let (mut said, mut piece) = (String::new(), [0; 4096]);
    while !said.contains(what)
        && let Ok(length @ 1..) = stream.read(&mut piece)
    {
        said.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    said
}

#[track_caller]
fn counted(proxy: &Proxy, line: &str) {
    let metrics = fetch(proxy.admin(), "/-/metrics").text();
    assert!(metrics.contains(line), "{line} is not in\n{metrics}");
}

/// Waits until the proxy has this number of open connections.
fn open_connections(proxy: &Proxy, count: usize) {
    let line = format!("\noaimend_connections_open {count}\n");
    while !fetch(proxy.admin(), "/-/metrics").text().contains(&line) {
        std::thread::yield_now();
    }
}

#[test]
fn header_timeout() {
    let source = Source::page(page_of(1));
    let proxy = bounded(&source, |bounds| bounds.request_timeout = Duration::from_millis(300));
    let slow = connect(&proxy);
    (&slow).write_all(b"GET /x?verb=Identify HTTP/1.1\r\nHost:").expect("the proxy reads");
    others_are_answered(&proxy);
    let said = rest(&slow);
    assert!(said.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{said}");
    assert!(said.ends_with("the header was not received in time\n"), "{said}");
    counted(&proxy, "oaimend_refused_total{class=\"any\",reason=\"slow-header\"} 1");
}

#[test]
fn slow_header_timeout() {
    let source = Source::page(page_of(1));
    let proxy = bounded(&source, |bounds| bounds.request_timeout = Duration::from_millis(300));
    let slow = connect(&proxy);
    // Waiting for a response between two bytes sets the pace.
    slow.set_read_timeout(Some(Duration::from_millis(10))).expect("it is set");
    let mut said = [0; 17];
    let answered = (0..3000).any(|sent| {
        let byte = if sent < 40 { b"GET /x?verb=Identify HTTP/1.1\r\nHost: x\r\n"[sent] } else { b'a' };
        (&slow).write_all(&[byte]).is_err() || (&slow).read(&mut said).is_ok_and(|count| count > 0)
    });
    assert!(answered, "thirty seconds would have been read");
    assert_eq!(String::from_utf8_lossy(&said), "HTTP/1.1 408 Requ");
    others_are_answered(&proxy);
}

#[test]
fn form_timeout() {
    let source = Source::page(page_of(1));
    let proxy = bounded(&source, |bounds| bounds.request_timeout = Duration::from_millis(300));
    let head = "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nverb=";
    let got = Harvester::ask(proxy.address(), head).rest();
    assert_eq!((got.status, got.text().as_str()), (408, "the body was not received in time\n"));
    others_are_answered(&proxy);
}

#[test]
fn idle_timeout() {
    let source = Source::page(page_of(1));
    let proxy = bounded(&source, |bounds| bounds.idle_timeout = Duration::from_millis(200));
    assert_eq!(rest(&connect(&proxy)), "");
    let mut harvester = Harvester::ask(proxy.address(), &format!("GET {LIST} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert!(harvester.whole_body().whole);
    assert_eq!(harvester.chunk(), None, "closed, and with no word");
    others_are_answered(&proxy);
}

#[test]
fn shortest_request_is_answered() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::with(|config| config.repositories.add_fixed(at_once(&source)));
    let got = Harvester::ask(proxy.address(), "GET / HTTP/1.0\r\n\r\n").rest();
    assert_eq!(got.status, 200, "pingora would wait for as many bytes as HTTP/2 begins with");
    let got = Harvester::ask(proxy.address(), "\r\n\r\nGET / HTTP/1.0\r\n\r\n").rest();
    assert_eq!(got.status, 200, "empty lines before a request are skipped");
}

#[test]
fn excess_connections_get_503() {
    let source = Source::page(page_of(1));
    let proxy = bounded(&source, |bounds| bounds.connections_max = 4);
    let mut held: Vec<TcpStream> = (0..4).map(|_| connect(&proxy)).collect();
    open_connections(&proxy, 4);
    let got = proxy.get(LIST);
    assert_eq!((got.status, got.header("retry-after"), got.header("proxy-status")), (503, "10", ""));
    assert_eq!(got.text(), "too many connections are open; retry later\n");
    counted(&proxy, "oaimend_refused_total{class=\"any\",reason=\"connections\"} 1");
    held.clear();
    open_connections(&proxy, 0);
    others_are_answered(&proxy);
}

#[test]
fn far_too_many_connections_are_closed() {
    let source = Source::page(page_of(1));
    let proxy = bounded(&source, |bounds| bounds.connections_max = 1);
    let held = connect(&proxy);
    open_connections(&proxy, 1);
    let flood: Vec<TcpStream> = (0..200).map(|_| connect(&proxy)).collect();
    let refused = flood.iter().filter(|stream| rest(stream).starts_with("HTTP/1.1 503 ")).count();
    assert!((1..=100).contains(&refused), "{refused} were refused");
    drop((held, flood));
    open_connections(&proxy, 0);
    others_are_answered(&proxy);
}

/// Sends `before`, then one letter as long as the proxy reads; returns the response.
fn endless(proxy: &Proxy, before: &str, count: usize) -> String {
    let stream = connect(proxy);
    let sent = [before.as_bytes(), &vec![b'x'; count]].concat();
    // The proxy may close before everything is written.
    match (&stream).write_all(&sent) {
        Err(error) if !matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
            panic!("{error}")
        }
        _ => rest(&stream),
    }
}

#[test]
fn target_length_limit() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::with(|config| config.repositories.add_fixed(at_once(&source)));
    let target = |length: usize| {
        let start = "/x?verb=ListRecords&resumptionToken=";
        format!("{start}{}", "t".repeat(length - start.len()))
    };
    assert_eq!(proxy.get(&target(8 << 10)).status, 200);
    assert!(source.requests()[0].target.contains(&"t".repeat(8000)));
    assert_eq!(proxy.get(&target(16 << 10)).status, 200);
    let got = proxy.get(&target((16 << 10) + 1));
    assert_eq!(got.status, 414);
    assert!(got.text().contains("longer than 16384 bytes"), "{}", got.text());
    for length in [17 << 10, 60 << 10, 900 << 10] {
        assert_eq!(proxy.get(&target(length)).status, 414, "{length}");
    }
    let said = endless(&proxy, "GET /x?verb=", 512 << 10);
    assert!(said.starts_with("HTTP/1.1 414 URI Too Long\r\n"), "{said}");
    assert_eq!(http_2(&proxy, &target((16 << 10) + 1)), 414);
    assert_eq!(source.requests().len(), 2);
    counted(&proxy, "oaimend_refused_total{class=\"any\",reason=\"long-uri\"}");
    others_are_answered(&proxy);
}

fn http_2(proxy: &Proxy, path: &str) -> u16 {
    let url = format!("http://{}{path}", proxy.address());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build();
        client.expect("a client").get(url).send().await.expect("an answer").status().as_u16()
    })
}

#[test]
fn header_length_limit() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::with(|config| config.repositories.add_fixed(at_once(&source)));
    let field = |length: usize| format!("X-Long: {}\r\n", "x".repeat(length));
    assert_eq!(fetch_with(proxy.address(), LIST, &field(60 << 10)).status, 200);
    assert_eq!(fetch_with(proxy.address(), LIST, &field(64 << 10)).status, 431);
    assert_eq!(fetch_with(proxy.address(), LIST, &"A: b\r\n".repeat(252)).status, 200);
    let got = fetch_with(proxy.address(), LIST, &"A: b\r\n".repeat(260));
    assert_eq!(got.status, 431);
    assert!(got.text().contains("65536 bytes or 254 fields"), "{}", got.text());
    let said = endless(&proxy, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: ", 512 << 10);
    assert!(said.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"), "{said}");
    others_are_answered(&proxy);
}

#[test]
fn form_length_limit() {
    let source = Source::page(page_of(1));
    let proxy = bounded(&source, |bounds| bounds.form_bytes_max = 2000);
    let post = |length: usize| {
        let form = format!("verb={}", "x".repeat(length - 5));
        let head = format!("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        Harvester::ask(proxy.address(), &format!("{head}{form}")).rest()
    };
    assert!(post(2000).text().contains("badVerb"));
    let got: Got = post(2001);
    assert_eq!(got.status, 413);
    assert!(got.text().contains("2000 bytes"), "{}", got.text());
    others_are_answered(&proxy);
}

#[test]
fn broken_chunk_of_a_form_is_refused() {
    let source = Source::page(page_of(1));
    let proxy = bounded(&source, |_| {});
    let good = "d\r\nverb=Nonsense\r\n0\r\n\r\n";
    assert_eq!(good.split("\r\n").nth(1).map(str::len), Some(0xd));
    for (chunks, status) in [
        (good, 200),
        ("xyz\r\nverb=Identify\r\n0\r\n\r\n", 400),
        ("d\r\nverb=IdentifyXX0\r\n\r\n", 400),
        ("fffffffffffffffff\r\nverb=Identify\r\n0\r\n\r\n", 400),
    ] {
        for method in ["POST", "GET"] {
            let head = format!("{method} /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
            let got: Got = Harvester::ask(proxy.address(), &format!("{head}{chunks}")).rest();
            assert_eq!(got.status, status, "{method} {chunks:?}: {}", got.text());
            assert!(got.whole, "{method} {chunks:?}: {}", got.text());
        }
    }
    assert_eq!(source.requests().len(), 0);
    others_are_answered(&proxy);
}

#[test]
fn body_that_is_not_a_form_is_discarded() {
    let source = Source::page(page_of(1));
    let proxy = bounded(&source, |bounds| bounds.form_bytes_max = 2000);
    let get = |length: usize| {
        let head = format!("GET {LIST} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        Harvester::ask(proxy.address(), &format!("{head}{}", "&".repeat(length))).rest()
    };
    let got: Got = get(2000);
    assert_eq!((got.status, got.whole, records(&got.text())), (200, true, records(&page_of(1))));
    let got = get(2001);
    assert_eq!(got.status, 413);
    assert!(got.text().contains("form_bytes_max"), "{}", got.text());
    assert_eq!(source.requests().len(), 1);
}

#[test]
fn request_trailers_are_refused() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::with(|config| config.repositories.add_fixed(at_once(&source)));
    for method in ["GET", "POST"] {
        for path in [LIST, "/x?verb=Identify"] {
            let stream = connect(&proxy);
            (&stream).write_all(&request_with_trailers(method, path)).expect("the proxy reads");
            // A client that closes before the response may not receive it.
            let refused = "trailers after a request are not read";
            let said = until_said(&stream, refused);
            assert!(said.contains(refused), "{method} {path}: {said}");
        }
    }
    assert_eq!(source.requests().len(), 0);
    others_are_answered(&proxy);
}

/// A request of HTTP/2 (RFC 9113) without a body and with trailers.
fn request_with_trailers(method: &str, path: &str) -> Vec<u8> {
    let frame = |kind: u8, flags: u8, stream: u8, bytes: &[u8]| {
        let length = u8::try_from(bytes.len()).expect("it is short");
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], bytes].concat()
    };
    // Fields are not compressed (RFC 7541, 6.2.2): the index of a name, or 0 and the name; then the
    // value.
    let text = |text: &str| [&[u8::try_from(text.len()).expect("it is short")], text.as_bytes()].concat();
    let named = |name: u8, value: &str| [vec![name], text(value)].concat();
    let head = [named(2, method), named(6, "http"), named(4, path), named(1, "x")].concat();
    let trailers = [vec![0], text("x"), text("y")].concat();
    let (headers, settings) = (1, 4);
    let (end_of_stream, end_of_headers) = (1, 4);
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(settings, 0, 0, &[]),
        frame(headers, end_of_headers, 1, &head),
        frame(headers, end_of_headers | end_of_stream, 1, &trailers),
    ]
    .concat()
}

#[test]
fn data_after_a_request_is_not_answered() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::with(|config| config.repositories.add_fixed(at_once(&source)));
    let request = format!("GET {LIST} HTTP/1.1\r\nHost: x\r\n\r\n");
    for rubbish in ["\0\u{1}\u{2} rubbish\r\n\r\n".repeat(50), request.repeat(1000), "x".repeat(1 << 20)] {
        let stream = connect(&proxy);
        let _ = (&stream).write_all(format!("{request}{rubbish}").as_bytes());
        let said = rest(&stream);
        // The connection is closed; whether the first request is answered depends on the timing.
        assert!(said.matches("HTTP/1.1 ").count() <= 1, "{said}");
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
    }
    assert!(source.requests().len() <= 3, "later data has not reached the source");
    others_are_answered(&proxy);
}

#[test]
fn malformed_http_gets_400() {
    let source = Source::page(page_of(1));
    let proxy = Proxy::with(|config| config.repositories.add_fixed(at_once(&source)));
    let hello = [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], &[7; 300]].concat();
    let stream = connect(&proxy);
    (&stream).write_all(&hello).expect("the proxy reads");
    let said = rest(&stream);
    assert!(said.starts_with("HTTP/1.1 400 Bad Request\r\n") && said.contains("use http://"), "{said}");
    for rubbish in
        ["GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "a b c d\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n"]
    {
        let stream = connect(&proxy);
        (&stream).write_all(rubbish.as_bytes()).expect("the proxy reads");
        let said = rest(&stream);
        assert!(said.starts_with("HTTP/1.1 400 ") || said.is_empty(), "{rubbish:?}: {said}");
    }
    others_are_answered(&proxy);
}

#[test]
fn write_timeout() {
    let page = page_of(80_000);
    let source = Source::start(move |number, _| match number {
        0 => Reply::xml(page.clone()),
        _ => Reply::xml(page_of(1)),
    });
    let proxy = bounded(&source, |bounds| bounds.write_timeout = Duration::from_millis(300));
    let mut slow = Harvester::ask(proxy.address(), &format!("GET {LIST} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_eq!(slow.head().status, 200);
    others_are_answered(&proxy);
    let abandoned = "oaimend_requests_total{outcome=\"abandoned\",repository=\"x\",verb=\"ListRecords\"} 1";
    while !fetch(proxy.admin(), "/-/metrics").text().contains(abandoned) {
        std::thread::yield_now();
    }
    while slow.chunk().is_some_and(|chunk| !chunk.is_empty()) {}
    assert_eq!(slow.chunk(), None, "the truncated page is visibly aborted");
    others_are_answered(&proxy);
}

#[test]
fn stop_timeout() {
    let source = Source::start(|_, _| {
        Reply::new(200, "Content-Length: 100000").send(page_of(100).split_at(20_000).0).hang()
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("oaimend.toml"), "connections.stop_timeout_secs = 1\n")
        .expect("writable");
    let program = Program::start(folder.path(), &["--map", &format!("x={}", source.base_url())]);
    let request = format!("GET {LIST} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut held = Harvester::ask(program.address(), &request);
    assert_eq!(held.head().status, 200);
    program.signal("-TERM");
    assert!(program.ended().success());
    while held.chunk().is_some_and(|chunk| !chunk.is_empty()) {}
    assert_eq!(held.chunk(), None, "the truncated page is visibly aborted");
}
