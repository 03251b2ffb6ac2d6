//! The mirror answers over HTTP in place of a source that fails (`serve = "live-then-mirror"`).

use oaimend_oai::UnixSecs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oaimend::config::ServeFrom;
use oaimend_base::clock::Clock as _;
use oaimend_mirror::settings::MirrorSettings;
use oaimend_oai::datestamp::{Granularity, from_secs};

use crate::fixtures::collection::{Collection, identifier};
use crate::fixtures::harvest::change;
use crate::fixtures::lists::{resume, texts_in, token_in};
use crate::fixtures::program::{Program, serve};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{Got, Source, fetch};

const MIRROR_STATUS: &str = "oaimend; hit; detail=mirror";
const HARVEST_INTERVAL: Duration = Duration::from_secs(30 * 86_400);

const RECORDS: usize = 250;
/// The records of a page of the source. A page of the mirror has as many.
const PAGE_RECORDS: usize = 100;

/// A source whose clock is that of the proxy, and the proxy after the first harvest.
fn failing_over() -> (Source, Arc<Mutex<Collection>>, Proxy) {
    let now_secs = oaimend_base::clock::secs(oaimend_base::clock::now());
    let now_secs = i64::try_from(now_secs).expect("a time");
    let (source, collection) =
        Collection { now_secs, page_len: PAGE_RECORDS, ..Collection::of(RECORDS) }.start();
    let proxy = Proxy::tuned(&source, |mapping| {
        mapping.serve = ServeFrom::LiveThenMirror;
        mapping.mirror =
            Some(MirrorSettings { interval: Some(HARVEST_INTERVAL), ..MirrorSettings::default() });
    });
    proxy.wait_for_harvests("x", 1);
    (source, collection, proxy)
}

fn set_down(collection: &Mutex<Collection>, is_down: bool) {
    change(collection, |collection| collection.is_down = is_down);
}

/// Lets the time of the proxy and of its source pass. An open circuit breaker closes.
fn pass_time(proxy: &Proxy, collection: &Mutex<Collection>, secs: u64) {
    drop(proxy.clock.pause(Duration::from_secs(secs)));
    let now_secs = oaimend_base::clock::unix_secs(proxy.clock.now());
    change(collection, |collection| collection.now_secs = now_secs.0);
}

/// Checks a page of the mirror in place of the source, and returns its responseDate.
#[track_caller]
fn check_failed_over(got: &Got) -> String {
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    assert_eq!(got.header("cache-status"), MIRROR_STATUS);
    let failure = got.header("proxy-status");
    assert!(failure.starts_with("oaimend; error=destination_unavailable; received-status=500;"), "{failure}");
    response_date(got)
}

#[track_caller]
fn check_live(got: &Got) {
    assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
    assert!(got.header("cache-status").starts_with("oaimend; fwd="), "{}", got.header("cache-status"));
    assert_eq!(got.header("proxy-status"), "");
}

fn response_date(got: &Got) -> String {
    texts_in(&got.text(), "responseDate").pop().expect("each page has one")
}

/// The identifiers of a page of the mirror and of the pages after it.
fn read_rest(proxy: &Proxy, first: &Got) -> Vec<String> {
    let mut identifiers = texts_in(&first.text(), "identifier");
    let (mut token, mut pages) = (token_in(&first.text()), 0);
    while let Some(next) = token {
        let got = resume(proxy, &next);
        assert_eq!((got.status, got.header("cache-status")), (200, MIRROR_STATUS), "{}", got.text());
        assert_eq!(response_date(&got), response_date(first));
        identifiers.extend(texts_in(&got.text(), "identifier"));
        (token, pages) = (token_in(&got.text()), pages + 1);
        assert!(pages < 100, "the list does not end");
    }
    assert!(pages > 0, "the list has no further page");
    identifiers
}

fn all_identifiers() -> Vec<String> {
    (0..RECORDS).map(identifier).collect()
}

#[test]
fn mirror_continues_the_list_of_a_source_that_fails() {
    let (_source, collection, proxy) = failing_over();
    let first = proxy.get(LIST);
    check_live(&first);
    set_down(&collection, true);
    let second = resume(&proxy, &token_in(&first.text()).expect("the list continues"));
    assert!(check_failed_over(&second) < response_date(&first), "{}", second.text());
    let rest = read_rest(&proxy, &second);
    let mut found = texts_in(&first.text(), "identifier");
    assert_eq!(found.len(), PAGE_RECORDS);
    found.extend(rest);
    found.sort();
    assert_eq!(found, all_identifiers());
    let metrics = fetch(proxy.admin(), "/-/metrics").text();
    let line = "oaimend_requests_total{outcome=\"failed-over\",repository=\"x\",verb=\"ListRecords\"} 1";
    assert!(metrics.contains(line), "{line} is not in\n{metrics}");
}

#[test]
fn list_of_the_mirror_continues_after_the_source_is_back() {
    for pages_before in [0, 1] {
        let (source, collection, proxy) = failing_over();
        let mut found = Vec::new();
        let mut token = None;
        for _ in 0..pages_before {
            let page = proxy.get(LIST);
            check_live(&page);
            found.extend(texts_in(&page.text(), "identifier"));
            token = token_in(&page.text());
        }
        let ask = || token.as_ref().map_or_else(|| proxy.get(LIST), |token| resume(&proxy, token));
        set_down(&collection, true);
        let of_mirror = ask();
        check_failed_over(&of_mirror);
        set_down(&collection, false);
        pass_time(&proxy, &collection, 3_600);
        // The page of the mirror is not cached.
        check_live(&ask());
        let requested = source.requests().len();
        found.extend(read_rest(&proxy, &of_mirror));
        assert_eq!(source.requests().len(), requested, "the mirror needs no source");
        found.sort();
        assert_eq!(found, all_identifiers(), "{pages_before}");
    }
}

#[test]
fn request_from_inside_an_outage_is_sent_with_the_state_of_the_mirror() {
    let (source, collection, proxy) = failing_over();
    pass_time(&proxy, &collection, 7_200);
    // A change that the mirror does not have.
    change(&collection, |collection| {
        let datestamp_secs = collection.now_secs;
        collection.entries.get_mut(&identifier(7)).expect("it exists").datestamp_secs = datestamp_secs;
    });
    pass_time(&proxy, &collection, 7_200);
    set_down(&collection, true);
    let state = check_failed_over(&proxy.get(&format!("{LIST}&from=2020-01-05")));
    set_down(&collection, false);
    pass_time(&proxy, &collection, 60);
    let requested = source.requests().len();
    let own_clock = collection.lock().expect("no panic").now_secs;
    let from = from_secs(UnixSecs(own_clock), Granularity::Second);
    let next = proxy.get(&format!("{LIST}&from={from}"));
    check_live(&next);
    assert_eq!(texts_in(&next.text(), "identifier"), [identifier(7)]);
    let received = source.requests();
    let lists = received[requested..].iter().filter(|received| received.target.contains("ListRecords"));
    let lists: Vec<String> = lists.map(|received| received.target.replace("%3A", ":")).collect();
    assert!(lists.len() == 1 && lists[0].contains(&format!("from={state}")), "{state}: {lists:?}");
    // A request from before the outage is not changed.
    drop(proxy.get(&format!("{LIST}&from=2020-01-07T01:02:03Z")));
    let last = source.requests().pop().expect("a request").target.replace("%3A", ":");
    assert!(last.contains("from=2020-01-07T01:02:03Z"), "{last}");
}

#[test]
fn page_of_the_mirror_is_logged_with_the_failure_of_the_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, _collection) = Collection::of(25).start();
    std::fs::create_dir(folder.path().join("mappings")).expect("a writable folder");
    let mapping = format!(
        "base_url = \"{}\"\nserve = \"live-then-mirror\"\n[mirror]\nprefixes = [\"oai_dc\"]\n\
         [limits]\nfirst_record_timeout_secs = 1\n",
        source.base_url()
    );
    std::fs::write(folder.path().join("mappings/x.toml"), mapping).expect("a writable folder");
    let mut program = Program::run(serve(folder.path()).args(["--admin", "127.0.0.1:0"]));
    assert_eq!(program.line("harvest of the mirror")["complete"], true);
    let first = fetch(program.address(), LIST).text();
    assert_eq!(program.line("page")["outcome"], "complete");
    let base_url = source.base_url();
    drop(source);
    let token = token_in(&first).expect("the list continues");
    let got = fetch(program.address(), &format!("/x?verb=ListRecords&resumptionToken={token}"));
    assert_eq!((got.status, got.header("cache-status")), (200, MIRROR_STATUS), "{}", got.text());
    let failure = got.header("proxy-status");
    assert!(failure.starts_with("oaimend; error=connection_"), "{failure}");
    let line = program.line("page");
    assert_eq!((&line["status"], &line["outcome"]), (&200.into(), &"failed-over".into()), "{line}");
    assert_eq!(line["records"], 15, "{line}");
    let details = line["details"].as_str().expect("a text");
    assert!(line["reason"].is_string() && details.contains(&base_url), "{line}");
    assert!(failure.contains("the source of x") && !failure.contains("127.0.0.1"), "{failure}");
}
