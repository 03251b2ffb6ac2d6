//! A depositor who controls the text of one record cannot forge, change or remove another record.
//!
//! tests/support/forgery.rs has the attacks. `OAIMEND_RANDOM=20000` runs more inputs, `OAIMEND_SEED=7` sets
//! another seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::support::forgery::{DC, END, HEAD, TAIL, attack, header, holds, other, record};
use crate::support::harness::{Chunking, run};
use crate::support::{judge, keep, report};
use oaimend::repair::RepairConfig;

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn forged_record_does_not_change_others() {
    let (first, count) = (number("OAIMEND_SEED", 20_261_123), number("OAIMEND_RANDOM", 1_000));
    println!("seeds {first} to {}", first + count);
    let mut failures = Vec::new();
    for seed in first..first + count {
        let attack = attack(seed);
        let verdict = catch_unwind(AssertUnwindSafe(|| holds(&attack, judge::judge)));
        let verdict = verdict.unwrap_or_else(|_| Err("the engine panics".to_owned()));
        if let Err(error) = verdict {
            let place = keep(&format!("forgery {seed}"), &attack.page);
            if std::env::var_os("OAIMEND_SHOW").is_some() {
                println!("{:#?}", run(&attack.page, &RepairConfig::default(), Chunking::Whole).journal);
            }
            failures.push(format!("seed {seed} in {:?}: {error}\n  see {place}", attack.place));
        }
        if failures.len() == 12 {
            break;
        }
    }
    report("attackers", count as usize, &failures);
}

/// A closed section that looks like one without an end mark.
#[test]
fn items_in_a_closed_section_are_content_and_reported() {
    let text =
        format!("a</dc:title>{END}\n{}\n<record>{}{DC}<dc:title><![CDATA[b", other(0), header("oai:x:9"));
    let page = [HEAD, &record("oai:x:8", &format!("<dc:title><![CDATA[{text}]]></dc:title>")), TAIL].concat();
    let out = run(page.as_bytes(), &RepairConfig::default(), Chunking::Whole);
    let at = page.find("<![CDATA[").expect("it is there") as u64;
    let names: Vec<Vec<u8>> = ["oai:x:0", "oai:x:9"].map(|name| name.as_bytes().to_vec()).into();
    assert_eq!(out.swallowed, [(at, names)]);
    assert_eq!((out.summary.records, out.summary.swallowed, out.exit_code()), (1, 2, 0), "{:?}", out.summary);
    assert!(out.output == page.as_bytes());
}
