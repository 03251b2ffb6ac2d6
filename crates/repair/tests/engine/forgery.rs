//! A depositor who controls the text of one record cannot forge, change or remove another record.
//!
//! crates/test-support/src/forgery.rs has the attacks. `OAIMEND_RANDOM=20000` runs more inputs, `OAIMEND_SEED=7` sets
//! another seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use oaimend_repair::journal::Change;
use oaimend_repair::{QuarantineReason, RepairConfig};
use oaimend_test_support::forgery::{DC, END, HEAD, TAIL, attack, header, holds, other, record};
use oaimend_test_support::harness::{Chunking, run};
use oaimend_test_support::{judge, keep, report};

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

/// After the start tag of an element that wraps records and never closes, only the source knows which records
/// are content: each is quarantined by its name, and none is sent.
#[test]
fn records_in_an_element_that_never_closes_are_left_to_the_source() {
    let wrapper = "<metadata><m:mets xmlns:m=\"http://www.loc.gov/METS/\"><m:xmlData>";
    let torn = format!("<record>{}{wrapper}", header("oai:x:attacker"));
    let inner =
        format!("<record>{}</record>", header("oai:x:0").replace("<header>", "<header status=\"deleted\">"));
    let page = [HEAD, &other(0), "\n", &torn, &inner, &other(1), "\n", &other(2), "\n", TAIL].concat();
    let out = run(page.as_bytes(), &RepairConfig::default(), Chunking::Whole);
    let sent: Vec<&[u8]> = out.items.iter().map(|item| item.identifier.as_slice()).collect();
    assert_eq!(sent, [b"oai:x:0"]);
    let names = |why| {
        let entries = out.journal.iter().filter(move |entry| entry.change == Change::Quarantined(why));
        entries.filter_map(|entry| entry.record.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(QuarantineReason::Truncated), [b"oai:x:attacker"]);
    assert_eq!(names(QuarantineReason::UnreadItem), [b"oai:x:0", b"oai:x:1", b"oai:x:2"]);
    assert_eq!((out.summary.quarantined, out.summary.lost, out.exit_code()), (4, 0, 1), "{:?}", out.summary);
    assert_eq!(out.tokens, [b"harbour-2"]);
}

/// After other content of an element that never closes, records are sent, but no deletion.
#[test]
fn deletions_in_an_element_that_never_closes_are_left_to_the_source() {
    let wrapper = "<metadata><m:mets xmlns:m=\"http://www.loc.gov/METS/\"><m:note>a</m:note>";
    let torn = format!("<record>{}{wrapper}", header("oai:x:attacker"));
    let inner =
        format!("<record>{}</record>", header("oai:x:0").replace("<header>", "<header status=\"deleted\">"));
    let page = [HEAD, &other(0), "\n", &torn, &inner, &other(1), "\n", TAIL].concat();
    let out = run(page.as_bytes(), &RepairConfig::default(), Chunking::Whole);
    let sent = |name: &[u8], deleted| {
        out.items.iter().filter(|item| item.identifier == name && item.deleted == deleted).count()
    };
    assert_eq!((sent(b"oai:x:0", false), sent(b"oai:x:0", true), sent(b"oai:x:1", false)), (1, 0, 1));
    let mut unread = out.journal.iter().filter(|entry| {
        entry.change == Change::Quarantined(QuarantineReason::UnreadItem)
            && entry.record.as_deref() == Some(b"oai:x:0".as_slice())
    });
    assert!(unread.next().is_some(), "{:?}", out.journal);
}

/// An envelope element with a damaged name does not wrap the records after it: a deletion there is sent.
#[test]
fn damaged_names_of_children_wrap_nothing() {
    let marc =
        "<record xmlns=\"http://www.loc.gov/MARC21/slim\"><leader>00000nam a2200000 a 4500</leader></re  ";
    let torn = format!("<record>{}<met1data>{marc}</metadata></record>", header("oai:x:8"));
    let deleted =
        format!("<record>{}</record>", header("oai:x:0").replace("<header>", "<header status=\"deleted\">"));
    let page = [HEAD, &torn, "\n", &other(1), "\n", &deleted, "\n", TAIL].concat();
    let out = run(page.as_bytes(), &RepairConfig::default(), Chunking::Whole);
    let sent: Vec<(&[u8], bool)> =
        out.items.iter().map(|item| (item.identifier.as_slice(), item.deleted)).collect();
    assert_eq!(sent, [(b"oai:x:1".as_slice(), false), (b"oai:x:0".as_slice(), true)], "{:?}", out.journal);
}
