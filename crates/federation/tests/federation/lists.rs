//! Lists without faults: their order, headers, tokens and times.

use crate::source::Source;
use crate::world::{DC, START_SECS, World, identifiers};
use oaimend_oai::datestamp::Granularity;

fn requests(world: &World, id: &str) -> Vec<String> {
    let mut requests = Vec::new();
    world.change(id, |source| requests = std::mem::take(&mut source.requests));
    requests.retain(|request| !request.starts_with("verb=Identify"));
    requests
}

#[test]
fn a_list_goes_through_the_repositories_in_the_order_of_the_index() {
    let mut world = World::new([("b", Source::with("b", 3)), ("a.x", Source::with("a", 1))]);
    world.join("first", Source::with("f", 2), START_SECS - 60_000);
    let items = world.list(DC);
    assert_eq!(identifiers(&items), ["f1", "f2", "a1", "b1", "b2", "b3"]);
    assert_eq!(items[2].sets, ["a.x"]);
    let headers = world.ask("verb=ListIdentifiers&metadataPrefix=oai_dc");
    assert_eq!(identifiers(&headers.items()), ["f1", "f2"]);
}

#[test]
fn all_pages_have_the_time_of_the_first_one_and_its_until() {
    let world = World::new([("a", Source::with("a", 3)), ("b", Source::with("b", 1))]);
    let first = world.valid("verb=ListRecords&metadataPrefix=oai_dc");
    world.pass_time(100);
    let mut dates = vec![first.text("responseDate")];
    let mut token = first.token;
    while let Some(next) = token {
        let page = world.valid(&format!("verb=ListRecords&resumptionToken={next}"));
        dates.push(page.text("responseDate"));
        token = page.token;
    }
    assert_eq!(dates, ["2023-11-14T22:13:20Z"; 3]);
    let expected = "verb=ListRecords&metadataPrefix=oai_dc&until=2023-11-14T22%3A13%3A20Z";
    assert_eq!(requests(&world, "b"), [expected; 2], "the look-ahead, and the page");
}

#[test]
fn a_token_is_given_only_if_a_later_repository_has_a_record() {
    let world = World::new([
        ("a", Source::with("a", 1)),
        ("b", Source::default()),
        ("c", Source::with("c", 1)),
        ("d", Source::default()),
    ]);
    let page = world.valid("verb=ListRecords&metadataPrefix=oai_dc");
    assert!(page.token.is_some() && page.body.contains("cursor=\"0\""), "{}", page.body);
    requests(&world, "b");
    let token = page.token.expect("a token");
    let last = world.valid(&format!("verb=ListRecords&resumptionToken={token}"));
    assert_eq!((identifiers(&last.items()), last.token), (vec!["c1"], None));
    assert!(last.body.contains("<resumptionToken cursor=\"1\"/>"), "{}", last.body);
    assert_eq!(requests(&world, "b").len(), 0, "it was skipped");
    // The same with one page.
    world.change("c", |source| source.records.clear());
    let only = world.valid("verb=ListRecords&metadataPrefix=oai_dc");
    assert!(only.token.is_none() && !only.body.contains("resumptionToken"), "{}", only.body);
}

#[test]
fn a_list_without_records_or_without_the_format_is_an_error_only_if_all_say_so() {
    let marc = || Source { formats: vec!["marc21"], ..Source::with("m", 1) };
    let world = World::new([("a", Source::default()), ("m", marc()), ("z", Source::with("z", 1))]);
    assert_eq!(identifiers(&world.list(DC)), ["z1"]);
    assert_eq!(identifiers(&world.list("&metadataPrefix=marc21")), ["m1"]);
    let kind = |world: &World, prefix: &str| {
        world.valid(&format!("verb=ListRecords&metadataPrefix={prefix}")).kind()
    };
    assert_eq!(kind(&world, "mods"), "cannotDisseminateFormat");
    world.change("z", |source| source.records.clear());
    assert_eq!(kind(&world, "oai_dc"), "noRecordsMatch");
    assert_eq!(kind(&World::new([]), "oai_dc"), "noRecordsMatch");
    let future = world.valid("verb=ListRecords&metadataPrefix=oai_dc&from=2099-01-01T00:00:00Z");
    assert_eq!(future.kind(), "noRecordsMatch");
}

#[test]
fn a_set_is_a_repository_or_one_of_its_sets() {
    let mut a = Source { sets: vec!["s", "s:t"], ..Source::with("a", 2) };
    a.records.get_mut("a2").expect("a record").sets = vec!["s".to_owned(), "s:t".to_owned()];
    let world = World::new([("a", a), ("b", Source::with("b", 1))]);
    let listed = world.list(&format!("{DC}&set=a"));
    assert_eq!(identifiers(&listed), ["a1", "a2"]);
    assert_eq!(
        (&listed[0].sets, &listed[1].sets),
        (&vec!["a".into()], &vec!["a".into(), "a:s".into(), "a:s:t".into()])
    );
    assert_eq!(identifiers(&world.list(&format!("{DC}&set=a:s"))), ["a2"]);
    for set in ["b:s", "c", "a:x"] {
        let answered = world.valid(&format!("verb=ListRecords&metadataPrefix=oai_dc&set={set}"));
        assert_eq!(answered.kind(), "noRecordsMatch", "{set}");
    }
}

#[test]
fn one_repository_with_days_makes_days_of_all() {
    let days = Source { granularity: Granularity::Day, ..Source::with("d", 1) };
    let world = World::new([("a", Source::with("a", 1)), ("d", days)]);
    let items = world.list(DC);
    assert!(items.iter().all(|item| item.datestamp == "2023-11-14"), "{items:?}");
    assert_eq!(identifiers(&world.list(&format!("{DC}&from=2023-11-14&until=2023-11-14"))), ["a1", "d1"]);
    // The repositories joined on this day, so it contains all their records.
    assert!(!requests(&world, "a").last().expect("a request").contains("from="));
    world.valid(&format!("verb=ListRecords&{DC}&from=2023-11-13&until=2023-11-13"));
    assert!(requests(&world, "a").last().expect("a request").contains("from=2023-11-13T00%3A00%3A00Z"));
    let seconds = world.valid("verb=ListRecords&metadataPrefix=oai_dc&from=2023-11-14T00:00:00Z");
    assert_eq!(seconds.kind(), "badArgument");
    // A source with days admits later records of the day on which the list began.
    let record = world.valid("verb=GetRecord&metadataPrefix=oai_dc&identifier=a1");
    assert_eq!(record.items()[0].datestamp, "2023-11-14");
}

#[test]
fn a_repository_that_joins_is_delivered_from_its_beginning() {
    let mut world = World::new([("a", Source::with("a", 1))]);
    let from = format!("{DC}&from=2023-11-14T22:13:20Z");
    world.pass_time(10_000);
    assert_eq!(world.valid(&format!("verb=ListRecords{from}")).kind(), "noRecordsMatch");
    let joined = world.now_secs();
    world.join("b", Source::with("b", 1), joined);
    world.pass_time(10);
    assert_eq!(identifiers(&world.list(&from)), ["b1"]);
    // A window before it is a window.
    let before = format!("{from}&until=2023-11-14T22:14:00Z");
    assert_eq!(world.valid(&format!("verb=ListRecords{before}")).kind(), "noRecordsMatch");
    world.leave("b");
    assert_eq!(world.valid(&format!("verb=ListRecords{from}")).kind(), "noRecordsMatch");
}

#[test]
fn two_records_with_one_identifier_are_both_listed_and_the_first_is_the_record() {
    let mut b = Source::default();
    b.change("a1", START_SECS - 5_000, 7);
    let world = World::new([("a", Source::with("a", 1)), ("b", b)]);
    let versions: Vec<_> = world.list(DC).iter().map(|item| (item.sets.clone(), item.version)).collect();
    assert_eq!(versions, [(vec!["a".to_owned()], 1), (vec!["b".to_owned()], 7)]);
    let record = world.valid("verb=GetRecord&metadataPrefix=oai_dc&identifier=a1");
    assert_eq!((record.items()[0].version, &record.items()[0].sets), (1, &vec!["a".to_owned()]));
}
