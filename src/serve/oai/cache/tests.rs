//! Tests of the cache without a proxy: the rules, and pages in flight.

use super::disk_threads::write_on_disk;
use super::in_flight::{
    IN_FLIGHT_BYTES_MAX, InFlightOptions, InFlightPage, PageError, Reader, SharedMemory, Writer,
};
use super::rules::{self, CachePlan, Retention};
use super::storage::{Joined, OnDisk, PageForm, PageStorage};
use crate::config::{self, Mapping};
use bytes::Bytes;
use oaimend_base::clock;
use oaimend_files::Pages;
use oaimend_oai::{ErrorCode, Request};
use oaimend_repair::Outcome;
use oaimend_repository::{Failure, Reason, ResponseSummary};
use oaimend_upstream::settings::{Limits, SourceMapping};
use pingora_http::ResponseHeader;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

fn complete_summary() -> ResponseSummary {
    summary_with(|_| {})
}

/// The summary of a complete page, changed.
fn summary_with(change: impl FnOnce(&mut ResponseSummary)) -> ResponseSummary {
    let mut summary = ResponseSummary::default();
    summary.end.outcome = Some(Outcome::Clean);
    change(&mut summary);
    summary
}

fn mapping() -> Mapping {
    Mapping::new("x", "http://source.example/oai", &Limits::default()).expect("a legal mapping")
}

/// The mapping with another source.
fn with_source(change: impl FnOnce(&mut SourceMapping)) -> Mapping {
    let mut mapping = mapping();
    change(mapping.source_mut());
    mapping
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

#[test]
fn the_request_decides_how_long_a_page_is_cached() {
    let summary = complete_summary();
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
        let expected = kept.map(|(until, stale)| Retention { fresh_until: at(until), stale_if_error: stale });
        assert_eq!(plan.verdict(&summary, began), expected, "{query}");
        assert_eq!(plan.is_shared, kept.is_some(), "{query}");
    }
    let lax = Mapping { stale_lists: true, ..mapping() };
    let expected = Retention { fresh_until: began, stale_if_error: day };
    assert_eq!(plan(LIST, &lax).verdict(&summary, began), Some(expected));
    assert!(!plan(LIST, &lax).is_shared);
}

#[test]
fn pages_with_losses_or_our_own_token_are_not_cached() {
    let plan = plan(TOKEN, &mapping());
    assert!(plan.verdict(&complete_summary(), at(0)).is_some());
    let failure = Failure::new(Reason::Incomplete, "");
    for summary in [
        ResponseSummary::default(),
        summary_with(|summary| summary.end.outcome = Some(Outcome::Truncated)),
        summary_with(|summary| summary.items.add_quarantined(1)),
        summary_with(|summary| summary.page.is_ambiguous = true),
        summary_with(|summary| summary.page.error = Some(ErrorCode::BadResumptionToken)),
        summary_with(|summary| summary.end.continued = Some(failure)),
    ] {
        assert_eq!(plan.verdict(&summary, at(0)), None, "{summary:?}");
    }
}

#[test]
fn errors_and_expiring_tokens_shorten_the_retention() {
    let until = |query: &str, summary: &ResponseSummary| {
        plan(query, &mapping()).verdict(summary, at(1000)).map(|kept| kept.fresh_until)
    };
    let error = summary_with(|summary| summary.page.error = Some(ErrorCode::NoSetHierarchy));
    assert_eq!(until("verb=ListSets", &error), Some(at(1005)));
    assert_eq!(until("verb=ListSets", &complete_summary()), Some(at(1300)));
    let token = |date: &str| summary_with(|summary| summary.page.token_expires = Some(date.to_owned()));
    assert_eq!(until(TOKEN, &token("1970-01-01T00:17:00Z")), Some(at(1020)));
    assert_eq!(until(TOKEN, &token(" 1970-01-01T01:17:00+01:00 ")), Some(at(1020)));
    assert_eq!(until(TOKEN, &token("2970-01-01T00:00:00Z")), Some(at(1060)));
    assert_eq!(until(TOKEN, &token("1970-01-01T00:16:00Z")), None, "expired already");
    assert_eq!(until(TOKEN, &token("1970-01-01T00:16:00")), Some(at(1060)), "no time zone");
    assert_eq!(until(TOKEN, &complete_summary()), Some(at(1060)));
    assert_eq!(until("verb=ListSets", &token("1970-01-01T00:17:00Z")), Some(at(1020)));
}

#[test]
fn keys_distinguish_names_queries_and_mappings() {
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
    assert_eq!(first, key(&mapping(), "http://a/x", "verb=Identify"));
    let other = with_source(|source| source.access.allow_private = true);
    let renamed = with_source(|source| "y".clone_into(&mut source.id));
    for different in [
        key(&mapping(), "http://b/x", "verb=Identify"),
        key(&mapping(), "http://a/x", "verb=ListSets"),
        key(&other, "http://a/x", "verb=Identify"),
        key(&renamed, "http://a/x", "verb=Identify"),
    ] {
        assert_ne!(different, first);
    }
}

/// The options of a page in flight, on a disk of its own.
fn options(query: &str, capacity: u64) -> (tempfile::TempDir, InFlightOptions, Arc<Pages>) {
    let data = tempfile::tempdir().expect("a temporary folder");
    let pages = Arc::new(Pages::open(data.path(), u64::MAX).expect("it can be written to"));
    let mapping = mapping();
    let (key, plan) = (rules::key(&mapping, "", "http://a/x", &request(query), None), plan(query, &mapping));
    (data, InFlightOptions { id: 1, key, plan, capacity }, pages)
}

/// A page whose header was received.
fn begun(options: InFlightOptions, pages: &Arc<Pages>) -> Writer {
    let writer = Writer::start(options, Arc::clone(pages), &SharedMemory::default());
    writer.begin_with(head(200));
    writer
}

fn head(status: u16) -> ResponseHeader {
    ResponseHeader::build(status, None).expect("a legal status")
}

fn joined(in_flight: &Arc<InFlightPage>) -> Reader {
    Reader::start(in_flight).expect("the page is not a ring yet")
}

fn piece(number: u8) -> Bytes {
    Bytes::from(vec![number; 50_000])
}

#[tokio::test]
async fn readers_at_any_speed_receive_the_same_page() {
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
                    while let Some(bytes) = reader.next().await.expect("it is complete") {
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
            writer.append(piece(number)).await.expect("it has a reader");
        }
        let is_joined = in_flight.is_for(clock::now(), clock::now());
        assert_eq!(is_joined, capacity == u64::MAX, "a ring is not joined");
        let summary = complete_summary();
        let kept = writer.finish(&summary).await;
        assert_eq!(kept, capacity == u64::MAX);
        let expected: Vec<u8> = (0..40).flat_map(piece).collect();
        for reading in reading {
            assert!(reading.await.expect("no panic") == expected);
        }
    }
}

#[tokio::test]
async fn a_late_reader_receives_the_beginning_of_a_page_or_nothing() {
    const PIECE: usize = 64 << 10;
    // Long enough to be written to a file, on another thread.
    let (_data, options, pages) = options(TOKEN, 20 * PIECE as u64);
    let mut writer = begun(options, &pages);
    let in_flight = Arc::clone(&writer.page);
    let mut first = joined(&in_flight);
    for number in 0..20 {
        writer.append(Bytes::from(vec![number; PIECE])).await.expect("it has a reader");
    }
    assert_eq!(first.next().await.expect("it was received").map(|bytes| bytes.len()), Some(PIECE));
    // The thread that writes is busy, so the write cannot end before the reader starts.
    let busy = Arc::new(std::sync::RwLock::new(()));
    let release = busy.write().expect("no thread panics");
    let waited_for = Arc::clone(&busy);
    let mut waiting = Box::pin(write_on_disk(move || {
        drop(waited_for.read());
        Ok(())
    }));
    assert!(poll(waiting.as_mut()).is_pending());
    let mut append = pin!(writer.append(Bytes::from(vec![20; PIECE])));
    assert!(poll(append.as_mut()).is_pending(), "the piece overwrites the first one");
    let late = Reader::start(&in_flight);
    drop(release);
    if let Some(mut late) = late {
        let bytes = late.next().await.expect("it was received").expect("it has not ended");
        assert!(bytes.iter().all(|byte| *byte == 0), "the last piece has replaced it");
    }
    waiting.await.expect("the lock is free");
}

#[tokio::test]
async fn readers_of_a_dropped_writer_receive_its_bytes_and_then_an_error() {
    let (_data, options, pages) = options(TOKEN, u64::MAX);
    let mut writer = begun(options, &pages);
    let mut reader = joined(&writer.page);
    writer.append(piece(1)).await.expect("it has a reader");
    let in_flight = Arc::clone(&writer.page);
    drop(writer);
    assert!(matches!(reader.next().await, Ok(Some(bytes)) if bytes == piece(1)));
    assert!(matches!(reader.next().await, Err(PageError::Broken)));
    assert_eq!(in_flight.ended(), Some(false));
    assert!(!in_flight.is_for(SystemTime::UNIX_EPOCH, clock::now()), "no request joins it");
}

#[tokio::test]
async fn a_page_without_readers_continues_only_if_it_is_to_be_cached() {
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
async fn a_page_without_a_header_continues_for_a_retry() {
    let (_data, options, pages) = options(LIST, u64::MAX);
    let writer = Writer::start(options, pages, &SharedMemory::default());
    drop(Reader::first(&writer.page));
    assert!(poll(pin!(writer.unwanted())).is_pending(), "its harvester may retry");
    writer.begin_with(head(200));
    assert!(poll(pin!(writer.unwanted())).is_ready(), "its harvester has not retried");
}

#[tokio::test]
async fn a_new_reader_keeps_a_page_that_the_last_reader_leaves() {
    let (_data, options, pages) = options(LIST, u64::MAX);
    let again = InFlightOptions { id: 2, key: options.key.clone(), ..options };
    let pages = Arc::into_inner(pages).expect("there is no other owner");
    let storage: &'static PageStorage = Box::leak(Box::new(PageStorage::new(pages)));
    let Joined::First(first, writer) = storage.join(options, clock::now(), OnDisk::Final) else {
        panic!("no page is in flight")
    };
    writer.begin_with(head(200));
    drop(first);
    assert!(poll(pin!(writer.unwanted())).is_ready(), "it has no reader");
    let Joined::Other(second) = storage.join(again, clock::now(), OnDisk::Final) else {
        panic!("the page is in flight")
    };
    assert!(!storage.retire_unwanted(&writer.page) && !is_retired(&writer.page), "it has a reader again");
    drop(second);
    assert!(storage.retire_unwanted(&writer.page) && is_retired(&writer.page));
}

#[tokio::test]
async fn concurrent_requests_share_one_page() {
    let (_data, _, pages) = options(LIST, u64::MAX);
    let pages = Arc::into_inner(pages).expect("there is no other owner");
    let storage: &'static PageStorage = Box::leak(Box::new(PageStorage::new(pages)));
    let join = |query| {
        let (_data, options, _) = options(query, u64::MAX);
        storage.join(InFlightOptions { id: storage.next_id(), ..options }, clock::now(), OnDisk::Final)
    };
    let Joined::First(mut first, mut writer) = join(LIST) else { panic!("no page is in flight") };
    let Joined::Other(mut second) = join(LIST) else { panic!("the page is in flight") };
    assert!(
        matches!(join("verb=ListRecords&metadataPrefix=marc"), Joined::First(..)),
        "another request has its own page"
    );
    assert!(poll(pin!(second.page.head())).is_pending(), "its header was not received yet");
    writer.begin_with(head(200));
    writer.append(piece(1)).await.expect("it has its readers");
    assert!(!writer.finish(&complete_summary()).await, "it is not cached");
    for reader in [&mut first, &mut second] {
        assert_eq!(reader.page.head().await.expect("it was received").status, 200);
        assert!(matches!(reader.next().await, Ok(Some(bytes)) if bytes == piece(1)));
        assert!(matches!(reader.next().await, Ok(None)));
    }
    assert!(matches!(join(LIST), Joined::First(..)), "the page has ended");
}

/// Polls a future once.
fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn readers_see_the_end_of_a_page_after_it_is_on_disk() {
    let (_data, options, pages) = options(TOKEN, u64::MAX);
    let key = options.key.clone();
    let mut writer = begun(options, &pages);
    let in_flight = Arc::clone(&writer.page);
    let mut reader = joined(&in_flight);
    writer.append(piece(1)).await.expect("it has a reader");
    assert!(matches!(reader.next().await, Ok(Some(bytes)) if bytes == piece(1)));
    let mut next = pin!(reader.next());
    assert!(poll(next.as_mut()).is_pending(), "the end is not visible yet");
    let summary = complete_summary();
    {
        let mut finishing = pin!(writer.finish(&summary));
        while poll(finishing.as_mut()).is_pending() {
            assert!(
                in_flight.is_written() && in_flight.ended().is_none(),
                "the page is complete, but not on disk"
            );
            assert!(poll(next.as_mut()).is_pending(), "it is not on disk");
            tokio::task::yield_now().await;
        }
    }
    assert!(pages.is_known(&key));
    assert!(matches!(poll(next.as_mut()), Poll::Ready(Ok(None))));
}

#[tokio::test]
async fn a_page_that_ends_between_two_lookups_is_looked_up_again() {
    let (_data, options, pages) = options(TOKEN, u64::MAX);
    let again = || InFlightOptions { id: 2, key: options.key.clone(), ..options };
    let pages = Arc::into_inner(pages).expect("there is no other owner");
    let storage: &'static PageStorage = Box::leak(Box::new(PageStorage::new(pages)));
    let Joined::First(_reader, mut writer) = storage.join(again(), clock::now(), OnDisk::Nothing) else {
        panic!("no page is in flight")
    };
    let in_flight = Arc::clone(&writer.page);
    writer.begin_with(head(200));
    writer.append(piece(1)).await.expect("it has a reader");
    assert!(writer.finish(&complete_summary()).await);
    storage.retire(&in_flight);
    assert!(matches!(storage.join(again(), clock::now(), OnDisk::Nothing), Joined::Again));
    let mut page = storage.find_cached(&options.key, PageForm::PLAIN).await.expect("it was received");
    assert!(page.meta.is_fresh(clock::now()) && !page.meta.is_fresh(clock::now() + Duration::from_secs(60)));
    assert!(matches!(page.next().await, Ok(Some(bytes)) if bytes == piece(1)));
    assert!(matches!(page.next().await, Ok(None)));
    assert!(
        matches!(storage.join(again(), clock::now(), OnDisk::Final), Joined::First(..)),
        "the number of lookups is limited"
    );
}

#[tokio::test]
async fn memory_of_all_pages_in_flight_is_limited() {
    const PIECES: u64 = 16;
    let (_data, _, pages) = options(LIST, u64::MAX);
    let memory = SharedMemory::default();
    let mut open = Vec::new();
    // Each page alone fits into memory.
    let in_memory_max = IN_FLIGHT_BYTES_MAX / (PIECES * piece(1).len() as u64);
    for id in 0..in_memory_max + 5 {
        let (_data, options, _) = options(LIST, u64::MAX);
        let options = InFlightOptions { id, ..options };
        let mut writer = Writer::start(options, Arc::clone(&pages), &memory);
        writer.begin_with(head(200));
        let reader = joined(&writer.page);
        for number in 0..PIECES {
            writer.append(piece(number as u8)).await.expect("it has a reader");
        }
        open.push((writer, reader));
    }
    let held: u64 = open.iter().map(|(writer, _)| writer.page.memory_bytes()).sum();
    assert!((IN_FLIGHT_BYTES_MAX / 2..=IN_FLIGHT_BYTES_MAX).contains(&held), "{held}");
    let expected: Vec<u8> = (0..PIECES).flat_map(|number| piece(number as u8)).collect();
    for (writer, mut reader) in open.drain(..) {
        let mut got = Vec::new();
        while got.len() < expected.len() {
            got.extend_from_slice(&reader.next().await.expect("it was received").expect("it has not ended"));
        }
        assert!(got == expected);
        drop(reader);
        writer.fail();
    }
    let mut writer = Writer::start(options(LIST, u64::MAX).1, pages, &memory);
    writer.begin_with(head(200));
    let _reader = joined(&writer.page);
    writer.append(piece(1)).await.expect("it has a reader");
    assert_eq!(writer.page.memory_bytes(), piece(1).len() as u64, "the others gave their memory back");
}

#[tokio::test]
async fn memory_of_pages_in_their_grace_period_is_limited() {
    let (_data, _, pages) = options(LIST, u64::MAX);
    let pages = Arc::into_inner(pages).expect("there is no other owner");
    let storage: &'static PageStorage = Box::leak(Box::new(PageStorage::new(pages)));
    let mut in_grace = Vec::new();
    for id in 1..=20 {
        let (_data, options, _) = options(LIST, u64::MAX);
        let writer = Writer::start(
            InFlightOptions { id, ..options },
            Arc::clone(&storage.pages),
            &SharedMemory::default(),
        );
        let in_flight = Arc::clone(&writer.page);
        writer.answer_failure(head(503), vec![b' '; 64 << 10].into());
        storage.hold_for_grace_period(Arc::clone(&in_flight));
        in_grace.push(in_flight);
    }
    let gone: Vec<u64> =
        in_grace.iter().filter(|in_flight| is_retired(in_flight)).map(|in_flight| in_flight.id).collect();
    assert_eq!(gone, [1, 2, 3, 4], "of 20 times 64 KiB the oldest are removed");
}

#[tokio::test]
async fn the_length_is_known_only_when_the_page_is_complete() {
    let (_data, options, pages) = options(TOKEN, u64::MAX);
    let mut writer = begun(options, &pages);
    let in_flight = Arc::clone(&writer.page);
    writer.append(piece(1)).await.expect("it has its first reader");
    assert_eq!((in_flight.whole_bytes(), in_flight.ended()), (None, None), "the page is not complete");
    writer.append(piece(1)).await.expect("it has its first reader");
    assert!(writer.finish(&complete_summary()).await);
    assert_eq!((in_flight.whole_bytes(), in_flight.ended()), (Some(2 * piece(1).len() as u64), Some(true)));
    let (_data, options, _) = self::options(TOKEN, u64::MAX);
    let mut writer = begun(options, &pages);
    let in_flight = Arc::clone(&writer.page);
    writer.append(piece(1)).await.expect("it has its first reader");
    writer.fail();
    assert_eq!(
        (in_flight.whole_bytes(), in_flight.ended()),
        (None, Some(false)),
        "a truncated page has no length"
    );
}

fn is_retired(in_flight: &InFlightPage) -> bool {
    in_flight.is_retired.load(Ordering::Relaxed)
}

#[test]
fn a_first_page_is_shared_with_requests_that_arrive_when_it_begins() {
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
async fn a_failure_answers_requests_for_some_seconds() {
    let (_data, options, pages) = options(LIST, u64::MAX);
    let writer = Writer::start(options, pages, &SharedMemory::default());
    let (failure, mut reader) = (Arc::clone(&writer.page), Reader::first(&writer.page));
    writer.answer_failure(head(503), "no".into());
    assert_eq!(failure.head().await.expect("it was received").status, 503);
    assert!(matches!(reader.next().await, Ok(Some(bytes)) if bytes == "no"));
    assert!(matches!(reader.next().await, Ok(None)));
    let now = clock::now();
    let later = |seconds| now + Duration::from_secs(seconds);
    assert!(failure.is_for(later(4), later(4)));
    assert!(!failure.is_for(later(6), later(6)));
}
