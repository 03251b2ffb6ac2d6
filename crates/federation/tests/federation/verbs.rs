//! Identify, formats, sets and single records.

use crate::source::{Fault, Source};
use crate::world::{DC, World, request};
use futures::FutureExt as _;
use oaimend_oai::datestamp::Granularity;
use oaimend_repository::{Event, Repository as _};

const GET: &str = "verb=GetRecord&metadataPrefix=oai_dc&identifier=";

#[test]
fn identify_has_the_weakest_values() {
    let source = |deleted_record, granularity| Source { deleted_record, granularity, ..Source::default() };
    let world = World::new([
        ("a", source("persistent", Granularity::Second)),
        ("b", source("transient", Granularity::Second)),
    ]);
    let identify = world.valid("verb=Identify");
    assert_eq!(identify.text("deletedRecord"), "transient");
    assert_eq!(identify.text("granularity"), "YYYY-MM-DDThh:mm:ssZ");
    assert_eq!(identify.text("earliestDatestamp"), "2023-11-13T18:26:40Z");
    assert_eq!(
        (identify.text("repositoryName"), identify.text("adminEmail")),
        ("All &amp; more".into(), "a@x.example".into())
    );
    let world =
        World::new([("a", source("no", Granularity::Day)), ("b", source("persistent", Granularity::Second))]);
    let identify = world.valid("verb=Identify");
    assert_eq!(
        (identify.text("deletedRecord"), identify.text("granularity")),
        ("no".into(), "YYYY-MM-DD".into())
    );
    assert_eq!(identify.text("earliestDatestamp"), "2023-11-13");
    // One that has never answered counts with the weakest values.
    let down = Source { fault: Fault::Down, ..Source::default() };
    let world = World::new([("a", source("persistent", Granularity::Second)), ("b", down)]);
    let identify = world.valid("verb=Identify");
    assert_eq!(
        (identify.text("deletedRecord"), identify.text("granularity")),
        ("no".into(), "YYYY-MM-DD".into())
    );
    world.change("b", |source| source.fault = Fault::Nothing);
    world.pass_time(100);
    assert_eq!(world.valid("verb=Identify").text("granularity"), "YYYY-MM-DDThh:mm:ssZ");
    world.change("b", |source| source.fault = Fault::Down);
    world.pass_time(10_000);
    assert_eq!(world.valid("verb=Identify").text("deletedRecord"), "persistent", "as it was");
}

#[test]
fn the_formats_are_those_of_all_and_those_of_an_item_are_those_of_its_repository() {
    let b = Source { formats: vec!["oai_dc", "marc21"], ..Source::with("b", 1) };
    let world = World::new([("a", Source::with("a", 1)), ("b", b), ("c", Source::default())]);
    let formats = world.valid("verb=ListMetadataFormats");
    assert_eq!(formats.body.matches("<metadataPrefix>oai_dc<").count(), 1);
    assert_eq!(formats.body.matches("<metadataPrefix>").count(), 2);
    let of = |identifier: &str| world.valid(&format!("verb=ListMetadataFormats&identifier={identifier}"));
    assert_eq!(of("a1").body.matches("<metadataPrefix>").count(), 1);
    assert_eq!(of("b1").body.matches("<metadataPrefix>").count(), 2);
    assert_eq!(of("c1").kind(), "idDoesNotExist");
    world.change("c", |source| source.fault = Fault::Down);
    world.pass_time(10_000);
    assert_eq!(
        world.valid("verb=ListMetadataFormats").body.matches("<metadataPrefix>").count(),
        2,
        "as before"
    );
    let down = Source { fault: Fault::Down, ..Source::default() };
    let world = World::new([("a", Source::default()), ("b", down)]);
    assert_eq!(world.ask("verb=ListMetadataFormats").failure.map(|failure| failure.status()), Some(503));
}

#[test]
fn each_repository_is_a_set_and_its_sets_are_below_it() {
    let b = Source { sets: vec!["s", "s:t", "u"], ..Source::default() };
    let world = World::new([("a", Source::default()), ("b", b), ("c", Source::default())]);
    let mut sets = Vec::new();
    let mut page = world.valid("verb=ListSets");
    loop {
        sets.extend(
            page.body
                .split("<setSpec>")
                .skip(1)
                .map(|rest| rest.split('<').next().unwrap_or_default().to_owned()),
        );
        let Some(token) = page.token.clone() else { break };
        page = world.valid(&format!("verb=ListSets&resumptionToken={token}"));
    }
    assert_eq!(sets, ["a", "b", "b:s", "b:s:t", "b:u", "c"]);
    world.change("b", |source| source.fault = Fault::Down);
    let first = world.valid("verb=ListSets");
    let token = first.token.expect("the list goes on");
    let next = format!("verb=ListSets&resumptionToken={token}");
    assert_eq!(world.ask(&next).failure.map(|failure| failure.status()), Some(503));
    world.change("b", |source| source.fault = Fault::Nothing);
    assert!(world.valid(&next).body.contains("<setSpec>b:s<"));
    assert_eq!(world.valid("verb=ListSets&resumptionToken=b:1").kind(), "badResumptionToken");
    assert_eq!(World::new([]).valid("verb=ListSets").kind(), "noSetHierarchy");
}

#[test]
fn a_record_does_not_exist_only_if_all_say_so() {
    let down = || Source { fault: Fault::Down, ..Source::with("c", 1) };
    let world = World::new([("a", Source::with("a", 1)), ("b", Source::with("b", 1)), ("c", down())]);
    assert_eq!(world.valid(&format!("{GET}b1")).items()[0].sets, ["b"]);
    assert_eq!(world.ask(&format!("{GET}c1")).failure.map(|failure| failure.status()), Some(503));
    assert_eq!(world.ask(&format!("{GET}x1")).failure.map(|failure| failure.status()), Some(503));
    world.change("c", |source| source.fault = Fault::Nothing);
    assert_eq!(world.valid(&format!("{GET}c1")).items()[0].sets, ["c"]);
    assert_eq!(world.valid(&format!("{GET}x1")).kind(), "idDoesNotExist");
    assert_eq!(
        world.valid("verb=GetRecord&metadataPrefix=mods&identifier=b1").kind(),
        "cannotDisseminateFormat"
    );
    // One that fails earlier in the order may have the record that counts.
    world.change("a", |source| source.fault = Fault::Down);
    assert_eq!(world.ask(&format!("{GET}b1")).failure.map(|failure| failure.status()), Some(503));
}

#[test]
fn a_repository_that_is_known_to_hold_an_item_is_asked_first() {
    let mut world = World::new([("a", Source::with("a", 1)), ("b", Source::with("b", 1))]);
    world.list(DC);
    world.change("a", |source| source.fault = Fault::Down);
    world.located = Some(vec!["b".to_owned(), "gone".to_owned()]);
    assert_eq!(world.valid(&format!("{GET}b1")).items()[0].sets, ["b"]);
    // It is not there any more: the others may have it.
    world.change("a", |source| source.fault = Fault::Nothing);
    assert_eq!(world.valid(&format!("{GET}a1")).items()[0].sets, ["a"]);
    assert_eq!(world.valid(&format!("{GET}x1")).kind(), "idDoesNotExist");
}

#[test]
fn a_slow_repository_does_not_hold_up_federations_without_it() {
    for query in ["verb=Identify", "verb=ListMetadataFormats", "verb=ListRecords&metadataPrefix=oai_dc"] {
        let mut world = World::new([("a", Source::with("a", 1)), ("b", Source::with("b", 1))]);
        world.change("a", |source| source.fault = Fault::Hangs);
        let with_both = world.federation();
        world.leave("a");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut slow = with_both.answer(request(query));
            assert!(slow.next().now_or_never().is_none(), "a hangs");
            assert_eq!(world.requests("a"), 1);
            let mut other = world.federation_named("_federation/b").answer(request(query));
            let mut polls = 0;
            loop {
                match other.next().now_or_never() {
                    Some(Some(Event::End(_))) => break,
                    Some(event) => {
                        assert!(matches!(event, Some(Event::Head(_) | Event::Body(_))), "{event:?}")
                    }
                    None => {
                        polls += 1;
                        assert!(polls < 1_000, "{query}: it waits for the repository of another federation");
                        tokio::task::yield_now().await;
                    }
                }
            }
        });
    }
}
