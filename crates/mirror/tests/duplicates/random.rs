//! Random lists with duplicates and faults, beside a model.

use crate::source::{Fault, Listed, Mirror, START_SECS, deleted, live};
use fastrand::Rng;
use oaimend_store::Duplicates;
use std::collections::{BTreeMap, BTreeSet};

/// The number of seeds, each with all rules; `OAIMEND_RUNS` sets another one, and `OAIMEND_SEED` the first seed.
const RUNS: u64 = 8;

/// A record of a list. Its datestamp is before the first harvest, so that it is no change during it, and no other record
/// has the same.
fn record(random: &mut Rng, number: usize) -> Listed {
    let identifier = format!("oai:{}", random.u8(..12));
    let secs = START_SECS - 10_000 - number as i64;
    match random.u8(..10) {
        0 => deleted(&identifier, secs),
        title => live(&identifier, secs, &(title % 4).to_string()),
    }
}

fn faults(random: &mut Rng, first_page: u64) -> BTreeMap<u64, Fault> {
    let fault = |random: &mut Rng| match random.u8(..3) {
        0 => Fault::Half,
        1 => Fault::Forgotten,
        _ => Fault::Kill,
    };
    (0..random.u8(..4)).map(|_| (first_page + u64::from(random.u8(..12)), fault(random))).collect()
}

/// The records of a list by their identifiers, in order.
fn by_identifier(list: &[Listed]) -> BTreeMap<&str, Vec<&Listed>> {
    let mut found = BTreeMap::<&str, Vec<&Listed>>::new();
    for record in list {
        found.entry(&record.identifier).or_default().push(record);
    }
    found
}

/// The different titles in their order.
fn titles(records: &[&Listed]) -> Vec<String> {
    let mut titles = Vec::new();
    for title in records.iter().filter_map(|record| record.title.clone()) {
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    titles
}

/// What a mirror with this rule contains after its first harvest.
fn expected(policy: Duplicates, list: &[Listed]) -> BTreeMap<String, String> {
    let mut content = BTreeMap::new();
    for (identifier, records) in by_identifier(list) {
        let titles = match policy {
            Duplicates::Newest => {
                let newest = records.iter().max_by_key(|record| record.secs).expect("it is listed");
                newest.title.clone().into_iter().collect()
            }
            Duplicates::First => titles(&records).into_iter().take(1).collect(),
            Duplicates::Suffix => titles(&records),
        };
        for (number, title) in (1..).zip(titles) {
            let suffix = if number > 1 { format!("#{number}") } else { String::new() };
            content.insert(format!("{identifier}{suffix}"), title);
        }
    }
    content
}

/// The records in a mirror with suffixes, as pairs of the identifier of the source and the title.
fn without_suffixes(content: &BTreeMap<String, String>) -> BTreeSet<(String, String)> {
    let pair = |(identifier, title): (&String, &String)| {
        (identifier.split('#').next().expect("a part").to_owned(), title.clone())
    };
    content.iter().map(pair).collect()
}

async fn check(seed: u64, policy: Duplicates) {
    let mut random = Rng::with_seed(seed);
    let list: Vec<Listed> = (0..random.usize(1..40)).map(|number| record(&mut random, number)).collect();
    let mut list = list;
    random.shuffle(&mut list);
    let mut mirror = Mirror::new(policy, list.clone());
    mirror.settings.request_gap = std::time::Duration::from_secs(random.u64(..8));
    {
        let mut lists = mirror.source.lists();
        (lists.page_len, lists.faults) = (random.usize(4..9), faults(&mut random, 1));
    }
    let mut summary = mirror.harvest().await;
    for _ in 0..3 {
        if summary.is_success() {
            break;
        }
        summary = mirror.harvest().await;
    }
    mirror.source.lists().faults.clear();
    assert!(summary.is_success(), "seed {seed} {policy:?}: {summary:?}");
    let first = mirror.content().await;
    assert_eq!(first, expected(policy, &list), "seed {seed} {policy:?}");

    // The source changes some records, removes others, and lists them in another order.
    let mut now_secs = mirror.clock.secs() - 10_000;
    let mut changed = list;
    changed.retain(|_| random.u8(..5) > 0);
    for record in &mut changed {
        if random.u8(..4) == 0 {
            now_secs += 1;
            record.secs = now_secs;
            record.title = record.title.as_ref().map(|title| format!("{title}+"));
        }
    }
    random.shuffle(&mut changed);
    mirror.source.lists().records.clone_from(&changed);
    for _ in 0..3 {
        let summary = mirror.harvest().await;
        assert!(summary.is_success(), "seed {seed} {policy:?}: {summary:?}");
    }
    let second = mirror.content().await;
    match policy {
        // A source that sends an older record after a removal sends it with its old datestamp.
        Duplicates::Newest | Duplicates::First => {
            assert_eq!(second, expected(policy, &changed), "seed {seed} {policy:?}");
        }
        Duplicates::Suffix => {
            let all = expected(policy, &changed);
            assert_eq!(without_suffixes(&second), without_suffixes(&all), "seed {seed}");
            assert_eq!(second.len(), all.len(), "seed {seed}: no record twice");
            for (identifier, title) in &first {
                let (source, suffix) = identifier.split_once('#').unwrap_or((identifier, ""));
                let is_kept = second.get(identifier) == Some(title) || second.get(source) == Some(title);
                let is_listed = without_suffixes(&all).contains(&(source.to_owned(), title.clone()));
                let was_there = !suffix.is_empty() && is_listed;
                let has_changed = changed.iter().any(|record| {
                    record.identifier == source
                        && record.title.as_ref().is_some_and(|title| title.contains('+'))
                });
                assert!(!was_there || is_kept || has_changed, "seed {seed}: {identifier} has moved");
            }
        }
    }
    assert!(mirror.is_equal_to_source().await, "seed {seed} {policy:?}");
}

#[tokio::test]
async fn any_list_with_any_faults_is_stored_by_the_rule() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let first = number("OAIMEND_SEED").unwrap_or_else(|| fastrand::u64(..1 << 40));
    println!("seeds from {first}");
    for seed in first..first + number("OAIMEND_RUNS").unwrap_or(RUNS) {
        for policy in Duplicates::ALL.iter().copied() {
            check(seed, policy).await;
        }
    }
}
