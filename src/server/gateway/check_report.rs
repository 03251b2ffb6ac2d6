//! The result of `oaimend check` for the page of a repository.

use crate::config::Mapping;
use crate::gateway::repository::{CheckResult, FailedRule};
use crate::server::context::ServerContext;
use serde::Deserialize;

/// The saved result, as far as the page shows it.
#[derive(Debug, Deserialize)]
struct SavedReport {
    checked_at: String,
    base_url: String,
    holds: u64,
    fails: u64,
    warnings: u64,
    rules: Vec<SavedFinding>,
}

#[derive(Debug, Deserialize)]
struct SavedFinding {
    rule: String,
    verdict: String,
    expected: String,
    remedy: String,
    received: String,
}

/// The result of the last check; `None` without one, and if it is of another base URL.
pub(super) async fn last_check(context: &ServerContext, mapping: &Mapping) -> Option<CheckResult> {
    let (reports, id) = (context.store.check_reports.clone(), mapping.id.clone());
    let report = tokio::task::spawn_blocking(move || reports.find(&id)).await.ok()??;
    read(&report, mapping.base_url.as_str())
}

fn read(report: &[u8], base_url: &str) -> Option<CheckResult> {
    let report: SavedReport = serde_json::from_slice(report).ok()?;
    if report.base_url != base_url {
        return None;
    }
    let is_shown = |finding: &SavedFinding| ["fails", "warning"].contains(&finding.verdict.as_str());
    let finding = |finding: SavedFinding| FailedRule {
        fails: finding.verdict == "fails",
        rule: finding.rule,
        expected: finding.expected,
        remedy: finding.remedy,
        received: finding.received,
    };
    Some(CheckResult {
        checked_at: report.checked_at,
        counts: (report.holds, report.fails, report.warnings),
        findings: report.rules.into_iter().filter(is_shown).map(finding).collect(),
    })
}
