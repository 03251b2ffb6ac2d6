//! The mirror answers in place of a source that fails, and no harvester misses a record.

use oaimend_mirror::view::MirroredSource;
use oaimend_oai::UnixSecs;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_repository::{Event, Reason};
use oaimend_store::{Prefix, RepositoryId};

use crate::fixtures::collection::{Collection, DAY_SECS, Entry, identifier};
use crate::fixtures::failover::{NOW_SECS, World};
use crate::fixtures::mirror::{Answered, Mirror, deleted, live, runtime, source};

fn identifiers(pages: &[Answered]) -> Vec<String> {
    pages.iter().flat_map(Answered::items).map(|item| item.identifier).collect()
}

fn all_identifiers(count: usize) -> Vec<String> {
    (0..count).map(identifier).collect()
}

fn response_date(answered: &Answered) -> String {
    let (_, rest) = answered.body.split_once("<responseDate>").expect("each response has one");
    rest.split('<').next().unwrap_or_default().to_owned()
}

#[test]
fn the_mirror_answers_each_verb_as_the_source_did() {
    let world = World::of(Collection::of(25));
    world.harvest();
    let requests = [
        "verb=Identify".to_owned(),
        "verb=ListMetadataFormats".to_owned(),
        format!("verb=ListMetadataFormats&identifier={}", identifier(3)),
        "verb=ListSets".to_owned(),
        format!("verb=GetRecord&metadataPrefix=oai_dc&identifier={}", identifier(3)),
        "verb=ListRecords&metadataPrefix=oai_dc&from=2020-01-20T00:00:00Z&until=2020-01-24T00:00:00Z"
            .to_owned(),
        "verb=ListIdentifiers&metadataPrefix=oai_dc&from=2020-01-21".to_owned(),
        "verb=ListRecords&metadataPrefix=oai_dc&from=2022-01-01".to_owned(),
    ];
    let before: Vec<Answered> = requests.iter().map(|request| world.ask_valid(request)).collect();
    world.set_down(true);
    let state = runtime()
        .block_on(world.mirror.stores().store.progress(RepositoryId("x"), Prefix("oai_dc")))
        .expect("readable");
    let state = state.last_complete.expect("a complete harvest").from_secs;
    for (request, before) in requests.iter().zip(&before) {
        let after = world.ask_valid(request);
        let reason = after.summary.end.failed_over.as_ref().map(|failure| failure.reason);
        assert!(matches!(reason, Some(Reason::Status | Reason::CircuitOpen)), "{request}: {reason:?}");
        assert_eq!(after.items(), before.items(), "{request}");
        assert_eq!(after.kind(), before.kind(), "{request}");
        assert_eq!(response_date(&after), from_secs(state, Granularity::Second), "{request}");
    }
    let identify = world.ask_valid("verb=Identify").body;
    for text in
        ["<repositoryName>A collection<", "/_mirror/x</baseURL>", "<granularity>YYYY-MM-DDThh:mm:ssZ<"]
    {
        assert!(identify.contains(text), "{text}: {identify}");
    }
}

#[test]
fn a_list_continues_with_exactly_the_records_that_the_harvester_does_not_have() {
    for verb in ["ListRecords", "ListIdentifiers"] {
        for pages_before in 0..4 {
            for comes_back in [false, true] {
                let world = World::of(Collection::of(45));
                world.harvest();
                let mut pages = Vec::new();
                let mut query = format!("verb={verb}&metadataPrefix=oai_dc");
                for _ in 0..pages_before {
                    let page = world.ask_valid(&query);
                    let token = page.summary.page.token.clone().expect("the list continues");
                    query = format!("verb={verb}&resumptionToken={token}");
                    pages.push(page);
                }
                world.set_down(true);
                let page = world.ask_valid(&query);
                assert!(page.summary.end.failed_over.is_some());
                if comes_back {
                    world.set_down(false);
                }
                pages.extend(world.rest(verb, page));
                let mut found = identifiers(&pages);
                found.sort();
                assert_eq!(found, all_identifiers(45), "{verb} {pages_before}");
            }
        }
    }
}

#[test]
fn a_page_that_ended_early_continues_in_the_mirror() {
    for after_pages in 0..3 {
        let world = World::of(Collection::of(45));
        world.harvest();
        let mut query = "verb=ListRecords&metadataPrefix=oai_dc".to_owned();
        let mut pages = Vec::new();
        for _ in 0..after_pages {
            let page = world.ask_valid(&query);
            query = format!(
                "verb=ListRecords&resumptionToken={}",
                page.summary.page.token.clone().expect("more")
            );
            pages.push(page);
        }
        world.collection().page_ends_after = Some(4);
        let page = world.ask_valid(&query);
        assert_eq!(page.items().len(), 4);
        assert!(page.summary.end.continued.is_some());
        world.set_down(true);
        pages.extend(world.rest("ListRecords", page));
        let mut found = identifiers(&pages);
        found.sort();
        assert_eq!(found, all_identifiers(45), "after {after_pages}");
    }
}

/// The source returned newer versions than the mirror has: the mirror does not send its own ones after them.
#[test]
fn the_mirror_does_not_undo_what_the_source_said_before() {
    for ends_early in [false, true] {
        let world = World::of(Collection::of(25));
        world.harvest();
        for number in [1, 3] {
            let mut collection = world.collection();
            let entry = collection.entries.get_mut(&identifier(number)).expect("it exists");
            (entry.deleted, entry.datestamp_secs) = (number == 1, NOW_SECS + 60);
        }
        world.pass_time(120);
        world.collection().page_ends_after = ends_early.then_some(4);
        let first = world.ask_valid("verb=ListRecords&metadataPrefix=oai_dc");
        let token = first.summary.page.token.clone().expect("the list continues");
        world.set_down(true);
        let query = format!("verb=ListRecords&resumptionToken={token}");
        let mut pages = world.rest("ListRecords", world.ask_valid(&query));
        assert!(identifiers(&pages).iter().all(|rest| *rest != identifier(1) && *rest != identifier(3)));
        pages.push(first);
        let mut found = identifiers(&pages);
        found.sort();
        assert_eq!(found, all_identifiers(25), "ends early: {ends_early}");
    }
}

/// The harvester has all records that the mirror knows: the last page repeats one, because a page without records
/// violates the schema.
#[test]
fn the_end_of_a_list_that_was_delivered_repeats_a_record() {
    for (verb, deleted_record) in [("ListRecords", "persistent"), ("ListIdentifiers", "no")] {
        let world = World::of(Collection { deleted_record, ..Collection::of(10) });
        world.harvest();
        let datestamp_secs = NOW_SECS + 60;
        let new = Entry { datestamp_secs, deleted: false, title: "New".to_owned(), set: "even" };
        world.collection().entries.insert(identifier(99), new);
        world.pass_time(120);
        let first = world.ask_valid(&format!("verb={verb}&metadataPrefix=oai_dc"));
        let token = first.summary.page.token.clone().expect("the list continues");
        world.set_down(true);
        let last = world.ask_valid(&format!("verb={verb}&resumptionToken={token}"));
        assert_eq!(identifiers(&[last]), [identifier(0)], "{verb}");
    }
}

/// A source with a clock in the future is harvested like others, and the mirror does not repeat its times.
#[test]
fn a_response_date_in_the_future_ends_no_harvest() {
    const YEAR_2099: i64 = 4_070_908_800;
    let world = World::of(Collection::of(5));
    world.collection().now_secs = YEAR_2099;
    world.harvest();
    let new = Entry { datestamp_secs: NOW_SECS + 60, deleted: false, title: "New".to_owned(), set: "even" };
    world.collection().entries.insert(identifier(7), new);
    world.pass_time(120);
    world.collection().now_secs = YEAR_2099 + 120;
    world.harvest();
    // The harvester continues from the responseDate of the source.
    let live = world.ask_valid("verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(response_date(&live), from_secs(UnixSecs(YEAR_2099 + 120), Granularity::Second));
    let change = |world: &World, number| {
        world.collection().entries.get_mut(&identifier(number)).expect("it exists").datestamp_secs =
            NOW_SECS + 180;
    };
    change(&world, 2);
    let next = format!("verb=ListRecords&metadataPrefix=oai_dc&from={}", response_date(&live));
    assert!(identifiers(&[world.ask_valid(&next)]).contains(&identifier(2)));
    world.set_down(true);
    let page = world.ask_valid("verb=ListRecords&metadataPrefix=oai_dc");
    assert!(identifiers(std::slice::from_ref(&page)).contains(&identifier(7)));
    let date = response_date(&page);
    assert!(date < from_secs(UnixSecs(NOW_SECS + 7_200), Granularity::Second), "{date}");
}

#[test]
fn the_rest_of_a_list_survives_a_restart() {
    let mut world = World::of(Collection::of(45));
    world.harvest();
    let first = world.ask_valid("verb=ListRecords&metadataPrefix=oai_dc");
    world.set_down(true);
    let token = first.summary.page.token.clone().expect("the list continues");
    world = world.restart();
    let second = world.ask_valid(&format!("verb=ListRecords&resumptionToken={token}"));
    world = world.restart();
    let token = second.summary.page.token.clone().expect("the list continues");
    let third = world.ask_valid(&format!("verb=ListRecords&resumptionToken={token}"));
    let mut pages = vec![first, second];
    pages.extend(world.rest("ListRecords", third));
    let mut found = identifiers(&pages);
    found.sort();
    assert_eq!(found, all_identifiers(45));
}

#[test]
fn a_list_that_the_mirror_has_finished_ends() {
    let world = World::of(Collection::of(20));
    world.harvest();
    let first = world.ask_valid("verb=ListRecords&metadataPrefix=oai_dc");
    // The mirror has lost nothing, and the rest of the collection was deleted at the source since then.
    for number in 10..20 {
        world.collection().entries.remove(&identifier(number));
    }
    let token = first.summary.page.token.clone().expect("the list continues");
    world.set_down(true);
    let rest =
        world.rest("ListRecords", world.ask_valid(&format!("verb=ListRecords&resumptionToken={token}")));
    assert_eq!(identifiers(&rest), (10..20).map(identifier).collect::<Vec<_>>());
    let last = rest.last().expect("a page");
    assert!(last.body.contains("<resumptionToken/>"), "{}", last.body);
}

#[test]
fn a_later_request_of_the_source_begins_at_the_state_that_the_harvester_has() {
    let world = World::of(Collection::of(10));
    world.harvest();
    let state_secs = NOW_SECS;
    // A change after the harvest, and before the source fails.
    world.pass_time(7_200);
    let changed_secs = state_secs + 7_200;
    world.collection().entries.get_mut(&identifier(4)).expect("it exists").datestamp_secs = changed_secs;
    world.pass_time(7_200);
    world.set_down(true);
    let list = world.ask_valid("verb=ListRecords&metadataPrefix=oai_dc&from=2020-01-05");
    assert!(list.summary.end.failed_over.is_some());
    let own_clock = world.mirror.now();
    world.set_down(false);
    let requested = world.source.requests().len();
    let next = world.ask_valid(&format!("verb=ListRecords&metadataPrefix=oai_dc&from={own_clock}"));
    assert_eq!(identifiers(&[next]), [identifier(4)], "{own_clock}");
    let received = world.source.requests()[requested..]
        .iter()
        .map(|received| received.target.clone())
        .collect::<String>();
    assert!(!received.contains(&own_clock.replace(':', "%3A")), "{received}");
    // A harvester that uses the responseDate gets it without help.
    assert!(response_date(&list) <= from_secs(UnixSecs(state_secs), Granularity::Second));
}

#[test]
fn short_windows_up_to_now_begin_at_the_state_that_the_harvester_has() {
    for window_secs in [300, 1_200, 3_420] {
        let world = World::of(Collection::of(10));
        world.harvest();
        // A change after the harvest, and before the source fails.
        world.pass_time(600);
        world.collection().entries.get_mut(&identifier(4)).expect("it exists").datestamp_secs =
            NOW_SECS + 600;
        world.set_down(true);
        let list = "verb=ListRecords&metadataPrefix=oai_dc";
        let mut until = world.mirror.now();
        let mut pages = vec![world.ask_valid(&format!("{list}&from=2022-01-01T00:00:00Z&until={until}"))];
        assert!(pages[0].summary.end.failed_over.is_some());
        // The source is back, and its circuit breaker closes after a while.
        world.collection().is_down = false;
        while pages.last().is_some_and(|page| page.summary.end.failed_over.is_some()) {
            assert!(pages.len() < 100, "the source is never asked");
            world.pass_time(window_secs);
            let from = std::mem::replace(&mut until, world.mirror.now());
            pages.push(world.ask_valid(&format!("{list}&from={from}&until={until}")));
        }
        assert!(identifiers(&pages).contains(&identifier(4)), "{window_secs}");
    }
}

#[test]
fn a_request_after_a_long_list_begins_at_the_state_of_its_first_page() {
    // Harvests of the same list share its record in the ledger.
    for another_begins in [false, true] {
        let world = World::of(Collection::of(45));
        world.harvest();
        let list = "verb=ListRecords&metadataPrefix=oai_dc";
        let first = world.ask_valid(list);
        world.pass_time(3_600);
        // The harvester has the record already.
        world.collection().entries.get_mut(&identifier(1)).expect("it exists").datestamp_secs =
            NOW_SECS + 3_600;
        world.pass_time(7_200);
        if another_begins {
            drop(world.ask_valid(list));
        }
        world.pass_time(7_200);
        let _rest = world.rest("ListRecords", first);
        let next = world.ask_valid(&format!("{list}&from={}", world.mirror.now()));
        assert_eq!(identifiers(&[next]), [identifier(1)], "{another_begins}");
    }
}

#[test]
fn a_list_that_the_mirror_continues_keeps_the_state_of_its_first_page() {
    let world = World::of(Collection { now_secs: NOW_SECS, ..Collection::of(45) });
    world.harvest();
    let change = |title: &str| {
        let mut collection = world.collection();
        let entry = collection.entries.get_mut(&identifier(1)).expect("it exists");
        (entry.datestamp_secs, entry.title) = (NOW_SECS, title.to_owned());
    };
    let list = "verb=ListRecords&metadataPrefix=oai_dc";
    change("old");
    let first = world.ask_valid(list);
    // The same datestamp: for the mirror, the harvester has this record.
    change("new");
    world.pass_time(7_200);
    world.harvest();
    world.pass_time(7_200);
    world.set_down(true);
    let rest = world.rest("ListRecords", first);
    assert!(!identifiers(&rest[1..]).contains(&identifier(1)));
    let date = response_date(rest.last().expect("a page"));
    let own_clock = world.mirror.now();
    world.set_down(false);
    for from in [date, own_clock] {
        let next = world.ask_valid(&format!("{list}&from={from}"));
        let found: Vec<_> = next.items().into_iter().map(|item| (item.identifier, item.title)).collect();
        assert_eq!(found, [(identifier(1), "new".to_owned())], "{from}");
    }
}

#[test]
fn the_last_page_of_the_mirror_has_a_record_although_the_source_lists_no_deleted_ones() {
    for pages_before in [0, 1] {
        let world = World::of(Collection { deleted_record: "no", ..Collection::of(24) });
        world.harvest();
        let mut pages = Vec::new();
        let mut query = "verb=ListRecords&metadataPrefix=oai_dc".to_owned();
        if pages_before == 1 {
            let page = world.ask_valid(&query);
            query = format!(
                "verb=ListRecords&resumptionToken={}",
                page.summary.page.token.clone().expect("more")
            );
            pages.push(page);
        }
        for number in 14..24 {
            world.collection().entries.get_mut(&identifier(number)).expect("it exists").deleted = true;
        }
        world.pass_time(7_200);
        for number in 14..24 {
            world.collection().entries.get_mut(&identifier(number)).expect("it exists").datestamp_secs =
                NOW_SECS + 7_200;
        }
        world.harvest();
        world.set_down(true);
        pages.extend(world.rest("ListRecords", world.ask_valid(&query)));
        assert!(pages.iter().all(|page| !page.items().is_empty()), "{pages_before}");
        let mut found = identifiers(&pages);
        found.sort();
        assert_eq!(found, all_identifiers(14), "{pages_before}");
    }
}

#[test]
fn the_times_of_a_page_are_stored_before_it_is_sent() {
    for is_down in [false, true] {
        let world = World::of(Collection::of(5));
        // A harvester may continue from a datestamp in the future.
        let future_secs = NOW_SECS + 2 * DAY_SECS;
        world.collection().entries.get_mut(&identifier(4)).expect("it exists").datestamp_secs = future_secs;
        world.harvest();
        world.set_down(is_down);
        let stored_until = async || {
            let state =
                world.mirror.stores().store.repository_state(RepositoryId("x")).await.expect("readable");
            state.source_spans.last().map(|span| span.until_secs)
        };
        runtime().block_on(async {
            let mut events = world.events("verb=ListRecords&metadataPrefix=oai_dc");
            while let Some(event) = events.next().await {
                match event {
                    Event::Head(_) => assert!(stored_until().await > Some(UnixSecs(NOW_SECS)), "{is_down}"),
                    Event::End(_) => {
                        assert!(stored_until().await >= Some(UnixSecs(future_secs)), "{is_down}")
                    }
                    Event::Failed(failure, _) => panic!("{failure:?}"),
                    _ => {}
                }
            }
        });
    }
}

#[test]
fn what_the_mirror_cannot_know_fails_like_the_source() {
    let world = World::of(Collection::of(5));
    let list = "verb=ListRecords&metadataPrefix=oai_dc";
    world.set_down(true);
    for (query, text) in [
        (list, "the mirror has not harvested"),
        ("verb=Identify", "the mirror has not harvested"),
        ("verb=ListSets", "the mirror has not harvested"),
    ] {
        let failure = world.ask(query).failure.unwrap_or_else(|| panic!("{query} succeeds"));
        assert_eq!(failure.reason, Reason::Status, "{query}");
        assert!(failure.details.contains(text), "{query}: {}", failure.details);
    }
    world.set_down(false);
    world.harvest();
    world.set_down(true);
    for query in [
        "verb=ListRecords&metadataPrefix=marcxml",
        "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:c:nope",
        "verb=ListMetadataFormats&identifier=oai:c:nope",
        "verb=ListRecords&resumptionToken=unknown",
    ] {
        let failure = world.ask(query).failure.unwrap_or_else(|| panic!("{query} succeeds"));
        assert!(failure.details.contains("the mirror"), "{query}: {}", failure.details);
        assert_ne!(failure.reason, Reason::Mirror, "{query}: the failure is that of the source");
    }
}

#[test]
fn a_mirror_of_some_sets_does_not_stand_in_for_the_whole_repository() {
    let (source_down, collection) = Collection { is_down: true, ..Collection::of(0) }.start();
    let mirror = Mirror::new(NOW_SECS);
    mirror.describe("x", &["oai_dc"], &[("a", "A"), ("a:b", "B"), ("ab", "C")]);
    let records =
        vec![live("oai:x:1", &["a"], "One"), live("oai:x:2", &["a:b"], "Two"), deleted("oai:x:3", &["a"])];
    mirror.commit("x", "oai_dc", records, true);
    let of_sets = MirroredSource { sets: vec!["a".to_owned()], ..source("x") };
    let world = World::start(mirror, source_down, collection, of_sets);
    let found = |set: &str| {
        let answered = world.ask(&format!("verb=ListRecords&metadataPrefix=oai_dc{set}"));
        let identifiers = || answered.items().into_iter().map(|item| item.identifier).collect::<Vec<_>>();
        answered.failure.is_none().then(identifiers)
    };
    // The source lists no deleted records.
    assert_eq!(found("&set=a"), Some(vec!["oai:x:1".to_owned(), "oai:x:2".into()]));
    assert_eq!(found("&set=a:b"), Some(vec!["oai:x:2".to_owned()]));
    assert_eq!(found("&set=ab"), None);
    assert_eq!(found(""), None);
}
