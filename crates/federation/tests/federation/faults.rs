//! Repositories that fail, loop, hang or change in the middle of a list, and tokens that are not ours.

use crate::source::{Fault, Source};
use crate::world::{Answered, DC, World, ask, identifiers, request};
use futures::FutureExt as _;
use oaimend_federation::OnFailure;
use oaimend_repository::Repository as _;
use std::sync::atomic::Ordering;

fn first(world: &World) -> Answered {
    world.valid("verb=ListRecords&metadataPrefix=oai_dc")
}

fn next(world: &World, page: &Answered) -> Answered {
    let token = page.token.as_ref().expect("the list goes on");
    world.ask(&format!("verb=ListRecords&resumptionToken={token}"))
}

#[track_caller]
fn unavailable(answered: &Answered) {
    let failure = answered.failure.as_ref().expect("a failure");
    assert!(failure.status() == 503 && failure.public_details.contains("the repository "), "{failure:?}");
    assert_eq!(answered.body, "", "a clean failure");
}

fn fault(world: &World, id: &str, fault: Fault) {
    world.change(id, |source| source.fault = fault);
}

#[test]
fn a_repository_that_fails_is_503_at_its_place_and_never_an_end() {
    let world =
        World::new([("a", Source::with("a", 1)), ("b", Source::with("b", 1)), ("c", Source::with("c", 1))]);
    first(&world);
    fault(&world, "a", Fault::Down);
    unavailable(&world.ask("verb=ListRecords&metadataPrefix=oai_dc"));
    fault(&world, "a", Fault::Nothing);
    fault(&world, "b", Fault::Down);
    let page = first(&world);
    assert_eq!(identifiers(&page.items()), ["a1"]);
    unavailable(&next(&world, &page));
    unavailable(&next(&world, &page));
    fault(&world, "b", Fault::Nothing);
    let page = next(&world, &page);
    page.check();
    assert_eq!(identifiers(&page.items()), ["b1"]);
    assert_eq!(identifiers(&next(&world, &page).items()), ["c1"]);
}

#[test]
fn a_list_whose_rest_turns_out_to_be_empty_ends_with_its_last_record_again() {
    for verb in ["ListRecords", "ListIdentifiers"] {
        let world = World::new([("a", Source::with("a", 1)), ("b", Source::with("b", 1))]);
        fault(&world, "b", Fault::Down);
        let page = world.valid(&format!("verb={verb}&metadataPrefix=oai_dc"));
        let token = page.token.expect("b is not known to be empty");
        world.change("b", |source| *source = Source::default());
        let last = world.valid(&format!("verb={verb}&resumptionToken={token}"));
        assert_eq!((identifiers(&last.items()), &last.token), (vec!["a1"], &None), "{verb}");
        assert_eq!(last.items()[0].sets, ["a"]);
        assert!(last.body.contains("<resumptionToken cursor=\"1\"/>"), "{}", last.body);
        world.change("a", |source| source.records.clear());
        assert_eq!(world.valid(&format!("verb={verb}&resumptionToken={token}")).kind(), "noRecordsMatch");
    }
}

#[test]
fn with_last_the_others_come_first_and_503_is_in_place_of_the_end() {
    let mut world =
        World::new([("a", Source::with("a", 3)), ("b", Source::with("b", 1)), ("c", Source::with("c", 1))]);
    world.on_failure = OnFailure::Last;
    let page = first(&world);
    assert_eq!(identifiers(&page.items()), ["a1", "a2"]);
    fault(&world, "a", Fault::Down);
    fault(&world, "b", Fault::Down);
    let page = next(&world, &page);
    assert_eq!(identifiers(&page.items()), ["c1"]);
    let end = page.clone();
    unavailable(&next(&world, &end));
    // The one that is back does not wait for the other.
    fault(&world, "b", Fault::Nothing);
    let page = next(&world, &end);
    assert_eq!(identifiers(&page.items()), ["b1"]);
    unavailable(&next(&world, &page));
    fault(&world, "a", Fault::Nothing);
    let page = next(&world, &page);
    page.check();
    assert_eq!((identifiers(&page.items()), page.token), (vec!["a3"], None));
    // Nothing but failures.
    for id in ["a", "b", "c"] {
        fault(&world, id, Fault::Down);
    }
    unavailable(&world.ask("verb=ListRecords&metadataPrefix=oai_dc"));
}

#[test]
fn a_page_that_breaks_off_is_a_failure_and_its_token_still_works() {
    let world = World::new([("a", Source::with("a", 3)), ("b", Source::with("b", 1))]);
    let page = first(&world);
    fault(&world, "a", Fault::BreaksOff);
    let broken = next(&world, &page);
    assert!(broken.failure.is_some() && !broken.body.contains("</OAI-PMH>"), "{}", broken.body);
    fault(&world, "a", Fault::Nothing);
    assert_eq!(identifiers(&next(&world, &page).items()), ["a3"]);
}

#[test]
fn a_token_that_a_repository_refuses_is_refused() {
    let world = World::new([("a", Source::with("a", 3)), ("b", Source::with("b", 1))]);
    let page = first(&world);
    fault(&world, "a", Fault::LosesTokens);
    let refused = next(&world, &page);
    refused.check();
    assert_eq!(refused.kind(), "badResumptionToken");
    assert!(refused.body.contains("it says &lt;so&gt;"), "{}", refused.body);
}

#[test]
fn a_repository_that_loops_is_a_failure() {
    let world = World::new([("a", Source::with("a", 5)), ("b", Source::with("b", 1))]);
    let page = first(&world);
    fault(&world, "a", Fault::Loops);
    let looped = next(&world, &page);
    assert!(looped.failure.is_some() && looped.token.is_none(), "{looped:?}");
}

#[test]
fn a_repository_that_changes_in_the_middle_of_a_list_is_delivered_by_the_next_list() {
    let world = World::new([("a", Source::with("a", 2)), ("b", Source::with("b", 2))]);
    let page = first(&world);
    world.pass_time(10);
    let now_secs = world.now_secs();
    world.change("a", |source| source.change("a1", now_secs, 2));
    world.change("b", |source| source.change("b1", now_secs, 2));
    let page = next(&world, &page);
    assert_eq!((identifiers(&page.items()), &page.token), (vec!["b2"], &None));
    world.pass_time(10);
    let changed = world.list(&format!("{DC}&from={}", page.text("responseDate")));
    let changed: Vec<_> = changed.iter().map(|item| (item.identifier.as_str(), item.version)).collect();
    assert_eq!(changed, [("a1", 2), ("b1", 2)]);
}

#[test]
fn repositories_that_hang_are_503_and_the_next_request_goes_on() {
    let world =
        World::new([("a", Source::default()), ("b", Source::with("b", 1)), ("c", Source::with("c", 1))]);
    first(&world);
    fault(&world, "b", Fault::Hangs);
    world.clock.is_late.store(true, Ordering::SeqCst);
    let late = world.ask("verb=ListRecords&metadataPrefix=oai_dc");
    assert_eq!(late.failure.map(|failure| failure.status()), Some(503));
    let mut requests = 0;
    fault(&world, "b", Fault::Nothing);
    world.change("a", |source| requests = source.requests.len());
    let page = first(&world);
    assert_eq!(identifiers(&page.items()), ["b1"]);
    world.change("a", |source| assert_eq!(source.requests.len(), requests, "it was not asked again"));
    // After a record, the token leads on.
    fault(&world, "c", Fault::Hangs);
    let page = first(&world);
    assert_eq!(identifiers(&page.items()), ["b1"]);
    let late = next(&world, &page);
    assert_eq!(late.failure.map(|failure| failure.status()), Some(503), "a page without news is endless");
    fault(&world, "c", Fault::Nothing);
    assert_eq!(identifiers(&next(&world, &page).items()), ["c1"]);
}

#[test]
fn repositories_that_are_slow_to_say_that_they_have_nothing_do_not_stop_a_list() {
    let empty = ["b", "c", "d", "e", "f", "g"].map(|id| (id, Source::default()));
    let others = [("a", Source::with("a", 2)), ("h", Source::with("h", 1))];
    let world = World::new(others.into_iter().chain(empty));
    first(&world);
    fault(&world, "a", Fault::HasListsOnly);
    for id in ["b", "c", "d", "e", "f", "g"] {
        fault(&world, id, Fault::IsSlow);
    }
    world.clock.is_late.store(true, Ordering::SeqCst);
    let mut page = first(&world);
    let mut pages = 1;
    while identifiers(&page.items()) != ["h1"] {
        assert!(pages < 6, "the list does not go on: {page:?}");
        let delivered = if pages == 1 { vec!["a1", "a2"] } else { vec!["a2"] };
        assert_eq!(identifiers(&page.items()), delivered, "the last record again");
        let before = page.token.clone();
        page = next(&world, &page);
        assert_eq!(page.failure, None);
        assert_ne!(page.token, before, "an endless list");
        pages += 1;
    }
    assert!(pages > 2 && page.token.is_none(), "{pages} pages");
}

#[test]
fn a_list_without_a_last_record_goes_on_too() {
    let empty = ["b", "c", "d", "e"].map(|id| (id, Source::default()));
    let world =
        World::new([("a", Source::with("a", 1)), ("h", Source::with("h", 1))].into_iter().chain(empty));
    first(&world);
    for id in ["b", "c", "d", "e"] {
        fault(&world, id, Fault::IsSlow);
    }
    world.clock.is_late.store(true, Ordering::SeqCst);
    let page = first(&world);
    // Its page is not there any more.
    world.change("a", |source| source.records.clear());
    let late = next(&world, &page);
    assert_eq!(late.failure.map(|failure| failure.status()), Some(503));
    assert_eq!(identifiers(&next(&world, &page).items()), ["h1"]);
}

#[test]
fn a_repository_that_hangs_waits_for_the_end_with_last() {
    let mut world =
        World::new([("a", Source::with("a", 1)), ("b", Source::with("b", 1)), ("c", Source::with("c", 1))]);
    world.on_failure = OnFailure::Last;
    first(&world);
    fault(&world, "b", Fault::Hangs);
    world.clock.is_late.store(true, Ordering::SeqCst);
    let page = next(&world, &first(&world));
    assert_eq!((identifiers(&page.items()), page.failure.is_none()), (vec!["c1"], true));
    assert_eq!(next(&world, &page).failure.map(|failure| failure.status()), Some(503));
    fault(&world, "b", Fault::Nothing);
    let page = next(&world, &page);
    assert_eq!((identifiers(&page.items()), page.token), (vec!["b1"], None));
}

#[test]
fn a_request_goes_on_where_an_earlier_one_has_come_to() {
    let world = World::new([("a", Source::default()), ("b", Source::default()), ("c", Source::with("c", 1))]);
    first(&world);
    fault(&world, "c", Fault::Hangs);
    let query = format!("verb=ListRecords{DC}");
    let mut events = world.federation().answer(request(&query));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let before = world.requests("c");
        let mut polls = 0;
        while world.requests("c") == before {
            assert!(events.next().now_or_never().is_none() && polls < 1_000, "c hangs");
            polls += 1;
            tokio::task::yield_now().await;
        }
        drop(events);
    });
    fault(&world, "c", Fault::Nothing);
    let requests = world.requests("b");
    assert_eq!(identifiers(&first(&world).items()), ["c1"]);
    assert_eq!(world.requests("b"), requests, "it was not asked again");
}

#[test]
fn tokens_are_valid_for_their_federation_and_verb_only() {
    let world = World::new([("a", Source::with("a", 3))]);
    let token = first(&world).token.expect("a token");
    let kind = |query: &str| world.valid(query).kind();
    // Replayed: the same page.
    for _ in 0..2 {
        let page = world.valid(&format!("verb=ListRecords&resumptionToken={token}"));
        assert_eq!(identifiers(&page.items()), ["a3"]);
    }
    assert_eq!(kind(&format!("verb=ListIdentifiers&resumptionToken={token}")), "badResumptionToken");
    assert_eq!(kind(&format!("verb=ListSets&resumptionToken={token}")), "badResumptionToken");
    let other =
        ask(&world.federation_named("_federation/x"), &format!("verb=ListRecords&resumptionToken={token}"));
    assert_eq!(other.kind(), "badResumptionToken");
    for at in (0..token.len()).step_by(7) {
        let mut forged = token.clone().into_bytes();
        forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8_lossy(&forged).into_owned();
        assert_eq!(kind(&format!("verb=ListRecords&resumptionToken={forged}")), "badResumptionToken", "{at}");
    }
    let of_source = "oai_dc||||1|a1";
    assert_eq!(kind(&format!("verb=ListRecords&resumptionToken={of_source}")), "badResumptionToken");
}

#[test]
fn a_repository_that_leaves_in_the_middle_of_a_list_is_passed() {
    let mut world = World::new([("a", Source::with("a", 3)), ("b", Source::with("b", 1))]);
    let page = first(&world);
    world.leave("a");
    assert_eq!(identifiers(&next(&world, &page).items()), ["b1"]);
}
