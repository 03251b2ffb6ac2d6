//! The corpus: reads the cases from their folders and checks them.
//!
//! A case consists of its input, its expected output, its report, and case.toml with the
//! configuration of the engine. A case without expected.xml must have no output.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use oaimend_oai::RequestEcho;
use oaimend_oai::datestamp::Granularity;
use oaimend_repair::journal::{Change, Entry};
use oaimend_repair::{
    Ending, Limits, NotOai, Origin, Outcome, ProvenanceScope, QuarantineReason, RepairConfig, RepairId,
    RepairSet,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::envelope::Strictness;
use super::harness::{Chunking, Run, run};
use super::invariants::{self, difference};
use super::judge::judge;
use super::{grain, root, step_of_series};

/// One case of `corpus/broken` or `corpus/refused`.
#[derive(Debug)]
pub struct Case {
    /// Its folder below `corpus/`, such as `broken/bare-ampersand/title`.
    pub name: String,
    pub folder: PathBuf,
    pub input: Vec<u8>,
    pub expected: Vec<u8>,
    pub report: Vec<Value>,
    pub about: About,
}

/// The content of case.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The defect, in one sentence.
    pub description: String,
    /// The failure classes, such as `C1`.
    pub classes: Vec<String>,
    /// The origin of the case.
    pub source: String,
    /// The exit code of the filter.
    pub exit: i32,
    /// Whether the defect is at a buffer border.
    #[serde(default)]
    pub border: bool,
    /// Why there is no output, or why the list is truncated.
    pub reason: Option<String>,
    #[serde(default)]
    break_off: bool,
    #[serde(default)]
    enable: Vec<String>,
    #[serde(default)]
    off: Vec<String>,
    charset: Option<String>,
    text_charset: Option<String>,
    base_url: Option<String>,
    request: Option<String>,
    #[serde(rename = "asked_token")]
    request_token: Option<String>,
    response_date: Option<String>,
    provenance: Option<String>,
    granularity: Option<String>,
    lowest_datestamp: Option<String>,
    oldest_seen: Option<String>,
    #[serde(default)]
    limits: SmallerLimits,
    #[serde(default)]
    identify: Identify,
}

/// The repository's values from a mapping.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Identify {
    repository_name: Option<String>,
    admin_email: Option<String>,
    earliest_datestamp: Option<String>,
    deleted_record: Option<String>,
    granularity: Option<String>,
}

/// The limits of one case, if the defaults would need a huge input.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SmallerLimits {
    record_bytes_max: Option<usize>,
    repairs_per_record_max: Option<usize>,
    entity_bytes_max: Option<usize>,
    depth_max: Option<usize>,
    attributes_per_tag_max: Option<usize>,
    tag_bytes_max: Option<usize>,
    junk_bytes_max: Option<usize>,
    head_bytes_max: Option<usize>,
}

impl About {
    /// The configuration of the engine.
    pub fn config(&self) -> RepairConfig {
        let roomy = Limits::default();
        let small = &self.limits;
        let mut config = RepairConfig::default();
        let limits = &mut config.limits;
        limits.record_bytes_max = small.record_bytes_max.unwrap_or(roomy.record_bytes_max);
        limits.repairs_per_record_max = small.repairs_per_record_max.unwrap_or(roomy.repairs_per_record_max);
        limits.entity_bytes_max = small.entity_bytes_max.unwrap_or(roomy.entity_bytes_max);
        limits.depth_max = small.depth_max.unwrap_or(roomy.depth_max);
        limits.attributes_per_tag_max = small.attributes_per_tag_max.unwrap_or(roomy.attributes_per_tag_max);
        limits.tag_bytes_max = small.tag_bytes_max.unwrap_or(roomy.tag_bytes_max);
        limits.junk_bytes_max = small.junk_bytes_max.unwrap_or(roomy.junk_bytes_max);
        limits.head_bytes_max = small.head_bytes_max.unwrap_or(roomy.head_bytes_max);
        config.off = repairs(&self.off);
        config.enabled = repairs(&self.enable);
        config.request = self.base_url.clone().map(|base_url| {
            let arguments = arguments(self.request.as_deref().unwrap_or_default());
            RequestEcho { base_url, arguments }.into()
        });
        config.request_token = self.request_token.clone();
        config.response_date = self.response_date.clone();
        config.charset = self.charset.clone();
        config.text_charset = self.text_charset.clone();
        config.repository.granularity = self.granularity.as_deref().map(granularity);
        config.repository.lowest_datestamp = self.lowest_datestamp.clone();
        config.repository.oldest_seen = self.oldest_seen.clone();
        config.ending = if self.break_off { Ending::Abort } else { Ending::Close };
        config.provenance = self.provenance.as_deref().map(|scope| {
            let scope = match scope {
                "altered" => ProvenanceScope::Altered,
                "all" => ProvenanceScope::All,
                _ => panic!("provenance = {scope:?}"),
            };
            Origin::new(scope, "http://source.example.org/oai", "2026-01-02T03:04:05Z")
        });
        config.identify.repository_name = self.identify.repository_name.clone();
        config.identify.admin_email = self.identify.admin_email.clone();
        config.identify.earliest_datestamp = self.identify.earliest_datestamp.clone();
        config.identify.deleted_record = self.identify.deleted_record.clone();
        config.identify.granularity = self.identify.granularity.clone();
        config
    }
}

fn granularity(name: &str) -> Granularity {
    Granularity::from_name(name).unwrap_or_else(|| panic!("no granularity {name}"))
}

fn repairs(names: &[String]) -> RepairSet {
    names.iter().map(|name| RepairId::from_name(name).unwrap_or_else(|| panic!("no repair {name}"))).collect()
}

/// Parses the arguments of a query string.
fn arguments(query: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            let hex: String = match byte {
                b'%' => rest.by_ref().take(2).map(char::from).collect(),
                _ => String::new(),
            };
            bytes.push(u8::from_str_radix(&hex, 16).unwrap_or(byte));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

/// The files of `corpus/wellformed`.
pub fn wellformed() -> Vec<(String, Vec<u8>)> {
    let files = super::files_below(&root().join("corpus/wellformed"));
    files.iter().map(|path| (file_name(path), read(path))).collect()
}

/// The cases of `corpus/broken` or `corpus/refused`; `OAIMEND_CASE` selects some of them.
pub fn cases(part: &str) -> Vec<Case> {
    let wanted = std::env::var("OAIMEND_CASE").unwrap_or_default();
    let files = super::files_below(&root().join("corpus").join(part));
    let folders = files.iter().filter(|path| path.ends_with("case.toml")).filter_map(|path| path.parent());
    folders.map(load).filter(|case| case.name.contains(&wanted)).collect()
}

/// Reads one case.
pub fn load(folder: &Path) -> Case {
    let name = folder.strip_prefix(root().join("corpus")).unwrap_or(folder).display().to_string();
    let toml = String::from_utf8_lossy(&read(&folder.join("case.toml"))).into_owned();
    let about = toml::from_str(&toml).unwrap_or_else(|error| panic!("{name}/case.toml: {error}"));
    let report = std::fs::read_to_string(folder.join("report.jsonl")).unwrap_or_default();
    let report = report.lines().map(|line| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}/report.jsonl: {error}: {line}"))
    });
    Case {
        report: report.collect(),
        input: read(&folder.join("input.xml")),
        expected: std::fs::read(folder.join("expected.xml")).unwrap_or_default(),
        folder: folder.to_path_buf(),
        name,
        about,
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Checks all properties of a case. A panic counts as a failure.
pub fn check(case: &Case) -> Result<(), String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| verdicts(case)));
    let faults = outcome.unwrap_or_else(|_| vec!["the engine panics".to_owned()]);
    if faults.is_empty() { Ok(()) } else { Err(format!("{}\n  {}", case.name, faults.join("\n  "))) }
}

fn verdicts(case: &Case) -> Vec<String> {
    let config = case.about.config();
    let whole = run(&case.input, &config, Chunking::Whole);
    let mut faults: Vec<String> = sound(case).err().into_iter().collect();
    if whole.output != case.expected {
        faults.push(format!("output: {}", difference(&whole.output, &case.expected)));
    } else if std::env::var_os("OAIMEND_BLESS").is_some() {
        bless(case, &whole);
    } else if let Err(error) = same_report(&report_lines(&whole), &case.report) {
        faults.push(format!("report: {error}"));
    }
    if whole.exit_code() != case.about.exit {
        faults.push(format!("exit code {} ({:?})", whole.exit_code(), whole.summary.outcome));
    }
    if let (Some(reason), Outcome::NotOai(why)) = (&case.about.reason, whole.summary.outcome)
        && why.name() != reason
    {
        faults.push(format!("refused as {} instead of {reason}", why.name()));
    }
    if let Some(reason) = &case.about.reason
        && NotOai::from_name(reason).is_none()
        && QuarantineReason::from_name(reason).is_none()
    {
        faults.push(format!("there is no reason {reason}"));
    }
    faults.extend(invariants::all(&case.input, &config, judge).err());
    faults.extend(torn(case, &whole, &config).err());
    faults.extend(at_small_limits(case, &whole, &config).err());
    faults
}

/// Checks the case itself: its expected output must be valid.
fn sound(case: &Case) -> Result<(), String> {
    let is_lacking = case.report.iter().any(|line| line.get("unresolved").is_some());
    if case.expected.is_empty() || case.about.break_off || is_lacking {
        return Ok(());
    }
    let verdict = judge(&case.expected, Strictness::TokenAlone);
    verdict.map_err(|error| format!("the case itself is wrong: {error}"))
}

/// Inputs up to this size are cut at every byte.
const EVERY_SPLIT_MAX: usize = 3_000;
/// The distance of the splits, unless all of them are tested.
const SPLIT_STEP: usize = 17;
const SEEDS: std::ops::Range<u64> = 0..6;

/// Checks the case with every way to cut its input.
fn torn(case: &Case, whole: &Run, config: &RepairConfig) -> Result<(), String> {
    let length = case.input.len();
    let splits: Vec<usize> = if length <= EVERY_SPLIT_MAX {
        (0..=length).collect()
    } else {
        around_defects(&whole.journal, length)
    };
    let splits = splits.into_iter().step_by(step_of_series(SPLIT_STEP));
    let mut ways: Vec<Chunking> = splits.map(Chunking::Split).collect();
    ways.extend([4_096, 16_384, 65_536].map(Chunking::Blocks));
    ways.extend(SEEDS.map(|seed| Chunking::Random { seed }));
    ways.push(Chunking::Bytes);
    ways.into_iter().try_for_each(|way| invariants::chunk_invariant(&case.input, whole, config, way))
}

/// The byte positions around each change; both ends of long changes.
fn around_defects(journal: &[Entry], length: usize) -> Vec<usize> {
    let ends = journal.iter().flat_map(|entry| {
        let start = usize::try_from(entry.offset).unwrap_or(usize::MAX);
        [start, start.saturating_add(entry.original.len())]
    });
    let mut splits: Vec<usize> = ends.flat_map(|at| at.saturating_sub(24)..(at + 24).min(length)).collect();
    splits.sort_unstable();
    splits.dedup();
    splits.truncate(600);
    splits
}

/// Checks the case with the smallest limits that do not change the result, and with smaller ones,
/// where only the invariants must hold.
fn at_small_limits(case: &Case, whole: &Run, config: &RepairConfig) -> Result<(), String> {
    let with = |record_bytes_max: usize| {
        let mut limits = config.limits.clone();
        limits.record_bytes_max = record_bytes_max;
        let mut config = config.clone();
        config.limits = limits;
        config
    };
    let (mut low, mut high) = (0, case.input.len() + 1);
    while low + 1 < high {
        let middle = usize::midpoint(low, high);
        let run = run(&case.input, &with(middle), Chunking::Whole);
        if run.output == whole.output && run.journal == whole.journal { high = middle } else { low = middle }
    }
    let mut tight = Limits::default();
    tight.record_bytes_max = 400;
    tight.repairs_per_record_max = 3;
    tight.entity_bytes_max = 20;
    tight.depth_max = 6;
    tight.attributes_per_tag_max = 4;
    tight.tag_bytes_max = 300;
    tight.junk_bytes_max = 40;
    tight.head_bytes_max = 900;
    let mut tightest = config.clone();
    tightest.limits = tight;
    for config in [with(high), tightest] {
        in_limits(&case.input, &config).map_err(|error| format!("at {:?}: {error}", config.limits))?;
    }
    Ok(())
}

/// Checks the properties that hold for any limits. Idempotence is not among them, because a repair
/// may make a record longer than the limit.
fn in_limits(input: &[u8], config: &RepairConfig) -> Result<(), String> {
    let whole = run(input, config, Chunking::Whole);
    invariants::in_order(&whole)?;
    invariants::accountable(input, &whole)?;
    invariants::bounded(&whole, &config.limits)?;
    invariants::valid(&whole, config, judge)?;
    let ways = [Chunking::Bytes, Chunking::Random { seed: 7 }, Chunking::Random { seed: 8 }];
    ways.into_iter().try_for_each(|way| invariants::chunk_invariant(input, &whole, config, way))
}

/// The report as the filter writes it, without `held_bytes_peak`.
pub fn report_lines(run: &Run) -> Vec<Value> {
    // Items quarantined before the head is sent are reported first; this sorts them by position.
    let mut entries: Vec<&Entry> = run.journal.iter().collect();
    entries.sort_by_key(|entry| (entry.offset, entry.original.len()));
    let mut lines: Vec<Value> = entries.into_iter().map(line).collect();
    let summary = &run.summary;
    let made = oaimend_repair::catalog::CATALOG.iter().filter_map(|entry| {
        let count = summary.repairs.of(entry.id);
        (count > 0).then(|| (entry.name.to_owned(), json!(count)))
    });
    for (element, offset, why) in &run.unresolved {
        lines.push(json!({"unresolved": element, "offset": offset, "why": why}));
    }
    let mut fields = json!({
        "outcome": summary.outcome.name(),
        "version": summary.version,
        "records": summary.records,
        "quarantined": summary.quarantined,
        "repairs": made.collect::<Map<_, _>>(),
        "decoded_as": summary.decoded_as,
    });
    for (offset, identifiers) in &run.swallowed {
        let identifiers: Vec<_> = identifiers.iter().map(|name| String::from_utf8_lossy(name)).collect();
        lines.push(json!({"swallowed": identifiers, "offset": offset}));
    }
    if summary.swallowed > 0 {
        fields["swallowed"] = json!(summary.swallowed);
    }
    if summary.lost > 0 {
        fields["lost"] = json!(summary.lost);
    }
    if summary.unresolved > 0 {
        fields["unresolved"] = json!(summary.unresolved);
    }
    lines.push(json!({"summary": fields}));
    lines
}

fn line(entry: &Entry) -> Value {
    let mut line = Map::new();
    let mut put = |key: &str, bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => line.insert(key.to_owned(), json!(text)),
        Err(_) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            line.insert(format!("{key}_hex"), json!(hex))
        }
    };
    match entry.change {
        Change::Repaired(id) => {
            put("repair", id.name().as_bytes());
            if let Some(record) = &entry.record {
                put("record", record);
            }
            put("original", &entry.original);
            put("replacement", &entry.replacement);
        }
        Change::Quarantined(why) => {
            if let Some(record) = &entry.record {
                put("quarantined", record);
            }
            put("why", why.name().as_bytes());
            line.insert("length".to_owned(), json!(entry.original.len()));
            line.entry("quarantined").or_insert(Value::Null);
        }
    }
    line.insert("offset".to_owned(), json!(entry.offset));
    Value::Object(line)
}

/// Whether two reports contain the same changes. The engine may split or join changes; see
/// [`grain::normalise`].
fn same_report(got: &[Value], expected: &[Value]) -> Result<(), String> {
    let (got, expected) = (grain::normalise(got), grain::normalise(expected));
    let Some(at) = (0..got.len().max(expected.len())).find(|at| got.get(*at) != expected.get(*at)) else {
        return Ok(());
    };
    let show = |line: Option<&Value>| -> String {
        line.map_or("nothing".to_owned(), Value::to_string).chars().take(600).collect()
    };
    Err(format!(
        "line {}\n    got      {}\n    expected {}",
        at + 1,
        show(got.get(at)),
        show(expected.get(at))
    ))
}

/// Writes the report of a case whose output is right. Review the report before you commit it.
fn bless(case: &Case, whole: &Run) {
    let lines: Vec<String> = report_lines(whole).iter().map(Value::to_string).collect();
    let path = case.folder.join("report.jsonl");
    let text = lines.join("\n") + "\n";
    std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Whether a text is the name of a failure class.
pub fn is_class(name: &str) -> bool {
    let digits = name.strip_prefix(|first: char| ('A'..='F').contains(&first));
    digits.is_some_and(|digits| digits.parse::<u8>().is_ok_and(|number| (1..=22).contains(&number)))
}
