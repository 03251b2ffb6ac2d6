//! The cache: which pages are stored, for how long, and which are not.

use crate::fixtures::keeping::{
    IDENTIFY, TOKEN_PAGE, forgetful, identify, kept, map, numbered, purge, request, wait_until,
};
use crate::fixtures::lists::{page, read_to_the_end, resume, token_in};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::{LIST, Proxy, records};
use crate::fixtures::source::{Got, Harvester, Reply, Source, fetch, fetch_with, last_page_of, page_of};
use oaimend::config::Config;
use oaimend_upstream::settings::PageFallback;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// An OAI error.
fn error() -> String {
    let page = page_of(0);
    let (head, _) = page.split_once("<request").expect("it has one");
    format!(
        "{head}<request>http://source.example/oai</request>\n<error code=\"noSetHierarchy\">no</error>\n</OAI-PMH>\n"
    )
}

/// A page with a token for the next page.
fn page_with_token(attributes: &str) -> String {
    let token = format!("<resumptionToken{attributes}>t2</resumptionToken>\n</ListRecords>");
    page_of(2).replace("</ListRecords>", &token)
}

/// The number of requests to the source for a page that fails every time.
const ATTEMPTS: usize = 8;

#[test]
fn hit_returns_the_same_bytes() {
    let source = numbered();
    let proxy = Proxy::of(&source);
    let first = proxy.get(IDENTIFY);
    assert_eq!((first.status, first.whole), (200, true));
    assert_eq!(first.header("cache-status"), "oaimend; fwd=miss; fwd-status=200");
    assert_eq!(first.header("age"), "");
    let again = proxy.get(IDENTIFY);
    assert_eq!((again.status, again.whole, again.text()), (200, true, first.text()));
    assert!(again.text().contains("<responseDate>2026-01-02T03:04:05Z</responseDate>"), "{}", again.text());
    assert_eq!(again.header("cache-status"), "oaimend; hit");
    assert_eq!(again.header("content-type"), "text/xml; charset=UTF-8");
    assert!(again.header("age").parse::<u64>().is_ok(), "{again:?}");
    let zipped = fetch_with(proxy.address(), IDENTIFY, "Accept-Encoding: gzip\r\n");
    let mut plain = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&zipped.body[..]), &mut plain)
        .expect("a whole gzip stream");
    assert_eq!((zipped.header("cache-status"), plain), ("oaimend; hit", first.text()));
    let form = "POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 13\r\n\r\nverb=Identify";
    assert_eq!(Harvester::ask(proxy.address(), form).rest().text(), first.text());
    assert_eq!(source.requests().len(), 1);
}

#[test]
fn key_contains_url_and_mapping() {
    let source = numbered();
    let proxy = Proxy::of(&source);
    proxy.get(IDENTIFY);
    let absolute = format!("{}?verb=Identify", source.base_url());
    let got = Harvester::ask(proxy.address(), &request(source.address, &absolute)).rest();
    assert!(got.text().contains("answer 1"), "{}", got.text());
    let proxy = proxy.restarted(|config| {
        map(config, &source, |mapping| mapping.source_mut().access.user_agent = "another".into());
    });
    assert!(proxy.get(IDENTIFY).text().contains("answer 2"));
}

#[test]
fn long_page_is_cached() {
    let source = Source::page(last_page_of(6000));
    let proxy = Proxy::of(&source);
    let first = proxy.get(TOKEN_PAGE);
    assert!(first.body.len() > 2 << 20, "longer than what is held in memory: {}", first.body.len());
    let again = proxy.get(TOKEN_PAGE);
    assert_eq!((again.header("cache-status"), again.whole), ("oaimend; hit", true));
    assert!(again.body == first.body);
    assert_eq!(records(&again.text()), records(&last_page_of(6000)));
    assert_eq!(source.requests().len(), 1);
}

#[test]
fn first_list_page_is_not_cached() {
    let source = numbered();
    let proxy = Proxy::of(&source);
    for number in 0..3 {
        let got = proxy.get(LIST);
        assert_eq!(records(&got.text()), records(&page_of(number + 1)));
        assert_eq!(got.header("cache-status"), "oaimend; fwd=miss; fwd-status=200");
    }
    assert_eq!(source.requests().len(), 3);
    assert_eq!(kept(&proxy), Vec::<PathBuf>::new());
}

#[test]
fn stale_on_error() {
    let source = Source::start(|number, _| match number {
        0 => Reply::xml(identify("old")),
        _ => Reply::whole(500, "", "out of order"),
    });
    let proxy = forgetful(&source);
    let first = proxy.get(IDENTIFY);
    let stale = proxy.get(IDENTIFY);
    assert_eq!((stale.status, stale.whole, stale.text()), (200, true, first.text()));
    assert_eq!(stale.header("cache-status"), "oaimend; fwd=stale; detail=stale-if-error");
    assert!(!stale.header("age").is_empty());
    let failure = "oaimend; error=destination_unavailable; received-status=500; details=";
    assert!(stale.header("proxy-status").starts_with(failure), "{}", stale.header("proxy-status"));
    let soon = proxy.get(IDENTIFY);
    assert_eq!((soon.status, soon.text()), (200, first.text()));
    assert_eq!(soon.header("cache-status"), "oaimend; hit; detail=stale-if-error");
    assert_eq!(soon.header("proxy-status"), stale.header("proxy-status"));
    let received = 1 + ATTEMPTS;
    assert_eq!(source.requests().len(), received, "a source that fails is left alone for some seconds");
}

#[test]
fn expired_page_is_replaced() {
    let source = numbered();
    let proxy = forgetful(&source);
    proxy.get(IDENTIFY);
    let got = proxy.get(IDENTIFY);
    assert!(got.text().contains("answer 1"));
    assert_eq!(got.header("cache-status"), "oaimend; fwd=stale; fwd-status=200");
    assert_eq!(kept(&proxy).len(), 1);
}

#[test]
fn stale_first_page_requires_stale_lists() {
    let source = || {
        Source::start(|number, _| match number {
            0 => Reply::xml(page_of(3)),
            _ => Reply::whole(500, "", ""),
        })
    };
    let (strict, lax) = (source(), source());
    let proxy = Proxy::of(&strict);
    assert_eq!((proxy.get(LIST).status, proxy.get(LIST).status), (200, 503));
    let proxy = Proxy::tuned(&lax, |mapping| {
        (mapping.stale_lists, mapping.source_mut().quirks.page_fallback) = (true, PageFallback::Off);
    });
    assert_eq!((proxy.get(LIST).status, proxy.get(LIST).status), (200, 200));
    assert_eq!(lax.requests().len(), 1 + ATTEMPTS);
}

#[test]
fn token_page_expires_with_the_next_token() {
    for (attributes, received) in [
        ("", 1),
        (" expirationDate=\"2999-01-01T00:00:00Z\" cursor=\"0\"", 1),
        (" expirationDate=\"2001-01-01T00:00:00Z\"", 2),
    ] {
        let page = page_with_token(attributes);
        let source = Source::page(page.clone());
        let proxy = Proxy::of(&source);
        for _ in 0..2 {
            assert_eq!(records(&proxy.get(TOKEN_PAGE).text()), records(&page));
        }
        assert_eq!(source.requests().len(), received, "{attributes}");
    }
}

#[test]
fn oai_error_is_cached_for_seconds() {
    let source = Source::page(error());
    let kept_for = |failures: Duration| {
        let proxy = Proxy::with(|config| {
            config.cache.failures = failures;
            map(config, &source, |_| {});
        });
        let before = source.requests().len();
        let got = [proxy.get("/x?verb=ListSets"), proxy.get("/x?verb=ListSets")];
        assert!(got.iter().all(|got| got.text().contains("noSetHierarchy")));
        source.requests().len() - before
    };
    assert_eq!(kept_for(Duration::from_secs(3600)), 1);
    assert_eq!(kept_for(Duration::ZERO), 2, "fresh_secs are for answers");
}

#[test]
fn incomplete_page_is_not_cached() {
    let hopeless = page_of(3).replace("<identifier>oai:x:1</identifier>", "<identifier></identifier>");
    let cut = page_of(3);
    let cut = cut[..cut.find("Title 2").expect("it is there")].to_owned();
    for (page, received) in [(hopeless, 1), (cut, ATTEMPTS)] {
        let source = Source::page(page);
        let proxy = Proxy::of(&source);
        for _ in 0..2 {
            let got = proxy.get(TOKEN_PAGE);
            assert_eq!((got.status, got.whole), (200, true));
            assert_eq!(got.text().contains("<resumptionToken>oaimend1_"), received == ATTEMPTS);
        }
        assert_eq!(source.requests().len(), 2 * received);
        assert_eq!(kept(&proxy), Vec::<PathBuf>::new());
    }
}

#[test]
fn survives_restart_and_kill() {
    let source = numbered();
    let configure = |config: &mut Config| {
        config.public_url = Some("http://oai.example".into());
        map(config, &source, |_| {});
    };
    let proxy = Proxy::with(configure);
    let first = proxy.get(IDENTIFY).text();
    // The leftovers of a killed process.
    let part = proxy.data().join("cache/x/00000000000000000000000000000000-7.part");
    std::fs::write(&part, "half a pa").expect("it can be written");
    let proxy = proxy.restarted(configure);
    assert!(!part.exists());
    let got = proxy.get(IDENTIFY);
    assert_eq!((got.header("cache-status"), got.text()), ("oaimend; hit", first));
    assert_eq!(source.requests().len(), 1);
}

#[test]
fn kill_leaves_only_complete_pages() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let stopped = std::sync::Mutex::new(Some(stopped));
    let source = Source::start(move |_, received| {
        if received.target.contains("verb=Identify") {
            return Reply::xml(identify("kept"));
        }
        let page = last_page_of(6000);
        match stopped.lock().expect("no panic").take() {
            Some(stopped) => Reply::new(200, &format!("Content-Length: {}", page.len()))
                .send(&page[..page.len() - 1000])
                .wait(stopped),
            None => Reply::xml(page),
        }
    });
    let proxy = Proxy::with(|_| {}).restarted(|config| {
        let program = Program::run(
            serve(&config.data)
                .args(["--admin", "off", "--public-url", "http://oai.example", "--data"])
                .arg(&config.data)
                .args(["--map", &format!("x={}", source.base_url())]),
        );
        let address = program.address();
        assert!(fetch(address, IDENTIFY).whole);
        let mut reading = Harvester::ask(address, &request(address, TOKEN_PAGE));
        assert_eq!(reading.head().status, 200);
        // More than the memory buffer: the rest of the page is in a file by now.
        let mut bytes = 0;
        while bytes < 3 << 19 {
            bytes += reading.chunk().expect("it goes on").len();
        }
        let parts = std::fs::read_dir(config.data.join("cache/x")).expect("it is there").flatten();
        assert_eq!(parts.filter(|file| file.path().extension().is_some()).count(), 1, "half a page");
        drop(program);
        assert!(reading.chunk().is_none_or(|chunk| !chunk.is_empty()), "no end that was none");
        config.public_url = Some("http://oai.example".into());
        map(config, &source, |_| {});
    });
    drop(stop);
    assert_eq!(kept(&proxy).len(), 1, "the part is gone");
    assert_eq!(proxy.get(IDENTIFY).header("cache-status"), "oaimend; hit");
    let got = proxy.get(TOKEN_PAGE);
    assert!(got.whole && records(&got.text()) == records(&last_page_of(6000)));
    assert_eq!(source.requests().len(), 3);
}

#[test]
fn unspoolable_page_is_sent_uncached() {
    let page = last_page_of(9000);
    let source = Source::page(page.clone());
    let proxy = Proxy::of(&source);
    // The folder of its file.
    std::fs::write(proxy.data().join("cache/x"), "no folder").expect("it can be written");
    for received in 1..3 {
        let got = proxy.get(TOKEN_PAGE);
        assert!(got.body.len() > 3 << 20, "longer than what is held in memory: {}", got.body.len());
        assert!(got.whole && records(&got.text()) == records(&page));
        assert_eq!(source.requests().len(), received);
    }
    // HTTP/1.0 needs the whole page first.
    let got = Harvester::ask(proxy.address(), &format!("GET {TOKEN_PAGE} HTTP/1.0\r\n\r\n")).rest();
    assert_eq!((got.status, got.whole), (502, true), "{}", got.text());
}

#[test]
fn full_disk_sends_page_uncached() {
    let page = last_page_of(30_000);
    let source = Source::page(page.clone());
    let folder = tempfile::tempdir().expect("a temporary folder");
    // No file may be longer than 8 MiB; the signal for that is ignored.
    let limited = format!(
        "trap '' XFSZ; ulimit -f 16384; exec {} serve --listen 127.0.0.1:0 --admin off --map x={}",
        env!("CARGO_BIN_EXE_oaimend"),
        source.base_url()
    );
    let mut program = Program::run(Command::new("sh").args(["-c", &limited]).current_dir(folder.path()));
    for received in 1..3 {
        let got = fetch(program.address(), TOKEN_PAGE);
        assert!(got.body.len() > 10 << 20, "longer than a file may be: {}", got.body.len());
        assert!(got.whole && records(&got.text()) == records(&page));
        assert_eq!(source.requests().len(), received);
        program.line("a page cannot be written to disk");
    }
}

/// A list of four pages whose tokens are good for one request each.
fn list_with_single_use_tokens() -> Source {
    let used = std::sync::Mutex::new(std::collections::BTreeSet::new());
    Source::start(move |_, received| {
        let token = received.target.split_once("resumptionToken=").map_or("t0", |(_, token)| token);
        let number: usize = token.trim_start_matches('t').parse().expect("a token of this list");
        if !used.lock().expect("no panic").insert(number) {
            return Reply::whole(500, "", "used");
        }
        let page = last_page_of(300).replace("oai:x:", &format!("oai:x:{number}."));
        let token = format!("<resumptionToken>t{}</resumptionToken></ListRecords>", number + 1);
        Reply::xml(if number < 3 { page.replace("</ListRecords>", &token) } else { page })
    })
}

#[test]
fn a_harvest_creates_no_files_and_its_pages_survive_the_end_of_the_process() {
    let source = list_with_single_use_tokens();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let start = || {
        let map = format!("x={}", source.base_url());
        let mut command = serve(folder.path());
        Program::run(command.args(["--admin", "off", "--public-url", "http://oai.example", "--map", &map]))
    };
    let files = || std::fs::read_dir(folder.path().join("data/cache/x")).map_or(0, Iterator::count);
    let paths: Vec<String> =
        (1..4).map(|number| format!("/x?verb=ListRecords&resumptionToken=t{number}")).collect();
    let mut program = start();
    assert!(fetch(program.address(), "/x?verb=ListRecords&metadataPrefix=oai_dc").whole);
    let harvested: Vec<Got> = paths.iter().map(|path| fetch(program.address(), path)).collect();
    assert_eq!(files(), 0);
    for (path, first) in paths.iter().zip(&harvested) {
        let again = fetch(program.address(), path);
        assert_eq!(again.header("cache-status"), "oaimend; hit", "{}", again.text());
        assert_eq!((again.header("etag"), again.text()), (first.header("etag"), first.text()));
    }
    assert_eq!(files(), 0);
    program.signal("-TERM");
    assert!(program.ended().success());
    assert_eq!(files(), 3, "the harvester may request each of them again");
    program = start();
    let last = fetch(program.address(), &paths[2]);
    assert_eq!((last.header("cache-status"), last.text()), ("oaimend; hit", harvested[2].text()));
    assert_eq!(source.requests().len(), 4);
}

#[test]
fn damaged_file_is_not_served() {
    let source = Source::page(last_page_of(6000));
    let configure = |config: &mut Config| {
        config.public_url = Some("http://oai.example".into());
        map(config, &source, |_| {});
    };
    let mut proxy = Proxy::with(configure);
    let whole = proxy.get(TOKEN_PAGE).body;
    // The head, the first block, a later block, the tail.
    for (number, place) in [(1, 20), (2, 5000), (3, 2_000_000), (4, usize::MAX)] {
        let files = kept(&proxy);
        let [file] = files.as_slice() else { panic!("{files:?}") };
        let mut bytes = std::fs::read(file).expect("it is there");
        let place = place.min(bytes.len() - 1);
        bytes[place] ^= 0x10;
        std::fs::write(file, bytes).expect("it can be written");
        proxy = proxy.restarted(configure);
        let got = proxy.get(TOKEN_PAGE);
        assert!(got.whole && got.body == whole, "byte {place}");
        assert_eq!(source.requests().len(), 1 + number, "byte {place}");
    }
}

#[test]
fn file_damaged_while_served_aborts_a_response_that_is_read_from_it() {
    let source = Source::page(last_page_of(6000));
    let proxy = Proxy::of(&source);
    let whole = proxy.get(TOKEN_PAGE).body;
    let files = kept(&proxy);
    let mut bytes = std::fs::read(&files[0]).expect("it is there");
    bytes[2_000_000] ^= 1;
    std::fs::write(&files[0], bytes).expect("it can be written");
    let got = fetch_with(proxy.address(), TOKEN_PAGE, "Accept-Encoding: gzip\r\n");
    assert!(!got.whole, "{}", got.body.len());
    assert!(proxy.get(TOKEN_PAGE).body == whole, "the next one asks the source");
    assert_eq!(source.requests().len(), 2);
}

#[test]
fn file_shortened_while_it_is_sent_aborts_the_response() {
    let source = Source::page(last_page_of(30_000));
    let proxy = Proxy::of(&source);
    let whole = proxy.get(TOKEN_PAGE).body;
    let file = kept(&proxy).remove(0);
    let mut slow = Harvester::ask(proxy.address(), &format!("GET {TOKEN_PAGE} HTTP/1.1\r\nHost: x\r\n\r\n"));
    let head = slow.head();
    assert_eq!(head.header("content-length"), whole.len().to_string());
    // Longer than all buffers of a connection, so its end is not sent yet.
    let shortened = std::fs::File::options().write(true).open(file).expect("it is there");
    shortened.set_len(whole.len() as u64 - 1000).expect("it can be written");
    let got = slow.body_of(head);
    assert!(!got.whole && whole.starts_with(&got.body), "{} of {}", got.body.len(), whole.len());
    assert!(proxy.get(TOKEN_PAGE).body == whole, "the next one asks the source");
    assert_eq!(source.requests().len(), 2);
}

#[test]
fn purge_of_one_page_and_of_a_repository() {
    let source = numbered();
    let proxy = Proxy::of(&source);
    let json = |got: Got| -> serde_json::Value { serde_json::from_slice(&got.body).expect("JSON") };
    for path in [IDENTIFY, TOKEN_PAGE] {
        proxy.get(path);
    }
    assert_eq!(kept(&proxy).len(), 1, "the page after a token is in memory");
    for path in ["/-/cache/x?verb=Identify", "/-/cache/x?verb=ListRecords&resumptionToken=t1"] {
        assert_eq!(json(purge(&proxy, path))["purged"], 1);
        assert_eq!(json(purge(&proxy, path))["purged"], 0);
    }
    assert_eq!(kept(&proxy).len(), 0);
    assert_eq!(proxy.get(TOKEN_PAGE).header("cache-status"), "oaimend; fwd=miss; fwd-status=200");
    assert_eq!(proxy.get(IDENTIFY).header("cache-status"), "oaimend; fwd=miss; fwd-status=200");
    assert_eq!(json(purge(&proxy, "/-/cache/x"))["purged"], 2);
    assert_eq!(kept(&proxy).len(), 0);
    for (path, status) in [("/-/cache/y", 404), ("/-/cache/x?verb=Nonsense", 400), ("/x?verb=Identify", 404)]
    {
        assert_eq!(purge(&proxy, path).status, status, "{path}");
    }
    let off = Proxy::with(|config| config.cache.enabled = false);
    assert_eq!(purge(&off, "/-/cache/x").status, 409);
}

#[test]
fn metrics() {
    let source = numbered();
    let proxy = Proxy::of(&source);
    for _ in 0..3 {
        proxy.get(IDENTIFY);
    }
    let head = format!("HEAD {LIST} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let got = Harvester::ask(proxy.address(), &head).head();
    assert_eq!(got.header("cache-status"), "oaimend; fwd=bypass; fwd-status=200");
    wait_until(|| proxy.admin_json("/-/repositories/x")["requests"] == 4);
    let metrics = fetch(proxy.admin(), "/-/metrics").text();
    for line in [
        "oaimend_cache_lookups_total{outcome=\"hit\",repository=\"x\"} 2",
        "oaimend_cache_lookups_total{outcome=\"miss\",repository=\"x\"} 1",
        "oaimend_cache_lookups_total{outcome=\"bypass\",repository=\"x\"} 1",
        "oaimend_cache_entries 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    let bytes = metrics.lines().find_map(|line| line.strip_prefix("oaimend_cache_bytes "));
    let size = std::fs::metadata(&kept(&proxy)[0]).expect("it is there").len();
    assert_eq!(bytes.and_then(|bytes| bytes.parse().ok()), Some(size));
}

#[test]
fn size_is_limited_and_cache_can_be_off() {
    let source = numbered();
    let off = Proxy::with(|config| {
        config.cache.enabled = false;
        map(config, &source, |_| {});
    });
    for _ in 0..2 {
        assert_eq!(off.get(IDENTIFY).header("cache-status"), "oaimend; fwd=bypass; fwd-status=200");
    }
    assert_eq!(source.requests().len(), 2);
    assert!(!off.data().join("cache").exists());
    // Too long for memory.
    let source = Source::page(last_page_of(6000));
    let small = Proxy::with(|config| {
        config.cache.bytes_max = 5_000_000;
        map(config, &source, |_| {});
    });
    for token in 0..5 {
        small.get(&format!("/x?verb=ListRecords&resumptionToken={token}"));
    }
    let sizes: u64 = kept(&small).iter().map(|file| file.metadata().expect("it is there").len()).sum();
    assert!((2_500_000..=5_000_000).contains(&sizes), "{sizes}");
    let last = small.get("/x?verb=ListRecords&resumptionToken=4");
    assert_eq!(last.header("cache-status"), "oaimend; hit", "the last one stays");
}

/// Pages of 5 records: the first, and one for each token; the last token leads back.
fn looping(tokens: &'static [&'static str]) -> Source {
    Source::start(move |_, received| {
        let received = received.target.split_once("resumptionToken=").map(|(_, token)| token.to_owned());
        let at = received
            .map_or(0, |received| 1 + tokens.iter().position(|token| *token == received).expect("known"));
        Reply::xml(page(at * 5..at * 5 + 5, tokens[at % tokens.len()]))
    })
}

#[test]
fn token_cycle_is_refused_with_cached_pages() {
    for tokens in [&["A"][..], &["A", "B"], &["A", "B", "C"]] {
        // Another harvest may have stopped anywhere before.
        for pages_before in 0..tokens.len() + 2 {
            let source = looping(tokens);
            let proxy = Proxy::of(&source);
            let mut got = proxy.get(LIST);
            for _ in 0..pages_before {
                let Some(token) = token_in(&got.text()) else { break };
                got = resume(&proxy, &token);
            }
            for harvest in 0..2 {
                let mut got = proxy.get(LIST);
                let mut requests = 1;
                while let Some(token) = token_in(&got.text()) {
                    got = resume(&proxy, &token);
                    requests += 1;
                    assert!(requests < 40, "{tokens:?}, {pages_before} before: harvest {harvest} has no end");
                }
                assert!(got.text().contains("goes in circles"), "{tokens:?}, {pages_before}: {}", got.text());
            }
        }
    }
}

#[test]
fn reused_tokens_lose_no_record() {
    for tokens in [&["A"][..], &["A", "B"], &["A", "B", "C"]] {
        let at = AtomicUsize::new(0);
        let source = Source::start(move |_, received| {
            if !received.target.contains("resumptionToken=") {
                at.store(0, Ordering::SeqCst);
            }
            let at = at.fetch_add(1, Ordering::SeqCst);
            Reply::xml(page(at * 5..at * 5 + 5, if at < 8 { tokens[at % tokens.len()] } else { "" }))
        });
        let proxy = Proxy::of(&source);
        for harvest in 0..3 {
            let (found, _) = read_to_the_end(&proxy);
            let each_once = (0..45).map(|number| (number, 1)).collect();
            assert_eq!(found, each_once, "{tokens:?}, harvest {harvest}");
        }
    }
}

#[test]
fn page_is_compressed_once() {
    let source = Source::page(last_page_of(6000));
    let proxy = Proxy::of(&source);
    let plain = proxy.get(TOKEN_PAGE).body;
    let zipped = || {
        let got = fetch_with(proxy.address(), TOKEN_PAGE, "Accept-Encoding: gzip\r\n");
        assert_eq!((got.header("content-encoding"), got.whole), ("gzip", true));
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&got.body[..]), &mut text)
            .expect("a whole gzip stream");
        assert!(text == plain, "{} bytes", text.len());
        got
    };
    let first = zipped();
    assert_eq!(first.header("content-length"), "", "it is compressed while it is sent");
    let again = zipped();
    assert_eq!(again.header("content-length"), first.body.len().to_string(), "it was held in memory");
    assert!(again.body == first.body);
    assert!(proxy.get(TOKEN_PAGE).body == plain);
    purge(&proxy, "/-/cache/x");
    assert_eq!(zipped().header("cache-status"), "oaimend; fwd=miss; fwd-status=200");
    assert_eq!(source.requests().len(), 2);
}

#[test]
fn known_page_is_answered_without_a_body() {
    let source = numbered();
    let proxy = Proxy::of(&source);
    let first = proxy.get(IDENTIFY);
    let tag = first.header("etag").to_owned();
    assert!(tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'), "{first:?}");
    let with = |fields: &str| fetch_with(proxy.address(), IDENTIFY, fields);
    let known = with(&format!("If-None-Match: {tag}\r\n"));
    assert_eq!((known.status, known.header("etag"), known.body.len()), (304, &*tag, 0), "{known:?}");
    assert_eq!(known.header("cache-status"), "oaimend; hit");
    assert_eq!((known.header("content-length"), known.header("transfer-encoding")), ("", ""));
    let zipped = with("Accept-Encoding: gzip\r\n");
    let marked = format!("{}-gzip\"", tag.trim_end_matches('"'));
    assert_eq!((zipped.status, zipped.header("etag")), (200, &*marked), "each coding has its own tag");
    let known = with(&format!("Accept-Encoding: gzip\r\nIf-None-Match: {marked}\r\n"));
    assert_eq!((known.status, known.header("etag"), known.header("content-encoding")), (304, &*marked, ""));
    let other = with("If-None-Match: \"other\"\r\n");
    assert_eq!((other.status, other.text()), (200, first.text()));
    let form = "POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIf-None-Match: *\r\nContent-Length: 13\r\n\r\nverb=Identify";
    assert_eq!(
        Harvester::ask(proxy.address(), form).rest().status,
        200,
        "a condition of POST is not for pages"
    );
    purge(&proxy, "/-/cache/x");
    let fetched_again = with(&format!("If-None-Match: {tag}\r\n"));
    assert_eq!(fetched_again.status, 200);
    assert_ne!(fetched_again.header("etag"), tag, "another page has another tag");
    assert_eq!(proxy.get(LIST).header("etag"), "", "this page is not cached");
}
