//! Truncated lists never look complete: the lists of the corpus, cut at every byte.

use std::panic::{AssertUnwindSafe, catch_unwind};

use oaimend_repair::{Ending, RepairConfig};
use oaimend_test_support::corpus::wellformed;
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::harness::{Chunking, run};
use oaimend_test_support::{fuzzing, invariants, judge, report, step_of_series};

/// The positions at which a list is complete: the end of its token, or its own end. Before the
/// first number it is truncated; between the two only a `>` is missing.
fn complete_from(input: &[u8]) -> Option<(usize, usize)> {
    let rfind = |needle: &str| memchr::memmem::rfind(input, needle.as_bytes());
    let end_of = |at: usize, mark: &str| {
        invariants::find(&input[at..], mark.as_bytes()).map(|end| at + end + mark.len())
    };
    let list = rfind("</ListRecords").or(rfind("</ListIdentifiers")).or(rfind("</ListSets"))?;
    let last_item = ["</record", "</header", "</set"].iter().filter_map(|mark| rfind(mark)).max()?;
    let end = match rfind("<resumptionToken").filter(|at| *at > last_item) {
        Some(token) => end_of(token, "</resumptionToken>").or(end_of(token, "/>"))?,
        None => end_of(list, ">")?,
    };
    let name_end = input[..end - 1].trim_ascii_end().len();
    Some((name_end, end))
}

/// The properties of an input that ends before its list is complete.
fn cut(input: &[u8], at: usize) -> Result<(), String> {
    for ending in [Ending::Close, Ending::Abort] {
        let mut config = RepairConfig::default();
        config.ending = ending;
        let out = run(&input[..at], &config, Chunking::Whole);
        invariants::never_looks_complete(&out)?;
        invariants::accountable(&input[..at], &out)?;
        invariants::in_order(&out)?;
        // quick-xml judges every position, libxml2 every sixteenth.
        let by: invariants::Judge = if at.is_multiple_of(16) { judge::judge } else { fuzzing::judge };
        invariants::valid(&out, &config, by)?;
    }
    Ok(())
}

/// The properties of an input that ends after its list is complete.
fn unclosed(input: &[u8], at: usize, items: usize) -> Result<(), String> {
    let out = run(&input[..at], &RepairConfig::default(), Chunking::Whole);
    invariants::accountable(&input[..at], &out)?;
    if out.exit_code() != 0 || out.items.len() != items {
        return Err(format!("complete, but {:?}", out.summary));
    }
    fuzzing::judge(&out.output, Strictness::TokenAlone)
}

#[test]
fn truncated_list_never_looks_complete() {
    let mut failures = Vec::new();
    let mut ran = 0;
    for (name, input) in wellformed().iter().filter(|(_, input)| input.len() < 4_000) {
        let Some((cut_before, whole_from)) = complete_from(input) else { continue };
        let items = run(input, &RepairConfig::default(), Chunking::Whole).items.len();
        ran += 1;
        let first = (0..=input.len()).step_by(step_of_series(7)).find_map(|at| {
            let verdict = catch_unwind(AssertUnwindSafe(|| match at {
                _ if at < cut_before => cut(input, at),
                _ if at < whole_from => Ok(()),
                _ => unclosed(input, at, items),
            }));
            let verdict = verdict.unwrap_or_else(|_| Err("the engine panics".to_owned()));
            verdict.err().map(|error| format!("wellformed/{name} cut at {at}: {error}"))
        });
        failures.extend(first);
    }
    report("lists cut at every byte", ran, &failures);
}
