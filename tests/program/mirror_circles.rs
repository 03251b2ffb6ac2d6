//! Harvests of lists that never end, and of lists that do not prove what they omit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use oaimend_mirror::harvest::SWEEP_INTERVAL_SECS;
use oaimend_store::RecordStatus;

use crate::fixtures::collection::Collection;
use crate::fixtures::harvest::{Mirror, queries};
use crate::fixtures::lists::{error_page, page_with, token_of};
use crate::fixtures::source::{ReceivedRequest, Reply, Source};
use oaimend_test_support::random::Random;

/// A source with these lists of records. `other` describes it.
fn source_of(other: Collection, list: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Source {
    let other = Mutex::new(other);
    Source::start(move |_, received| {
        if received.target.contains("verb=ListRecords") {
            list(received)
        } else {
            other.lock().expect("no panic").reply(received)
        }
    })
}

fn token(text: &str) -> String {
    format!("<resumptionToken>{text}</resumptionToken>")
}

/// Harvests a source that has `pages` pages, and checks that the harvest fails after few requests.
#[track_caller]
fn check_failure(what: &str, pages: usize, source: &Source) {
    let folder = tempfile::tempdir().expect("a folder");
    let mirror = Mirror::open(source, folder.path());
    for harvest in 0..2 {
        let before = queries(source).len();
        let summary = mirror.harvest();
        assert!(!summary.is_complete(), "{what}, harvest {harvest}: {summary:?}");
        let received = queries(source).len() - before;
        // Up to six rounds of the list, for each of the windows into which it is divided.
        assert!(received <= 14 * 6 * (pages + 1), "{what}, harvest {harvest}: {received} requests");
        assert_eq!(mirror.records().len(), pages * 5, "{what}: what was received is kept");
    }
}

#[test]
fn list_that_goes_in_circles_is_never_complete() {
    let number = |received: &ReceivedRequest| token_of(received).parse::<usize>().unwrap_or(0);
    let numbers = |at: usize| at * 5..at * 5 + 5;
    let leads_back = source_of(Collection::of(1), move |received| {
        let at = number(received);
        Reply::xml(page_with(numbers(at), &token(&(if at == 3 { 1 } else { at + 1 }).to_string())))
    });
    check_failure("a token that leads back", 4, &leads_back);
    let new_tokens = source_of(Collection::of(1), move |received| {
        let at = number(received);
        Reply::xml(page_with(numbers(at % 4), &token(&(at + 1).to_string())))
    });
    check_failure("new tokens", 4, &new_tokens);
    let count = AtomicUsize::new(0);
    let new_datestamps = source_of(Collection::of(1), move |received| {
        let at = number(received);
        let day = count.fetch_add(1, Ordering::SeqCst);
        let page = page_with(numbers(at % 4), &token(&(at + 1).to_string()));
        let datestamp = format!("<datestamp>20{:02}-{:02}-01<", 21 + day / 12 % 79, 1 + day % 12);
        Reply::xml(page.replace("<datestamp>2020-01-01<", &datestamp))
    });
    check_failure("new tokens and datestamps", 4, &new_datestamps);
}

#[test]
fn random_circles_are_never_complete_and_other_lists_are() {
    for seed in 0..25 {
        let mut random = Random::new(seed);
        let pages = 1 + random.below(6);
        let graph: Vec<Option<usize>> =
            (0..pages).map(|_| (!random.chance(30)).then(|| random.below(pages))).collect();
        let (mut reached, mut at) = (Vec::new(), Some(0));
        while let Some(page) = at.filter(|page| !reached.contains(page)) {
            reached.push(page);
            at = graph[page];
        }
        let case = format!("seed {seed}: {graph:?}");
        let next = graph.clone();
        let source = source_of(Collection::of(1), move |received| {
            let at = token_of(received).parse::<usize>().unwrap_or(0);
            let element = next[at].map_or_else(String::new, |next| token(&next.to_string()));
            Reply::xml(page_with(at * 5..at * 5 + 5, &element))
        });
        let folder = tempfile::tempdir().expect("a folder");
        let mirror = Mirror::open(&source, folder.path());
        let summary = mirror.harvest();
        assert_eq!(summary.is_complete(), at.is_none(), "{case}: {summary:?}");
        assert_eq!(mirror.records().len(), reached.len() * 5, "{case}");
    }
}

#[test]
fn comparison_with_endless_identifiers_ends() {
    let other = Mutex::new(Collection::of(1));
    let source = Source::start(move |_, received| {
        if !received.target.contains("verb=ListIdentifiers") {
            return other.lock().expect("no panic").reply(received);
        }
        let at = token_of(received).parse::<usize>().unwrap_or(0);
        let header = "<header><identifier>oai:c:00000</identifier><datestamp>2020-01-01</datestamp></header>";
        let page = page_with([], &format!("{header}{}", token(&(at + 1).to_string())));
        Reply::xml(page.replace("ListRecords", "ListIdentifiers"))
    });
    let folder = tempfile::tempdir().expect("a folder");
    let mirror = Mirror::open(&source, folder.path());
    assert!(mirror.harvest().is_complete());
    let compared = mirror.runtime.block_on(mirror.harvester.compare(&Default::default(), "oai_dc"));
    let error = compared.expect_err("the list never ends").to_string();
    assert!(error.contains("goes in circles"), "{error}");
}

/// A source whose lists have a token after their last item that fails, if `fails`: of 6 records, later of 5.
fn shrinking(fails: bool) -> (Source, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(6));
    let (shared, other) =
        (Arc::clone(&count), Mutex::new(Collection { deleted_record: "no", ..Collection::of(1) }));
    let source = Source::start(move |_, received| {
        let count = shared.load(Ordering::SeqCst);
        let is_records = received.target.contains("verb=ListRecords");
        if received.target.contains("verb=GetRecord") {
            let number = (0..count).find(|number| received.target.ends_with(&format!("%3A{number}")));
            let record = number.map(|number| page_with([number], "").replace("ListRecords", "GetRecord"));
            return Reply::xml(record.unwrap_or_else(|| error_page("idDoesNotExist")));
        }
        if !is_records && !received.target.contains("verb=ListIdentifiers") {
            return other.lock().expect("no panic").reply(received);
        }
        if !token_of(received).is_empty() {
            return Reply::xml(error_page("badResumptionToken"));
        }
        let last = if fails { "t" } else { "" };
        let element = format!("<resumptionToken completeListSize=\"{count}\">{last}</resumptionToken>");
        if is_records {
            return Reply::xml(page_with(0..count, &element));
        }
        let header = |number| {
            format!(
                "<header><identifier>oai:x:{number}</identifier><datestamp>2020-01-01</datestamp></header>"
            )
        };
        let headers: String = (0..count).map(header).collect();
        Reply::xml(page_with([], &format!("{headers}{element}")).replace("ListRecords", "ListIdentifiers"))
    });
    (source, count)
}

#[test]
fn list_whose_last_token_fails_deletes_nothing() {
    for (fails, live) in [(false, 5), (true, 6)] {
        let (source, count) = shrinking(fails);
        let folder = tempfile::tempdir().expect("a folder");
        let mirror = Mirror::open(&source, folder.path());
        let first = mirror.harvest();
        assert!(first.is_complete() && first.counts.stored == 6, "{fails}: {first:?}");
        count.store(5, Ordering::SeqCst);
        mirror.pass_time(SWEEP_INTERVAL_SECS + 60);
        let second = mirror.harvest();
        assert!(second.is_success(), "{fails}: {second:?}");
        let kept = mirror.records().iter().filter(|record| record.status == RecordStatus::Live).count();
        assert_eq!(kept, live, "{fails}: {second:?}");
    }
}
