//! Provenance: written for the selected records, correct, valid, once, and without any other
//! change.

use oaimend_repair::catalog::Effect;
use oaimend_repair::journal::{Change, Entry};
use oaimend_repair::{Ending, Limits, Origin, Outcome, ProvenanceScope, RepairConfig, RepairId};
use oaimend_test_support as support;
use oaimend_test_support::corpus::{Case, cases, wellformed};
use oaimend_test_support::harness::{Chunking, Item, Run, run};
use oaimend_test_support::invariants::{self, find};
use oaimend_test_support::random::{Random, response};
use oaimend_test_support::{damage, each, judge, report};

const FIRST_SEED: u64 = 20_261_123;
const BASE_URL: &str = "http://source.example.org/oai?a=1&b=2";

fn describe_config(scope: ProvenanceScope) -> RepairConfig {
    let origin = Origin::new(scope, BASE_URL, "2026-01-02T03:04:05Z");
    let mut config = RepairConfig::default();
    config.provenance = Some(origin);
    config
}

fn is_provenance(entry: &Entry) -> bool {
    entry.change == Change::Repaired(RepairId::RewriteProvenance)
}

/// The pages with lists of records in the corpus that use the default configuration.
fn pages() -> Vec<Case> {
    let mut all = cases("broken");
    all.extend(cases("refused"));
    all.retain(|case| {
        let mut config = case.about.config();
        config.provenance = None;
        format!("{config:?}") == format!("{:?}", RepairConfig::default())
    });
    all
}

#[test]
fn invariants_hold_with_provenance() {
    let mut inputs: Vec<(String, Vec<u8>)> = wellformed();
    inputs.extend(pages().into_iter().map(|case| (case.name, case.input)));
    let failures = each(&inputs, |(name, input)| {
        [ProvenanceScope::All, ProvenanceScope::Altered].into_iter().find_map(|scope| {
            let verdict = invariants::all(input, &describe_config(scope), judge::judge);
            verdict.err().map(|error| format!("{name}, {scope:?}: {error}"))
        })
    });
    report("pages with provenance", inputs.len(), &failures);
}

#[test]
fn invariants_hold_for_random_pages() {
    println!("seeds {FIRST_SEED} to {}", FIRST_SEED + 600);
    let seeds: Vec<u64> = (FIRST_SEED..FIRST_SEED + 600).collect();
    let failures = each(&seeds, |&seed| {
        let mut random = Random::new(seed);
        let mut input = response(&mut random);
        if random.chance(70) {
            damage::damage(&mut random, &mut input);
        }
        let scope = if random.chance(50) { ProvenanceScope::All } else { ProvenanceScope::Altered };
        let verdict = invariants::all(&input, &describe_config(scope), judge::judge)
            .and_then(|_| adds_only(&input, scope))
            .and_then(|()| described_alike(&input));
        verdict.err().map(|error| {
            format!(
                "seed {seed}, {scope:?}: {error}\n  see {}",
                support::keep(&format!("provenance {seed}"), &input)
            )
        })
    });
    report("random pages with provenance", seeds.len(), &failures);
}

/// Everything except the provenance is the same as without it.
fn adds_only(input: &[u8], scope: ProvenanceScope) -> Result<(), String> {
    let without = run(input, &RepairConfig::default(), Chunking::Whole);
    let with = run(input, &describe_config(scope), Chunking::Whole);
    let same_verdict = (without.summary.outcome, without.summary.records, without.summary.quarantined)
        == (with.summary.outcome, with.summary.records, with.summary.quarantined);
    if !same_verdict || without.items.len() != with.items.len() {
        return Err(format!("{:?} with it, {:?} without", with.summary, without.summary));
    }
    let changed = without.items.iter().zip(&with.items).find(|(plain, described)| {
        let added = added_to(&with, described);
        added.into_iter().fold(described.bytes.clone(), |bytes, added| cut_out(&bytes, &added)) != plain.bytes
    });
    match changed {
        Some((_, item)) => Err(format!("more than added to: {}", item.bytes.escape_ascii())),
        None => Ok(()),
    }
}

/// The addition to an item: separate, or inside an addition of a repair.
fn added_to(run: &Run, item: &Item) -> Vec<Vec<u8>> {
    let end = item.offset + u64::MAX / 2;
    let next = run.items.iter().map(|other| other.offset).filter(|&at| at > item.offset).min().unwrap_or(end);
    let within = run.journal.iter().filter(|entry| {
        entry.record.as_ref() == Some(&item.identifier) && (item.offset..=next).contains(&entry.offset)
    });
    let added = within.filter_map(|entry| {
        let text = &entry.replacement;
        if is_provenance(entry) {
            return Some(text.clone());
        }
        let start = find(text, b"<about><provenance ")?;
        let len = find(&text[start..], b"</about>")? + "</about>".len();
        Some(text[start..start + len].to_vec())
    });
    added.collect()
}

fn cut_out(bytes: &[u8], part: &[u8]) -> Vec<u8> {
    let Some(at) = find(bytes, part) else { return bytes.to_vec() };
    [&bytes[..at], &bytes[at + part.len()..]].concat()
}

/// With `All`, all records with a payload have provenance; altered ones have the same in both
/// modes.
fn described_alike(input: &[u8]) -> Result<(), String> {
    let all = run(input, &describe_config(ProvenanceScope::All), Chunking::Whole);
    let altered = run(input, &describe_config(ProvenanceScope::Altered), Chunking::Whole);
    for (one, other) in all.items.iter().zip(&altered.items) {
        let bytes = one.bytes.escape_ascii();
        match (said_of(&all, one), said_of(&altered, other)) {
            (Some("true"), Some("true")) | (Some("false"), None) => {}
            (None, None) if !has_payload(one) => {}
            (all, altered) => return Err(format!("{all:?} and {altered:?} for {bytes}")),
        }
    }
    Ok(())
}

/// The provenance of an item.
fn said_of(run: &Run, item: &Item) -> Option<&'static str> {
    let said = added_to(run, item);
    ["true", "false"].into_iter().find(|altered| {
        let by_us = format!("altered=\"{altered}\"><baseURL>http://source.");
        said.iter().any(|text| find(text, by_us.as_bytes()).is_some())
    })
}

/// Whether it is a record with an element in its metadata.
fn has_payload(item: &Item) -> bool {
    let name = item.bytes.split(|&byte| matches!(byte, b'>' | b' ')).next().unwrap_or_default();
    let is_record = name.ends_with(b"record");
    let inside =
        find(&item.bytes, b"metadata>").map(|at| item.bytes[at + "metadata>".len()..].trim_ascii_start());
    let is_element = |text: &[u8]| text.starts_with(b"<") && !text.starts_with(b"</");
    is_record && !item.deleted && inside.is_some_and(is_element)
}

/// Records whose payload was changed have provenance, and with `All` the others too.
fn described_in_scope(input: &[u8], scope: ProvenanceScope) -> Result<(), String> {
    let out = run(input, &describe_config(scope), Chunking::Whole);
    let plain = run(input, &RepairConfig::default(), Chunking::Whole);
    let text = invariants::decoded_text(input, &plain);
    for (item, plain_item) in out.items.iter().zip(&plain.items) {
        let said = said_of(&out, item);
        let has_payload = has_payload(plain_item);
        let altered = has_payload && is_altered(&text, &plain, plain_item);
        let right = match scope {
            _ if altered => Some("true"),
            ProvenanceScope::All if has_payload => Some("false"),
            _ => None,
        };
        if said != right {
            let bytes = plain_item.bytes.escape_ascii();
            return Err(format!("{said:?} instead of {right:?} for {bytes}"));
        }
    }
    Ok(())
}

/// Whether a change of content lies between the tags of `metadata`, if the text has them.
fn is_altered(input: &[u8], run: &Run, item: &Item) -> bool {
    let start = usize::try_from(item.offset).unwrap_or(usize::MAX);
    let next = run.items.iter().map(|other| other.offset).filter(|&at| at > item.offset).min();
    let end = next.map_or(input.len(), |at| usize::try_from(at).unwrap_or(usize::MAX));
    let text = &input[start..end];
    let tag = find(text, b"metadata").unwrap_or(text.len());
    let from = find(&text[tag..], b">").map_or(text.len(), |at| tag + at + 1);
    let to = end_of_metadata(text, from);
    run.journal.iter().any(|entry| {
        let Change::Repaired(id) = entry.change else { return false };
        let at = usize::try_from(entry.offset).unwrap_or(usize::MAX);
        let closes = entry.original.is_empty() && entry.replacement.starts_with(b"</metadata");
        id.effect() == Effect::Content && (start + from..=start + to).contains(&at) && !closes
    })
}

/// The position of the end tag of `metadata` with any prefix: the first one after `from` outside
/// sections. Without one, the end of the text.
fn end_of_metadata(text: &[u8], from: usize) -> usize {
    const SECTIONS: [(&[u8], &[u8]); 3] = [(b"<![CDATA[", b"]]>"), (b"<!--", b"-->"), (b"<?", b"?>")];
    let mut at = from;
    while let Some(next) = memchr::memchr(b'<', &text[at..]) {
        let rest = &text[at + next..];
        let section = SECTIONS.iter().find(|(mark, _)| rest.starts_with(mark));
        let end = section.and_then(|(mark, end)| find(&rest[mark.len()..], end).map(|len| mark.len() + len));
        let tag = &rest[..memchr::memchr(b'>', rest).map_or(rest.len(), |end| end + 1)];
        if end.is_none() && tag.starts_with(b"</") && tag.ends_with(b"metadata>") {
            return at + next;
        }
        at += next + end.unwrap_or(1);
    }
    text.len()
}

#[test]
fn only_altered_records_get_provenance() {
    let cases = pages();
    let failures = each(&cases, |case| {
        if case.name.starts_with("broken/rewrite-provenance/") {
            return None;
        }
        [ProvenanceScope::Altered, ProvenanceScope::All].into_iter().find_map(|scope| {
            let verdict = adds_only(&case.input, scope).and_then(|()| described_in_scope(&case.input, scope));
            verdict.err().map(|error| format!("{}, {scope:?}: {error}", case.name))
        })
    });
    report("told of those", cases.len(), &failures);
}

#[test]
fn provenance_is_valid() {
    let mut failures = Vec::new();
    let mut ran = 0;
    for (name, input) in pages().into_iter().map(|case| (case.name, case.input)).chain(wellformed()) {
        let out = run(&input, &describe_config(ProvenanceScope::All), Chunking::Whole);
        for entry in out.journal.iter().filter(|entry| is_provenance(entry)) {
            let text = &entry.replacement;
            let (Some(start), Some(end)) = (find(text, b"<provenance"), find(text, b"</provenance>")) else {
                continue;
            };
            ran += 1;
            let verdict = judge::provenance(&text[start..end + "</provenance>".len()]);
            failures.extend(verdict.err().map(|error| format!("{name}: {error}")));
        }
    }
    // A container inside another one belongs to the source.
    for case in cases("broken").iter().filter(|case| case.name == "broken/rewrite-provenance/nested") {
        let mut rest = case.expected.as_slice();
        while let Some(start) = find(rest, b"provenance xmlns") {
            let start = memchr::memrchr(b'<', &rest[..start]).unwrap_or(start);
            let end = start + find(&rest[start..], b"</about>").unwrap_or_default();
            ran += 1;
            let verdict = judge::provenance(rest[start..end].trim_ascii());
            failures.extend(verdict.err().map(|error| format!("{}: {error}", case.name)));
            rest = &rest[end..];
        }
    }
    let bad: [&[u8]; 2] = [
        b"<provenance xmlns=\"http://www.openarchives.org/OAI/2.0/provenance\"/>",
        b"<provenance xmlns=\"http://www.openarchives.org/OAI/2.0/provenance\"><originDescription altered=\"no\"/></provenance>",
    ];
    for bad in bad {
        if judge::libxml2_is_there() && judge::provenance(bad).is_ok() {
            failures.push(format!("the judge passes {}", bad.escape_ascii()));
        }
    }
    report("provenance", ran, &failures);
}

const HEAD: &str = "<?xml version=\"1.0\"?><OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
    <responseDate>2026-01-01T00:00:00Z</responseDate><request>http://example.org/oai</request><ListRecords>";

fn long_record(title: &str) -> Vec<u8> {
    let filler = "long ".repeat(2_000);
    format!(
        "{HEAD}<record><header><identifier>a</identifier><datestamp>2025-01-01</datestamp></header>\
         <metadata><t>{filler}{title}{filler}</t></metadata></record></ListRecords></OAI-PMH>"
    )
    .into_bytes()
}

#[test]
fn oversized_records_get_no_provenance() {
    let mut limits = Limits::default();
    limits.record_bytes_max = 4_000;
    let mut quiet = RepairConfig::default();
    quiet.limits = limits;
    quiet.ending = Ending::Abort;
    let altered = run(&long_record("a\u{1}b"), &quiet, Chunking::Whole);
    assert_eq!(altered.summary.outcome, Outcome::Repaired, "the same without provenance");
    for scope in [ProvenanceScope::Altered, ProvenanceScope::All] {
        let mut config = quiet.clone();
        config.provenance = describe_config(scope).provenance;
        let of_form = run(&long_record("a & b"), &config, Chunking::Blocks(100));
        assert_eq!(of_form.summary.outcome, Outcome::Repaired);
        assert_eq!(of_form.summary.repairs.of(RepairId::BareAmpersand), 1);
        assert_eq!(of_form.summary.repairs.of(RepairId::RewriteProvenance), 0);
        let altered = run(&long_record("a\u{1}b"), &config, Chunking::Blocks(100));
        assert_eq!((altered.summary.outcome, altered.summary.lost), (Outcome::Truncated, 1));
    }
}
