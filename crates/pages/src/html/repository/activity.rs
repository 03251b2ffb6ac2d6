//! The activity of a repository: the sparkline of its days, and its counts.

use super::super::super::repository::RepositorySummary;
use crate::texts::numbers::{grouped, share};
use crate::texts::repository as texts;
use maud::{Markup, html};
use oaimend_store::DayCounts;
use std::fmt::Write as _;

/// Height of the sparkline, and the width of a day in it.
const HEIGHT: u64 = 24;
const DAY_WIDTH: usize = 4;

/// The requests of each day as bars. The part of the requests whose source failed has another colour.
pub(super) fn sparkline(days: &[DayCounts]) -> Markup {
    let highest = days.iter().map(|day| day.requests.max(day.failures)).max().unwrap_or_default();
    let (mut requests, mut failures) = (String::new(), String::new());
    for (at, day) in days.iter().enumerate() {
        let whole = height_of(day.requests.max(day.failures), highest);
        let failed = height_of(day.failures, highest);
        bar(&mut requests, at, whole);
        bar(&mut failures, at, failed);
    }
    let width = days.len() * DAY_WIDTH;
    html! {
        svg.spark viewBox={ "0 0 " (width) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(description(days)) {
            path.base d={ "M0 " (HEIGHT) "h" (width) } {}
            @if !requests.is_empty() { path d=(requests) {} }
            @if !failures.is_empty() { path.bad d=(failures) {} }
        }
    }
}

/// The height of a bar: at least 2 for a number that is not zero.
fn height_of(number: u64, highest: u64) -> u64 {
    let height = u128::from(number) * u128::from(HEIGHT) / u128::from(highest.max(1));
    let height = u64::try_from(height).unwrap_or(HEIGHT);
    if number == 0 { 0 } else { height.max(2) }
}

fn bar(path: &mut String, at: usize, height: u64) {
    if height > 0 {
        // Writing to a string cannot fail.
        let _ = write!(path, "M{} {HEIGHT}v-{height}h3v{height}z", at * DAY_WIDTH);
    }
}

/// The sparkline in words.
fn description(days: &[DayCounts]) -> String {
    let requests = days.iter().map(|day| day.requests).sum();
    let failed_days = days.iter().filter(|day| day.failures > 0).count() as u64;
    texts::activity(days.len(), requests, failed_days)
}

/// The section about the last days.
pub(super) fn activity_section(summary: &RepositorySummary) -> Markup {
    let total = summary.total();
    let of_items = |number| share(number, total.items()).map(|share| format!(" ({share})"));
    html! {
        section aria-labelledby="activity" {
            h2 id="activity" { (texts::last_days(summary.days.len())) }
            @if total == DayCounts::default() {
                p { (texts::NO_ACTIVITY) }
            } @else {
                (sparkline(&summary.days))
                dl.facts {
                    div { dt { (texts::REQUESTS) } dd { (grouped(total.requests)) } }
                    div { dt { (texts::FAILURES) } dd { (grouped(total.failures)) } }
                    div { dt { (texts::VALID_ITEMS) } dd { (grouped(total.passed)) } }
                    div { dt { (texts::REPAIRED_ITEMS) } dd { (grouped(total.repaired)) (of_items(total.repaired).unwrap_or_default()) } }
                    div { dt { (texts::QUARANTINED_ITEMS) } dd { (grouped(total.quarantined)) (of_items(total.quarantined).unwrap_or_default()) } }
                }
                p.note {
                    (texts::ACTIVITY_NOTE)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_bars_with_a_description() {
        let day = |requests, failures| DayCounts { requests, failures, ..DayCounts::default() };
        let spark = sparkline(&[day(0, 0), day(120, 0), day(60, 30), day(1, 0)]).into_string();
        for part in [
            "aria-label=\"Last 4 days: 181 requests, the source failed on 1 day\"",
            "<path d=\"M4 24v-24h3v24zM8 24v-12h3v12zM12 24v-2h3v2z\">",
            "<path class=\"bad\" d=\"M8 24v-6h3v6z\">",
        ] {
            assert!(spark.contains(part), "{part}: {spark}");
        }
        let empty = sparkline(&[day(0, 0)]).into_string();
        assert!(
            empty.contains("0 requests, the source did not fail") && !empty.contains("<path d"),
            "{empty}"
        );
    }
}
