//! Hostile sources: endless, huge, deep, silent, compressed and future-dated ones. THREAT_MODEL.md names these tests.

use super::truncated_pages::{check_failed, gzip};
use crate::fixtures::program::Program;
use crate::fixtures::proxy::{LIST, Proxy, at_once, records};
use crate::fixtures::source::{Harvester, Reply, Source, fetch, page_of, record};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// A page in three parts: up to its first record, this record, and the rest.
fn parts_of_page() -> (String, String, String) {
    let page = page_of(1);
    let (head, rest) = page.split_once("<record>").expect("it has a record");
    let (record, tail) = rest.split_once("</record>").expect("it has a record");
    (head.to_owned(), format!("<record>{record}</record>"), tail.to_owned())
}

/// A page of three records, with this text as the title of the second one.
fn page_with_title(title: &str) -> String {
    page_of(3).replace("Title 1", title)
}

/// Longer than any of these tests takes.
const TIME_MAX: Duration = Duration::from_secs(120);

#[test]
fn compression_bombs_and_endless_pages_are_aborted() {
    let page = page_of(1).replace("Title 0", &" ".repeat(8 << 20));
    let coded = gzip(page.as_bytes());
    let source = Source::start(move |_, _| Reply::whole(200, "", coded.clone()));
    let dense = Proxy::tuned(&source, |mapping| mapping.source_mut().limits.inflate_ratio_max = 10);
    let long = Proxy::tuned(&source, |mapping| mapping.source_mut().limits.response_bytes_max = 1 << 20);
    for (proxy, text) in [(dense, "(inflate_ratio_max)"), (long, "(response_bytes_max)")] {
        let got = proxy.get(LIST);
        assert!(got.status == 502 || !got.whole, "{}", got.status);
        while proxy.admin_json("/-/repositories/x")["requests"] != 1 {
            std::thread::yield_now();
        }
        let failure = &proxy.admin_json("/-/repositories/x")["last_failure"];
        assert_eq!(failure["reason"], "too-large");
        assert!(failure["details"].to_string().contains(text), "{failure}");
    }
}

#[test]
fn first_record_timeout() {
    let (stop, stopped) = channel::<()>();
    let stopped = Mutex::new(Some(stopped));
    let source = Source::start(move |_, _| {
        let stopped = stopped.lock().expect("no panic").take().expect("asked once");
        Reply::new(200, "Content-Length: 9").wait(stopped)
    });
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.source_mut().limits.first_record_timeout = Duration::from_millis(50);
    });
    check_failed(
        &proxy.get(LIST),
        "http_response_timeout",
        "sent no record within 50ms (first_record_timeout_secs)",
    );
    drop(stop);
}

/// The time also ends while data is always ready, if none of it is a record that can be delivered.
#[test]
fn first_record_timeout_counts_records_beyond_repair() {
    const RECORDS: usize = 100_000;
    let page = page_of(1).replace("<identifier>oai:x:0</identifier>", "");
    let (head, rest) = page.split_once("<record>").expect("it has a record");
    let (record, tail) = rest.split_once("</record>").expect("it has a record");
    let record = format!("<record>{record}</record>");
    let endless = [head, &record.repeat(RECORDS), tail].concat();
    let source = Source::start(move |_, _| Reply::xml(endless.as_str()));
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.source_mut().limits.first_record_timeout = Duration::from_millis(50);
    });
    check_failed(
        &proxy.get(LIST),
        "http_response_timeout",
        "sent no record within 50ms (first_record_timeout_secs)",
    );
}

/// While nothing is sent, no failed write shows that the harvester is gone.
#[test]
fn endless_page_without_a_record_ends_when_the_harvester_leaves() {
    const BLOCKS: usize = 200;
    let (head, record, _) = parts_of_page();
    let broken = record.replace("<identifier>oai:x:0</identifier>", "").repeat(500);
    let (sender, sent) = channel::<()>();
    let sender = Mutex::new(Some(sender));
    let source = Source::start(move |_, _| match sender.lock().expect("no panic").take() {
        Some(sender) => Reply::new(200, "Content-Type: text/xml").send(head.clone()).repeat(
            broken.clone(),
            BLOCKS,
            sender,
        ),
        None => Reply::whole(404, "", ""),
    });
    let mut mapping = at_once(&source);
    mapping.source_mut().limits.first_record_timeout = Duration::from_secs(3600);
    mapping.source_mut().quirks.refetch_broken_records = false;
    // With a cache, the page continues to its head for a harvester that retries.
    let proxy = Proxy::with(|config| {
        config.repositories.add_fixed(mapping);
        config.cache.enabled = false;
    });
    let harvester = Harvester::ask(proxy.address(), &format!("GET {LIST} HTTP/1.1\r\nHost: x\r\n\r\n"));
    sent.recv_timeout(TIME_MAX).expect("the proxy reads");
    drop(harvester);
    let mut read = 1;
    let end = loop {
        match sent.recv_timeout(TIME_MAX) {
            Ok(()) => read += 1,
            Err(end) => break end,
        }
    };
    assert_eq!(end, RecvTimeoutError::Disconnected, "the proxy neither reads nor closes the connection");
    assert!(read < BLOCKS, "the whole page was read");
}

/// Bytes that decompress to nothing, without an end.
fn empty_compressed() -> [(&'static str, Vec<u8>); 4] {
    let zstd = zstd::stream::encode_all(&b""[..], 1).expect("a Vec takes all");
    let blocks = [&gzip(b"")[..10], &[0, 0, 0, 0xff, 0xff].repeat(20_000)].concat();
    let padding = [gzip(b"<a/>"), vec![0; 100_000]].concat();
    [
        ("gzip members", gzip(b"").repeat(5_000)),
        ("zstd frames", zstd.repeat(10_000)),
        ("empty blocks", blocks),
        ("padding", padding),
    ]
}

#[test]
fn compressed_data_without_content_ends_at_its_limit() {
    for (about, body) in empty_compressed() {
        let source = Source::start(move |_, _| Reply::whole(200, "", body.clone()));
        let proxy =
            Proxy::tuned(&source, |mapping| mapping.source_mut().limits.inflate_empty_bytes_max = 50_000);
        let got = proxy.get(LIST);
        let failure = &proxy.wait_for_requests("x", 1)["last_failure"];
        assert_eq!((got.status, &failure["reason"]), (502, &"too-large".into()), "{about}: {failure}");
        assert!(failure["details"].to_string().contains("(inflate_empty_bytes_max)"), "{about}: {failure}");
    }
}

/// Each read of compressed data counts, although it gives nothing and never waits.
#[test]
fn first_record_timeout_counts_compressed_data_without_content() {
    let members = gzip(b"").repeat(5_000);
    let (sender, _sent) = channel::<()>();
    let sender = Mutex::new(sender);
    let source = Source::start(move |_, _| {
        let sender = sender.lock().expect("no panic").clone();
        Reply::new(200, "").repeat(members.clone(), 300, sender)
    });
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.source_mut().limits.first_record_timeout = Duration::from_millis(50);
        mapping.source_mut().limits.inflate_empty_bytes_max = 1 << 40;
    });
    check_failed(
        &proxy.get(LIST),
        "http_response_timeout",
        "sent no record within 50ms (first_record_timeout_secs)",
    );
}

#[test]
fn deep_and_huge_records_cost_only_themselves() {
    let whole = page_of(3);
    let without = whole.replace(record(1).trim_end(), "");
    for (about, title) in [
        ("deep", "<a>".repeat(50_000)),
        ("deep and closed", ["<a>".repeat(50_000), "</a>".repeat(50_000)].concat()),
        ("a huge tag", format!("<a b=\"{}\"/>", "x".repeat(1 << 20))),
        ("many attributes", format!("<a {}/>", (0..50_000).map(|n| format!("a{n}='' ")).collect::<String>())),
        ("many bare signs", "</".repeat(1 << 19)),
    ] {
        let page = page_with_title(&title);
        let source = Source::start(move |_, _| Reply::xml(page.clone()));
        let proxy =
            Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.refetch_broken_records = false);
        let got = proxy.get(LIST);
        assert_eq!((got.status, got.whole), (200, true), "{about}");
        assert_eq!(records(&got.text()), records(&without), "{about}");
        assert_eq!(proxy.wait_for_requests("x", 1)["records_quarantined"], 1, "{about}");
    }
}

/// Pages with three megabytes of damage in the second record, of which every few bytes are a defect of their own.
fn dense_damage() -> Vec<String> {
    const BYTES: usize = 3 << 20;
    let damaged = |fragment: &str| page_with_title(&fragment.repeat(BYTES / fragment.len()));
    let mut pages: Vec<String> =
        ["</", "< a", "]]>", "</\u{e9}b>", "<[CDATA["].into_iter().map(damaged).collect();
    let sets = "<setSpec/>".repeat(BYTES / "<setSpec/>".len());
    pages.push(page_of(3).replace("oai:x:1</identifier>", &format!("oai:x:1</identifier>{sets}")));
    pages
}

/// The memory of damaged records depends on the limits, and not on the number of their defects.
#[test]
fn dense_damage_needs_little_memory() {
    const PEAK_MIB_MAX: u64 = 130;
    let pages = dense_damage();
    let days = 1..=pages.len();
    let source = Source::start(move |_, received| {
        let day = received.target.rsplit_once("until=2026-01-0").and_then(|(_, day)| day.parse().ok());
        Reply::xml(pages[day.unwrap_or(1) - 1].clone())
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let mapping = format!(
        "base_url = \"{}\"\nallow_private = true\nrefetch_broken_records = false\n",
        source.base_url()
    );
    std::fs::write(folder.path().join("mappings/x.toml"), mapping).expect("a writable folder");
    let program = Program::start(folder.path(), &[]);
    for day in days {
        let got = fetch(program.address(), &format!("{LIST}&until=2026-01-0{day}"));
        assert_eq!((got.status, got.whole), (200, true), "{day}: {}", got.text().len());
        println!("{day}: {} MiB", super::memory::peak_mib(program.id()));
    }
    let peak = super::memory::peak_mib(program.id());
    assert!(peak < PEAK_MIB_MAX, "{peak} MiB");
}

/// A source whose clock is decades ahead, or that says so.
#[test]
fn future_dates_of_a_source_are_not_believed() {
    let page = page_of(2).replace("2026-01-02T03:04:05Z", "2099-01-02T03:04:05Z");
    let ahead = "Date: Fri, 02 Jan 2099 03:04:05 GMT\nLast-Modified: Fri, 02 Jan 2099 03:04:05 GMT\n\
        Expires: Fri, 02 Jan 2099 03:04:05 GMT\nCache-Control: max-age=2000000000";
    let expected = page.clone();
    let source = Source::start(move |_, received| {
        if received.target.contains("until") {
            Reply::whole(503, "Retry-After: Fri, 02 Jan 2099 03:04:05 GMT", "later")
        } else {
            Reply::whole(200, &format!("Content-Type: text/xml\n{ahead}"), page.clone())
        }
    });
    let proxy = Proxy::of(&source);
    let got = proxy.get(LIST);
    assert_eq!((got.status, records(&got.text())), (200, records(&expected)));
    for name in ["date", "last-modified", "expires", "cache-control"] {
        let value = got.header(name);
        assert!(!value.contains("2099") && !value.contains("2000000000"), "{name}: {value}");
    }
    let later = proxy.get(&format!("{LIST}&until=2026-01-01"));
    check_failed(&later, "destination_unavailable", "status 503");
}
