//! The sections of the page of a repository.

use super::super::super::record::{RecordAddress, RepositoryAddress};
use super::super::super::repository::{RepositoryDetails, Timeline, TimelineRow, explain_failure};
use super::super::repairs::{before_and_after, meaning};
use super::numbers::{counted, grouped};
use super::state::time;
use super::{TEXT_BYTES_MAX, start_of};
use maud::{Markup, html};
use oaimend_store::{Excerpt, FrequentRepair, SourceFailure};

/// Maximum number of failures that are shown.
const FAILURES_SHOWN_MAX: usize = 20;
/// Maximum number of formats that are shown.
const FORMATS_SHOWN_MAX: usize = 100;
/// Maximum number of findings of a check that are shown.
const FINDINGS_SHOWN_MAX: usize = 100;

/// The windows that the mirror has harvested, as bars and as text.
pub(super) fn timeline(timeline: &Timeline) -> Markup {
    html! {
        section.timeline aria-labelledby="timeline" {
            h2 id="timeline" { "Harvested datestamps" }
            @for row in &timeline.rows { (timeline_row(row)) }
            p.axis.note { span { (timeline.from) } span { (timeline.until) } }
        }
    }
}

fn timeline_row(row: &TimelineRow) -> Markup {
    let prefix = start_of(&row.prefix, TEXT_BYTES_MAX);
    let windows = match (row.windows.as_slice(), row.left_out) {
        ([], _) => "nothing is complete yet".to_owned(),
        (windows, 0) => windows.join(", "),
        (windows, left_out) => format!("{}, and {left_out} more windows", windows.join(", ")),
    };
    html! {
        div.window {
            p { b { bdi { (prefix) } } " " span.note { (windows) } }
            svg viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label={ (prefix) ": " (windows) } {
                rect.base width="1000" height="10" {}
                @for (start, end) in &row.spans {
                    rect x=(start) width=(end.saturating_sub(*start).max(2)) height="10" {}
                }
            }
        }
    }
}

/// The table of formats.
pub(super) fn formats(details: &RepositoryDetails) -> Markup {
    let has_records = details.mirror.is_some();
    html! {
        section aria-labelledby="formats" {
            h2 id="formats" { "Formats" }
            @match details.formats.as_deref() {
                None => p { "Not known yet." },
                Some(formats) => {
                    table.plain {
                        caption { (counted(formats.len() as u64, "format", "formats")) }
                        thead {
                            tr {
                                th scope="col" { "Prefix" }
                                @if has_records { th.n scope="col" { "Records" } th.n scope="col" { "Deleted" } }
                                th scope="col" { "Namespace" }
                            }
                        }
                        tbody {
                            @for format in formats.iter().take(FORMATS_SHOWN_MAX) {
                                tr {
                                    th scope="row" { bdi { (start_of(&format.prefix, TEXT_BYTES_MAX)) } }
                                    @if has_records {
                                        @match format.records {
                                            Some((records, deleted)) => {
                                                td.n { (grouped(records)) } td.n { (grouped(deleted)) }
                                            },
                                            None => { td.n { "–" } td.n { "–" } },
                                        }
                                    }
                                    td { bdi { (start_of(&format.namespace, TEXT_BYTES_MAX)) } }
                                }
                            }
                        }
                    }
                    (left_out(formats.len().saturating_sub(FORMATS_SHOWN_MAX)))
                }
            }
        }
    }
}

/// The table of sets.
pub(super) fn sets(details: &RepositoryDetails, base: &str) -> Markup {
    let address = RepositoryAddress { repository: &details.summary.id };
    let has_pages = details.summary.has_record_pages && details.mirror.is_some();
    html! {
        section aria-labelledby="sets" {
            h2 id="sets" { "Sets" }
            @match details.sets.as_deref() {
                None => p { "Not known yet." },
                Some([]) => p { "The source has no sets." },
                Some(sets) => {
                    table.plain {
                        caption { (counted((sets.len() + details.left_out_sets) as u64, "set", "sets")) }
                        thead { tr { th scope="col" { "setSpec" } th scope="col" { "Name" } } }
                        tbody {
                            @for set in sets {
                                @let set_spec = start_of(&set.set_spec, TEXT_BYTES_MAX);
                                tr {
                                    th scope="row" {
                                        @if has_pages {
                                            a href=(address.set(base, &set.set_spec)) { bdi { (set_spec) } }
                                        } @else {
                                            bdi { (set_spec) }
                                        }
                                    }
                                    td { bdi { (start_of(&set.name, TEXT_BYTES_MAX)) } }
                                }
                            }
                        }
                    }
                    @if details.left_out_sets > 0 {
                        p { "… and " (grouped(details.left_out_sets as u64)) " more"
                            @if has_pages { ": " a href=(address.sets(base)) { "all sets" } } }
                    }
                }
            }
        }
    }
}

/// The most frequent repairs. Text outside records never reaches harvesters after a repair, so only operators see it.
pub(super) fn repairs(details: &RepositoryDetails, base: &str, is_operator: bool) -> Markup {
    html! {
        section.repairs aria-labelledby="repairs" {
            h2 id="repairs" { "Most frequent repairs" }
            @if details.repairs.is_empty() {
                p { "Nothing was repaired in the last " (details.summary.days.len()) " days." }
            } @else {
                p.note { "In the last " (details.summary.days.len()) " days, each with its newest example." }
                ol {
                    @for repair in &details.repairs { (repair_item(details, repair, base, is_operator)) }
                }
            }
        }
    }
}

fn repair_item(
    details: &RepositoryDetails,
    repair: &FrequentRepair,
    base: &str,
    is_operator: bool,
) -> Markup {
    let what = meaning(&repair.name);
    let example = repair.example.as_ref().filter(|example| is_operator || example.record.is_some());
    html! {
        li {
            b { (repair.name) } " " span.note { (counted(repair.count, "time", "times")) }
            @if let Some(what) = what { p { (what) } }
            @if let Some(example) = example {
                @if let Some(identifier) = &example.record {
                    p.note {
                        "Record "
                        @if details.summary.has_record_pages {
                            @let address = RecordAddress { repository: &details.summary.id, identifier, format: None };
                            a.identifier href=(address.page(base)) { bdi { (identifier) } }
                        } @else {
                            bdi.identifier { (identifier) }
                        }
                    }
                }
                @let [before, after] = [&example.original, &example.replacement].map(|text| Excerpt::new(text.as_bytes()));
                (before_and_after(&before, &after))
            }
        }
    }
}

/// The last failures of the source.
pub(super) fn failures(details: &RepositoryDetails, is_operator: bool) -> Markup {
    let shown = || details.failures.iter().take(FAILURES_SHOWN_MAX);
    html! {
        section aria-labelledby="failures" {
            h2 id="failures" { "Failures of the source" }
            @if details.failures.is_empty() {
                p { "No failure is known." }
            } @else {
                table.plain {
                    caption { "The last " (counted(shown().count() as u64, "failure", "failures")) ", the newest first" }
                    thead { tr { th scope="col" { "Time" } th scope="col" { "Failure" } } }
                    tbody { @for failure in shown() { (failure_row(failure, is_operator)) } }
                }
            }
        }
    }
}

fn failure_row(failure: &SourceFailure, is_operator: bool) -> Markup {
    html! {
        tr {
            th scope="row" { (time(&failure.at)) }
            td {
                b { (failure.reason) } br; (explain_failure(&failure.reason))
                @if is_operator {
                    p.note { (failure.details) }
                    p { code { (failure.request) } }
                }
            }
        }
    }
}

/// The result of the last check.
pub(super) fn check(details: &RepositoryDetails, is_operator: bool) -> Markup {
    html! {
        section aria-labelledby="check" {
            h2 id="check" { "Conformance of the source" }
            @if let Some(check) = &details.check {
                @let (holds, fails, warnings) = check.counts;
                p {
                    "Checked at " (time(&check.checked_at)) ": "
                    (counted(holds, "rule holds", "rules hold")) ", "
                    (counted(fails, "fails", "fail")) ", "
                    (counted(warnings, "warning", "warnings")) "."
                }
                @if !check.findings.is_empty() {
                    table.plain {
                        caption { "Rules that fail or deserve a warning" }
                        thead { tr { th scope="col" { "Rule" } th scope="col" { "Requirement and remedy" } } }
                        tbody {
                            @for finding in check.findings.iter().take(FINDINGS_SHOWN_MAX) {
                                tr {
                                    th scope="row" {
                                        (finding.rule) br;
                                        span.state.bad[finding.fails] { @if finding.fails { "fails" } @else { "warning" } }
                                    }
                                    td {
                                        (finding.expected) br; span.note { (finding.remedy) }
                                        @if is_operator { p { code { (finding.received) } } }
                                    }
                                }
                            }
                        }
                    }
                }
            } @else {
                p {
                    "Not checked yet."
                    @if is_operator { " " code { "oaimend check " (details.summary.id) } " saves its result for this page." }
                }
            }
        }
    }
}

fn left_out(count: usize) -> Markup {
    html! { @if count > 0 { p.cut { "… and " (count) " more" } } }
}
