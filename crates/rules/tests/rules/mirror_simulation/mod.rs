//! A simulation of the promise of the mirror: an incremental harvester misses no record, whether the
//! source or the mirror answered.
//!
//! A run simulates one source, its mirror, the proxy in front of both, and sixteen harvesters. Records
//! change and are deleted, the source and its clock are unreliable, requests for single records fail for
//! some time, records are unreadable for ever, lists end in the middle, commits are slow, clocks step by
//! an hour, and the program restarts. At the end the source is quiet, and each harvester requests one
//! more incremental list. Then its copy must be equal to the source.
//!
//! The simulation decides only by [`oaimend_rules`]. Each rule is also broken in turn, and the
//! simulation must then find records that were missed.
//!
//! [`views`] does the same with views of chosen records.
//!
//! `OAIMEND_RUNS=1000000` simulates more runs, `OAIMEND_SEED=7` sets another first seed.

mod harvester;
mod mirror;
mod proxy;
mod run;
mod source;
mod views;

use run::run;

use oaimend_test_support::{each, report};

/// The runs of a normal test.
const RUNS: u64 = 10_000;
/// The runs in which a broken rule must show. Most show in the first 200.
const BROKEN_RUNS_MAX: u64 = 20_000;
/// The runs in which each event must happen as often.
const EXERCISED_RUNS: usize = 200;

/// A rule that does not hold in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// Requests are never widened.
    NoWidening,
    /// Requests for less than an hour are not widened.
    NoWideningOfShortWindows,
    /// Requests of another mirror are not widened by the source either, whose responseDate is later than the state of its
    /// lists.
    NoWideningForMirrors,
    /// The members of a set are read from headers, although these do not name it.
    SetsOfHeadersAlone,
    /// The mirror answers for a set as if all its members were known up to the last harvest.
    MembersOfNow,
    /// A record that becomes a member of a set keeps its stamp.
    MembersWithoutStamp,
    /// Spans end at the clock, without its possible error.
    SpansWithoutClockError,
    /// Spans are lost at a restart.
    SpansInMemory,
    /// A responseDate ignores commits that have a stamp and are not visible yet.
    StampsAtBegin,
    /// The clock of stamps starts again from the stored stamps, without the reservation.
    NoReservation,
    /// Stamps are the time of the clock, even if it was set back.
    StampsOfTheClock,
    /// The mirror answers in place of the source as if its copy were of this moment.
    DateIsNow,
    /// A list that the mirror continues counts as old as its first page.
    StateOfTheFirstPage,
    /// A harvest begins at the responseDate of the one before.
    NoOverlap,
    /// The mark of a harvest is taken from its last page.
    MarkOfTheLastPage,
    /// The state of the copy is that of its last harvest, although records are missing.
    StateIgnoresGaps,
    /// Missing records are not requested again.
    GapsAreNotFetched,
    /// The next harvest continues after the last one, although items without a name are missing.
    GapsAreNotListedAgain,
    /// A record for which three requests fail counts as unrepairable.
    FailuresAreUnrepairable,
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn seeds(count: u64) -> Vec<u64> {
    let first = number("OAIMEND_SEED", 20_261_123);
    println!("seeds {first} to {}", first + count - 1);
    (first..first + count).collect()
}

/// Searches a run that misses a record if a rule does not hold.
#[track_caller]
fn assert_needed(broken: Broken) {
    assert_found(&format!("{broken:?}"), |seed| run(seed, Some(broken)).err());
}

/// Searches a run in which a broken rule shows.
#[track_caller]
fn assert_found(broken: &str, miss: impl Fn(u64) -> Option<String>) {
    let found = seeds(BROKEN_RUNS_MAX).into_iter().find_map(miss);
    println!("{broken}: {found:?}");
    assert!(found.is_some(), "{broken}: no run of {BROKEN_RUNS_MAX} misses a record");
}

/// Checks runs in which all rules hold. `run` returns what is wrong at its end.
fn assert_no_run_fails(run: impl Fn(u64) -> Option<String> + Sync) {
    let seeds = seeds(number("OAIMEND_RUNS", RUNS));
    let failures = each(&seeds, |&seed| run(seed));
    report("simulated runs", seeds.len(), &failures);
}

/// Checks that each event happens, on average, in every run. `run` returns the events with their counts.
fn assert_exercised<const N: usize>(run: impl Fn(u64) -> [(&'static str, usize); N]) {
    let mut all = [("", 0); N];
    for seed in seeds(EXERCISED_RUNS as u64) {
        for (sum, (event, count)) in all.iter_mut().zip(run(seed)) {
            *sum = (event, sum.1 + count);
        }
    }
    println!("{all:?}");
    for (event, count) in all {
        assert!(count >= EXERCISED_RUNS, "{event}: {count} in {EXERCISED_RUNS} runs");
    }
}

#[test]
fn no_incremental_harvester_misses_a_record() {
    assert_no_run_fails(|seed| run(seed, None).err());
}

#[test]
fn the_simulation_exercises_what_it_promises() {
    assert_exercised(|seed| run(seed, None).expect("a run without misses").named());
}

#[test]
fn a_run_is_determined_by_its_seed() {
    assert_eq!(run(7, None), run(7, None));
}

#[test]
fn without_widened_requests_records_are_missed() {
    assert_needed(Broken::NoWidening);
}

#[test]
fn without_widening_of_short_windows_records_are_missed() {
    assert_needed(Broken::NoWideningOfShortWindows);
}

#[test]
fn without_widening_for_mirrors_of_the_source_records_are_missed() {
    assert_needed(Broken::NoWideningForMirrors);
}

#[test]
fn with_sets_that_headers_do_not_name_records_are_missed() {
    assert_needed(Broken::SetsOfHeadersAlone);
}

#[test]
fn with_members_as_of_the_last_harvest_records_are_missed() {
    assert_needed(Broken::MembersOfNow);
}

#[test]
fn with_new_members_that_keep_their_stamp_records_are_missed() {
    assert_needed(Broken::MembersWithoutStamp);
}

#[test]
fn with_spans_that_ignore_the_error_of_clocks_records_are_missed() {
    assert_needed(Broken::SpansWithoutClockError);
}

#[test]
fn with_spans_that_a_restart_forgets_records_are_missed() {
    assert_needed(Broken::SpansInMemory);
}

#[test]
fn with_stamps_of_the_begin_of_a_commit_records_are_missed() {
    assert_needed(Broken::StampsAtBegin);
}

#[test]
fn without_the_reservation_of_dates_records_are_missed() {
    assert_needed(Broken::NoReservation);
}

#[test]
fn with_stamps_that_follow_the_clock_back_records_are_missed() {
    assert_needed(Broken::StampsOfTheClock);
}

#[test]
fn with_the_current_time_as_date_of_the_mirror_records_are_missed() {
    assert_needed(Broken::DateIsNow);
}

#[test]
fn with_the_state_of_the_first_page_records_are_missed() {
    assert_needed(Broken::StateOfTheFirstPage);
}

#[test]
fn without_the_overlap_of_harvests_records_are_missed() {
    assert_needed(Broken::NoOverlap);
}

#[test]
fn with_the_date_of_the_last_page_records_are_missed() {
    assert_needed(Broken::MarkOfTheLastPage);
}

#[test]
fn with_a_state_that_ignores_gaps_records_are_missed() {
    assert_needed(Broken::StateIgnoresGaps);
}

#[test]
fn with_gaps_that_are_not_fetched_records_are_missed() {
    assert_needed(Broken::GapsAreNotFetched);
}

#[test]
fn with_gaps_that_are_not_listed_again_records_are_missed() {
    assert_needed(Broken::GapsAreNotListedAgain);
}

#[test]
fn with_failures_that_count_as_unrepairable_records_are_missed() {
    assert_needed(Broken::FailuresAreUnrepairable);
}
