//! No item and no resumptionToken is lost silently, wherever a page is damaged.
//!
//! `OAIMEND_LOSSES=1000000` runs more inputs, `OAIMEND_SEED=7` sets another seed. A failing input
//! is shrunk and written to target/failures/.

use std::panic::{AssertUnwindSafe, catch_unwind};

use oaimend_test_support::random::Page;
use oaimend_test_support::{keep, losses, report, shrink};

/// The number of inputs of a normal run.
const INPUTS: u64 = 1_500;
/// The number of failures after which the test stops.
const FAILURES_MAX: usize = 20;

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn verdict(page: &Page, input: &[u8]) -> Result<(), String> {
    let verdict = catch_unwind(AssertUnwindSafe(|| losses::nothing_is_lost(page, input)));
    verdict.unwrap_or_else(|_| Err("the engine panics".to_owned()))
}

#[test]
fn no_item_is_lost_silently() {
    let (first, count) = (number("OAIMEND_SEED", 20_261_123), number("OAIMEND_LOSSES", INPUTS));
    println!("seeds {first} to {}", first + count);
    let mut failures = Vec::new();
    let mut ran = 0;
    for seed in first..first + count {
        let (page, input) = losses::damaged(seed);
        ran += 1;
        let Err(error) = verdict(&page, &input) else { continue };
        let what = error.split(':').next().unwrap_or_default().to_owned();
        let fails = |smaller: &[u8]| verdict(&page, smaller).is_err_and(|error| error.starts_with(&what));
        let small = shrink::shrink(&input, fails);
        let error = verdict(&page, &small).err().unwrap_or(error);
        let place = keep(&format!("lost {seed}"), &small);
        failures.push(format!("seed {seed}: {error}\n  from {}\n  see {place}", small.escape_ascii()));
        if failures.len() == FAILURES_MAX {
            break;
        }
    }
    report("damaged pages", ran, &failures);
}
