//! Recorded responses of real repositories, if they are available beside the checkout.
//!
//! They are not part of the project: ../shared/corpus contains them, and its INDEX.tsv describes
//! each. Without that folder the test prints that it was skipped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use oaimend_repair::journal::Change;
use oaimend_repair::{Outcome, RepairConfig, RepairId};
use oaimend_test_support::harness::{Chunking, Run, run};
use oaimend_test_support::{invariants, judge, report, root, strict};

/// The repairs that a schema-valid response may need, because the specification or harvesters are
/// stricter than the schema.
const BESIDES_THE_SCHEMA: &[RepairId] = &[
    RepairId::MissingDeclaration,
    RepairId::WrongDeclaration,
    RepairId::Doctype,
    RepairId::HttpsNamespace,
    RepairId::NamespaceVariant,
    RepairId::RequestContent,
    RepairId::HeaderBlank,
    RepairId::DatestampFraction,
    RepairId::DatestampOffset,
    RepairId::DeletedWithMetadata,
    RepairId::SchemaLocation,
    RepairId::EnvelopePrefix,
    RepairId::IdentifyValue,
    RepairId::FormatValue,
];

/// One line of the index.
struct Recorded {
    name: String,
    path: PathBuf,
    version: String,
    valid: bool,
}

fn folder() -> PathBuf {
    root().join("../shared/corpus")
}

fn index() -> Option<Vec<Recorded>> {
    let text = std::fs::read_to_string(folder().join("INDEX.tsv")).ok()?;
    let lines = text.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let path = folder().join(Path::new(fields.first()?));
        Some(Recorded {
            name: (*fields.first()?).to_owned(),
            path,
            version: (*fields.get(7)?).to_owned(),
            valid: *fields.get(12)? == "y",
        })
    });
    Some(lines.filter(|recorded| recorded.path.exists()).collect())
}

#[test]
fn recorded_responses_keep_the_invariants() {
    let Some(all) = index() else {
        println!("skipped: no recorded responses beside the checkout");
        return;
    };
    let wanted = std::env::var("OAIMEND_CASE").unwrap_or_default();
    let mut failures = Vec::new();
    let mut counts = std::collections::BTreeMap::new();
    let mut ran = 0;
    for recorded in all.iter().filter(|recorded| recorded.name.contains(&wanted)) {
        let Ok(input) = std::fs::read(&recorded.path) else { continue };
        ran += 1;
        let verdict = catch_unwind(AssertUnwindSafe(|| check(recorded, &input)));
        match verdict.unwrap_or_else(|_| Err("the engine panics".to_owned())) {
            Ok(outcome) => *counts.entry(outcome).or_insert(0) += 1,
            Err(error) => failures.push(format!("{}\n  {error}", recorded.name)),
        }
    }
    println!("{counts:?}");
    report("recorded responses", ran, &failures);
}

fn check(recorded: &Recorded, input: &[u8]) -> Result<String, String> {
    let config = RepairConfig::default();
    let whole = invariants::all(input, &config, judge::judge)?;
    let mut ways = vec![Chunking::Blocks(1_000), Chunking::Random { seed: 1 }, Chunking::Random { seed: 2 }];
    if input.len() <= 16_000 {
        ways.push(Chunking::Bytes);
    }
    ways.into_iter().try_for_each(|way| invariants::chunk_invariant(input, &whole, &config, way))?;
    if recorded.valid && recorded.version == "2.0" {
        untouched(&whole).map_err(|error| format!("well-formed and valid, but {error}"))?;
    }
    if recorded.valid && recorded.version == "2.0" {
        let (left, delivered) = (whole.summary.records, items(input)?);
        if left != delivered {
            return Err(format!("{left} items left, {delivered} came"));
        }
    }
    Ok(match whole.summary.outcome {
        Outcome::NotOai(why) => why.name().to_owned(),
        other => other.name().to_owned(),
    })
}

/// The number of items in a valid response.
fn items(input: &[u8]) -> Result<u64, String> {
    const ITEMS: &[&str] = &["record", "header", "set", "metadataFormat"];
    // The strict judge does not accept a document type declaration.
    let Ok(tree) = strict::read(input) else {
        return Ok(run(input, &RepairConfig::default(), Chunking::Whole).summary.records);
    };
    let verb = tree.children.last().ok_or("no verb element")?;
    Ok(verb.children.iter().filter(|child| ITEMS.contains(&child.name.as_str())).count() as u64)
}

/// Only changes that the schema does not require.
fn untouched(whole: &Run) -> Result<(), String> {
    let made = whole.journal.iter().find(|entry| match entry.change {
        Change::Repaired(id) => !BESIDES_THE_SCHEMA.contains(&id),
        Change::Quarantined(_) => true,
    });
    match (made, whole.summary.outcome) {
        (Some(entry), _) => Err(format!("{entry:?}")),
        (None, Outcome::Clean | Outcome::Repaired) => Ok(()),
        (None, other) => Err(format!("{other:?}")),
    }
}
