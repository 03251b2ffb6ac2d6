//! A page that fails every time: its records are requested one by one, unless the mapping turns
//! that off.

use crate::fixtures::lists::{page, read_to_the_end, records_in, resume, token_in};
use crate::fixtures::proxy::{LIST, Proxy};
use crate::fixtures::source::{ReceivedRequest, Reply, Source, record};
use oaimend::config::Mapping;
use oaimend_test_support::strict;
use oaimend_upstream::settings::{Limits, PageFallback};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A repository in which some records make their page fail.
struct Repository {
    records: usize,
    per_page: usize,
    headers_per_page: usize,
    /// Whether both verbs accept the same tokens.
    shared: bool,
    /// Whether tokens count pages of any size instead of records.
    numbered: bool,
    /// Whether a page ends before its bad record instead of failing completely.
    cut: bool,
    poisoned: Vec<usize>,
    /// Records that GetRecord does not return either.
    lost: Vec<usize>,
    withdrawn: Vec<usize>,
    deleted: Vec<usize>,
}

impl Default for Repository {
    fn default() -> Self {
        let none = Vec::new;
        Self {
            records: 30,
            per_page: 5,
            headers_per_page: 5,
            shared: true,
            numbered: false,
            cut: false,
            poisoned: none(),
            lost: none(),
            withdrawn: none(),
            deleted: none(),
        }
    }
}

fn argument(received: &ReceivedRequest, name: &str) -> Option<String> {
    let query = received.target.split_once('?')?.1;
    let value = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")))?;
    Some(value.replace("%3A", ":"))
}

fn error(code: &str) -> Reply {
    Reply::xml(format!(
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><responseDate>2026-01-02T03:04:05Z</responseDate>\
         <request>http://source.example/oai</request><error code=\"{code}\">no</error></OAI-PMH>"
    ))
}

impl Repository {
    fn start(self) -> Source {
        let this = Arc::new(self);
        Source::start(move |_, received| this.answer(received))
    }

    fn answer(&self, received: &ReceivedRequest) -> Reply {
        let verb = argument(received, "verb").expect("a verb");
        match verb.as_str() {
            "Identify" => Reply::xml(identify()),
            "GetRecord" => self.one(&argument(received, "identifier").expect("an identifier")),
            _ => self.list(received, verb == "ListRecords"),
        }
    }

    fn one(&self, identifier: &str) -> Reply {
        let number: usize =
            identifier.strip_prefix("oai:x:").expect("one of ours").parse().expect("a number");
        if self.withdrawn.contains(&number) {
            return error("idDoesNotExist");
        }
        if self.lost.contains(&number) {
            return Reply::whole(500, "", "<html>oops</html>");
        }
        Reply::xml(page(number..number + 1, "").replace("ListRecords", "GetRecord"))
    }

    fn list(&self, received: &ReceivedRequest, is_records: bool) -> Reply {
        let name = if self.shared || is_records { "page" } else { "ids" };
        let size = if is_records { self.per_page } else { self.headers_per_page };
        let unit = if self.numbered { size } else { 1 };
        let start = match argument(received, "resumptionToken") {
            None => 0,
            Some(token) => match token.strip_prefix(name).and_then(|at| at.parse::<usize>().ok()) {
                Some(start) => start * unit,
                None => return error("badResumptionToken"),
            },
        };
        let end = self.records.min(start + size);
        let token = if end < self.records { format!("{name}{}", end / unit) } else { String::new() };
        let whole = page(start..end, &token);
        let poisoned = self.poisoned.iter().find(|number| (start..end).contains(number));
        if !is_records {
            return Reply::xml(self.headers_of(&whole, start..end));
        }
        match poisoned {
            Some(number) if self.cut => {
                let at = whole.find(&format!("oai:x:{number}<")).expect("it is there");
                Reply::new(200, &format!("Content-Length: {}", whole.len())).send(&whole.as_bytes()[..at])
            }
            Some(_) => Reply::whole(500, "", "<html>oops</html>"),
            None => Reply::xml(whole),
        }
    }

    fn headers_of(&self, page: &str, numbers: std::ops::Range<usize>) -> String {
        let mut headers = page.replace("ListRecords", "ListIdentifiers");
        for number in numbers {
            let whole = record(number).replace("Title", "T\u{ef}tle");
            let (_, rest) = whole.split_once("<header>").expect("it has one");
            let (header, _) = rest.split_once("</header>").expect("it has one");
            let status = if self.deleted.contains(&number) { " status=\"deleted\"" } else { "" };
            headers = headers.replace(&whole, &format!("<header{status}>{header}</header>\n"));
        }
        headers
    }
}

fn identify() -> String {
    String::from(concat!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
        "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" ",
        "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" ",
        "xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">",
        "<responseDate>2026-01-02T03:04:05Z</responseDate><request verb=\"Identify\">http://source.example/oai</request>",
        "<Identify><repositoryName>x</repositoryName><baseURL>http://source.example/oai</baseURL>",
        "<protocolVersion>2.0</protocolVersion><adminEmail>a@source.example</adminEmail>",
        "<earliestDatestamp>2000-01-01</earliestDatestamp><deletedRecord>no</deletedRecord>",
        "<granularity>YYYY-MM-DD</granularity></Identify></OAI-PMH>"
    ))
}

fn allowing(source: &Source) -> Proxy {
    Proxy::tuned(source, |mapping| mapping.source_mut().quirks.page_fallback = PageFallback::GetRecord)
}

fn each_once(numbers: impl Iterator<Item = usize>) -> BTreeMap<usize, usize> {
    numbers.map(|number| (number, 1)).collect()
}

fn count(source: &Source, verb: &str) -> usize {
    source.requests().iter().filter(|received| argument(received, "verb").as_deref() == Some(verb)).count()
}

#[test]
fn off_stops_the_list() {
    let source = Repository { poisoned: vec![2], ..Repository::default() }.start();
    let proxy =
        Proxy::tuned(&source, |mapping| mapping.source_mut().quirks.page_fallback = PageFallback::Off);
    assert_eq!(proxy.get(LIST).status, 503);
    assert_eq!(count(&source, "ListIdentifiers") + count(&source, "GetRecord"), 0);
}

#[test]
fn failing_page_is_read_by_get_record() {
    let source = Repository { poisoned: vec![12], ..Repository::default() }.start();
    let (found, _) = read_to_the_end(&Proxy::of(&source));
    assert_eq!(found, each_once(0..30));
    assert_eq!(count(&source, "GetRecord"), 5);
}

#[test]
fn earlier_harvest_hides_no_records() {
    for pages_before in [1, 2, 6, 13] {
        let source = Repository { records: 60, poisoned: vec![32], ..Repository::default() }.start();
        let proxy = allowing(&source);
        let mut got = proxy.get(LIST);
        for _ in 1..pages_before {
            match token_in(&got.text()) {
                Some(token) => got = resume(&proxy, &token),
                None => break,
            }
        }
        for harvest in 0..2 {
            let (found, _) = read_to_the_end(&proxy);
            assert_eq!(found, each_once(0..60), "{pages_before} pages before, harvest {harvest}");
        }
    }
}

#[test]
fn record_of_another_harvest_is_not_delivered() {
    // The first page also contains record 12, but only for one of two harvests.
    for with_more in [0, 1] {
        let repository = Repository { poisoned: vec![12], ..Repository::default() };
        let first_pages = std::sync::atomic::AtomicUsize::new(0);
        let source = Source::start(move |_, received| {
            let is_first = argument(received, "verb").as_deref() == Some("ListRecords")
                && argument(received, "metadataPrefix").is_some();
            if is_first && first_pages.fetch_add(1, Ordering::Relaxed) == with_more {
                let more = record(12).replace("Title", "T\u{ef}tle");
                let whole = page(0..5, "page5");
                return Reply::xml(whole.replace("<resumptionToken>", &format!("{more}<resumptionToken>")));
            }
            repository.answer(received)
        });
        let proxy = allowing(&source);
        let begun = [proxy.get(LIST), proxy.get(LIST)];
        for (harvest, first) in begun.into_iter().enumerate() {
            let mut found = records_in(&first.text());
            let mut token = token_in(&first.text());
            while let Some(next) = token {
                let got = resume(&proxy, &next);
                assert_eq!((got.status, got.whole), (200, true), "{}", got.text());
                for (number, count) in records_in(&got.text()) {
                    *found.entry(number).or_insert(0) += count;
                }
                token = token_in(&got.text());
            }
            let missing: Vec<_> = (0..30).filter(|number| !found.contains_key(number)).collect();
            assert!(missing.is_empty(), "more for {with_more}: harvest {harvest} misses {missing:?}");
        }
    }
}

#[test]
fn shared_token_says_nothing_about_delivery() {
    let source = Repository { poisoned: vec![12], ..Repository::default() }.start();
    let proxy = allowing(&source);
    let other = proxy.get(&format!("{LIST}&set=other"));
    assert_eq!(token_in(&other.text()).as_deref(), Some("page5"));
    let mut got = proxy.get(LIST);
    for _ in 0..2 {
        got = resume(&proxy, &token_in(&got.text()).expect("the list continues"));
    }
    assert_eq!(got.status, 503, "{}", got.text());
    assert_eq!(count(&source, "GetRecord"), 0);
}

#[test]
fn list_returns_to_whole_pages() {
    for poisoned in [2, 12, 29] {
        for cut in [false, true] {
            let cell = format!("poisoned {poisoned}, cut {cut}");
            let source = Repository { poisoned: vec![poisoned], cut, ..Repository::default() }.start();
            let (found, answers) = read_to_the_end(&allowing(&source));
            assert_eq!(found, each_once(0..30), "{cell}");
            assert_eq!(answers.len(), 6, "{cell}: each page is one answer");
            let left = if cut { 5 - poisoned % 5 } else { 5 };
            assert_eq!(count(&source, "GetRecord"), left, "{cell}");
            for answer in &answers {
                let read = strict::read(&answer.body);
                assert!(read.is_ok(), "{cell}: {:?}: {}", read.err(), answer.text());
            }
        }
    }
}

#[test]
fn verb_specific_tokens_use_continuation_tokens() {
    for headers_per_page in [4, 7, 50] {
        let source =
            Repository { poisoned: vec![12], shared: false, headers_per_page, ..Repository::default() };
        let source = source.start();
        let (found, answers) = read_to_the_end(&allowing(&source));
        assert_eq!(found, each_once(0..30), "{headers_per_page}");
        assert_eq!(count(&source, "GetRecord"), 20, "{headers_per_page}");
        let tokens = answers.iter().filter_map(|answer| token_in(&answer.text()));
        let ours = tokens.filter(|token| token.starts_with("oaimend1_")).count();
        assert_eq!(ours > 0, headers_per_page < 18, "{headers_per_page}");
    }
}

#[test]
fn tokens_with_another_position_are_detected() {
    for cut in [false, true] {
        let repository = Repository { poisoned: vec![12], headers_per_page: 4, cut, ..Repository::default() };
        let source = Repository { numbered: true, ..repository }.start();
        let (found, _) = read_to_the_end(&allowing(&source));
        assert_eq!(found, each_once(0..30), "cut {cut}");
    }
}

#[test]
fn unavailable_records_are_quarantined_and_withdrawn_ones_omitted() {
    let source = Repository {
        poisoned: vec![6],
        lost: vec![6],
        withdrawn: vec![8],
        deleted: vec![9],
        ..Repository::default()
    };
    let source = source.start();
    let proxy = allowing(&source);
    let (found, answers) = read_to_the_end(&proxy);
    assert_eq!(found, each_once((0..30).filter(|number| ![6, 8].contains(number))));
    let deleted = "<header status=\"deleted\"><identifier>oai:x:9</identifier>";
    assert!(answers[1].text().contains(deleted), "{}", answers[1].text());
    assert!(!answers[1].text().contains("T\u{ef}tle 9"), "a header is all there is of it");
    let aside = proxy.admin_json("/-/repositories/x/quarantine").to_string();
    assert!(aside.contains("oai:x:6") && !aside.contains("oai:x:8"), "{aside}");
}

#[test]
fn last_record_is_quarantined_only_if_the_source_responds() {
    let source = Repository { poisoned: vec![9], lost: vec![9], ..Repository::default() }.start();
    let (found, _) = read_to_the_end(&allowing(&source));
    assert_eq!(found, each_once((0..30).filter(|number| *number != 9)));
    assert_eq!(count(&source, "Identify"), 1);
}

#[test]
fn source_without_any_record_loses_none() {
    let source = Repository { poisoned: vec![2], lost: (0..30).collect(), ..Repository::default() }.start();
    let proxy = allowing(&source);
    let got = proxy.get(LIST);
    assert_eq!(got.status, 503, "{}", got.text());
    let aside = proxy.admin_json("/-/repositories/x/quarantine").to_string();
    assert!(!aside.contains("oai:x:"), "{aside}");
}

#[test]
fn headers_with_an_uncertain_position_are_not_used() {
    // A list with an unknown beginning: nothing is known about records before its token.
    let source = Repository { poisoned: vec![12], ..Repository::default() }.start();
    let got = resume(&allowing(&source), "page10");
    assert_eq!(got.status, 503, "{}", got.text());
    assert_eq!(count(&source, "GetRecord"), 0);
}

#[test]
fn page_size_is_limited() {
    let source = Repository {
        records: 450,
        per_page: 450,
        headers_per_page: 450,
        poisoned: vec![449],
        ..Repository::default()
    };
    let source = source.start();
    let (found, answers) = read_to_the_end(&allowing(&source));
    assert_eq!(found, each_once(0..450));
    let sizes: Vec<usize> = answers.iter().map(|answer| records_in(&answer.text()).len()).collect();
    assert_eq!(sizes, [200, 200, 50]);
}

#[test]
fn unavailable_remaining_record_does_not_block_the_list() {
    let source = Repository {
        records: 401,
        per_page: 201,
        headers_per_page: 201,
        poisoned: vec![200],
        lost: vec![200],
        ..Repository::default()
    };
    let source = source.start();
    let proxy = allowing(&source);
    let (found, _) = read_to_the_end(&proxy);
    assert_eq!(found, each_once((0..401).filter(|number| *number != 200)));
    let aside = proxy.admin_json("/-/repositories/x/quarantine").to_string();
    assert!(aside.contains("oai:x:200"), "{aside}");
}

#[test]
fn headers_token_is_not_a_records_token() {
    let is_cut = Arc::new(AtomicBool::new(true));
    let (repository, still_cut) = (Repository::default(), Arc::clone(&is_cut));
    let source = Source::start(move |_, received| {
        let is_headers = argument(received, "verb").as_deref() == Some("ListIdentifiers");
        if !is_headers || !still_cut.load(Ordering::Relaxed) {
            return repository.answer(received);
        }
        let whole = repository.headers_of(&page(0..5, "page5"), 0..5);
        let at = whole.find("oai:x:3<").expect("it is there");
        Reply::new(200, &format!("Content-Length: {}", whole.len())).send(&whole.as_bytes()[..at])
    });
    let proxy = allowing(&source);
    let got = proxy.get("/x?verb=ListIdentifiers&metadataPrefix=oai_dc");
    let token = token_in(&got.text()).expect("ours");
    assert!(token.starts_with("oaimend1_"), "{token}");
    is_cut.store(false, Ordering::Relaxed);
    let got = resume(&proxy, &token);
    assert!(got.text().contains("badResumptionToken"), "{} {}", got.status, got.text());
    assert_eq!(count(&source, "GetRecord"), 0);
    let got = proxy.get(&format!("/x?verb=ListIdentifiers&resumptionToken={token}"));
    assert_eq!(records_in(&got.text()), each_once(3..5), "{}", got.text());
}

#[test]
fn off_applies_to_existing_continuation_tokens() {
    let source =
        Repository { poisoned: vec![12], shared: false, headers_per_page: 4, ..Repository::default() };
    let source = source.start();
    let proxy = allowing(&source);
    let mut text = proxy.get(LIST).text();
    let token = loop {
        let token = token_in(&text).expect("the list goes on");
        if token.starts_with("oaimend1_") {
            break token;
        }
        text = resume(&proxy, &token).text();
    };
    let before = count(&source, "GetRecord");
    let mut mapping = Mapping::new("x", &source.base_url(), &Limits::default()).expect("a legal mapping");
    mapping.source_mut().quirks.page_fallback = PageFallback::Off;
    let proxy = proxy.restarted(|config| config.repositories.add_fixed(mapping));
    let got = resume(&proxy, &token);
    assert!(got.text().contains("badResumptionToken"), "{} {}", got.status, got.text());
    assert_eq!(count(&source, "GetRecord"), before);
}

#[test]
fn list_ending_in_withdrawn_records_ends() {
    for (cut, poisoned) in [(false, 25), (true, 27)] {
        let withdrawn = (poisoned..30).collect();
        let source = Repository { poisoned: vec![poisoned], cut, withdrawn, ..Repository::default() }.start();
        let (found, answers) = read_to_the_end(&allowing(&source));
        assert_eq!(found, each_once(0..poisoned), "cut {cut}");
        assert_eq!(answers.len(), 6, "cut {cut}");
    }
}

#[test]
fn resumed_page_repeats_no_record() {
    for poisoned in [3, 4] {
        let repository =
            Repository { records: 450, per_page: 5, headers_per_page: 450, ..Repository::default() };
        let source = Source::start(move |_, received| {
            if argument(received, "verb").as_deref() != Some("ListRecords") {
                return repository.answer(received);
            }
            let right = record(1).replace("Title", "T\u{ef}tle");
            let whole = page(0..5, "page5").replace(&right, &right.replace("2020-01-01", "2020-02-31"));
            let at = whole.find(&format!("oai:x:{poisoned}<")).expect("it is there");
            Reply::new(200, &format!("Content-Length: {}", whole.len())).send(&whole.as_bytes()[..at])
        });
        let (found, answers) = read_to_the_end(&allowing(&source));
        assert!(answers.len() > 2, "also by tokens of ours");
        assert_eq!(found, each_once(0..450), "{poisoned}");
    }
}
