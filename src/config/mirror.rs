//! The keys of the mirror: the `[mirror]` table of `oaimend.toml`; `serve` and the `mirror` table of a mapping.

use super::file::Table;
use super::identify::{read_email, read_name};
use oaimend_mirror::settings::{
    INTERVAL_MAX_SECS, INTERVAL_MIN_SECS, MirrorPolicy, MirrorSettings, SetMembership,
};
use oaimend_rules::schedule::{FreshnessTarget, IntervalBounds};
use oaimend_store::Collisions;
use std::time::Duration;

/// Reads the `[mirror]` table of `oaimend.toml`.
pub(super) fn read_mirror_policy(policy: &mut MirrorPolicy, mut table: Table<'_, '_>) {
    let expected = "a number from 0.5 to less than 1";
    if let Some(freshness) = table.read_float("freshness", expected, FreshnessTarget::new) {
        policy.freshness = freshness;
    }
    let min_secs = table.read_integer("interval_min_secs", 60..=YEAR_SECS).unwrap_or(INTERVAL_MIN_SECS);
    let max_secs = table.read_integer("interval_max_secs", min_secs..=YEAR_SECS);
    policy.intervals = interval_bounds(min_secs, max_secs.unwrap_or(INTERVAL_MAX_SECS.max(min_secs)));
    table.set_count("harvests_max", 1..=1000, &mut policy.harvests_max);
    policy.aggregate = table.read_bool("aggregate").unwrap_or(policy.aggregate);
    policy.aggregate_name = table.read_parsed("aggregate_name", read_name);
    for email in table.read_strings("aggregate_emails") {
        match read_email(&email.value) {
            Ok(address) => policy.aggregate_emails.push(address),
            Err(problem) => {
                let value = email.value.escape_debug();
                table.report_fault(email.span, format!("mirror.aggregate_emails: \"{value}\" {problem}"));
            }
        }
    }
    policy.collisions = table.read_parsed("collisions", read_collisions).unwrap_or_default();
    policy.total_elements = table.read_bool("total_elements").unwrap_or(policy.total_elements);
    table.finish();
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

/// The longest interval that can be configured.
const YEAR_SECS: u64 = 31_536_000;

fn interval_bounds(min_secs: u64, max_secs: u64) -> IntervalBounds {
    IntervalBounds::new(min_secs as f64, max_secs as f64).expect("the bounds are in order")
}

/// Reads a `mirror` table.
pub(super) fn read_mirror_settings(mut table: Table<'_, '_>) -> MirrorSettings {
    let mut settings = MirrorSettings {
        prefixes: read_names(&mut table, "prefixes", "a metadataPrefix"),
        sets: read_names(&mut table, "sets", "a setSpec"),
        set_membership: table.read_parsed("set_membership", read_set_membership).unwrap_or_default(),
        ..MirrorSettings::default()
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
