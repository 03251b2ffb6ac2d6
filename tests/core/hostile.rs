//! The time is linear in the length of the page. The engine abandons damage in which every byte
//! depends on all others; it repairs other severe damage.

use crate::support;
use std::time::{Duration, Instant};

use crate::support::harness::{Chunking, run, run_with_cache};
use crate::support::{each, invariants, report, strict};
use oaimend::repair::{Outcome, RepairConfig, Repairer, Sink, TagCache};

const HEAD: &str = "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
    xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n\
    <responseDate>2026-03-01T08:15:00Z</responseDate>\n\
    <request verb=\"ListRecords\" metadataPrefix=\"oai_dc\">http://repository.example.org/oai</request>\n";
const LIST: &str = "<ListRecords>\n";
const TAIL: &str = "<resumptionToken>harbour-2</resumptionToken>\n</ListRecords>\n</OAI-PMH>\n";

fn record(number: usize, title: &str) -> String {
    format!(
        "<record><header><identifier>oai:x:{number}</identifier><datestamp>2026-01-01</datestamp></header>\
         <metadata><oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
         xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/ \
         http://www.openarchives.org/OAI/2.0/oai_dc.xsd\">\
         <dc:title>{title}</dc:title></oai_dc:dc></metadata></record>\n"
    )
}

/// Repeats `fragment`, with a number for each `#`.
fn repeated(fragment: &str, bytes: usize) -> String {
    let times = bytes / fragment.len();
    (0..times).map(|number| fragment.replace('#', &number.to_string())).collect()
}

/// The size of the damage: quadratic code takes minutes for it, linear code a moment.
const DAMAGE_BYTES: usize = 512 << 10;
/// Far above the time of a slow machine, which is about a second.
const TIME_MAX: Duration = Duration::from_secs(15);

/// Positions and fragments that once took quadratic time or more.
const DAMAGE: [(&str, &str); 39] = [
    ("header", "<setSpec/>"),
    ("record", "<foo><record><header>"),
    ("record", "<foo#><record><header>"),
    ("record", "<record><header><foo>"),
    ("record", "<record><header><identifier>"),
    ("record", "\"<!DOCTYPE \""),
    ("record", "<!DOCTYPE ["),
    ("record", "<!DOCTYPE \"<![CDATA["),
    ("record", "<?a <record><header>"),
    ("record", "<?a "),
    ("record", "<a xmlns=\"u#\"/>"),
    ("record", "&<a xmlns=\"u#\"/>"),
    ("record", "a&eacute"),
    ("record", "?&copy&"),
    ("record", "a\u{1f}"),
    ("record", "\u{1c}&#x1d;"),
    ("record", "<premis:x/>"),
    ("record", "<!--<record><header>"),
    ("record", "<dc:title><b>"),
    ("record", "</dc:title><dc:x><![CDATA[<b>"),
    ("record", "<[CDATA["),
    ("record", "< dc:title"),
    ("record", "</dc:creator> x"),
    ("record", "<x a=\u{201c}b "),
    ("between", "<OAI-PMH><?a "),
    ("between", "<!--<OAI-PMH>"),
    ("between", "<OAI-PMH><OAI-PMH"),
    ("between", "<br>"),
    ("between", "<x#>"),
    ("between", "<foo><record><header>"),
    ("between", "</ListRecords><resumptionToken>"),
    ("between", "<!--?>"),
    ("head", "<?a "),
    ("head", "<!DOCTYPE \""),
    ("behind the token", "<OAI-PMH>"),
    ("behind the token", "<resumptionToken>"),
    ("tail", "<error>>"),
    ("tail", "\"<!DOCTYPE \""),
    ("tail", "<?a "),
];

fn page(place: &str, damage: &str) -> String {
    let good = record(1, "Harbour plan");
    match place {
        "record" => format!("{HEAD}{LIST}{good}{}{good}{TAIL}", record(2, damage)),
        "between" => format!("{HEAD}{LIST}{good}{damage}{good}{TAIL}"),
        "behind the token" => {
            format!("{HEAD}{LIST}{good}<resumptionToken>a</resumptionToken>{damage}{good}{TAIL}")
        }
        "header" => {
            let header = format!("{damage}</header>");
            format!(
                "{HEAD}{LIST}{good}{}{good}{TAIL}",
                record(2, "Harbour plan").replace("</header>", &header)
            )
        }
        "head" => format!("{HEAD}{damage}{LIST}{good}{TAIL}"),
        "tail" => format!("{HEAD}{LIST}{good}</ListRecords>{damage}</OAI-PMH>"),
        _ => unreachable!("a place of the table"),
    }
}

struct Nowhere;

impl Sink for Nowhere {
    fn write(&mut self, _: &[u8]) {}
}

#[test]
#[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
fn time_is_linear_in_page_length() {
    let cases: Vec<_> = DAMAGE.iter().flat_map(|case| [(case, false), (case, true)]).collect();
    let failures = each(&cases, |((place, fragment), in_blocks)| {
        let input = page(place, &repeated(fragment, DAMAGE_BYTES));
        let piece = if *in_blocks { 16 << 10 } else { input.len() };
        let mut engine = Repairer::new(&RepairConfig::default());
        let began = Instant::now();
        input.as_bytes().chunks(piece).for_each(|piece| engine.push(piece, &mut Nowhere));
        engine.finish(&mut Nowhere);
        let took = began.elapsed();
        (took > TIME_MAX).then(|| format!("{place} {fragment:?} in pieces of {piece} bytes: {took:?}"))
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
    let failures = each(&DAMAGE, |(place, fragment)| {
        let input = page(place, &repeated(fragment, DAMAGE_BYTES));
        let out = run(input.as_bytes(), &RepairConfig::default(), Chunking::Whole);
        if out.output.is_empty() {
            return None;
        }
        strict::read(&out.output).err().map(|why| format!("{place} {fragment:?}: {why}"))
    });
    report("one document", DAMAGE.len(), &failures);
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
    let failures = each(&DAMAGE, |(place, fragment)| {
        let input = page(place, &repeated(fragment, DAMAGE_BYTES));
        let out = run(input.as_bytes(), &RepairConfig::default(), Chunking::Whole);
        let other = run(input.as_bytes(), &RepairConfig::default(), Chunking::Blocks(7_919));
        if out.output != other.output || out.summary.outcome != other.summary.outcome {
            return Some(format!(
                "{place} {fragment:?}: depends on how the input was cut, {:?} {} and {:?} {}",
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
            .and_then(|()| support::invariants::accountable(input.as_bytes(), &out))
            .err()
            .map(|why| format!("{place} {fragment:?}: {why}"))
    });
    report("given up", DAMAGE.len(), &failures);
}
