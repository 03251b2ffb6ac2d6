//! The sections of the page of a repository.

use super::super::super::record::{RecordAddress, RepositoryAddress};
use super::super::super::repository::{RepositoryDetails, Timeline, TimelineRow};
use super::super::repairs::{before_and_after, meaning};
use super::state::time;
use super::{TEXT_BYTES_MAX, start_of};
use crate::texts::failures::explain_failure;
use crate::texts::numbers::grouped;
use crate::texts::{common, repository as texts};
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
            h2 id="timeline" { (texts::TIMELINE) }
            @for row in &timeline.rows { (timeline_row(row)) }
            p.axis.note { span { (timeline.from) } span { (timeline.until) } }
        }
    }
}

fn timeline_row(row: &TimelineRow) -> Markup {
    let prefix = start_of(&row.prefix, TEXT_BYTES_MAX);
    let windows = match (row.windows.as_slice(), row.left_out) {
        ([], _) => texts::NOTHING_COMPLETE.to_owned(),
        (windows, 0) => windows.join(", "),
        (windows, left_out) => texts::and_more_windows(&windows.join(", "), left_out),
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
            h2 id="formats" { (common::FORMATS) }
            @match details.formats.as_deref() {
                None => p { (texts::NOT_KNOWN) },
                Some(formats) => {
                    table.plain {
                        caption { (texts::number_of_formats(formats.len() as u64)) }
                        thead {
                            tr {
                                th scope="col" { (texts::PREFIX) }
                                @if has_records { th.n scope="col" { (common::RECORDS) } th.n scope="col" { (texts::DELETED) } }
                                th scope="col" { (texts::NAMESPACE) }
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
            h2 id="sets" { (common::SETS) }
            @match details.sets.as_deref() {
                None => p { (texts::NOT_KNOWN) },
                Some([]) => p { (texts::NO_SETS) },
                Some(sets) => {
                    table.plain {
                        caption { (texts::number_of_sets((sets.len() + details.left_out_sets) as u64)) }
                        thead { tr { th scope="col" { (texts::SET_SPEC) } th scope="col" { (common::NAME) } } }
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
                        p { (common::and_more(details.left_out_sets as u64))
                            @if has_pages { ": " a href=(address.sets(base)) { (texts::ALL_SETS) } } }
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
            h2 id="repairs" { (texts::REPAIRS) }
            @if details.repairs.is_empty() {
                p { (texts::no_repairs_in(details.summary.days.len())) }
            } @else {
                p.note { (texts::repairs_in(details.summary.days.len())) }
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
            b { (repair.name) } " " span.note { (texts::times(repair.count)) }
            @if let Some(what) = what { p { (what) } }
            @if let Some(example) = example {
                @if let Some(identifier) = &example.record {
                    p.note {
                        (texts::EXAMPLE_RECORD)
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
            h2 id="failures" { (texts::FAILURES) }
            @if details.failures.is_empty() {
                p { (texts::NO_FAILURES) }
            } @else {
                table.plain {
                    caption { (texts::last_failures(shown().count() as u64)) }
                    thead { tr { th scope="col" { (texts::TIME) } th scope="col" { (texts::FAILURE) } } }
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
            h2 id="check" { (texts::CONFORMANCE) }
            @if let Some(check) = &details.check {
                p { (texts::checked(&time(&check.checked_at), check.counts)) }
                @if !check.findings.is_empty() {
                    table.plain {
                        caption { (texts::FINDINGS) }
                        thead { tr { th scope="col" { (texts::RULE) } th scope="col" { (texts::REQUIREMENT) } } }
                        tbody {
                            @for finding in check.findings.iter().take(FINDINGS_SHOWN_MAX) {
                                tr {
                                    th scope="row" {
                                        (finding.rule) br;
                                        span.state.bad[finding.fails] { @if finding.fails { (texts::FAILS) } @else { (texts::WARNING) } }
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
                    (texts::NOT_CHECKED)
                    @if is_operator { " " (texts::how_to_check(&details.summary.id)) }
                }
            }
        }
    }
}

fn left_out(count: usize) -> Markup {
    html! { @if count > 0 { p.cut { (common::and_more(count as u64)) } } }
}
