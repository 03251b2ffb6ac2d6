//! The report as one JSON document.

use super::Report;
use crate::findings::{Finding, Verdict};
use crate::profiles::Profile;
use serde_json::{Value, json};

/// The report as one JSON document.
pub fn to_json(report: &Report) -> Value {
    let finding = |finding: &Finding| {
        let entry = finding.rule.entry();
        json!({
            "rule": entry.name,
            "verdict": finding.verdict.name(),
            "section": entry.section,
            "expected": entry.expected,
            "request": finding.request,
            "received": finding.received,
            "responses": finding.responses,
            "remedy": entry.remedy,
        })
    };
    json!({
        "base_url": report.base_url,
        "profile": report.profile.map(Profile::name),
        "requests": report.requests,
        "stopped": report.stopped,
        "holds": report.count(Verdict::Holds),
        "fails": report.count(Verdict::Fails),
        "warnings": report.count(Verdict::Warning),
        "advice": report.count(Verdict::Advice),
        "not_judged": report.count(Verdict::Unjudged),
        "rules": report.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}
