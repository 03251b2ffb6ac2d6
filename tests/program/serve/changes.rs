//! The feed of changes: pages, events, and several writers at once.

use super::gateway::Mirrored;
use super::local_repositories::{Server, dublin_core, send, start};
use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::source::{Got, Harvester, fetch, fetch_with, post};
use oaimend_test_support::random::Random;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

const SEED: u64 = 0x0fee_d041;
const WRITERS: usize = 3;
const WRITES: usize = 40;

fn json(got: &Got) -> Value {
    assert_eq!(got.status, 200, "{}", got.text());
    serde_json::from_slice(&got.body).unwrap_or_else(|error| panic!("{error}: {}", got.text()))
}

/// What a follower knows: the repository and the identifier of each record, and whether it is deleted.
type Known = BTreeMap<(String, String), bool>;

fn apply(change: &Value, known: &mut Known) {
    let text = |name: &str| change[name].as_str().expect("a text").to_owned();
    assert!(text("format") == "oai_dc" && text("stamp").ends_with('Z'), "{change}");
    known.insert((text("repository"), text("identifier")), change["deleted"] == true);
}

/// Reads pages until there are no more. Returns the last position.
fn follow(address: SocketAddr, mut position: Option<String>, known: &mut Known) -> String {
    loop {
        let since = position.map_or_else(String::new, |position| format!("?since={position}"));
        let page = json(&fetch(address, &format!("/_changes{since}")));
        page["changes"].as_array().expect("a list").iter().for_each(|change| apply(change, known));
        let next = page["position"].as_str().expect("a position").to_owned();
        assert!(page["next"].as_str().is_some_and(|url| url.ends_with(&format!("since={next}"))), "{page}");
        if page["has_more"] == false {
            return next;
        }
        position = Some(next);
    }
}

/// Reads pages from the start until this number of records is known: the last second closes meanwhile.
fn follow_all(address: SocketAddr, count: usize) -> (Known, String) {
    let mut known = Known::new();
    let mut position = follow(address, None, &mut known);
    while known.len() < count {
        position = follow(address, Some(position), &mut known);
    }
    (known, position)
}

/// Reads events until a condition holds. Returns the last id.
fn listen(
    address: SocketAddr,
    last_id: &str,
    known: &mut Known,
    is_enough: impl Fn(&Known) -> bool,
) -> String {
    let request = format!(
        "GET /_changes HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\nLast-Event-ID: {last_id}\r\n\r\n"
    );
    let mut listener = Harvester::ask(address, &request);
    let head = listener.head();
    assert_eq!((head.status, head.header("content-type")), (200, "text/event-stream"));
    let (mut text, mut last) = (String::new(), last_id.to_owned());
    while !is_enough(known) {
        text.push_str(&String::from_utf8(listener.chunk().expect("the stream goes on")).expect("UTF-8"));
        while let Some((event, rest)) = text.split_once("\n\n") {
            for line in event.lines() {
                match line.split_once(": ") {
                    Some(("id", id)) => id.clone_into(&mut last),
                    Some(("data", data)) => apply(&serde_json::from_str(data).expect("JSON"), known),
                    Some(("retry" | "", _)) => {}
                    _ => panic!("{line}"),
                }
            }
            text = rest.to_owned();
        }
    }
    last
}

#[test]
fn changes_are_listed_and_a_listener_hears_of_later_ones() {
    let mut collection = Collection::of(30);
    collection.entries.get_mut(&identifier(1)).expect("it exists").deleted = true;
    let mirrored = Mirrored::of(collection);
    let address = mirrored.proxy.address();
    let (known, position) = follow_all(address, 30);
    let key = |number: usize| ("x".to_owned(), identifier(number));
    assert_eq!((known.len(), known[&key(1)], known[&key(2)]), (30, true, false));
    let none = json(&fetch(address, &format!("/_changes?since={position}&repository=x")));
    assert_eq!((&none["changes"], &none["has_more"]), (&Value::Array(Vec::new()), &Value::Bool(false)));
    // A dump is a position too.
    let dump = fetch(address, "/_dump?repository=x");
    let mut after = Known::new();
    follow(address, Some(dump.header("oaimend-position").to_owned()), &mut after);
    assert_eq!(after, Known::new());
    crate::fixtures::harvest::change(&mirrored.collection, |collection| {
        collection.now_secs += 86_400;
        let now_secs = collection.now_secs;
        let entry = collection.entries.get_mut(&identifier(2)).expect("it exists");
        (entry.datestamp_secs, entry.deleted) = (now_secs, true);
    });
    std::thread::scope(|scope| {
        let listener = scope.spawn(|| {
            let mut heard = Known::new();
            listen(address, &position, &mut heard, |heard| !heard.is_empty());
            heard
        });
        mirrored.harvest_again();
        assert_eq!(listener.join().expect("no panic"), Known::from([(key(2), true)]));
    });
}

#[test]
fn positions_of_another_store_are_gone_and_hostile_ones_refused() {
    let mirrored = Mirrored::of(Collection::of(5));
    let address = mirrored.proxy.address();
    let (_, position) = follow_all(address, 5);
    let (store, rest) = position.split_once('-').expect("a position");
    for (path, status) in [
        ("/_changes?since=x".to_owned(), 400),
        ("/_changes?since=%00".to_owned(), 400),
        ("/_changes?until=x".to_owned(), 400),
        (format!("/_changes?since={position}&since={position}"), 400),
        ("/_changes?repository=none".to_owned(), 404),
        (format!("/_changes?since=0000000000000000-{rest}"), 410),
        (format!("/_changes?since={store}-0-253402300799"), 410),
        (format!("/_changes?since={store}-7-1"), 410),
    ] {
        let got = fetch(address, &path);
        assert_eq!((got.status, got.header("content-type")), (status, "application/problem+json"), "{path}");
        let listened = fetch_with(address, &path, "Accept: text/event-stream\r\n");
        assert_eq!(listened.status, status, "{path}");
    }
    // The end of any collection and sequence is only a place in the order.
    let (rest, _) = rest.rsplit_once('-').unwrap_or((rest, ""));
    let forged = format!("/_changes?since={store}-{rest}-1-a{}.{}", u64::MAX, u64::MAX);
    assert_eq!(json(&fetch(address, &forged))["changes"].as_array().map(Vec::len), Some(5));
    let forgotten = post(mirrored.proxy.admin(), "/-/mirror/x/forget", "");
    assert_eq!(forgotten.status, 200, "{}", forgotten.text());
    let got = fetch(address, &format!("/_changes?since={position}"));
    assert_eq!(got.status, 410);
    assert!(got.text().contains("without `since`"), "{}", got.text());
}

#[test]
fn followers_of_several_writers_have_what_the_repositories_have() {
    println!("seed {SEED:#x}");
    let server = Server::new(&[("a", "kind = \"local\"\n")]);
    let address = server.program.address();
    let authorization = format!("Authorization: Bearer {}\r\n", server.token);
    let ended = AtomicUsize::new(0);
    // Each writer has identifiers of its own.
    let write = |writer: usize| {
        let (mut random, mut known) = (Random::new(SEED + writer as u64), Known::new());
        for number in 0..WRITES {
            let identifier = format!("oai:a:{writer}-{}", random.below(12));
            let url = format!("/a/record/{identifier}?metadataPrefix=oai_dc");
            let key = ("a".to_owned(), identifier);
            let is_deletion = known.get(&key) == Some(&false) && random.below(3) == 0;
            let got = if is_deletion {
                send(address, &format!("DELETE {url}"), &authorization, b"")
            } else {
                let record = dublin_core(&format!("Title {writer} {number}"));
                send(address, &format!("PUT {url}"), &authorization, record.as_bytes())
            };
            assert!((200..300).contains(&got.status), "{}", got.text());
            known.insert(key, is_deletion);
        }
        ended.fetch_add(1, Ordering::SeqCst);
        known
    };
    let has_ended = || ended.load(Ordering::SeqCst) == WRITERS;
    std::thread::scope(|scope| {
        let write = &write;
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        let reader = scope.spawn(|| {
            let (mut known, mut position) = (Known::new(), None);
            loop {
                let was_last = has_ended();
                position = Some(follow(address, position, &mut known));
                if was_last {
                    return (known, position.expect("it was read"));
                }
            }
        });
        // A listener that connects again after each event, and a copy that is made of increments.
        let copier = scope.spawn(|| {
            let (mut copy, mut position) = (BTreeMap::new(), None::<String>);
            loop {
                let was_last = has_ended();
                let since = position.map_or_else(String::new, |position| format!("&since={position}"));
                let dump = fetch(address, &format!("/_dump?repository=a{since}"));
                assert_eq!((dump.status, dump.whole), (200, true), "{}", dump.text());
                copy.extend(lines(&dump));
                position = Some(dump.header("oaimend-position").to_owned());
                if was_last {
                    return (copy, position.expect("it was read"));
                }
            }
        });
        let truth: Known = writers.into_iter().flat_map(|writer| writer.join().expect("no panic")).collect();
        let (mut known, position) = reader.join().expect("no panic");
        let (mut copy, mut copied) = copier.join().expect("no panic");
        // The last second closes meanwhile.
        listen(address, &position, &mut known, |known| *known == truth);
        assert_eq!(known, truth);
        let mut heard = Known::new();
        let mut last = String::new();
        while heard != truth {
            let count = heard.len();
            last = listen(address, &last, &mut heard, |heard| heard.len() > count || *heard == truth);
        }
        let states = |copy: &BTreeMap<String, String>| -> Known {
            let state = |(identifier, line): (&String, &String)| {
                let line: Value = serde_json::from_str(line).expect("JSON");
                (("a".to_owned(), identifier.clone()), line["deleted"] == true)
            };
            copy.iter().map(state).collect()
        };
        while states(&copy) != truth {
            let dump = fetch(address, &format!("/_dump?repository=a&since={copied}"));
            assert_eq!(dump.status, 200, "{}", dump.text());
            copy.extend(lines(&dump));
            dump.header("oaimend-position").clone_into(&mut copied);
        }
        let whole = lines(&fetch(address, "/_dump?repository=a"));
        assert_eq!(copy, whole.into_iter().collect());
    });
}

/// The lines of a dump by their identifiers.
fn lines(dump: &Got) -> Vec<(String, String)> {
    let text = dump.text();
    let lines = text.lines().map(|line| {
        let value: Value = serde_json::from_str(line).expect("JSON");
        (value["identifier"].as_str().expect("a text").to_owned(), line.to_owned())
    });
    lines.collect()
}

/// Writes a record of the repository `a`. `None` if the program was killed before it answered.
fn write_once(address: SocketAddr, authorization: &str, number: usize) -> Option<u16> {
    use std::io::{Read as _, Write as _};
    let record = dublin_core(&format!("Title {number}"));
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    let head = format!(
        "PUT /a/record/oai:a:{number}?metadataPrefix=oai_dc HTTP/1.1\r\nHost: {address}\r\n{authorization}\
         Content-Length: {}\r\nConnection: close\r\n\r\n{record}",
        record.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.split(' ').nth(1)?.parse().ok()
}

#[test]
fn a_follower_misses_nothing_that_was_confirmed_before_a_kill() {
    println!("seed {SEED:#x}");
    let mut random = Random::new(SEED);
    let Server { folder, program, token } = Server::new(&[("a", "kind = \"local\"\n")]);
    let authorization = format!("Authorization: Bearer {token}\r\n");
    let (mut known, mut position, mut confirmed) = (Known::new(), None, Vec::new());
    let mut running = Some(program);
    for round in 0..3 {
        let program = running.take().unwrap_or_else(|| start(folder.path()));
        let address = program.address();
        position = Some(follow(address, position, &mut known));
        let killed_after = 5 + random.below(10);
        for number in 0..30 {
            let number = round * 100 + number;
            if number % 100 == killed_after {
                program.killer().kill();
            }
            if write_once(address, &authorization, number).is_some_and(|status| status < 300) {
                confirmed.push(("a".to_owned(), format!("oai:a:{number}")));
            }
        }
    }
    let program = start(folder.path());
    // The stamps of the last second before a kill can be ahead of the clock, until it reaches them.
    while !confirmed.iter().all(|key| known.contains_key(key)) {
        position = Some(follow(program.address(), position, &mut known));
    }
    assert!(confirmed.len() >= 15, "{confirmed:?}");
}

#[test]
fn listeners_are_limited() {
    let mirrored = Mirrored::of(Collection::of(3));
    let address = mirrored.proxy.address();
    let request = format!("GET /_changes HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n");
    let mut listeners = Vec::new();
    let refused = loop {
        let mut listener = Harvester::ask(address, &request);
        let head = listener.head();
        if head.status != 200 {
            break head;
        }
        listeners.push(listener);
        assert!(listeners.len() <= 64, "more listeners than may be at once");
    };
    assert_eq!(refused.status, 503);
    assert!(!refused.header("retry-after").is_empty());
    // A place is free once a listener is gone.
    drop(listeners);
    while Harvester::ask(address, &request).head().status != 200 {
        std::thread::yield_now();
    }
}

#[test]
fn a_client_has_a_small_share_of_the_listeners() {
    let mirrored = Mirrored::with(
        Collection::of(3),
        |_| {},
        |config| {
            config.clients.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
        },
    );
    let address = mirrored.proxy.address();
    let listen = |client: &str| {
        let head = format!("GET /_changes HTTP/1.1\r\nHost: {address}\r\nX-Forwarded-For: {client}\r\n");
        let mut listener = Harvester::ask(address, &format!("{head}Accept: text/event-stream\r\n\r\n"));
        let head = listener.head();
        (listener, head)
    };
    let (mut oldest, head) = listen("192.0.2.1");
    assert_eq!(head.status, 200);
    let mut others = Vec::new();
    for _ in 0..4 {
        let (listener, head) = listen("192.0.2.1");
        assert_eq!(head.status, 200, "a lost connection may have a place");
        others.push(listener);
    }
    // The stream of the oldest one ends, so that its client connects again if it is still there.
    let has_ended = (0..5).any(|_| oldest.chunk().is_some_and(|chunk| chunk.is_empty()));
    assert!(has_ended, "it has few events before its end");
    let (_other, head) = listen("192.0.2.2");
    assert_eq!(head.status, 200);
    // The client may still read pages.
    let page = fetch_with(address, "/_changes", "X-Forwarded-For: 192.0.2.1\r\n");
    assert_eq!(page.status, 200, "{}", page.text());
}
