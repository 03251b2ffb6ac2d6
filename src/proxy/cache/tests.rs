//! The rules by request and by page, and the spool without a proxy around it.

use super::in_flight::{InFlightOptions, InFlightPage, PageError, Reader, Writer};
use super::rules::{self, CachePlan, Retention};
use super::storage::{Joined, OnDisk, PageStorage};
use crate::clock;
use crate::config::{self, Limits, Mapping};
use crate::oai::Request;
use crate::repair::Outcome;
use crate::store::Pages;
use crate::upstream::{Account, Failure, Reason};
use bytes::Bytes;
use pingora_http::ResponseHeader;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

fn whole() -> Account {
    Account { outcome: Some(Outcome::Clean), ..Account::default() }
}

fn mapping() -> Mapping {
    Mapping::new("x", "http://source.example/oai", &Limits::default()).expect("a legal mapping")
}

fn request(query: &str) -> Request {
    Request::parse(query.as_bytes()).expect("a legal request")
}

fn plan(query: &str, mapping: &Mapping) -> CachePlan {
    CachePlan::of(&request(query), mapping, &config::Cache::default())
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

const LIST: &str = "verb=ListRecords&metadataPrefix=a";
const TOKEN: &str = "verb=ListIdentifiers&resumptionToken=t";
const END: &[u8] = b"</record></ListRecords></OAI-PMH>\n";

#[test]
fn what_is_asked_says_how_long_it_is_kept() {
    let account = whole();
    let began = at(1000);
    let day = Duration::from_secs(86_400);
    for (query, kept) in [
        ("verb=Identify", Some((1300, day))),
        ("verb=ListMetadataFormats", Some((1300, day))),
        ("verb=ListSets", Some((1300, day))),
        ("verb=GetRecord&identifier=a&metadataPrefix=b", Some((1300, day))),
        (LIST, None),
        ("verb=ListIdentifiers&metadataPrefix=a&from=2020-01-01", None),
        (TOKEN, Some((1060, Duration::ZERO))),
        ("verb=ListSets&resumptionToken=t", Some((1060, Duration::ZERO))),
    ] {
        let plan = plan(query, &mapping());
        let wanted = kept.map(|(until, stale)| Retention { fresh_until: at(until), stale_if_error: stale });
        assert_eq!(plan.verdict(&account, END, began), wanted, "{query}");
        assert_eq!(plan.is_shared, kept.is_some(), "{query}");
    }
    let lax = Mapping { stale_lists: true, ..mapping() };
    let wanted = Retention { fresh_until: began, stale_if_error: day };
    assert_eq!(plan(LIST, &lax).verdict(&account, END, began), Some(wanted));
    assert!(!plan(LIST, &lax).is_shared);
}

#[test]
fn what_lost_something_or_has_a_token_of_ours_is_not_kept() {
    let plan = plan(TOKEN, &mapping());
    assert!(plan.verdict(&whole(), END, at(0)).is_some());
    let failure = Failure::new(Reason::Incomplete, "");
    for account in [
        Account::default(),
        Account { outcome: Some(Outcome::Truncated), ..whole() },
        Account { quarantined: 1, ..whole() },
        Account { reuses_tokens: true, ..whole() },
        Account { leads_back_to: Some(TOKEN.to_owned()), ..whole() },
        Account { continued: Some(failure), ..whole() },
    ] {
        assert_eq!(plan.verdict(&account, END, at(0)), None, "{account:?}");
    }
}

#[test]
fn the_end_of_a_page_tells_errors_and_tokens() {
    let account = whole();
    let until = |query: &str, end: &str| {
        plan(query, &mapping()).verdict(&account, end.as_bytes(), at(1000)).map(|kept| kept.fresh_until)
    };
    for error in [
        "<error code=\"a\">b</error></OAI-PMH>",
        "<error code=\"a\"/>\n</OAI-PMH>\n",
        "<o:error code=\"a\">x</o:error></o:OAI-PMH>",
    ] {
        assert_eq!(until("verb=ListSets", error), Some(at(1005)), "{error}");
    }
    for answer in ["<dc:error>x</dc:error></record></GetRecord></OAI-PMH>", "<error/></a></OAI-PMH>", "", "<"]
    {
        assert_eq!(until("verb=ListSets", answer), Some(at(1300)), "{answer}");
    }
    let token = |date: &str| {
        format!(
            "<resumptionToken cursor=\"0\" expirationDate={date}>t</resumptionToken></ListRecords></OAI-PMH>"
        )
    };
    assert_eq!(until(TOKEN, &token("\"1970-01-01T00:17:00Z\"")), Some(at(1020)));
    assert_eq!(until(TOKEN, &token("'1970-01-01T00:17:00Z'")), Some(at(1020)));
    assert_eq!(until(TOKEN, &token("\"2970-01-01T00:00:00Z\"")), Some(at(1060)));
    assert_eq!(until(TOKEN, &token("\"1970-01-01T00:16:00Z\"")), None, "expired already");
    assert_eq!(until(TOKEN, &token("\"tomorrow\"")), Some(at(1060)));
    assert_eq!(until(TOKEN, "<resumptionToken/></ListRecords></OAI-PMH>"), Some(at(1060)));
    let sets =
        "<resumptionToken expirationDate=\"1970-01-01T00:17:00Z\">t</resumptionToken></ListSets></OAI-PMH>";
    assert_eq!(until("verb=ListSets", sets), Some(at(1020)));
}

#[test]
fn keys_tell_names_queries_and_mappings_apart() {
    let key = |mapping: &Mapping, base: &str, query: &str| {
        rules::key(mapping, &rules::generation(mapping), base, &request(query), None)
    };
    let first = key(&mapping(), "http://a/x", "verb=Identify");
    let lowered = |query: &str| {
        rules::key(
            &mapping(),
            &rules::generation(&mapping()),
            "http://a/x",
            &request(query),
            Some("2011-01-01"),
        )
    };
    assert_ne!(lowered("verb=Identify"), first, "a lowered earliestDatestamp makes another page");
    assert_eq!(lowered("verb=ListSets"), key(&mapping(), "http://a/x", "verb=ListSets"));
    assert_eq!(first, key(&mapping(), "http://a/x", "verb=Identify"));
    let other = Mapping { allow_private: true, ..mapping() };
    let renamed = Mapping { id: "y".into(), ..mapping() };
    for different in [
        key(&mapping(), "http://b/x", "verb=Identify"),
        key(&mapping(), "http://a/x", "verb=ListSets"),
        key(&other, "http://a/x", "verb=Identify"),
        key(&renamed, "http://a/x", "verb=Identify"),
    ] {
        assert_ne!(different, first);
    }
}

/// A in_flight on a disk of its own.
fn options(query: &str, capacity: u64) -> (tempfile::TempDir, InFlightOptions, Arc<Pages>) {
    let data = tempfile::tempdir().expect("a temporary folder");
    let pages = Arc::new(Pages::open(data.path(), u64::MAX).expect("it can be written to"));
    let mapping = mapping();
    let (key, plan) = (rules::key(&mapping, "", "http://a/x", &request(query), None), plan(query, &mapping));
    (data, InFlightOptions { id: 1, key, plan, capacity }, pages)
}

/// A page whose head is there.
fn begun(options: InFlightOptions, pages: &Arc<Pages>) -> Writer {
    let writer = Writer::start(options, Arc::clone(pages));
    writer.begin_with(head(200));
    writer
}

fn head(status: u16) -> ResponseHeader {
    ResponseHeader::build(status, None).expect("a legal status")
}

fn joined(in_flight: &Arc<InFlightPage>) -> Reader {
    Reader::start(in_flight).expect("it is no ring yet")
}

fn piece(number: u8) -> Bytes {
    Bytes::from(vec![number; 100_000])
}

#[tokio::test]
async fn readers_at_any_speed_get_the_same() {
    for capacity in [u64::MAX, 400_000] {
        let (_data, options, pages) = options(TOKEN, capacity);
        let mut writer = begun(options, &pages);
        let in_flight = Arc::clone(&writer.page);
        let mut readers = vec![joined(&in_flight), joined(&in_flight)];
        let reading: Vec<_> = readers
            .drain(..)
            .enumerate()
            .map(|(slow, mut reader)| {
                tokio::spawn(async move {
                    let mut got = Vec::new();
                    while let Some(bytes) = reader.next().await.expect("it is whole") {
                        got.extend_from_slice(&bytes);
                        for _ in 0..slow * 20 {
                            tokio::task::yield_now().await;
                        }
                    }
                    got
                })
            })
            .collect();
        for number in 0..40 {
            writer.append(piece(number)).await.expect("it is wanted");
        }
        let is_joined = in_flight.is_for(clock::now(), clock::now());
        assert_eq!(is_joined, capacity == u64::MAX, "a ring is not joined");
        let account = whole();
        let kept = writer.finish(&account).await;
        assert_eq!(kept, capacity == u64::MAX);
        let wanted: Vec<u8> = (0..40).flat_map(piece).collect();
        for reading in reading {
            assert!(reading.await.expect("no panic") == wanted);
        }
    }
}

#[test]
fn who_comes_in_the_moment_in_which_a_page_becomes_a_ring_gets_its_beginning_or_nothing() {
    const PIECE: usize = 256 << 10;
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build();
    runtime.expect("a runtime").block_on(async {
        // So long that it lies in a file, which is written beside the task.
        let (_data, options, pages) = options(TOKEN, 5 * PIECE as u64);
        let mut writer = begun(options, &pages);
        let in_flight = Arc::clone(&writer.page);
        let mut first = joined(&in_flight);
        for number in 0..5 {
            writer.append(Bytes::from(vec![number; PIECE])).await.expect("it is wanted");
        }
        assert_eq!(first.next().await.expect("it is there").map(|bytes| bytes.len()), Some(PIECE));
        // The only blocking thread is busy, so that the write cannot be done before the reader starts.
        let (release, released) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || released.recv());
        let mut append = pin!(writer.append(Bytes::from(vec![5; PIECE])));
        assert!(poll(append.as_mut()).is_pending(), "it is being written, in the place of the first");
        let late = Reader::start(&in_flight);
        drop(release);
        if let Some(mut late) = late {
            let bytes = late.next().await.expect("it is there").expect("it is not over");
            assert!(bytes.iter().all(|byte| *byte == 0), "what stands there now is the sixth");
        }
    });
}

#[tokio::test]
async fn a_writer_that_vanishes_is_an_error_behind_what_it_wrote() {
    let (_data, options, pages) = options(TOKEN, u64::MAX);
    let mut writer = begun(options, &pages);
    let mut reader = joined(&writer.page);
    writer.append(piece(1)).await.expect("it is wanted");
    let in_flight = Arc::clone(&writer.page);
    drop(writer);
    assert!(matches!(reader.next().await, Ok(Some(bytes)) if bytes == piece(1)));
    assert!(matches!(reader.next().await, Err(PageError::Broken)));
    assert_eq!(in_flight.ended(), Some(false));
    assert!(!in_flight.is_for(SystemTime::UNIX_EPOCH, clock::now()), "nobody joins it");
}

#[tokio::test]
async fn a_page_that_nobody_reads_goes_on_only_if_it_is_kept() {
    for (query, is_kept) in [(TOKEN, true), (LIST, false)] {
        let (_data, options, pages) = options(query, u64::MAX);
        let mut writer = begun(options, &pages);
        let reader = Reader::first(&writer.page);
        writer.append(piece(1)).await.expect("it has a reader");
        drop(reader);
        assert_eq!(poll(pin!(writer.unwanted())).is_ready(), !is_kept, "{query}");
    }
}

#[tokio::test]
async fn a_page_that_has_not_begun_is_wanted_by_who_asks_again() {
    let (_data, options, pages) = options(LIST, u64::MAX);
    let writer = Writer::start(options, pages);
    drop(Reader::first(&writer.page));
    assert!(poll(pin!(writer.unwanted())).is_pending(), "its harvester gave up waiting");
    writer.begin_with(head(200));
    assert!(poll(pin!(writer.unwanted())).is_ready(), "and did not ask again");
}

#[tokio::test]
async fn who_joins_a_page_that_the_last_reader_leaves_keeps_it() {
    let (_data, options, pages) = options(LIST, u64::MAX);
    let again = InFlightOptions { id: 2, key: options.key.clone(), ..options };
    let pages = Arc::into_inner(pages).expect("nobody else has it");
    let storage: &'static PageStorage = Box::leak(Box::new(PageStorage::new(pages).expect("threads")));
    let Joined::First(first, writer) = storage.join(options, clock::now(), OnDisk::Final) else {
        panic!("nobody came before")
    };
    writer.begin_with(head(200));
    drop(first);
    assert!(poll(pin!(writer.unwanted())).is_ready(), "nobody reads it");
    let Joined::Other(second) = storage.join(again, clock::now(), OnDisk::Final) else {
        panic!("it is under way")
    };
    assert!(!storage.retire_unwanted(&writer.page) && !is_retired(&writer.page), "somebody reads it again");
    drop(second);
    assert!(storage.retire_unwanted(&writer.page) && is_retired(&writer.page));
}

#[tokio::test]
async fn who_comes_together_reads_one_page() {
    let (_data, _, pages) = options(LIST, u64::MAX);
    let pages = Arc::into_inner(pages).expect("nobody else has it");
    let storage: &'static PageStorage = Box::leak(Box::new(PageStorage::new(pages).expect("threads")));
    let came = |query| {
        let (_data, options, _) = options(query, u64::MAX);
        storage.join(InFlightOptions { id: storage.next_id(), ..options }, clock::now(), OnDisk::Final)
    };
    let Joined::First(mut first, mut writer) = came(LIST) else { panic!("nobody came before") };
    let Joined::Other(mut second) = came(LIST) else { panic!("the page is under way") };
    assert!(matches!(came("verb=ListRecords&metadataPrefix=marc"), Joined::First(..)), "it is another one");
    assert!(poll(pin!(second.page.head())).is_pending(), "nothing is known of it yet");
    writer.begin_with(head(200));
    writer.append(piece(1)).await.expect("it has its readers");
    assert!(!writer.finish(&whole()).await, "it is not kept");
    for reader in [&mut first, &mut second] {
        assert_eq!(reader.page.head().await.expect("it is there").status, 200);
        assert!(matches!(reader.next().await, Ok(Some(bytes)) if bytes == piece(1)));
        assert!(matches!(reader.next().await, Ok(None)));
    }
    assert!(matches!(came(LIST), Joined::First(..)), "it is over");
}

/// Looks at a future once.
fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn the_end_of_a_page_is_told_when_it_is_kept_and_not_before() {
    let (_data, options, pages) = options(TOKEN, u64::MAX);
    let key = options.key.clone();
    let mut writer = begun(options, &pages);
    let in_flight = Arc::clone(&writer.page);
    let mut reader = joined(&in_flight);
    writer.append(piece(1)).await.expect("it has a reader");
    assert!(matches!(reader.next().await, Ok(Some(bytes)) if bytes == piece(1)));
    let mut next = pin!(reader.next());
    assert!(poll(next.as_mut()).is_pending(), "it has found no end");
    let account = whole();
    {
        let mut finishing = pin!(writer.finish(&account));
        while poll(finishing.as_mut()).is_pending() {
            assert!(
                in_flight.is_written() && in_flight.ended().is_none(),
                "all of it is there, but not on disk"
            );
            assert!(poll(next.as_mut()).is_pending(), "it is not on disk");
            tokio::task::yield_now().await;
        }
    }
    assert!(pages.is_known(&key));
    assert!(matches!(poll(next.as_mut()), Poll::Ready(Ok(None))));
}

#[tokio::test]
async fn a_page_that_ended_between_two_looks_is_looked_for_again() {
    let (_data, options, pages) = options(TOKEN, u64::MAX);
    let again = || InFlightOptions { id: 2, key: options.key.clone(), ..options };
    let pages = Arc::into_inner(pages).expect("nobody else has it");
    let storage: &'static PageStorage = Box::leak(Box::new(PageStorage::new(pages).expect("threads")));
    let Joined::First(_reader, mut writer) = storage.join(again(), clock::now(), OnDisk::Nothing) else {
        panic!("nobody came before")
    };
    let in_flight = Arc::clone(&writer.page);
    writer.begin_with(head(200));
    writer.append(piece(1)).await.expect("it is wanted");
    assert!(writer.finish(&whole()).await);
    storage.retire(&in_flight);
    assert!(matches!(storage.join(again(), clock::now(), OnDisk::Nothing), Joined::Again));
    let mut page = storage.find_cached(&options.key).await.expect("it is there");
    assert!(page.meta.is_fresh(clock::now()) && !page.meta.is_fresh(clock::now() + Duration::from_secs(60)));
    assert!(matches!(page.next().await, Ok(Some(bytes)) if bytes == piece(1)));
    assert!(matches!(page.next().await, Ok(None)));
    assert!(
        matches!(storage.join(again(), clock::now(), OnDisk::Final), Joined::First(..)),
        "it does not look for ever"
    );
}

#[tokio::test]
async fn pages_that_linger_take_no_more_memory_than_they_may() {
    let (_data, _, pages) = options(LIST, u64::MAX);
    let pages = Arc::into_inner(pages).expect("nobody else has it");
    let storage: &'static PageStorage = Box::leak(Box::new(PageStorage::new(pages).expect("threads")));
    let mut in_grace = Vec::new();
    for id in 1..=20 {
        let (_data, options, _) = options(LIST, u64::MAX);
        let writer = Writer::start(InFlightOptions { id, ..options }, Arc::clone(&storage.pages));
        let in_flight = Arc::clone(&writer.page);
        writer.answer_failure(head(503), vec![b' '; 64 << 10].into());
        storage.hold_for_grace_period(Arc::clone(&in_flight));
        in_grace.push(in_flight);
    }
    let gone: Vec<u64> =
        in_grace.iter().filter(|in_flight| is_retired(in_flight)).map(|in_flight| in_flight.id).collect();
    assert_eq!(gone, [1, 2, 3, 4], "of 20 times 64 KiB the first made room");
}

#[tokio::test]
async fn the_length_of_a_page_is_told_when_it_is_whole_and_not_before() {
    let (_data, options, pages) = options(TOKEN, u64::MAX);
    let mut writer = begun(options, &pages);
    let in_flight = Arc::clone(&writer.page);
    writer.append(piece(1)).await.expect("it has its first reader");
    assert_eq!((in_flight.whole_bytes(), in_flight.ended()), (None, None), "more may come");
    writer.append(piece(1)).await.expect("it has its first reader");
    assert!(writer.finish(&whole()).await);
    assert_eq!((in_flight.whole_bytes(), in_flight.ended()), (Some(2 * piece(1).len() as u64), Some(true)));
    let (_data, options, _) = self::options(TOKEN, u64::MAX);
    let mut writer = begun(options, &pages);
    let in_flight = Arc::clone(&writer.page);
    writer.append(piece(1)).await.expect("it has its first reader");
    writer.fail();
    assert_eq!(
        (in_flight.whole_bytes(), in_flight.ended()),
        (None, Some(false)),
        "a page that broke off has none"
    );
}

fn is_retired(in_flight: &InFlightPage) -> bool {
    in_flight.is_retired.load(Ordering::Relaxed)
}

#[test]
fn the_first_page_of_a_list_is_shared_with_those_who_came_when_it_began() {
    let (_data, list, pages) = options(LIST, u64::MAX);
    let (_data, token, _) = options(TOKEN, u64::MAX);
    let (list, token) = (begun(list, &pages), begun(token, &pages));
    let now = clock::now();
    for (seconds, is_shared) in [(0, true), (4, true), (60, false)] {
        let arrived = now + Duration::from_secs(seconds);
        assert_eq!(list.page.is_for(arrived, arrived), is_shared, "{seconds}");
        assert!(token.page.is_for(arrived, arrived), "{seconds}");
    }
}

#[tokio::test]
async fn a_failure_answers_all_for_some_seconds() {
    let (_data, options, pages) = options(LIST, u64::MAX);
    let writer = Writer::start(options, pages);
    let (failure, mut reader) = (Arc::clone(&writer.page), Reader::first(&writer.page));
    writer.answer_failure(head(503), "no".into());
    assert_eq!(failure.head().await.expect("it is there").status, 503);
    assert!(matches!(reader.next().await, Ok(Some(bytes)) if bytes == "no"));
    assert!(matches!(reader.next().await, Ok(None)));
    let now = clock::now();
    let later = |seconds| now + Duration::from_secs(seconds);
    assert!(failure.is_for(later(4), later(4)));
    assert!(!failure.is_for(later(6), later(6)));
}
