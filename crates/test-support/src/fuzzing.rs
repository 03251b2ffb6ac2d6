//! The properties that the fuzzers test, one function for each target.
//!
//! `fuzz/` shares them, so that a find of a fuzzer can be run as a test. They use the judge that
//! needs no other process.

use oaimend_oai::datestamp::Granularity;
use oaimend_oai::{ErrorCode, Request, RequestEcho, error_response};
use oaimend_repair::catalog::{CATALOG, QuarantineReason};
use oaimend_repair::journal::Change;
use oaimend_repair::{Limits, Origin, ProvenanceScope, RepairConfig, RepairId, RepairSet};

use super::envelope::{self, Strictness};
use super::forgery::{attack, holds};
use super::harness::{Chunking, Run, run};
use super::losses::nothing_is_lost;
use super::random::{Page, Random, list, page};
use super::{damage, invariants, strict, trial};

/// A property of one input.
pub type Property = fn(&[u8]) -> Result<(), String>;

/// Every target by its name.
pub const TARGETS: &[(&str, Property)] = &[
    ("output", output),
    ("chunking", chunking),
    ("idempotence", idempotence),
    ("journal", journal),
    ("neighbours", neighbours),
    ("losses", losses),
    ("forgery", forgery),
    ("request", request),
];

/// The judge of the fuzzers: quick-xml and the envelope.
pub fn judge(document: &[u8], strictness: Strictness) -> Result<(), String> {
    envelope::check(&strict::read(document)?, strictness)
}

/// Limits that small inputs can exceed.
pub fn tight_limits() -> Limits {
    let mut limits = Limits::default();
    limits.record_bytes_max = 700;
    limits.repairs_per_record_max = 8;
    limits.entity_bytes_max = 30;
    limits.depth_max = 12;
    limits.attributes_per_tag_max = 6;
    limits.tag_bytes_max = 400;
    limits.junk_bytes_max = 60;
    limits.head_bytes_max = 1_200;
    limits
}

/// A seed computed from the input, for the random parts of a trial.
fn seed_of(input: &[u8]) -> u64 {
    input.iter().fold(0_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(*byte)))
}

/// The configurations of the engine; the last one is random.
fn configs(input: &[u8]) -> [RepairConfig; 7] {
    let mut known = RepairConfig::default();
    known.repository.granularity = Some(Granularity::Second);
    known.repository.lowest_datestamp = Some("2001-02-03".into());
    known.repository.oldest_seen = Some("1999-12-31".into());
    let mut complete = RepairConfig::default();
    complete.provenance = Some(Origin::new(
        ProvenanceScope::All,
        "http://source.example.org/oai?a=1&b=2",
        "2026-01-02T03:04:05Z",
    ));
    complete.identify = trial::identify();
    complete.request = Some(
        RequestEcho { base_url: "http://proxy.example.org/x?y=1&z=2".into(), arguments: Vec::new() }.into(),
    );
    complete.repository = known.repository.clone();
    complete.repository.granularity = Some(Granularity::Day);
    // Without each of these repairs the engine takes another path.
    let off = [
        RepairId::EnvelopePrefix,
        RepairId::SchemaLocation,
        RepairId::WrappedHeader,
        RepairId::AnotherRecord,
        RepairId::IdentifyElement,
        RepairId::EmptySetSpec,
        RepairId::DatestampGranularity,
    ];
    let mut without = complete.clone();
    without.off = off.into_iter().collect();
    let random = trial::config(&mut Random::new(seed_of(input)));
    let mut tight = RepairConfig::default();
    tight.limits = tight_limits();
    let mut random_tight = random.clone();
    random_tight.limits = tight_limits();
    [RepairConfig::default(), tight, known, complete, without, random_tight, random]
}

/// Checks a property with each configuration.
fn under_each(input: &[u8], holds: impl Fn(&RepairConfig) -> Result<(), String>) -> Result<(), String> {
    configs(input).iter().try_for_each(|config| {
        holds(config).map_err(|error| format!("{error}\n  config {}", describe_config(config)))
    })
}

/// Describes a configuration, for a message.
pub fn describe_config(config: &RepairConfig) -> String {
    let off = CATALOG.iter().filter(|entry| config.off.contains(entry.id)).map(|entry| entry.name);
    let off = off.collect::<Vec<_>>().join(" ");
    let mut others = config.clone();
    others.off = RepairSet::EMPTY;
    format!("off: {off}\n    {others:?}")
}

/// The output is one valid document, or empty.
pub fn output(input: &[u8]) -> Result<(), String> {
    under_each(input, |config| {
        let whole = run(input, config, Chunking::Whole);
        invariants::valid(&whole, config, judge)?;
        invariants::bounded(&whole, &config.limits)
    })
}

/// The chunks of the input make no difference.
pub fn chunking(input: &[u8]) -> Result<(), String> {
    let seed = seed_of(input);
    under_each(input, |config| {
        let whole = run(input, config, Chunking::Whole);
        [Chunking::Bytes, Chunking::Random { seed }, Chunking::Random { seed: !seed }]
            .into_iter()
            .try_for_each(|way| invariants::chunk_invariant(input, &whole, config, way))?;
        invariants::memory_invariant(input, &whole, config, Chunking::Random { seed })
    })
}

/// Repairing the output changes nothing.
pub fn idempotence(input: &[u8]) -> Result<(), String> {
    under_each(input, |config| {
        // With tight limits the output may be too long to be read again.
        if config.limits != Limits::default() {
            return Ok(());
        }
        invariants::idempotent(&run(input, config, Chunking::Whole), config)
    })
}

/// The journal converts the text to the output, and the output to the text.
pub fn journal(input: &[u8]) -> Result<(), String> {
    under_each(input, |config| {
        let whole = run(input, config, Chunking::Whole);
        invariants::in_order(&whole)?;
        invariants::accountable(input, &whole)
    })
}

/// One record is damaged; all others stay unchanged. The first byte of the input selects the page,
/// the next two the position; the rest is inserted there.
pub fn neighbours(input: &[u8]) -> Result<(), String> {
    let [seed, which, place, damage @ ..] = input else { return Ok(()) };
    let whole = page(&mut Random::new(u64::from(*seed)));
    let which = usize::from(*which) % whole.records.len();
    let mut record = whole.records[which].0.clone().into_bytes();
    let room = record.len() - END.len() + 1;
    let place = usize::from(*place) * room / 256;
    record.splice(place..place, damage.iter().copied());
    if damage::affects_other_records(&record) {
        return Ok(());
    }
    check_neighbours(&whole, which, &record)
}

/// The record of an attacker changes no other one.
fn forgery(input: &[u8]) -> Result<(), String> {
    holds(&attack(seed_of(input)), judge)
}

/// A page is damaged anywhere; each intact item is sent or counted as lost. The first byte of the
/// input selects the page, the next two the position, the fourth the number of removed bytes; the
/// rest is inserted there.
pub fn losses(input: &[u8]) -> Result<(), String> {
    let [seed, high, low, length, damage @ ..] = input else { return Ok(()) };
    let whole = list(&mut Random::new(u64::from(*seed)));
    let mut bytes = whole.bytes();
    let at = usize::from(u16::from_be_bytes([*high, *low])) * (bytes.len() + 1) / (1 << 16);
    let end = (at + usize::from(*length)).min(bytes.len());
    bytes.splice(at..end, damage.iter().copied());
    nothing_is_lost(&whole, &bytes)
}

const END: &str = "</record>";

/// A valid request can be written and parsed again; an invalid one gets a valid error response.
pub fn request(input: &[u8]) -> Result<(), String> {
    const BASE_URL: &str = "http://example.org/oai";
    const DATE: &str = "2026-03-01T08:15:00Z";
    let request = match Request::parse(input) {
        Ok(request) => request,
        Err(refusal) => {
            let echo = RequestEcho { base_url: BASE_URL.to_owned(), arguments: Vec::new() };
            let answer = error_response(&echo, DATE, refusal.code, &refusal.text);
            return judge(answer.as_bytes(), Strictness::Schema);
        }
    };
    let query = request.query();
    match Request::parse(query.as_bytes()) {
        Ok(again) if again == request => {}
        other => return Err(format!("{request:?} was written as {query} and read as {other:?}")),
    }
    // The schema need not accept the harvester's values, but the response must repeat them.
    let answer = error_response(&request.to_echo(BASE_URL), DATE, ErrorCode::NoRecordsMatch, "none");
    let root = strict::read(answer.as_bytes())?;
    let echoed = root.children.get(1).map(|element| element.attributes.as_slice()).unwrap_or_default();
    let sent = request.to_echo(BASE_URL).arguments;
    let same = echoed.len() == sent.len()
        && sent.iter().all(|(name, value)| echoed.iter().any(|entry| entry.1 == *name && entry.2 == *value));
    if same { Ok(()) } else { Err(format!("{sent:?} is echoed as {echoed:?}")) }
}

/// Checks that replacing one record changes no other. If another record begins in it, the later ones may be
/// content, and the page may leave them to the source by name.
pub fn check_neighbours(whole: &Page, which: usize, record: &[u8]) -> Result<(), String> {
    let input = replace_record(whole, which, record);
    let out = run(&input, &damage::config_for(record), Chunking::Whole);
    let is_left = |good: &str| damage::begins_record(record) && is_left_to_source(&out, good);
    let good =
        whole.records.iter().enumerate().filter(|(index, (good, _))| *index != which && !is_left(good));
    invariants::neighbours(&out, good.map(|(_, (record, _))| record.as_bytes()))?;
    let token =
        whole.tail.split_once("<resumptionToken").and_then(|(_, rest)| rest.split_once("</resumptionToken>"));
    let expected = token.and_then(|(token, _)| token.split_once('>')).map(|(_, text)| text.as_bytes());
    if whole.records.len() > 1 && out.tokens.first().map(Vec::as_slice) != expected {
        return Err(format!("the token is {:?}, not {expected:?}", out.tokens));
    }
    Ok(())
}

fn is_left_to_source(out: &Run, record: &str) -> bool {
    let identifier = record.split_once("<identifier>").and_then(|(_, rest)| rest.split_once("</identifier>"));
    out.journal.iter().any(|entry| {
        entry.change == Change::Quarantined(QuarantineReason::UnreadItem)
            && entry.record.as_deref() == identifier.map(|(identifier, _)| identifier.as_bytes())
    })
}

/// The page with one record replaced.
pub fn replace_record(whole: &Page, which: usize, record: &[u8]) -> Vec<u8> {
    let mut input = whole.head.clone().into_bytes();
    for (index, (good, space)) in whole.records.iter().enumerate() {
        input.extend_from_slice(if index == which { record } else { good.as_bytes() });
        input.extend_from_slice(space.as_bytes());
    }
    input.extend_from_slice(whole.tail.as_bytes());
    input
}

/// Damages one record of a random page, without its end tag, and checks that the others are
/// unchanged. For tests, whose input is a seed.
pub fn check_neighbours_of_seed(seed: u64) -> (Vec<u8>, Result<(), String>) {
    let mut random = Random::new(seed);
    let whole = page(&mut random);
    let which = random.below(whole.records.len());
    let record = whole.records[which].0.as_bytes();
    let mut body = record[..record.len() - END.len()].to_vec();
    damage::damage(&mut random, &mut body);
    if damage::affects_other_records(&body) {
        return (Vec::new(), Ok(()));
    }
    body.extend_from_slice(END.as_bytes());
    (replace_record(&whole, which, &body), check_neighbours(&whole, which, &body))
}
