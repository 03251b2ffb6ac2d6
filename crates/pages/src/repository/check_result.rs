//! The result of `oaimend check`.

use serde::Deserialize;

/// The result of `oaimend check`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckResult {
    /// The time of the check.
    pub checked_at: String,
    /// The numbers of rules that hold, and that fail or deserve a warning.
    pub counts: (u64, u64, u64),
    /// The rules that fail or deserve a warning.
    pub findings: Vec<FailedRule>,
}

/// A rule that fails or deserves a warning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedRule {
    /// The name of the rule.
    pub rule: String,
    /// Whether it fails; else it is a warning.
    pub fails: bool,
    /// The requirement.
    pub expected: String,
    /// What the operator of the source can do.
    pub remedy: String,
    /// What the source sent. For operators of oaimend only.
    pub received: String,
}

/// The saved result, as far as it is shown.
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

impl CheckResult {
    /// Reads a saved result; `None` if it is of another base URL, or of another version of the program.
    pub fn read(report: &[u8], base_url: &str) -> Option<Self> {
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
        Some(Self {
            checked_at: report.checked_at,
            counts: (report.holds, report.fails, report.warnings),
            findings: report.rules.into_iter().filter(is_shown).map(finding).collect(),
        })
    }
}
