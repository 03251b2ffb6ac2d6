//! Responses for harvesters when the source misbehaves: a complete page, a visibly aborted page, or
//! a 503 with the reason.

use crate::fixtures::proxy::{LIST, Proxy, records};
use crate::fixtures::source;
use crate::fixtures::source::{Got, Harvester, REFUSED, Reply, Source, fetch_with, page_of};
use oaimend::config::Mapping;
use oaimend_upstream::settings::Limits;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A failure: 503 with an integer Retry-After, and a text that Proxy-Status repeats.
#[track_caller]
pub(super) fn check_failed(got: &Got, error: &str, text: &str) {
    assert_eq!((got.status, got.whole), (503, true), "{}", got.text());
    let status = got.header("proxy-status");
    assert!(status.starts_with(&format!("oaimend; error={error}")), "{status}");
    assert!(got.text().contains(text), "{}", got.text());
    assert!(status.contains("details=\""), "{status}");
    let seconds: u64 = got.header("retry-after").parse().expect("an integer");
    assert!((1..=3600).contains(&seconds), "{seconds}");
    assert_eq!(got.header("content-type"), "text/plain; charset=UTF-8");
}

/// A permanent failure: 502 without Retry-After.
#[track_caller]
fn check_final(got: &Got, error: &str, text: &str) {
    assert_eq!((got.status, got.whole, got.header("retry-after")), (502, true, ""), "{}", got.text());
    let status = got.header("proxy-status");
    assert!(status.starts_with(&format!("oaimend; error={error}")), "{status}");
    assert!(got.text().contains(text) && got.text().contains("Retry: no"), "{}", got.text());
}

/// The failure for a source with this one reply.
fn failed(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Got {
    let source = Source::start(move |_, _| reply());
    Proxy::of(&source).get(LIST)
}

/// The same with expired timeouts.
fn timed_out(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Got {
    let source = Source::start(move |_, _| reply());
    Proxy::tuned(&source, |mapping| {
        mapping.source_mut().timeouts.connect = Duration::from_millis(200);
        mapping.source_mut().timeouts.read = Duration::from_millis(200);
    })
    .get(LIST)
}

pub(super) fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(plain).and_then(|()| writer.finish()).expect("a Vec takes all")
}

fn gunzip(coded: &[u8]) -> (String, std::io::Result<usize>) {
    let mut plain = Vec::new();
    let end = flate2::read::GzDecoder::new(coded).read_to_end(&mut plain);
    (String::from_utf8_lossy(&plain).into_owned(), end)
}

#[test]
fn redirects_are_followed() {
    let source = Source::start(|_, received| match received.target.split('?').next() {
        Some("/oai") => Reply::redirect(301, "/1?verb=ListRecords&metadataPrefix=oai_dc"),
        Some("/1") => Reply::redirect(302, "2?a=b#fragment"),
        Some("/2") => Reply::redirect(303, "./3"),
        Some("/3") => Reply::redirect(307, "/4"),
        Some("/4") => Reply::redirect(308, "/5"),
        _ => Reply::xml(page_of(2)),
    });
    let got = Proxy::of(&source).get(LIST);
    assert_eq!((got.status, records(&got.text())), (200, records(&page_of(2))));
    assert_eq!(got.header("location"), "");
    let targets: Vec<String> = source.requests().into_iter().map(|received| received.target).collect();
    assert_eq!(targets[2..], ["/2?a=b", "/3", "/4", "/5"]);
}

#[test]
fn invalid_redirects_are_failures() {
    let unavailable = "destination_unavailable; received-status=302";
    for (location, text) in [
        ("/oai", "redirects more than 5 times (redirects_max)"),
        ("ftp://source.example/oai", "redirects to an address that is not http or https"),
        ("file:///etc/passwd", "redirects to an address that is not http or https"),
        ("http://[", "redirects to an address that is no URL"),
    ] {
        check_final(&failed(move || Reply::redirect(302, location)), unavailable, text);
    }
    let source = Source::start(|_, _| Reply::redirect(302, "/oai"));
    assert_eq!(Proxy::of(&source).get(LIST).status, 502);
    assert_eq!(source.requests().len(), 6, "the first and five more");
    let nowhere = failed(|| Reply::whole(302, "", ""));
    check_final(&nowhere, unavailable, "redirects without a Location");
}

#[test]
fn redirect_from_https_to_http_is_not_followed() {
    let plain = Source::page(page_of(1));
    let to = plain.base_url();
    let source = Source::start_tls(move |_, _| Reply::redirect(301, &to));
    let got = Proxy::tuned(&source, |mapping| {
        mapping.source_mut().access.tls.verify = false;
        mapping.source_mut().access.redirect_hosts = vec!["127.0.0.1".to_owned()];
    })
    .get(LIST);
    check_final(
        &got,
        "destination_unavailable; received-status=301",
        "redirects from https to http, which is not",
    );
    assert_eq!(plain.requests().len(), 0);
}

#[test]
fn tls_uses_the_trust_of_the_mapping() {
    let source = Source::start_tls(|_, _| Reply::xml(page_of(1)));
    let got = Proxy::of(&source).get(LIST);
    check_final(&got, "tls_certificate_error", "invalid peer certificate: UnknownIssuer");
    check_final(&got, "tls_certificate_error", "set tls.ca_file");
    let ca = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/fixtures/tls/ca.pem");
    let trusting = Proxy::tuned(&source, |mapping| mapping.source_mut().access.tls.ca_file = Some(ca));
    assert_eq!(trusting.get(LIST).status, 200);
    let blind = Proxy::tuned(&source, |mapping| mapping.source_mut().access.tls.verify = false);
    assert_eq!(blind.get(LIST).status, 200);
    let missing =
        Proxy::tuned(&source, |mapping| mapping.source_mut().access.tls.ca_file = Some("/nowhere".into()));
    check_final(&missing.get(LIST), "proxy_configuration_error", "ca_file /nowhere cannot be used");
}

#[test]
fn unusable_responses_are_failures() {
    let url = format!("http://{REFUSED}/oai");
    let proxy = Proxy::with(|config| config.map("x", &url).expect("a legal mapping"));
    check_failed(&proxy.get(LIST), "connection_refused", "refuses the connection; check base_url");
    check_failed(&failed(|| Reply::raw("").reset()), "connection_terminated", "closed the connection");
    check_failed(&failed(|| Reply::raw("")), "http_response_incomplete", "closed the connection before");
    check_failed(&failed(|| Reply::raw("SSH-2.0-x\r\n")), "http_protocol_error", "does not speak HTTP");
    check_failed(&timed_out(|| Reply::raw("").hang()), "http_response_timeout", "(read_timeout_secs)");
    check_failed(
        &timed_out(|| Reply::new(200, "Content-Length: 9").hang()),
        "http_response_timeout; received-status=200",
        "was silent for 200ms",
    );
    let plain = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("https://{}/oai", plain.local_addr().expect("it is bound"));
    std::thread::spawn(move || {
        plain.accept().and_then(|(mut stream, _)| stream.write_all(b"HTTP/1.1 400 Bad\r\n\r\n"))
    });
    let proxy = Proxy::with(|config| config.map("x", &url).expect("a legal mapping"));
    check_final(&proxy.get(LIST), "tls_protocol_error", "TLS with its server fails");
}

#[test]
fn content_codings_are_decoded() {
    let page = page_of(50);
    let zlib = {
        let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(page.as_bytes()).and_then(|()| writer.finish()).expect("a Vec takes all")
    };
    let brotli = {
        let mut coded = Vec::new();
        let params = brotli::enc::BrotliEncoderParams { quality: 3, ..Default::default() };
        brotli::BrotliCompress(&mut page.as_bytes(), &mut coded, &params).expect("a Vec takes all");
        coded
    };
    let zstd = zstd::stream::encode_all(page.as_bytes(), 1).expect("a Vec takes all");
    let gzip = gzip(page.as_bytes());
    for (announced, body) in [
        ("", gzip.clone()),
        ("gzip", gzip.clone()),
        ("gzip", self::gzip(&gzip)),
        ("gzip", page.clone().into_bytes()),
        ("br", page.clone().into_bytes()),
        ("br", brotli),
        ("", zstd),
        ("deflate", zlib),
    ] {
        let header =
            if announced.is_empty() { String::new() } else { format!("Content-Encoding: {announced}") };
        let length = body.len();
        let source = Source::start(move |_, _| Reply::whole(200, &header, body.clone()));
        let got = Proxy::of(&source).get(LIST);
        assert_eq!((got.status, got.header("content-encoding")), (200, ""), "{announced} {length}");
        assert_eq!(records(&got.text()), records(&page), "{announced} {length}");
    }
}

/// A limit is exceeded after the root's end tag: the transfer is aborted, without a second end or a
/// continuation token.
#[test]
fn nothing_follows_the_end_of_the_document() {
    let page = format!("{}{}", page_of(3), "\n".repeat(4 << 20));
    let source = Source::start(move |_, _| Reply::xml(page.clone()));
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().limits.response_bytes_max = 1 << 20);
    let got = proxy.get(LIST);
    let text = got.text();
    let (_, after) = text.split_once("</OAI-PMH>").expect("the whole list was sent");
    assert_eq!((got.status, got.whole), (200, false));
    assert_eq!(after.trim(), "");
    assert!(!text.contains("<resumptionToken"), "{}", text.trim());
}

/// A proxy with a memory limit for small records: a large one that was sent in part can neither be
/// withdrawn nor resumed.
fn holding_little(source: &Source) -> Proxy {
    Proxy::tuned(source, |mapping| mapping.source_mut().limits.repair.record_bytes_max = 1024)
}

/// Sources that end in the middle of the second of three records, which is a large one.
fn cut_sources() -> Vec<(&'static str, Source)> {
    let page = page_of(3).replace("Title 1", &"Title 1 ".repeat(1000));
    let middle =
        page.find("</dc:title></oai_dc:dc></metadata></record>\n<record><header><identifier>oai:x:2");
    let middle = middle.expect("it is there");
    let first = page[..middle].to_owned();
    let coded = gzip(page.as_bytes());
    let half = coded[..coded.len() - 40].to_vec();
    let (length, coded_length) = (page.len(), coded.len());
    let chunk = format!("{:x}\r\n{first}\r\n", first.len());
    let sent = first.clone();
    vec![
        (
            "length",
            Source::start(move |_, _| {
                Reply::new(200, &format!("Content-Length: {length}")).send(sent.clone())
            }),
        ),
        (
            "chunks",
            Source::start(move |_, _| Reply::new(200, "Transfer-Encoding: chunked").send(chunk.clone())),
        ),
        (
            "reset",
            Source::start(move |_, _| {
                Reply::new(200, &format!("Content-Length: {length}")).send(first.clone()).reset()
            }),
        ),
        (
            "gzip",
            Source::start(move |_, _| {
                Reply::new(200, &format!("Content-Length: {coded_length}")).send(half.clone())
            }),
        ),
    ]
}

#[test]
fn truncated_page_is_visibly_aborted() {
    for (how, source) in cut_sources() {
        let proxy = holding_little(&source);
        let got = proxy.get(LIST);
        if got.status == 503 {
            continue;
        }
        assert!(!got.whole, "{how}");
        assert!(!got.text().contains("</OAI-PMH>"), "{how}: {}", got.text());
        let zipped = fetch_with(proxy.address(), LIST, "Accept-Encoding: gzip\r\n");
        let (text, end) = gunzip(&zipped.body);
        assert!(!zipped.whole && end.is_err(), "{how}: {text}");
    }
}

#[test]
fn data_before_the_abort_is_delivered() {
    for (how, source) in cut_sources().into_iter().filter(|(how, _)| *how == "length" || *how == "chunks") {
        let got = holding_little(&source).get(LIST);
        assert_eq!((got.status, got.whole), (200, false), "{how}");
        assert!(got.text().contains("oai:x:0"), "{how}: {}", got.text());
    }
}

#[test]
fn truncated_page_resets_the_http_2_stream() {
    for (how, source) in cut_sources().into_iter().filter(|(how, _)| *how != "reset" && *how != "gzip") {
        let proxy = holding_little(&source);
        let url = format!("http://{}{LIST}", proxy.address());
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build();
            let answer = client.expect("a client").get(url).send().await.expect("an answer");
            assert_eq!((answer.version(), answer.status().as_u16()), (http::Version::HTTP_2, 200), "{how}");
            let error = answer.bytes().await.expect_err("it breaks off");
            assert!(format!("{error:?}").contains("Reset("), "{how}: {error:?}");
        });
    }
}

#[test]
fn http_1_0_gets_complete_pages_only() {
    let ask = |proxy: &Proxy| {
        Harvester::ask(proxy.address(), &format!("GET {LIST} HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"))
            .rest()
    };
    for (how, source) in cut_sources() {
        let got = ask(&holding_little(&source));
        assert_eq!((got.status, got.whole), (503, true), "{how}");
    }
    let source = Source::page(page_of(100));
    let got = ask(&Proxy::of(&source));
    assert_eq!((got.status, got.whole), (200, true));
    assert_eq!((got.header("transfer-encoding"), got.header("content-encoding")), ("", ""));
    assert_eq!(records(&got.text()), records(&page_of(100)));
    let mut mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    mapping.source_mut().limits.spool_bytes_max = 10_000;
    let small = Proxy::with(|config| {
        config.cache.enabled = false;
        config.repositories.add_fixed(mapping);
    });
    check_final(&ask(&small), "proxy_internal_error", "longer than 10000 bytes (spool_bytes_max)");
}

#[test]
fn http_1_0_shares_the_cache() {
    let source = Source::start(|_, received| {
        if received.target.contains("verb=GetRecord") {
            Reply::xml(page_of(1).replace("ListRecords", "GetRecord"))
        } else {
            Reply::xml(page_of(5_000))
        }
    });
    let proxy = Proxy::tuned(&source, |mapping| mapping.source_mut().limits.spool_bytes_max = 1024);
    let ask = |proxy: &Proxy, path: &str| {
        Harvester::ask(proxy.address(), &format!("GET {path} HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"))
            .rest()
    };
    let item = "/x?verb=GetRecord&identifier=oai%3Ax%3A0&metadataPrefix=oai_dc";
    let (first, second) = (ask(&proxy, item), ask(&proxy, item));
    for got in [&first, &second] {
        assert_eq!((got.status, got.whole), (200, true));
        assert_eq!(got.header("content-length"), got.body.len().to_string());
        assert_eq!((got.header("transfer-encoding"), got.header("content-encoding")), ("", ""));
    }
    assert_eq!(first.body, second.body);
    assert!(second.header("cache-status").contains("hit"), "{}", second.header("cache-status"));
    assert_eq!(source.requests().len(), 1, "the second page is from the cache");
    // A page that is longer than 1 MiB is held in a file.
    let long = ask(&proxy, LIST);
    assert_eq!((long.status, long.whole), (200, true));
    assert!(long.body.len() > 1 << 20 && records(&long.text()) == records(&page_of(5_000)));
    let mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    let small = Proxy::with(|config| {
        config.cache.entry_bytes_max = 1 << 20;
        config.repositories.add_fixed(mapping);
    });
    check_final(
        &ask(&small, LIST),
        "proxy_internal_error",
        "too long to be held for HTTP/1.0 (cache.entry_bytes_max)",
    );
}

#[test]
fn complete_document_with_wrong_length_is_complete() {
    let page = page_of(3);
    let length = page.len() + 100;
    let coded = gzip(page.as_bytes());
    let tailless = coded[..coded.len() - 8].to_vec();
    for reply in [
        Box::new(move || Reply::new(200, &format!("Content-Length: {length}")).send(page_of(3)))
            as Box<dyn Fn() -> Reply + Send + Sync>,
        Box::new(move || Reply::whole(200, "", tailless.clone())),
    ] {
        let source = Source::start(move |_, _| reply());
        let got = Proxy::of(&source).get(LIST);
        assert_eq!((got.status, got.whole), (200, true));
        assert_eq!(records(&got.text()), records(&page));
    }
}

#[test]
fn gzip_for_harvesters() {
    let source = Source::page(page_of(200));
    let proxy = Proxy::of(&source);
    let got = fetch_with(proxy.address(), LIST, "Accept-Encoding: br, gzip;q=0.8\r\n");
    assert_eq!((got.status, got.whole, got.header("content-encoding")), (200, true, "gzip"));
    assert_eq!(got.header("vary"), "Accept-Encoding, Oaimend-Harvester, Sec-Fetch-Dest");
    let (text, end) = gunzip(&got.body);
    assert!(end.is_ok() && got.body.len() * 5 < text.len());
    assert_eq!(records(&text), records(&page_of(200)));
    for identity in ["", "Accept-Encoding: identity\r\n", "Accept-Encoding: gzip;q=0\r\n"] {
        let got = fetch_with(proxy.address(), LIST, identity);
        let headers = (got.header("content-encoding"), got.header("vary"));
        assert_eq!(headers, ("", "Accept-Encoding, Oaimend-Harvester, Sec-Fetch-Dest"));
    }
    let refused = fetch_with(proxy.address(), "/x?verb=Nonsense", "Accept-Encoding: gzip\r\n");
    assert_eq!((refused.header("content-encoding"), refused.whole), ("", true));
}

/// A source that sends the first of two records, and the second on a signal.
fn halting() -> (std::sync::mpsc::Sender<()>, Source) {
    let (go, wait): (_, Receiver<()>) = channel();
    let wait = Mutex::new(Some(wait));
    let source = Source::start(move |_, _| {
        let page = page_of(2);
        let second = page.find("<record><header><identifier>oai:x:1").expect("it is there");
        let wait = wait.lock().expect("no panic").take().expect("asked once");
        let (first, rest) = (page[..second].to_owned(), page[second..].to_owned());
        Reply::new(200, &format!("Content-Length: {}", page.len())).send(first).wait(wait).send(rest)
    });
    (go, source)
}

#[test]
fn first_record_is_streamed() {
    for accepts in ["", "Accept-Encoding: gzip\r\n"] {
        let (go, source) = halting();
        let proxy = Proxy::of(&source);
        let request = format!("GET {LIST} HTTP/1.1\r\nHost: x\r\n{accepts}Connection: close\r\n\r\n");
        let mut harvester = Harvester::ask(proxy.address(), &request);
        assert_eq!(harvester.head().status, 200);
        let mut body = Vec::new();
        let text = |body: &[u8]| match accepts {
            "" => String::from_utf8_lossy(body).into_owned(),
            _ => gunzip(body).0,
        };
        while !text(&body).contains("</record>") {
            body.extend(harvester.chunk().expect("the transfer goes on"));
        }
        assert!(!text(&body).contains("oai:x:1"));
        go.send(()).expect("the source waits");
        while let Some(chunk) = harvester.chunk().filter(|chunk| !chunk.is_empty()) {
            body.extend(chunk);
        }
        assert_eq!(records(&text(&body)), records(&page_of(2)));
    }
}

/// Without a signal of the test no timeout fires.
fn patient(mapping: &mut Mapping) {
    mapping.source_mut().timeouts.read = Duration::from_secs(3600);
}

#[test]
fn head_request_waits_for_the_first_record_only() {
    let one_counted = |proxy: &Proxy| {
        while proxy.admin_json("/-/repositories/x")["requests"] != 1 {
            std::thread::yield_now();
        }
    };
    let (go, source) = halting();
    let proxy = Proxy::tuned(&source, patient);
    let request = format!("HEAD {LIST} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_eq!(Harvester::ask(proxy.address(), &request).head().status, 200);
    one_counted(&proxy);
    drop(go);
    let (go, source) = halting();
    let proxy = Proxy::tuned(&source, patient);
    let url = format!("http://{}{LIST}", proxy.address());
    tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        let client = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build();
        let answer = client.expect("a client").head(url).send().await.expect("an answer");
        assert_eq!((answer.version(), answer.status().as_u16()), (http::Version::HTTP_2, 200));
        one_counted(&proxy);
    });
    drop(go);
}

#[test]
fn disconnect_ends_the_session() {
    let (go, source) = halting();
    let proxy = Proxy::tuned(&source, patient);
    let request = format!("GET {LIST} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut harvester = Harvester::ask(proxy.address(), &request);
    assert_eq!(harvester.head().status, 200);
    drop(harvester);
    while proxy.admin_json("/-/repositories/x")["requests"] != 1 {
        std::thread::yield_now();
    }
    let metrics = source::fetch(proxy.admin(), "/-/metrics").text();
    assert!(metrics.contains("outcome=\"abandoned\",repository=\"x\""), "{metrics}");
    drop(go);
}
