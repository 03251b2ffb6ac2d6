//! The report as one HTML file for the operator of the repository: without script, images, links to other files, or
//! anything else that is loaded.

use super::Report;
use crate::findings::{Finding, Verdict};
use crate::profiles::Profile;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use oaimend_base::clock::utc_datetime;
use oaimend_html::Site;
use std::time::SystemTime;

/// The report as one HTML document; `checked_at` is the time of the check.
pub fn to_html(report: &Report, checked_at: SystemTime) -> String {
    let title = format!("Conformance of {}", report.base_url);
    // The style sheet is text of this program.
    let css: String =
        Site::new("oaimend", None, "").style_sheets().iter().map(|sheet| sheet.css.clone()).collect();
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(css)) }
            }
            body {
                main id="main" {
                    h1 { (title) }
                    (summary(report, checked_at))
                    @for (verdict, heading) in SECTIONS {
                        (section(report, verdict, heading))
                    }
                    (all_rules(report))
                }
                footer { p { "Written by oaimend " (env!("CARGO_PKG_VERSION")) "." } }
            }
        }
    };
    document.into_string()
}

/// The verdicts that need action, with the headings of their sections.
const SECTIONS: [(Verdict, &str); 3] = [
    (Verdict::Fails, "Rules that fail"),
    (Verdict::Warning, "Warnings: allowed, but a problem for some harvesters"),
    (Verdict::Advice, "Advice: better for harvesters and users"),
];

fn summary(report: &Report, checked_at: SystemTime) -> Markup {
    let count = |verdict| report.count(verdict);
    html! {
        p {
            "Checked at " time datetime=(utc_datetime(checked_at)) { (utc_datetime(checked_at)) }
            " with " (report.requests) " requests"
            @if let Some(profile) = report.profile { ", against the rules of " (profile.title()) }
            "."
        }
        p {
            span.state.bad[count(Verdict::Fails) > 0] { (count(Verdict::Fails)) " fail" } " "
            span.state { (count(Verdict::Warning)) " warnings" } " "
            span.state { (count(Verdict::Advice)) " advice" } " "
            span.state { (count(Verdict::Holds)) " hold" } " "
            span.state { (count(Verdict::Unjudged)) " not judged" }
        }
        @if let Some(stopped) = report.stopped {
            p.warning { "The check is incomplete. Reason for the last requests: " (stopped) "." }
        }
    }
}

fn section(report: &Report, verdict: Verdict, heading: &str) -> Markup {
    html! {
        @if report.count(verdict) > 0 {
            section {
                h2 { (heading) }
                @for finding in report.with(verdict) { (details(finding)) }
            }
        }
    }
}

fn details(finding: &Finding) -> Markup {
    let entry = finding.rule.entry();
    html! {
        article id=(entry.name) {
            h3 { (entry.name) " " span.count { (entry.section) } }
            dl {
                div { dt { "Expected" } dd { (entry.expected) } }
                div { dt { "Request" } dd { code { bdi { (finding.request) } } } }
                div {
                    dt { "Received" }
                    dd {
                        code { bdi { (finding.received) } }
                        @if finding.responses > 1 { " (" (finding.responses) " times)" }
                    }
                }
                div { dt { "Remedy" } dd { strong { (entry.remedy) } } }
            }
        }
    }
}

fn all_rules(report: &Report) -> Markup {
    html! {
        section {
            h2 { "All rules" }
            table.plain {
                thead { tr { th scope="col" { "Rule" } th scope="col" { "Result" } th scope="col" { "Requirement" } } }
                tbody {
                    @for finding in &report.findings {
                        @let entry = finding.rule.entry();
                        tr {
                            th scope="row" { (entry.name) }
                            td { span.state.bad[finding.verdict == Verdict::Fails] { (finding.verdict.name()) } }
                            td {
                                (entry.expected)
                                @if let Some(demand) = report.profile.and_then(|profile: Profile| profile.demand(finding.rule)) {
                                    " " span.note { (demand.name()) }
                                }
                                @if finding.verdict == Verdict::Unjudged { br; span.note { (finding.received) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
