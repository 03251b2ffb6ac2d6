//! The corpus: well-formed cases stay unchanged, broken cases give the expected output, refused
//! cases are refused.
//!
//! `OAIMEND_CASE=bare-ampersand cargo test -p oaimend-repair --test engine corpus` runs the cases whose name contains
//! that text. `OAIMEND_BLESS=1` writes the reports of cases whose output is right.

use oaimend_repair::{RepairConfig, TagCache};
use oaimend_test_support as support;
use oaimend_test_support::corpus::{cases, check, wellformed};
use oaimend_test_support::harness::{Chunking, run, run_with_cache};
use oaimend_test_support::{each, invariants, judge, report, step_of_series};

#[test]
fn wellformed_cases_are_unchanged() {
    let files = wellformed();
    let config = RepairConfig::default();
    let mut failures = Vec::new();
    for (name, input) in &files {
        let mut verdict = judge::judge(input, support::envelope::Strictness::TokenAlone)
            .map_err(|error| format!("the case itself is wrong: {error}"));
        for way in ways(input.len()) {
            verdict = verdict.and_then(|()| {
                invariants::identity(input, &run(input, &config, way))
                    .map_err(|error| format!("{way:?}: {error}"))
            });
        }
        verdict = verdict.and_then(|()| {
            let whole = invariants::all(input, &config, judge::judge)?;
            ways(input.len())
                .into_iter()
                .try_for_each(|way| invariants::chunk_invariant(input, &whole, &config, way))
        });
        failures.extend(verdict.err().map(|error| format!("wellformed/{name}\n  {error}")));
    }
    report("corpus/wellformed", files.len(), &failures);
}

fn ways(length: usize) -> Vec<Chunking> {
    let step = (length / 1_500).max(1) * step_of_series(17);
    let mut ways: Vec<Chunking> = (0..length).step_by(step).map(Chunking::Split).collect();
    ways.extend([Chunking::Whole, Chunking::Bytes, Chunking::Blocks(64), Chunking::Random { seed: 1 }]);
    ways
}

/// Reads unrelated pages, each with the tag cache of all earlier ones.
#[test]
fn tag_cache_does_not_change_results() {
    let inputs =
        wellformed().into_iter().chain(cases("broken").into_iter().map(|case| (case.name, case.input)));
    let inputs: Vec<(String, Vec<u8>)> = inputs.collect();
    let config = RepairConfig::default();
    let (mut memory, mut failures) = (TagCache::default(), Vec::new());
    for (name, input) in &inputs {
        let (with, grown) = run_with_cache(input, &config, Chunking::Whole, memory);
        memory = grown;
        let verdict = invariants::same_as(&run(input, &config, Chunking::Whole), &with, &config);
        failures.extend(verdict.err().map(|error| format!("{name}\n  {error}")));
    }
    report("corpus, remembered", inputs.len(), &failures);
}

#[test]
fn broken_cases_give_the_expected_output() {
    all("broken");
}

#[test]
fn refused_cases_are_refused() {
    all("refused");
}

#[track_caller]
fn all(part: &str) {
    let cases = cases(part);
    let failures = each(&cases, |case| check(case).err());
    let filtered = std::env::var_os("OAIMEND_CASE").is_some() && cases.is_empty();
    report(&format!("corpus/{part}"), cases.len() + usize::from(filtered), &failures);
}
