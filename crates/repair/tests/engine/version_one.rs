//! Pages of OAI-PMH 1.0 and 1.1: random ones, valid, damaged and truncated.
//!
//! Random pages of 2.0 are converted to 1.x; the other verbs come from the corpus. The invariants
//! are those of 2.0.

use std::panic::{AssertUnwindSafe, catch_unwind};

use oaimend_repair::{Ending, Limits, RepairConfig, RepairId, RepairSet};
use oaimend_test_support::corpus::cases;
use oaimend_test_support::harness::{Chunking, Run, run};
use oaimend_test_support::random::Random;
use oaimend_test_support::v1::v1_page;
use oaimend_test_support::{damage, fuzzing, invariants, judge, keep, report};

const FIRST_SEED: u64 = 20_261_122;

#[track_caller]
fn over(what: &str, count: u64, holds: impl Fn(&mut Random) -> (Vec<u8>, Result<(), String>)) {
    let mut failures = Vec::new();
    println!("seeds {FIRST_SEED} to {}", FIRST_SEED + count);
    for seed in FIRST_SEED..FIRST_SEED + count {
        let attempt = catch_unwind(AssertUnwindSafe(|| holds(&mut Random::new(seed))));
        let (input, kept) = attempt.unwrap_or_else(|_| (Vec::new(), Err("the engine panics".to_owned())));
        if let Err(error) = kept {
            failures.push(format!("seed {seed}: {error}\n  see {}", keep(&format!("{what} {seed}"), &input)));
        }
        if failures.len() == 12 {
            break;
        }
    }
    report(what, usize::try_from(count).unwrap_or(usize::MAX), &failures);
}

fn everything(input: &[u8], config: &RepairConfig) -> Result<Run, String> {
    let whole = invariants::all(input, config, judge::judge)?;
    for way in [Chunking::Bytes, Chunking::Random { seed: 5 }, Chunking::Blocks(61)] {
        invariants::chunk_invariant(input, &whole, config, way)?;
    }
    Ok(whole)
}

/// Every record is sent, and the fast path, the tag cache and the slow path give the same.
#[test]
fn valid_pages_lose_nothing() {
    over("old pages", 600, |random| {
        let page = v1_page(random);
        let input = page.bytes();
        let kept = everything(&input, &RepairConfig::default()).and_then(|whole| {
            let items = (whole.items.len(), whole.summary.quarantined, whole.summary.version);
            if items != (page.records.len(), 0, Some("1.1")) {
                return Err(format!("{items:?} of {} records", page.records.len()));
            }
            let record_bytes_max = 300 + random.below(900);
            let mut small = Limits::default();
            small.record_bytes_max = record_bytes_max;
            small.repairs_per_record_max = 3;
            [Limits::default(), small].into_iter().try_for_each(|limits| the_slow_path_agrees(&input, limits))
        });
        (input, kept)
    });
}

/// With any repair turned off, each item takes the slow path.
fn the_slow_path_agrees(input: &[u8], limits: Limits) -> Result<(), String> {
    let mut config = RepairConfig::default();
    config.limits = limits;
    let off: RepairSet = [RepairId::TrailingJunk].into_iter().collect();
    let fast = run(input, &config, Chunking::Whole);
    config.off = off;
    let slow = run(input, &config, Chunking::Whole);
    if slow.output == fast.output && slow.journal == fast.journal && slow.items == fast.items {
        return Ok(());
    }
    Err(format!("the slow path differs: {}", invariants::difference(&slow.output, &fast.output)))
}

#[test]
fn damaged_pages_become_valid_and_accounted_for() {
    let old: Vec<Vec<u8>> = cases("broken")
        .into_iter()
        .filter(|case| case.name.contains("version-one"))
        .map(|case| case.input)
        .collect();
    over("damaged old pages", 2_400, |random| {
        let from_corpus = random.chance(60);
        let which = random.below(old.len());
        let mut input = if from_corpus { old[which].clone() } else { v1_page(random).bytes() };
        damage::damage(random, &mut input);
        let kept = if random.chance(30) {
            let mut config = RepairConfig::default();
            config.limits = fuzzing::tight_limits();
            at_small_limits(&input, &config)
        } else {
            everything(&input, &RepairConfig::default()).map(drop)
        };
        (input, kept)
    });
}

/// With small limits a repaired record may be too long for a second pass.
fn at_small_limits(input: &[u8], config: &RepairConfig) -> Result<(), String> {
    let whole = run(input, config, Chunking::Whole);
    invariants::in_order(&whole)?;
    invariants::accountable(input, &whole)?;
    invariants::bounded(&whole, &config.limits)?;
    invariants::valid(&whole, config, judge::judge)?;
    [Chunking::Bytes, Chunking::Random { seed: 5 }]
        .into_iter()
        .try_for_each(|way| invariants::chunk_invariant(input, &whole, config, way))
}

#[test]
fn neighbours_of_a_damaged_record_are_unaffected() {
    over("old neighbours", 1_500, |random| {
        let page = v1_page(random);
        let whole = run(&page.bytes(), &RepairConfig::default(), Chunking::Whole);
        let which = random.below(page.records.len());
        let record = page.records[which].0.as_bytes();
        let mut body = record[..record.len() - "</record>".len()].to_vec();
        damage::damage(random, &mut body);
        if damage::affects_other_records(&body) {
            return (Vec::new(), Ok(()));
        }
        body.extend_from_slice(b"</record>");
        let input = fuzzing::replace_record(&page, which, &body);
        // An unclosed section of the record may end in a later record.
        let out = run(&input, &damage::config_for(&body), Chunking::Whole);
        let good = whole.items.iter().enumerate().filter(|(index, _)| *index != which);
        let kept = invariants::neighbours(&out, good.map(|(_, item)| item.bytes.as_slice()));
        (input, kept)
    });
}

#[test]
fn truncated_list_never_looks_complete() {
    over("cut old pages", 800, |random| {
        let page = v1_page(random);
        let mut input = page.bytes();
        let before = input.len() - page.tail.len();
        let ends = ["</resumptionToken>", "</ListRecords>"];
        let end = ends.into_iter().find_map(|mark| page.tail.find(mark).map(|at| at + mark.len()));
        input.truncate(random.below(before + end.unwrap_or(page.tail.len()) - 1));
        let endings = [Ending::Close, Ending::Abort];
        let kept = endings.into_iter().try_for_each(|ending| {
            let mut config = RepairConfig::default();
            config.ending = ending;
            let out = run(&input, &config, Chunking::Whole);
            invariants::never_looks_complete(&out)?;
            invariants::valid(&out, &config, judge::judge)?;
            invariants::accountable(&input, &out)
        });
        (input, kept)
    });
}
