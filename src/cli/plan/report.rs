//! The plan as tables and as JSON.

use std::fmt::Write as _;

use oaimend_mirror::{PlannedHarvests, PlannedRepository};
use oaimend_rules::schedule::Plan;
use serde_json::{Value, json};

const DAY_SECS: f64 = 86_400.0;

pub(in super::super) fn format_text(planned: &PlannedHarvests) -> String {
    let mut text = format_repositories(planned);
    text.push('\n');
    text.push_str(&format_costs(planned));
    if !planned.plan.meets_target() {
        let _ = writeln!(
            text,
            "\nThe wanted freshness of {} is not reached. Shorter intervals need a lower mirror.interval_min_secs, or a \
             lower mirror.interval_secs in the mappings.",
            planned.policy.freshness.share()
        );
    }
    let unknown = planned.repositories.iter().filter(|repository| repository.facts.updates_per_sec.is_none());
    let unknown: Vec<&str> = unknown.map(|repository| repository.id.as_str()).collect();
    if !unknown.is_empty() {
        let _ =
            writeln!(text, "\nThe rate is unknown before the first complete harvest: {}", unknown.join(", "));
    }
    text
}

fn format_repositories(planned: &PlannedHarvests) -> String {
    let rows = || planned.repositories.iter().zip(planned.plan.intervals_secs());
    let ids = rows().map(|(repository, _)| repository.id.len()).max().unwrap_or(0).max("repository".len());
    let mut table = format!("{:ids$}  {:>12}  {:>12}  interval\n", "repository", "records", "updates/day");
    for (PlannedRepository { id, facts, is_fixed, .. }, &interval_secs) in rows() {
        let updates = match facts.updates_per_sec {
            Some(rate) => format!("{:.1}", rate * DAY_SECS),
            None => "unknown".to_owned(),
        };
        let fixed = if *is_fixed { " (fixed)" } else { "" };
        let interval = describe_secs(interval_secs);
        let _ = writeln!(table, "{id:ids$}  {:>12}  {updates:>12}  {interval}{fixed}", facts.records);
    }
    table
}

fn format_costs(planned: &PlannedHarvests) -> String {
    let mut table = format!("{:17}  {:>12}  {:>12}  {:>9}\n", "", "harvests/day", "records/day", "freshness");
    for (name, plan) in [("this plan", &planned.plan), ("equal intervals", &planned.uniform)] {
        let _ = writeln!(
            table,
            "{name:17}  {:>12.1}  {:>12.1}  {:>9.4}",
            plan.harvests_per_sec() * DAY_SECS,
            plan.records_per_sec() * DAY_SECS,
            plan.freshness()
        );
    }
    table
}

/// A time in its two largest units, such as `6 h 12 min`.
fn describe_secs(secs: f64) -> String {
    let minutes = (secs / 60.0).round() as u64;
    let (days, hours, minutes) = (minutes / 1_440, minutes / 60 % 24, minutes % 60);
    let parts = [(days, "d"), (hours, "h"), (minutes, "min")];
    let parts: Vec<String> = parts
        .iter()
        .skip_while(|(count, _)| *count == 0)
        .take(2)
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    if parts.is_empty() { format!("{secs:.0} s") } else { parts.join(" ") }
}

pub(in super::super) fn document(planned: &PlannedHarvests) -> Value {
    let rows = planned.repositories.iter().zip(planned.plan.intervals_secs());
    let repositories: Vec<Value> = rows
        .map(|(PlannedRepository { id, facts, load, is_fixed }, interval_secs)| {
            json!({
                "id": id,
                "records": facts.records,
                "updates_per_sec": facts.updates_per_sec,
                "weight": load.weight,
                "interval_secs": interval_secs,
                "is_fixed": is_fixed,
            })
        })
        .collect();
    let costs = |plan: &Plan| {
        json!({
            "harvests_per_sec": plan.harvests_per_sec(),
            "records_per_sec": plan.records_per_sec(),
            "freshness": plan.freshness(),
            "meets_target": plan.meets_target(),
        })
    };
    json!({
        "freshness_target": planned.policy.freshness.share(),
        "repositories": repositories,
        "plan": costs(&planned.plan),
        "uniform": costs(&planned.uniform),
    })
}

#[cfg(test)]
mod tests {
    use super::describe_secs;

    #[test]
    fn intervals_have_their_two_largest_units() {
        for (secs, text) in [
            (20.0, "20 s"),
            (3_600.0, "1 h"),
            (22_320.4, "6 h 12 min"),
            (604_800.0, "7 d"),
            (90_061.0, "1 d 1 h"),
            (86_460.0, "1 d"),
        ] {
            assert_eq!(describe_secs(secs), text);
        }
    }
}
