//! The time is linear in the length of the page. The engine abandons damage in which every byte
//! depends on all others; it repairs other severe damage.

use oaimend_test_support as support;
use std::time::{Duration, Instant};

use oaimend_repair::{Outcome, RepairConfig, Repairer, Sink, TagCache};
use oaimend_test_support::harness::{Chunking, run, run_with_cache};
use oaimend_test_support::hostile_pages::{HEAD, LIST, TAIL, page, record, series};
use oaimend_test_support::{each, invariants, report, strict};

/// The size of the damage: quadratic code takes minutes for it, linear code a moment.
const DAMAGE_BYTES: usize = 512 << 10;
/// Far above the time of a slow machine, which is about a second.
const TIME_MAX: Duration = Duration::from_secs(15);

struct Nowhere;

impl Sink for Nowhere {
    fn write(&mut self, _: &[u8]) {}
}

#[test]
#[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
fn time_is_linear_in_page_length() {
    let cases: Vec<_> = series().into_iter().flat_map(|case| [(case, false), (case, true)]).collect();
    let failures = each(&cases, |((place, fragment), in_blocks)| {
        let input = page(place, fragment, DAMAGE_BYTES);
        let piece = if *in_blocks { 16 << 10 } else { input.len() };
        let mut engine = Repairer::new(&RepairConfig::default());
        let began = Instant::now();
        input.chunks(piece).for_each(|piece| engine.push(piece, &mut Nowhere));
        engine.finish(&mut Nowhere);
        let took = began.elapsed();
        (took > TIME_MAX)
            .then(|| format!("{place} {} in pieces of {piece} bytes: {took:?}", fragment.escape_ascii()))
    });
    report("hostile damage", cases.len(), &failures);
}

const IDENTIFY: &str = "<Identify><repositoryName>Harbour and sea</repositoryName>\
    <baseURL>http://repository.example.org/oai</baseURL><protocolVersion>2.0</protocolVersion>\
    <adminEmail>oai@example.org</adminEmail><earliestDatestamp>2001-01-01</earliestDatestamp>\
    <deletedRecord>no</deletedRecord><granularity>YYYY-MM-DD</granularity>\
    <description><d># & </d></description></Identify></OAI-PMH>";

/// A broken Identify with more declarations than the engine caches.
fn identify(declarations: usize) -> String {
    let declared: String = (0..declarations).map(|number| format!("<x xmlns:q=\"urn:{number}\"/>")).collect();
    format!("{HEAD}{IDENTIFY}")
        .replace("verb=\"ListRecords\" metadataPrefix=\"oai_dc\"", "verb=\"Identify\"")
        .replace('#', &declared)
}

#[test]
fn identify_with_many_declarations_is_repaired() {
    for declarations in [1, 255, 256, 257, 300, 1_000] {
        let out = run(identify(declarations).as_bytes(), &RepairConfig::default(), Chunking::Whole);
        assert_eq!(out.summary.outcome, Outcome::Repaired, "{declarations}");
    }
}

/// Nothing follows the root's end tag, even if the engine abandons the page.
#[test]
fn abandoned_output_is_one_document() {
    let series = series();
    let failures = each(&series, |(place, fragment)| {
        let input = page(place, fragment, DAMAGE_BYTES);
        let out = run(&input, &RepairConfig::default(), Chunking::Whole);
        if out.output.is_empty() {
            return None;
        }
        strict::read(&out.output).err().map(|why| format!("{place} {}: {why}", fragment.escape_ascii()))
    });
    report("one document", series.len(), &failures);
}

/// A page with as many declarations as the engine caches, followed by one of another repository.
#[test]
fn declarations_of_another_repository_do_not_leak() {
    let config = RepairConfig::default();
    for declarations in [1, 30, 31, 32, 270, 300] {
        let list: String = (0..declarations)
            .map(|number| {
                record(number, "Harbour plan")
                    .replace("xmlns:dc=", &format!("xmlns:d{number}=\"urn:d\" xmlns:dc="))
            })
            .collect();
        let before = format!("{HEAD}{LIST}{list}{TAIL}");
        let (_, memory) = run_with_cache(before.as_bytes(), &config, Chunking::Whole, TagCache::default());
        let input = identify(2).replace("<OAI-PMH ", "<OAI-PMH xmlns:y=\"urn:y\" ");
        let (with, _) = run_with_cache(input.as_bytes(), &config, Chunking::Whole, memory);
        let without = run(input.as_bytes(), &config, Chunking::Whole);
        let same = invariants::same_as(&without, &with, &config);
        assert_eq!(same, Ok(()), "behind {declarations} declarations");
    }
}

/// Defects of every third record of a long page; each needs a long lookahead.
const WOUNDS: [&str; 4] =
    ["<![CDATA[never closed", "<!-- never closed", "<foo><record><header>", "<?never closed"];

#[test]
fn long_damaged_page_is_read_to_its_end() {
    let failures = each(&WOUNDS, |wound| {
        let records = 6_000;
        let list: String = (0..records)
            .map(|number| record(number, if number % 3 == 1 { wound } else { "Harbour plan" }))
            .collect();
        let input = format!("{HEAD}{LIST}{list}{TAIL}");
        let out = run(input.as_bytes(), &RepairConfig::default(), Chunking::Whole);
        let good = out.items.iter().filter(|item| item.repairs == 0).count();
        let whole = out.summary.lost == 0 && good >= 4_000 && out.tokens.len() == 1;
        (!whole).then(|| format!("{wound:?}: {good} good ones, {:?}", out.summary))
    });
    report("long pages", WOUNDS.len(), &failures);
}

#[test]
fn abandoned_output_never_looks_complete() {
    let series = series();
    let failures = each(&series, |(place, fragment)| {
        let input = page(place, fragment, DAMAGE_BYTES);
        let out = run(&input, &RepairConfig::default(), Chunking::Whole);
        let other = run(&input, &RepairConfig::default(), Chunking::Blocks(7_919));
        if out.output != other.output || out.summary.outcome != other.summary.outcome {
            return Some(format!(
                "{place} {}: depends on how the input was cut, {:?} {} and {:?} {}",
                fragment.escape_ascii(),
                out.summary.outcome,
                out.output.len(),
                other.summary.outcome,
                other.output.len()
            ));
        }
        let read_to_its_end = *place == "tail" || out.tokens == [b"harbour-2"];
        // A token with too much text after it is kept; the outcome reports missing items.
        let early_token = out.summary.outcome == Outcome::Truncated && !out.tokens.is_empty();
        let ended = if read_to_its_end || early_token {
            Ok(())
        } else {
            support::invariants::never_looks_complete(&out)
        };
        ended
            .and_then(|()| support::invariants::accountable(&input, &out))
            .err()
            .map(|why| format!("{place} {}: {why}", fragment.escape_ascii()))
    });
    report("given up", series.len(), &failures);
}
