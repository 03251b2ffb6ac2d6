//! The views of the mirror: conforming repositories over the store, whose lists miss no record.

use std::collections::BTreeMap;
use std::sync::Arc;

use oaimend::config::Mapping;
use oaimend_base::clock::Clock;
use oaimend_check::{CheckOptions, Verdict};
use oaimend_mirror::view::{AggregateRepository, MirrorRepository, MirroredSource, ViewOptions};
use oaimend_oai::{Request, RequestEcho, error_response};
use oaimend_repository::Reason;
use oaimend_store::NewRecord;
use oaimend_upstream::settings::Limits;

use crate::fixtures::mirror::{Answered, Item, Mirror, answer, ask, deleted, live, pages, runtime, source};
use crate::fixtures::source::{ReceivedRequest, Reply, Source};
use crate::fixtures::time::Skipping;
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::judge;
use oaimend_test_support::random::Random;

/// 2023-11-14T22:13:20Z.
const START_SECS: i64 = 1_700_000_000;
const DAY_SECS: i64 = 86_400;
const SETS: &[(&str, &str)] = &[("a", "Set A"), ("a:b", "Set B in A & more"), ("c", "Set C")];

fn record(number: usize) -> NewRecord {
    let set_specs: &[&str] = match number % 3 {
        0 => &["a:b"],
        1 => &["c"],
        _ => &["a", "c"],
    };
    match number % 7 {
        6 => deleted(&format!("oai:x:{number}"), set_specs),
        _ => live(&format!("oai:x:{number}"), set_specs, &format!("Title {number} &amp; more")),
    }
}

/// A complete mirror of 250 records in commits of 50, each a day after the one before.
fn mirror() -> Mirror {
    let mirror = Mirror::new(START_SECS);
    mirror.describe("x", &["oai_dc", "marc"], SETS);
    for first in (0..250).step_by(50) {
        mirror.commit("x", "oai_dc", (first..first + 50).map(record).collect(), first == 200);
        mirror.pass_time(DAY_SECS);
    }
    mirror
}

/// The items of a list, after each page was judged, with exact cursors and sizes.
#[track_caller]
fn list(repository: &MirrorRepository, query: &str) -> Vec<Item> {
    let pages = pages(repository, query, || {});
    let mut items: Vec<Item> = Vec::new();
    let total: usize = pages.iter().map(|page| page.items().len()).sum();
    for page in &pages {
        page.valid(Strictness::Schema);
        let cursor = items.len() as u64;
        items.extend(page.items());
        assert_eq!(page.summary.page.progress, (Some(cursor), Some(total as u64)), "{query}");
        assert_eq!(page.summary.items.sent(), page.items().len() as u64);
        assert_eq!(page.summary.page.response_date, pages[0].summary.page.response_date, "{query}");
        let reported = page.records.iter().map(|record| record.identifier.as_str());
        assert!(reported.eq(page.items().iter().map(|item| item.identifier.as_str())), "{query}");
    }
    items
}

fn expected(number: usize) -> Item {
    let NewRecord { identifier, set_specs, status, .. } = record(number);
    let is_deleted = status == oaimend_store::RecordStatus::Deleted;
    let title = if is_deleted { String::new() } else { format!("Title {number} & more") };
    let day = 14 + number / 50;
    Item { identifier, datestamp: format!("2023-11-{day}T22:13:20Z"), set_specs, is_deleted, title }
}

#[test]
fn a_list_that_is_read_to_its_end_is_the_content_of_the_store() {
    let mirror = mirror();
    let view = mirror.view("x", 40);
    let numbers: Vec<usize> = (0..250).collect();
    let in_a = |number: &usize| number % 3 != 1;
    for (arguments, numbers) in [
        ("", numbers.clone()),
        ("&set=a", numbers.iter().copied().filter(in_a).collect()),
        ("&set=a:b", numbers.iter().copied().filter(|number| number % 3 == 0).collect()),
        ("&from=2023-11-15&until=2023-11-16", (50..150).collect()),
        ("&from=2023-11-17", (150..250).collect()),
        ("&until=2023-11-14", (0..50).collect()),
        ("&from=2023-11-15T22:13:20Z&until=2023-11-15T22:13:20Z", (50..100).collect()),
        ("&until=2023-11-15T22:13:19Z", (0..50).collect()),
        (
            "&from=2023-11-17T22:13:21Z&until=2030-01-01T00:00:00Z&set=c",
            (200..250).filter(|n| n % 3 != 0).collect(),
        ),
    ] {
        let expected: Vec<Item> = numbers.into_iter().map(expected).collect();
        let records = list(&view, &format!("verb=ListRecords&metadataPrefix=oai_dc{arguments}"));
        assert_eq!(records, expected, "{arguments}");
        let headers = list(&view, &format!("verb=ListIdentifiers&metadataPrefix=oai_dc{arguments}"));
        let untitled = expected.into_iter().map(|item| Item { title: String::new(), ..item });
        assert_eq!(headers, untitled.collect::<Vec<_>>(), "{arguments}");
    }
}

#[test]
fn every_request_gets_a_valid_response() {
    let mirror = mirror();
    mirror.commit("x", "marc", vec![record(1), record(300)], true);
    let view = mirror.view("x", 100);
    for (query, kind) in [
        ("verb=Identify", "Identify"),
        ("verb=ListMetadataFormats", "ListMetadataFormats"),
        ("verb=ListMetadataFormats&identifier=oai:x:0", "ListMetadataFormats"),
        ("verb=ListMetadataFormats&identifier=oai:x:6", "noMetadataFormats"),
        ("verb=ListMetadataFormats&identifier=oai:x:999", "idDoesNotExist"),
        ("verb=ListSets", "ListSets"),
        ("verb=ListSets&resumptionToken=x", "badResumptionToken"),
        ("verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:0", "GetRecord"),
        ("verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:6", "GetRecord"),
        ("verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:999", "idDoesNotExist"),
        ("verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:300", "cannotDisseminateFormat"),
        ("verb=GetRecord&metadataPrefix=nope&identifier=oai:x:0", "cannotDisseminateFormat"),
        ("verb=ListRecords&metadataPrefix=nope", "cannotDisseminateFormat"),
        ("verb=ListRecords&metadataPrefix=oai_dc&set=nope", "noRecordsMatch"),
        ("verb=ListRecords&metadataPrefix=oai_dc&set=%3Fx", "noRecordsMatch"),
        ("verb=ListIdentifiers&metadataPrefix=oai_dc&from=2099-01-01", "noRecordsMatch"),
        ("verb=ListIdentifiers&metadataPrefix=oai_dc&until=1999-01-01", "noRecordsMatch"),
        ("verb=ListRecords&resumptionToken=oaimirror1_x", "badResumptionToken"),
    ] {
        let answered = ask(&view, query);
        answered.valid(Strictness::Schema);
        assert_eq!(answered.kind(), kind, "{query}: {}", answered.body);
        assert_eq!(answered.summary.page.error.map(|code| code.name()).unwrap_or(kind), kind, "{query}");
    }
    let formats = ask(&view, "verb=ListMetadataFormats&identifier=oai:x:0").body;
    assert!(formats.contains(">oai_dc<") && !formats.contains(">marc<"), "{formats}");
}

#[test]
fn identify_is_that_of_the_source_with_the_values_of_the_mirror() {
    let mirror = mirror();
    let body = ask(&mirror.view("x", 100), "verb=Identify").body;
    for part in [
        "<repositoryName>Repository &amp; x</repositoryName>",
        "<baseURL>http://proxy.example/_mirror/x</baseURL>",
        "<adminEmail>oai@source.example</adminEmail>",
        "<earliestDatestamp>2023-11-14T22:13:20Z</earliestDatestamp>",
        "<deletedRecord>persistent</deletedRecord>",
        "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity>",
        "<description xmlns:b=\"http://www.openarchives.org/OAI/2.0/branding/\"><b:branding/></description>",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    assert!(!body.contains("compression"), "{body}");
}

#[test]
fn sets_are_listed_on_pages() {
    let mirror = mirror();
    mirror.commit("x", "oai_dc", vec![live("oai:x:new", &["z:unlisted"], "new")], true);
    let options = ViewOptions { page_sets_max: 2, ..ViewOptions::default() };
    let view = MirrorRepository::new(mirror.stores(), options, source("x"));
    let pages = pages(&view, "verb=ListSets", || {});
    let bodies: String = pages.iter().map(|page| page.body.as_str()).collect();
    for page in &pages {
        page.valid(Strictness::Schema);
        assert_eq!(page.summary.page.progress.1, Some(5));
    }
    assert_eq!(pages.len(), 3);
    let listed: Vec<&str> =
        bodies.split("<setSpec>").skip(1).filter_map(|part| part.split("</set>").next()).collect();
    assert_eq!(
        listed,
        [
            "a</setSpec><setName>Set A</setName>",
            "a:b</setSpec><setName>Set B in A &amp; more</setName>",
            "c</setSpec><setName>Set C</setName>",
            "z</setSpec><setName>z</setName>",
            "z:unlisted</setSpec><setName>z:unlisted</setName>",
        ]
    );
}

#[test]
fn a_repository_without_sets_has_no_set_hierarchy() {
    let mirror = Mirror::new(START_SECS);
    mirror.describe("x", &["oai_dc"], &[]);
    mirror.commit("x", "oai_dc", vec![live("oai:x:1", &[], "one")], true);
    let view = mirror.view("x", 100);
    for query in ["verb=ListSets", "verb=ListRecords&metadataPrefix=oai_dc&set=a"] {
        let answered = ask(&view, query);
        answered.valid(Strictness::Schema);
        assert_eq!(answered.kind(), "noSetHierarchy");
    }
}

#[test]
fn a_format_that_was_never_harvested_completely_fails() {
    let mirror = Mirror::new(START_SECS);
    let view = mirror.view("x", 100);
    let fails = |query: &str| {
        let answered = ask(&view, query);
        let failure = answered.failure.unwrap_or_else(|| panic!("{query}: {}", answered.body));
        assert_eq!((failure.reason, failure.status()), (Reason::MirrorIncomplete, 503), "{query}");
        assert!(failure.details.contains("run oaimend mirror sync x"), "{}", failure.details);
        assert_eq!(answered.body, "");
    };
    let list = "verb=ListRecords&metadataPrefix=oai_dc";
    let unknown = "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:999";
    for query in ["verb=Identify", "verb=ListSets", "verb=ListMetadataFormats", list, unknown] {
        fails(query);
    }
    mirror.describe("x", &["oai_dc", "marc"], SETS);
    mirror.commit("x", "oai_dc", vec![record(1), record(2)], false);
    for query in [list, unknown, "verb=ListMetadataFormats&identifier=oai:x:999"] {
        fails(query);
    }
    // A stored record is no claim about others.
    let stored = ask(&view, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:1");
    assert_eq!(stored.kind(), "GetRecord");
    mirror.commit("x", "oai_dc", Vec::new(), true);
    assert_eq!(ask(&view, list).items().len(), 2);
    assert_eq!(ask(&view, unknown).kind(), "idDoesNotExist");
    fails("verb=ListRecords&metadataPrefix=marc");
    fails("verb=GetRecord&metadataPrefix=marc&identifier=oai:x:1");
}

#[test]
fn tokens_are_valid_after_a_restart_and_for_their_list_only() {
    let mirror = mirror();
    mirror.describe("y", &["oai_dc"], SETS);
    mirror.commit("y", "oai_dc", (0..50).map(record).collect(), true);
    let first = ask(&mirror.view("x", 40), "verb=ListRecords&metadataPrefix=oai_dc&set=a");
    let token = first.summary.page.token.expect("more pages");
    assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'), "{token}");
    let next = |mirror: &Mirror, token: &str| {
        ask(&mirror.view("x", 40), &format!("verb=ListRecords&resumptionToken={token}"))
    };
    let before = next(&mirror, &token);
    before.valid(Strictness::Schema);
    let mirror = mirror.restart();
    assert_eq!(next(&mirror, &token).body, before.body, "the same page after a restart");
    let refused = [
        ask(&mirror.view("y", 40), &format!("verb=ListRecords&resumptionToken={token}")),
        ask(&mirror.view("x", 40), &format!("verb=ListIdentifiers&resumptionToken={token}")),
        ask(&mirror.view("x", 40), &format!("verb=ListSets&resumptionToken={token}")),
        next(&mirror, &token.to_lowercase()),
        next(&mirror, &token[..token.len() - 1]),
    ];
    for answered in refused {
        answered.valid(Strictness::Schema);
        assert_eq!(answered.kind(), "badResumptionToken");
    }
    for at in (0..token.len()).step_by(7) {
        let mut forged = token.clone().into_bytes();
        forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(forged).expect("ASCII");
        assert_eq!(next(&mirror, &forged).kind(), "badResumptionToken", "{at}");
    }
}

#[test]
fn records_that_change_during_a_list_are_in_the_next_incremental_one() {
    let mirror = mirror();
    let view = mirror.view("x", 100);
    let mut read = 0;
    let pages = pages(&view, "verb=ListRecords&metadataPrefix=oai_dc", || {
        read += 1;
        mirror.pass_time(1);
        if read == 2 {
            let changed = (200..250).map(|number| live(&format!("oai:x:{number}"), &["a"], "new"));
            mirror.commit("x", "oai_dc", changed.collect(), true);
        }
    });
    let items: Vec<usize> = pages.iter().map(|page| page.items().len()).collect();
    assert_eq!(items, [100, 100, 1], "the schema demands a record, so a changed one is there again");
    let sizes: Vec<Option<u64>> = pages.iter().map(|page| page.summary.page.progress.1).collect();
    assert_eq!(sizes, [Some(250), Some(250), Some(201)], "the last page tells the delivered number");
    pages[2].valid(Strictness::Schema);
    let from = pages[0].summary.page.response_date.clone().expect("a date");
    let next = list(&view, &format!("verb=ListRecords&metadataPrefix=oai_dc&from={from}"));
    assert_eq!(next.len(), 50);
}

/// The time from which a harvester continues.
#[derive(Clone, Copy)]
enum Continues {
    FirstDate,
    LastDate,
    /// Its own clock at the end of the list.
    EndClock,
}

/// A harvester that continues from its last list.
#[derive(Default)]
struct Harvester {
    copy: BTreeMap<String, (bool, String)>,
    from: Option<String>,
    set: Option<&'static str>,
}

impl Harvester {
    fn harvest(
        &mut self,
        (mirror, view): (&Mirror, &MirrorRepository),
        next: Continues,
        between: impl FnMut(),
    ) {
        let from = self.from.as_ref().map_or(String::new(), |from| format!("&from={from}"));
        let set = self.set.map_or(String::new(), |set| format!("&set={set}"));
        let pages = pages(view, &format!("verb=ListRecords&metadataPrefix=oai_dc{from}{set}"), between);
        for page in &pages {
            assert_eq!(page.failure, None);
            if page.summary.page.error.is_none() {
                page.valid(Strictness::Schema);
            }
            for item in page.items() {
                self.copy.insert(item.identifier, (item.is_deleted, item.title));
            }
        }
        let date = |page: Option<&Answered>| page.and_then(|page| page.summary.page.response_date.clone());
        self.from = match next {
            Continues::FirstDate => date(pages.first()),
            Continues::LastDate => date(pages.last()),
            Continues::EndClock => Some(mirror.now()),
        };
    }
}

fn check_incremental_harvests(seed: u64) {
    let mut random = Random::new(seed);
    let mut mirror = Mirror::new(START_SECS);
    mirror.describe("x", &["oai_dc"], SETS);
    mirror.commit("x", "oai_dc", (0..60).map(record).collect(), true);
    let mut truth: BTreeMap<String, (bool, String)> = BTreeMap::new();
    let note = |truth: &mut BTreeMap<String, (bool, String)>, record: &NewRecord, title: &str| {
        let is_deleted = record.status == oaimend_store::RecordStatus::Deleted;
        truth.insert(
            record.identifier.clone(),
            (is_deleted, if is_deleted { String::new() } else { title.to_owned() }),
        );
    };
    for number in 0..60 {
        note(&mut truth, &record(number), &format!("Title {number} & more"));
    }
    let mut harvesters =
        [Harvester::default(), Harvester::default(), Harvester { set: Some("a"), ..Harvester::default() }];
    for step in 0..12 {
        let index = random.below(harvesters.len());
        let view = mirror.view("x", 5 + random.below(20));
        let next = [Continues::FirstDate, Continues::LastDate, Continues::EndClock][random.below(3)];
        harvesters[index].harvest((&mirror, &view), next, || {
            // The clock stays, steps on, or is set back.
            mirror.pass_time([0, 0, 1, 30, -3_600][random.below(5)]);
            let changed = random.below(8);
            let records: Vec<NewRecord> = (0..changed)
                .map(|_| {
                    let (identifier, title) = (
                        format!("oai:x:{}", random.below(70)),
                        format!("Step {step} {}", random.below(1_000)),
                    );
                    let record = if random.chance(20) {
                        deleted(&identifier, &["a"])
                    } else {
                        live(&identifier, &["a"], &title)
                    };
                    (record, title)
                })
                .map(|(record, title)| {
                    note(&mut truth, &record, &title);
                    record
                })
                .collect();
            mirror.commit("x", "oai_dc", records, true);
        });
        mirror.pass_time(random.below(3) as i64);
        if random.chance(20) {
            mirror = mirror.restart();
        }
    }
    let view = mirror.view("x", 30);
    for harvester in &mut harvesters {
        harvester.harvest((&mirror, &view), Continues::FirstDate, || {});
        for (identifier, expected) in &truth {
            let copied = harvester.copy.get(identifier);
            // A record that was never in the set is not in its list.
            if harvester.set.is_none() || copied.is_some() || expected.1.starts_with("Step") {
                assert_eq!(copied, Some(expected), "seed {seed}: {identifier}, set {:?}", harvester.set);
            }
        }
    }
}

#[test]
fn no_record_is_missed_by_incremental_harvests_during_changes() {
    let seeds: Vec<u64> = (20_261_123..20_261_143).collect();
    println!("seeds {seeds:?}");
    seeds.into_iter().for_each(check_incremental_harvests);
}

/// A view over HTTP.
fn serve(view: MirrorRepository) -> Source {
    Source::start(move |_, received: &ReceivedRequest| {
        let query = received.target.split_once('?').map_or("", |(_, query)| query);
        let query = if received.method == "POST" { &received.form } else { query };
        let base_url = format!("http://{}/oai", received.headers["host"]);
        match Request::parse(query.as_bytes()) {
            Ok(request) => Reply::xml(answer(&view, request, &base_url).body),
            Err(error) => {
                let echo = RequestEcho { base_url, arguments: Vec::new() };
                let now = oaimend_base::clock::utc_datetime(oaimend_base::clock::now());
                Reply::xml(error_response(&echo, &now, error.code, &error.text))
            }
        }
    })
}

#[test]
fn the_checker_finds_nothing_in_a_view() {
    let now_secs = oaimend_base::clock::unix_secs(oaimend_base::clock::now());
    let mirror = mirror();
    mirror.set_time(now_secs.0);
    let server = serve(mirror.view("x", 100));
    let mapping = Mapping::new("x", &server.base_url(), &Limits::default()).expect("a legal base URL");
    let clock = Skipping::new() as Arc<dyn Clock>;
    let options = CheckOptions { time_max: std::time::Duration::MAX, schemas: None, with_searches: false };
    let report = runtime()
        .block_on(oaimend_check::run(&mapping.source, &options, clock, &mut |_| {}))
        .expect("a client can be made");
    let report = report.for_profile(None);
    let found: Vec<String> = report
        .findings
        .iter()
        .filter(|finding| finding.verdict >= Verdict::Warning)
        // Not every format is harvested completely, so this mirror cannot tell that an item is unknown.
        .filter(|finding| !finding.request.contains("ListMetadataFormats&identifier=oai%3Aoaimend.invalid"))
        .map(|finding| format!("{}: {}: {}", finding.rule.entry().name, finding.request, finding.received))
        .collect();
    assert_eq!(found, Vec::<String>::new());
    assert!(report.count(Verdict::Holds) > 40, "{}", report.count(Verdict::Holds));
}

#[test]
fn provenance_tells_the_source_and_its_datestamp_once() {
    let mirror = mirror();
    let source = MirroredSource { provenance_base_url: Some("http://s.example/?a&b".into()), ..source("x") };
    let view = MirrorRepository::new(mirror.stores(), ViewOptions::default(), source);
    let page = ask(&view, "verb=ListRecords&metadataPrefix=oai_dc");
    page.valid(Strictness::Schema);
    assert_eq!(
        page.body.matches("<about>").count(),
        page.items().iter().filter(|item| !item.is_deleted).count()
    );
    let about =
        page.body.split("<about>").nth(1).and_then(|rest| rest.split("</about>").next()).expect("an about");
    judge::provenance(about.as_bytes()).unwrap_or_else(|wrong| panic!("{wrong}: {about}"));
    for part in [
        "harvestDate=\"2023-11-14T22:13:20Z\" altered=\"false\"",
        "<baseURL>http://s.example/?a&amp;b</baseURL><identifier>oai:x:0</identifier>",
        "<datestamp>2001-02-03</datestamp>",
        "<metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace>",
    ] {
        assert!(about.contains(part), "{part}: {about}");
    }
    // A record that was harvested with this provenance keeps it.
    let harvested = page.records[0].xml.clone();
    let again = NewRecord { bytes: harvested.into(), content_hash: 1, ..live("oai:x:0", &["a"], "") };
    mirror.commit("x", "oai_dc", vec![again], true);
    let stored = ask(&view, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:x:0");
    assert_eq!(stored.body.matches("<about>").count(), 1, "{}", stored.body);
}

#[test]
fn total_elements_are_an_option() {
    let mirror = mirror();
    let with = ViewOptions { total_elements: true, ..ViewOptions::default() };
    let query = "verb=ListIdentifiers&metadataPrefix=oai_dc&set=a";
    let view = MirrorRepository::new(mirror.stores(), with, source("x"));
    assert!(ask(&view, query).body.contains(" totalElements=\"250\">"));
    assert!(!ask(&mirror.view("x", 100), query).body.contains("totalElements"));
}

#[test]
fn pages_are_limited_in_bytes() {
    let mirror = mirror();
    let options = ViewOptions { page_bytes_max: 4_000, ..ViewOptions::default() };
    let view = MirrorRepository::new(mirror.stores(), options, source("x"));
    let pages = pages(&view, "verb=ListRecords&metadataPrefix=oai_dc", || {});
    assert!(pages.iter().all(|page| page.body.len() < 4_000 + 2_000));
    let items: Vec<Item> = pages.iter().flat_map(|page| page.items()).collect();
    assert_eq!(items, (0..250).map(expected).collect::<Vec<_>>());
}

fn aggregate(mirror: &Mirror, ids: &[&str], page_records_max: usize) -> AggregateRepository {
    let options = ViewOptions { page_records_max, ..ViewOptions::default() };
    let of = |id: &&str| MirroredSource {
        provenance_base_url: Some(format!("http://{id}.example/oai")),
        ..source(id)
    };
    mirror.aggregate(options, ids.iter().map(of).collect())
}

/// Three repositories whose commits alternate, some in the same second.
fn three() -> Mirror {
    let mirror = Mirror::new(START_SECS);
    for (id, prefixes) in [("x", &["oai_dc", "marc"][..]), ("y", &["oai_dc"]), ("z", &["oai_dc", "mods"])] {
        mirror.describe(id, prefixes, SETS);
    }
    for round in 0..10 {
        for id in ["z", "x", "y"] {
            let record =
                |number: usize| live(&format!("oai:{id}:{number}"), &["a"], &format!("{id} {number}"));
            mirror.commit(id, "oai_dc", (round * 7..round * 7 + 7).map(record).collect(), round == 9);
        }
        // The clock of a commit after a list is at least one second later.
        mirror.pass_time([0, 1, 60][round % 3]);
    }
    mirror
}

#[test]
fn the_aggregate_lists_all_repositories_in_the_order_of_their_commits() {
    let mirror = three();
    for page_records_max in [1, 10, 100, 300] {
        let view = aggregate(&mirror, &["y", "z", "x"], page_records_max);
        let pages = pages(&view, "verb=ListRecords&metadataPrefix=oai_dc", || {});
        let items: Vec<Item> = pages.iter().flat_map(|page| page.items()).collect();
        assert_eq!(items.len(), 210);
        assert!(pages.iter().all(|page| page.summary.page.progress.1 == Some(210)));
        pages.iter().for_each(|page| drop(page.valid(Strictness::Schema)));
        let order: Vec<(&str, &str)> =
            items.iter().map(|item| (item.datestamp.as_str(), item.set_specs[0].as_str())).collect();
        assert!(order.is_sorted(), "{page_records_max}: {order:?}");
        let mut names: Vec<&str> = items.iter().map(|item| item.identifier.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 210, "{page_records_max}");
    }
}

#[test]
fn each_repository_of_the_aggregate_is_a_set() {
    let mirror = three();
    let view = aggregate(&mirror, &["x", "y", "z"], 100);
    for (set, count) in [("y", 70), ("y:a", 70), ("y/a", 70), ("y:c", 0), ("w", 0), ("yy", 0)] {
        let page = ask(&view, &format!("verb=ListIdentifiers&metadataPrefix=oai_dc&set={set}"));
        page.valid(Strictness::Schema);
        assert_eq!(page.items().len(), count, "{set}");
        assert!(page.items().iter().all(|item| item.set_specs == ["y", "y:a"]), "{:?}", page.items());
    }
    let sets = ask(&view, "verb=ListSets");
    sets.valid(Strictness::Schema);
    assert_eq!(sets.summary.items.sent(), 12);
    let named = "<set><setSpec>y</setSpec><setName>Repository &amp; y</setName></set>";
    assert!(sets.body.contains(named) && sets.body.contains("<setSpec>z:a:b</setSpec>"), "{}", sets.body);
}

#[test]
fn the_aggregate_has_the_formats_of_all_repositories() {
    let mirror = three();
    let view = aggregate(&mirror, &["x", "y", "z"], 100);
    let formats = ask(&view, "verb=ListMetadataFormats");
    formats.valid(Strictness::Schema);
    assert_eq!(formats.summary.items.sent(), 3);
    let record = ask(&view, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:z:3");
    record.valid(Strictness::Schema);
    assert_eq!(record.items()[0].set_specs, ["z", "z:a"]);
    assert!(record.body.contains("<baseURL>http://z.example/oai</baseURL>"), "{}", record.body);
    let identify = ask(&view, "verb=Identify");
    identify.valid(Strictness::Schema);
    assert!(identify.body.contains("All &amp; more"), "{}", identify.body);
    // No repository has harvested them yet.
    let marc = ask(&view, "verb=ListRecords&metadataPrefix=marc");
    assert_eq!(marc.failure.map(|failure| failure.reason), Some(Reason::MirrorIncomplete));
    let unknown = ask(&view, "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:w:1");
    assert_eq!(unknown.kind(), "idDoesNotExist");
}

#[test]
fn a_repository_that_is_harvested_for_the_first_time_joins_the_next_incremental_list() {
    let mirror = three();
    mirror.describe("w", &["oai_dc"], SETS);
    mirror.pass_time(10);
    mirror.commit("w", "oai_dc", vec![live("oai:w:1", &[], "1")], false);
    let view = aggregate(&mirror, &["w", "x"], 100);
    let list = "verb=ListIdentifiers&metadataPrefix=oai_dc";
    let first = ask(&view, list);
    assert_eq!(first.items().len(), 71);
    let alone = ask(&view, &format!("{list}&set=w"));
    assert_eq!(alone.failure.map(|failure| failure.reason), Some(Reason::MirrorIncomplete));
    mirror.pass_time(10);
    mirror.commit("w", "oai_dc", vec![live("oai:w:2", &[], "2")], true);
    let from = first.summary.page.response_date.expect("a date");
    let next = ask(&view, &format!("{list}&from={from}"));
    assert!(next.items().iter().any(|item| item.identifier == "oai:w:2"), "{}", next.body);
    assert_eq!(ask(&view, &format!("{list}&set=w")).items().len(), 2);
}
