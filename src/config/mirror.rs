//! The keys of the mirror: the `[mirror]` table of `oaimend.toml`; `serve` and the `mirror` table of a mapping.

use super::file::Table;
use super::identify::{read_email, read_name};
use crate::schedule::{FreshnessTarget, IntervalBounds};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What holds for all mirrored repositories: the `[mirror]` table of `oaimend.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorPolicy {
    /// The share of records that should be up to date.
    pub freshness: FreshnessTarget,
    /// The shortest and the longest interval that the schedule chooses.
    pub intervals: IntervalBounds,
    /// Harvests running at the same time.
    pub harvests_max: usize,
    /// Whether all mirrored repositories are served as one, at `/_all`.
    pub aggregate: bool,
    /// Its `repositoryName`; `None`: a name with the public URL.
    pub aggregate_name: Option<String>,
    /// Its `adminEmail`s; empty: those of the mirrored repositories.
    pub aggregate_emails: Vec<String>,
    /// Which records the view of all repositories shows if several repositories have the same identifier.
    pub collisions: Collisions,
    /// Whether resumptionTokens of the mirror have the attribute `totalElements`.
    pub total_elements: bool,
}

impl Default for MirrorPolicy {
    fn default() -> Self {
        Self {
            freshness: FreshnessTarget::new(0.95).expect("a share from 0.5 to 1"),
            intervals: interval_bounds(INTERVAL_MIN_SECS, INTERVAL_MAX_SECS),
            harvests_max: 4,
            aggregate: true,
            aggregate_name: None,
            aggregate_emails: Vec::new(),
            collisions: Collisions::default(),
            total_elements: false,
        }
    }
}

impl MirrorPolicy {
    /// Reads the `[mirror]` table of `oaimend.toml`.
    pub(super) fn read(&mut self, mut table: Table<'_, '_>) {
        let expected = "a number from 0.5 to less than 1";
        if let Some(freshness) = table.read_float("freshness", expected, FreshnessTarget::new) {
            self.freshness = freshness;
        }
        let min_secs = table.read_integer("interval_min_secs", 60..=YEAR_SECS).unwrap_or(INTERVAL_MIN_SECS);
        let max_secs = table.read_integer("interval_max_secs", min_secs..=YEAR_SECS);
        self.intervals = interval_bounds(min_secs, max_secs.unwrap_or(INTERVAL_MAX_SECS.max(min_secs)));
        table.set_count("harvests_max", 1..=1000, &mut self.harvests_max);
        self.aggregate = table.read_bool("aggregate").unwrap_or(self.aggregate);
        self.aggregate_name = table.read_parsed("aggregate_name", read_name);
        for email in table.read_strings("aggregate_emails") {
            match read_email(&email.value) {
                Ok(address) => self.aggregate_emails.push(address),
                Err(problem) => {
                    let value = email.value.escape_debug();
                    table.report_fault(email.span, format!("mirror.aggregate_emails: \"{value}\" {problem}"));
                }
            }
        }
        self.collisions = table.read_parsed("collisions", read_collisions).unwrap_or_default();
        self.total_elements = table.read_bool("total_elements").unwrap_or(self.total_elements);
        table.finish();
    }
}

/// The part of the program that answers the requests for a repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServeFrom {
    /// The source only.
    #[default]
    Live,
    /// The source; the mirror if the source fails.
    LiveThenMirror,
    /// The mirror only.
    Mirror,
}

/// The default bounds of the intervals: an hour and a week.
const INTERVAL_MIN_SECS: u64 = 3_600;
const INTERVAL_MAX_SECS: u64 = 604_800;
/// The longest interval that can be configured.
const YEAR_SECS: u64 = 31_536_000;

fn interval_bounds(min_secs: u64, max_secs: u64) -> IntervalBounds {
    IntervalBounds::new(min_secs as f64, max_secs as f64).expect("the bounds are in order")
}

/// Which records the view of all repositories shows if several repositories have the same identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collisions {
    /// All of them.
    #[default]
    KeepBoth,
    /// That of the repository with the highest priority.
    Prefer,
    /// That with the latest datestamp of its source.
    Newest,
}

/// Where the mirror takes the members of sets from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetMembership {
    /// From the headers of records.
    #[default]
    Headers,
    /// From the lists of the sets too: each harvest requests them.
    Harvest,
}

impl SetMembership {
    /// The value in a mapping.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Headers => "headers",
            Self::Harvest => "harvest",
        }
    }
}

/// How a repository is mirrored.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorSettings {
    /// The formats; empty: every format that the source lists.
    pub prefixes: Vec<String>,
    /// The sets; empty: the whole repository.
    pub sets: Vec<String>,
    /// Where the members of sets are taken from.
    pub set_membership: SetMembership,
    /// The time between the starts of two harvests; `None`: the schedule decides.
    pub interval: Option<Duration>,
    /// The pause between two requests of one harvest.
    pub request_gap: Duration,
    /// The importance of the freshness of this repository for the schedule.
    pub weight: f64,
    /// The rank among repositories with the same identifiers. A higher number is preferred.
    pub priority: u64,
}

impl Default for MirrorSettings {
    fn default() -> Self {
        Self {
            prefixes: Vec::new(),
            sets: Vec::new(),
            set_membership: SetMembership::default(),
            interval: None,
            request_gap: Duration::ZERO,
            weight: 1.0,
            priority: 0,
        }
    }
}

impl MirrorSettings {
    /// Reads a `mirror` table.
    pub(super) fn read(mut table: Table<'_, '_>) -> Self {
        let mut settings = Self {
            prefixes: read_names(&mut table, "prefixes", "a metadataPrefix"),
            sets: read_names(&mut table, "sets", "a setSpec"),
            set_membership: table.read_parsed("set_membership", read_set_membership).unwrap_or_default(),
            ..Self::default()
        };
        settings.interval = table.read_integer("interval_secs", 60..=YEAR_SECS).map(Duration::from_secs);
        if let Some(millis) = table.read_integer("request_gap_millis", 0..=3_600_000) {
            settings.request_gap = Duration::from_millis(millis);
        }
        let read_weight = |weight: f64| (weight > 0.0 && weight <= WEIGHT_MAX).then_some(weight);
        if let Some(weight) = table.read_float("weight", "a number above 0, up to 1000", read_weight) {
            settings.weight = weight;
        }
        table.set_number("priority", 0..=1000, &mut settings.priority);
        table.finish();
        settings
    }
}

/// The highest weight of a repository.
const WEIGHT_MAX: f64 = 1000.0;

/// The names in a list. `kind` names the expected values in faults.
fn read_names(table: &mut Table<'_, '_>, key: &'static str, kind: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in table.read_strings(key) {
        let is_legal = !name.value.is_empty() && name.value.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_legal {
            table.report_fault(name.span, format!("{key} contains \"{}\", which is not {kind}", name.value));
        } else if names.contains(&name.value) {
            table.report_fault(name.span, format!("{key} contains \"{}\" twice", name.value));
        } else {
            names.push(name.value);
        }
    }
    names
}

/// Parses the value of `serve`.
pub(super) fn read_serve(text: &str) -> Result<ServeFrom, String> {
    match text {
        "live" => Ok(ServeFrom::Live),
        "live-then-mirror" => Ok(ServeFrom::LiveThenMirror),
        "mirror" => Ok(ServeFrom::Mirror),
        _ => Err("is not known; expected \"live\", \"live-then-mirror\" or \"mirror\"".to_owned()),
    }
}

/// Parses the value of `mirror.set_membership`.
fn read_set_membership(text: &str) -> Result<SetMembership, String> {
    match text {
        "headers" => Ok(SetMembership::Headers),
        "harvest" => Ok(SetMembership::Harvest),
        _ => Err("is not known; expected \"headers\" or \"harvest\"".to_owned()),
    }
}

/// Parses the value of `mirror.collisions`.
fn read_collisions(text: &str) -> Result<Collisions, String> {
    match text {
        "keep-both" => Ok(Collisions::KeepBoth),
        "prefer" => Ok(Collisions::Prefer),
        "newest" => Ok(Collisions::Newest),
        _ => Err("is not known; expected \"keep-both\", \"prefer\" or \"newest\"".to_owned()),
    }
}
