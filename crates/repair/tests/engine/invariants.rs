//! The invariants over random documents: valid, damaged and truncated ones.
//!
//! A failure names its seed; its input is shrunk and written to target/failures/. `OAIMEND_SEED=7`
//! sets another seed, `OAIMEND_RANDOM=20000` runs more inputs.

use oaimend_test_support as support;
use std::panic::{AssertUnwindSafe, catch_unwind};

use oaimend_oai::RequestEcho;
use oaimend_repair::{Ending, Limits, Outcome, RepairConfig};
use oaimend_test_support::corpus::cases;
use oaimend_test_support::envelope::Strictness;
use oaimend_test_support::harness::{Chunking, run};
use oaimend_test_support::random::{Page, Random, page, response};
use oaimend_test_support::{damage, fuzzing, invariants, judge, keep, report, root, shrink, trial};

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The seeds of a test: fixed, and printed.
fn seeds(salt: u64, share: u64) -> impl Iterator<Item = u64> {
    let (first, count) =
        (number("OAIMEND_SEED", 20_261_121) + (salt << 32), number("OAIMEND_RANDOM", 600) / share);
    println!("seeds {first} to {}", first + count);
    first..first + count
}

/// The number of failures after which a test stops.
const FAILURES_MAX: usize = 12;

/// Checks a property for the inputs of many seeds.
#[track_caller]
fn over(what: &str, salt: u64, share: u64, make: fn(u64) -> Vec<u8>, holds: fn(&[u8]) -> Result<(), String>) {
    over_seeds(what, salt, share, make, |input, _| holds(input));
}

/// The same for a property that also takes the seed.
#[track_caller]
fn over_seeds(
    what: &str,
    salt: u64,
    share: u64,
    make: impl Fn(u64) -> Vec<u8>,
    holds: impl Fn(&[u8], u64) -> Result<(), String>,
) {
    let mut failures: Vec<String> = Vec::new();
    let mut kinds: Vec<String> = Vec::new();
    let mut ran = 0;
    for seed in seeds(salt, share) {
        let holds = |input: &[u8]| {
            let kept = catch_unwind(AssertUnwindSafe(|| holds(input, seed)));
            kept.unwrap_or_else(|_| Err("the engine panics".to_owned()))
        };
        ran += 1;
        let input = make(seed);
        let Err(error) = holds(&input) else { continue };
        let kind = kind_of(&error);
        // Two failures of one kind are enough; other kinds are of interest.
        if kinds.iter().filter(|seen| **seen == kind).count() == 2 {
            continue;
        }
        kinds.push(kind.clone());
        let small =
            shrink::shrink(&input, |smaller| holds(smaller).is_err_and(|error| kind_of(&error) == kind));
        let error = holds(&small).err().unwrap_or(error);
        let place = keep(&format!("{what} {seed}"), &small);
        failures.push(format!("seed {seed}: {error}\n  from {}\n  see {place}", small.escape_ascii()));
        if failures.len() == FAILURES_MAX {
            break;
        }
    }
    report(what, ran, &failures);
}

/// The constant part of a message while the input is shrunk: its words, without quotations from the
/// document.
fn kind_of(error: &str) -> String {
    let words = error.split(['\n', '{', '[']).next().unwrap_or_default();
    let words =
        words.split_whitespace().filter(|word| word.chars().all(|c| c.is_ascii_alphabetic() || c == ','));
    words.take(10).collect::<Vec<_>>().join(" ")
}

fn valid(seed: u64) -> Vec<u8> {
    response(&mut Random::new(seed))
}

fn damaged(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = response(&mut random);
    damage::damage(&mut random, &mut bytes);
    bytes
}

/// Two pages in one body; the second may be damaged or equal to the first.
fn joined(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut first = response(&mut random);
    let mut second = if random.chance(50) { first.clone() } else { response(&mut random) };
    if random.chance(40) {
        damage::damage(&mut random, &mut second);
    }
    if random.chance(30) {
        damage::truncate(&mut random, &mut first);
    }
    first.extend_from_slice(&second);
    first
}

#[test]
fn valid_pages_are_unchanged() {
    over("whole pages", 1, 2, valid, |input| {
        judge::judge(input, Strictness::Schema)
            .map_err(|error| format!("the page itself is wrong: {error}"))?;
        let config = RepairConfig::default();
        [Chunking::Whole, Chunking::Random { seed: 3 }, Chunking::Blocks(61)]
            .into_iter()
            .try_for_each(|way| invariants::identity(input, &run(input, &config, way)))
    });
}

#[test]
fn damaged_pages_become_valid_and_accounted_for() {
    over("damaged pages", 2, 1, damaged, everything);
}

#[test]
fn concatenated_pages() {
    over("joined pages", 3, 4, joined, everything);
}

#[test]
fn small_limits_keep_the_invariants() {
    over("small limits", 4, 2, damaged, |input| in_small_limits(input, RepairConfig::default()));
    over_seeds(
        "small limits of asked pages",
        10,
        2,
        |seed| trial::page(&mut Random::new(seed)),
        |input, seed| with_config(seed, |config| in_small_limits(input, config)),
    );
}

fn in_small_limits(input: &[u8], config: RepairConfig) -> Result<(), String> {
    let mut config = config;
    config.limits = fuzzing::tight_limits();
    let whole = run(input, &config, Chunking::Whole);
    invariants::in_order(&whole)?;
    invariants::accountable(input, &whole)?;
    invariants::bounded(&whole, &config.limits)?;
    invariants::valid(&whole, &config, judge::judge)?;
    [Chunking::Bytes, Chunking::Random { seed: 5 }]
        .into_iter()
        .try_for_each(|way| invariants::chunk_invariant(input, &whole, &config, way))
}

fn everything(input: &[u8]) -> Result<(), String> {
    everything_with(input, &RepairConfig::default())
}

fn everything_with(input: &[u8], config: &RepairConfig) -> Result<(), String> {
    let whole = invariants::all(input, config, judge::judge)?;
    invariants::no_error_beside_records(input, &whole)?;
    [Chunking::Bytes, Chunking::Random { seed: 5 }, Chunking::Random { seed: 6 }]
        .into_iter()
        .try_for_each(|way| invariants::chunk_invariant(input, &whole, config, way))
}

/// Checks a property with the random configuration of a seed and the page of another.
fn with_config(seed: u64, holds: impl Fn(RepairConfig) -> Result<(), String>) -> Result<(), String> {
    let config = trial::config(&mut Random::new(!seed));
    holds(config.clone()).map_err(|error| format!("{error}\n  config {}", fuzzing::describe_config(&config)))
}

/// Longer pages of the corpus are about length and would take most of the time.
const CORPUS_BYTES_MAX: usize = 3_000;

#[test]
fn requests_and_disabled_repairs_keep_the_invariants() {
    let corpus: Vec<Vec<u8>> = ["broken", "refused"]
        .into_iter()
        .flat_map(cases)
        .map(|case| case.input)
        .filter(|input| input.len() < CORPUS_BYTES_MAX)
        .collect();
    over_seeds(
        "asked pages",
        9,
        1,
        |seed| {
            let random = &mut Random::new(seed);
            if random.chance(60) {
                return trial::page(random);
            }
            let bytes = corpus[random.below(corpus.len())].clone();
            trial::misplace_parts(random, bytes)
        },
        |input, seed| with_config(seed, |config| everything_with(input, &config)),
    );
}

#[test]
fn neighbours_of_a_damaged_record_are_unchanged() {
    let mut failures = Vec::new();
    let mut ran = 0;
    for seed in seeds(5, 1) {
        let attempt = catch_unwind(|| fuzzing::check_neighbours_of_seed(seed));
        let (input, kept) = attempt.unwrap_or_else(|_| (Vec::new(), Err("the engine panics".to_owned())));
        ran += 1;
        if let Err(error) = kept {
            failures
                .push(format!("seed {seed}: {error}\n  see {}", keep(&format!("neighbours {seed}"), &input)));
        }
        if failures.len() == FAILURES_MAX {
            break;
        }
    }
    report("neighbours", ran, &failures);
}

/// The positions at which a list may end and be complete: after its token or, without one, after
/// its end tag.
fn complete_from(page: &Page) -> usize {
    let before = page.bytes().len() - page.tail.len();
    let end = ["</resumptionToken>", "</ListRecords>"]
        .into_iter()
        .find_map(|mark| page.tail.find(mark).map(|at| at + mark.len()));
    before + end.unwrap_or(page.tail.len())
}

#[test]
fn truncated_list_never_looks_complete() {
    let mut failures = Vec::new();
    let mut ran = 0;
    for seed in seeds(6, 4) {
        let mut random = Random::new(seed);
        let whole = page(&mut random);
        let bytes = whole.bytes();
        // The name of the end tag decides; without its last byte the list may count as complete.
        let at = random.below(complete_from(&whole) - 1);
        for ending in [Ending::Close, Ending::Abort] {
            let mut config = RepairConfig::default();
            config.ending = ending;
            ran += 1;
            let verdict = catch_unwind(|| {
                let out = run(&bytes[..at], &config, Chunking::Whole);
                invariants::never_looks_complete(&out)?;
                invariants::valid(&out, &config, judge::judge)?;
                invariants::accountable(&bytes[..at], &out)?;
                let mut end = whole.head.len();
                let delivered = whole.records.iter().map_while(|(record, space)| {
                    let whole_record = end + record.len() <= at;
                    end += record.len() + space.len();
                    whole_record.then_some(record.as_bytes())
                });
                invariants::neighbours(&out, delivered)
            });
            let verdict = verdict.unwrap_or_else(|_| Err("the engine panics".to_owned()));
            if let Err(error) = verdict {
                failures.push(format!(
                    "seed {seed} {ending:?}: {error}\n  see {}",
                    keep(&format!("cut {seed}"), &bytes[..at])
                ));
            }
        }
        if failures.len() >= FAILURES_MAX {
            break;
        }
    }
    report("cut lists", ran, &failures);
}

#[test]
fn list_with_only_its_envelope_unclosed_is_complete() {
    let mut failures = Vec::new();
    let mut ran = 0;
    for seed in seeds(7, 8) {
        let mut random = Random::new(seed);
        let whole = page(&mut random);
        let bytes = whole.bytes();
        let from = complete_from(&whole);
        let at = from + random.below(bytes.len() - from);
        ran += 1;
        let out = run(&bytes[..at], &RepairConfig::default(), Chunking::Whole);
        if out.exit_code() != 0 || out.items.len() != whole.records.len() {
            failures.push(format!(
                "seed {seed}: {:?}\n  see {}",
                out.summary,
                keep(&format!("unclosed {seed}"), &bytes[..at])
            ));
        }
    }
    report("unclosed lists", ran, &failures);
}

/// A page of this many records, valid or each with a defect.
fn long_page(records: usize, title: &str) -> Vec<u8> {
    let mut random = Random::new(1);
    let whole = page(&mut random);
    let mut bytes = whole.head.into_bytes();
    for number in 0..records {
        bytes.extend_from_slice(
            format!(
                "<record><header><identifier>oai:example.org:{number}</identifier><datestamp>2025-06-01</datestamp>\
                 </header><metadata><dc:dc xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>{title}</dc:title>\
                 </dc:dc></metadata></record>\n"
            )
            .as_bytes(),
        );
    }
    bytes.extend_from_slice(b"</ListRecords></OAI-PMH>\n");
    bytes
}

#[test]
fn memory_and_first_byte_are_independent_of_length() {
    let mut limits = Limits::default();
    limits.record_bytes_max = 4_000;
    limits.head_bytes_max = 8_000;
    let mut failures = Vec::new();
    for title in ["clean", "AT&T", "<![CDATA[never ends", "<br>", "caf\u{e9} &eacute; < 5"] {
        let mut config = damage::config_for(title.as_bytes());
        config.limits = limits.clone();
        let peak = |records| {
            let out = run(&long_page(records, title), &config, Chunking::Blocks(4_096));
            assert_eq!(out.summary.outcome == Outcome::Clean, title == "clean", "{title}");
            (out.summary.held_bytes_peak, out.first_output_at)
        };
        let ((short, _), (long, first)) = (peak(200), peak(6_000));
        if long > short + 4_096 {
            failures.push(format!("{title:?}: {short} bytes held for 200 records, {long} for 6,000"));
        }
        if first.is_none_or(|first| first > 40_000) {
            failures.push(format!("{title:?}: the first byte left at {first:?}"));
        }
    }
    report("long pages", 5, &failures);
}

/// A query of OAI-PMH arguments, valid or not.
fn query(seed: u64) -> Vec<u8> {
    const PARTS: &[&str] = &[
        "verb=ListRecords",
        "verb=GetRecord",
        "verb=Identify",
        "verb=listrecords",
        "metadataPrefix=oai_dc",
        "identifier=oai%3Ax%3A1",
        "from=2025-01-01",
        "until=",
        "set=a:b+c",
        "resumptionToken=a%26b%ZZ",
        "x=y",
        "",
        "identifier=%C3%A9%00",
        "identifier=%FF",
        "from=%E2%80",
        "=",
        "verb",
    ];
    let mut random = Random::new(seed);
    let parts: Vec<&str> = (0..1 + random.below(4)).map(|_| random.pick(PARTS)).collect();
    parts.join("&").into_bytes()
}

#[test]
fn requests_round_trip_or_are_refused() {
    over("requests", 8, 1, query, fuzzing::request);
}

/// Runs the finds of fuzzers again, those of the corpus and those on this machine.
#[test]
fn fuzzer_finds_stay_fixed() {
    let mut failures = Vec::new();
    let mut ran = 0;
    for (name, property) in fuzzing::TARGETS {
        let folders = ["corpus/found", "fuzz/artifacts"].map(|folder| root().join(folder).join(name));
        for path in folders.iter().flat_map(|folder| support::files_below(folder)) {
            let input = std::fs::read(&path).unwrap_or_default();
            let kept = catch_unwind(AssertUnwindSafe(|| property(&input)));
            ran += 1;
            let kept = kept.unwrap_or_else(|_| Err("the engine panics".to_owned()));
            failures.extend(kept.err().map(|error| format!("{}: {error}", path.display())));
        }
    }
    assert!(ran > 0, "corpus/found is empty");
    report("found", ran, &failures);
}

/// 1.x responses with an unreadable item: the filter writes a comment before the end tag, a
/// transfer is aborted.
#[test]
fn v1_response_with_an_unread_item_never_looks_complete() {
    let resumed = RequestEcho {
        base_url: "http://proxy.example.org/x".to_owned(),
        arguments: [("verb", "ListRecords"), ("resumptionToken", "a")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
    };
    let list = b"<set><setSpec><ListRecords xmlns=\"http://www.openarchives.org/OAI/1.1/OAI_ListRecords\">\
        <record><header><identifier>0</dentifier<datestamp>2001</atestamp</eader<metadata><dc></dc></etadata</recor\
        </ListRecords>";
    let identify =
        b"<Identify xmlns=\"http://www.openarchives.org/OAI/1.1/OAI_Identify\"><header><identifier>\
        <repositoryName><baseURL><protocolVersion><adminEmail>a@x.o</Identify>";
    for input in [&list[..], identify] {
        for ending in [Ending::Close, Ending::Abort] {
            let request = Some(std::sync::Arc::new(resumed.clone()));
            let mut config = RepairConfig::default();
            config.request = request;
            config.ending = ending;
            config.repository.lowest_datestamp = Some("1970-01-01".to_owned());
            assert_eq!(everything_with(input, &config), Ok(()), "{}", input.escape_ascii());
        }
    }
}
