//! A good record is never changed by its neighbour. Every broken record of the corpus is placed
//! between good ones, which contain legal constructs that simple tools break.

use oaimend_test_support as support;
use std::panic::{AssertUnwindSafe, catch_unwind};

use oaimend_test_support::corpus::{cases, wellformed};
use oaimend_test_support::harness::{Chunking, run};
use oaimend_test_support::{invariants, judge, keep, report};

/// The head of most pages of the corpus.
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
    xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd\">\n\
    \u{20} <responseDate>2026-03-01T08:15:00Z</responseDate>\n\
    \u{20} <request verb=\"ListRecords\" metadataPrefix=\"oai_dc\">http://repository.example.org/oai</request>\n\
    \u{20} <ListRecords>";
const TAIL: &str = "\n    <resumptionToken>harbour-2</resumptionToken>\n  </ListRecords>\n</OAI-PMH>\n";
const BORDER: &[u8] = b"\n    <record";

/// The records of a page with our usual layout, without the border.
fn records(page: &[u8]) -> Vec<Vec<u8>> {
    let Some(list) = page.strip_prefix(HEAD.as_bytes()) else { return Vec::new() };
    let end = ["\n    <resumptionToken", "\n  </ListRecords>"]
        .iter()
        .filter_map(|mark| memchr::memmem::find(list, mark.as_bytes()))
        .min()
        .unwrap_or(list.len());
    let starts: Vec<usize> = memchr::memmem::find_iter(&list[..end], BORDER).collect();
    let ends = starts.iter().skip(1).copied().chain([end]);
    starts.iter().zip(ends).map(|(start, end)| list[start + BORDER.len()..end].to_vec()).collect()
}

fn page<'a>(records: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut page = HEAD.as_bytes().to_vec();
    for record in records {
        page.extend_from_slice(BORDER);
        page.extend_from_slice(record);
    }
    page.extend_from_slice(TAIL.as_bytes());
    page
}

/// A good record, with the start tag of the border restored.
fn is_good(record: &[u8]) -> bool {
    let input = page([record]);
    support::fuzzing::judge(&input, support::envelope::Strictness::Schema).is_ok()
        && record.ends_with(b"</record>")
}

fn whole(record: &[u8]) -> Vec<u8> {
    [b"<record", record].concat()
}

const ROUNDS: usize = 6;

#[test]
fn good_records_survive_every_broken_neighbour() {
    let good: Vec<Vec<u8>> =
        wellformed().iter().flat_map(|(_, input)| records(input)).filter(|record| is_good(record)).collect();
    let broken: Vec<(String, Vec<u8>)> = ["broken", "refused"]
        .iter()
        .flat_map(|part| cases(part))
        // The truncated end of an input is not a record: its end is unknown.
        .filter(|case| case.input.len() < 12_000 && !case.name.contains("truncated"))
        .flat_map(|case| records(&case.input).into_iter().map(move |record| (case.name.clone(), record)))
        .filter(|(_, record)| !is_good(record))
        .collect();
    assert!(good.len() > 40 && broken.len() > 60, "{} good and {} broken records", good.len(), broken.len());
    let mut failures = Vec::new();
    let mut ran = 0;
    for (index, (name, broken)) in broken.iter().enumerate() {
        for round in 0..ROUNDS {
            let at = |step: usize| good[(index * 7 + round * step) % good.len()].as_slice();
            let (before, after, last) = (at(5), at(11), at(17));
            ran += 1;
            let input = page([before, broken.as_slice(), after, last]);
            let verdict = catch_unwind(AssertUnwindSafe(|| between(&input, broken, [before, after, last])));
            let verdict = verdict.unwrap_or_else(|_| Err("the engine panics".to_owned()));
            let Err(error) = verdict else { continue };
            let place = keep(&format!("{name} {round}"), &input);
            failures.push(format!("{name}, round {round}: {error}\n  see {place}"));
        }
    }
    report("broken among good", ran, &failures);
}

fn between(input: &[u8], broken: &[u8], good: [&[u8]; 3]) -> Result<(), String> {
    let config = support::damage::config_for(broken);
    let out = invariants::all(input, &config, judge::judge)?;
    let good = good.map(whole);
    invariants::neighbours(&out, good.iter().map(Vec::as_slice))?;
    if out.tokens != [b"harbour-2"] {
        return Err(format!("the token after them is {:?}", out.tokens));
    }
    [Chunking::Random { seed: 11 }, Chunking::Blocks(700)]
        .into_iter()
        .try_for_each(|way| invariants::chunk_invariant(input, &out, &config, way))?;
    // The same page without the broken record needs no repair.
    let clean = page(good.iter().map(|record| &record[b"<record".len()..]));
    invariants::identity(&clean, &run(&clean, &config, Chunking::Whole))
}
