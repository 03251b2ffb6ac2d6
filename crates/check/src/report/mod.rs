//! The result of a check, and its forms for programs and for people.

mod html;
mod json;
mod junit;

pub use html::to_html;
pub use json::to_json;
pub use junit::to_junit;

use super::findings::{Finding, Verdict};
use super::profiles::Profile;

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Report {
    /// The base URL that was checked, without secrets.
    pub base_url: String,
    /// The profile, if the report is limited to one.
    pub profile: Option<Profile>,
    /// One finding for each rule, in the order of [`RULES`](super::RULES).
    pub findings: Vec<Finding>,
    /// The number of requests sent.
    pub requests: usize,
    /// Why the check ended before its last request, if it did.
    pub stopped: Option<&'static str>,
}

impl Report {
    /// The number of rules with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }

    /// The report with the rules of a profile, or with all rules that need no profile.
    #[must_use]
    pub fn for_profile(mut self, profile: Option<Profile>) -> Self {
        let findings = self.findings.into_iter();
        self.findings = match profile {
            Some(profile) => findings.filter_map(|finding| profile.adjust(finding)).collect(),
            None => findings.filter(|finding| !finding.rule.is_of_profile()).collect(),
        };
        self.profile = profile;
        self
    }

    /// The findings with this verdict, in the order of the table.
    fn with(&self, verdict: Verdict) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.verdict == verdict)
    }
}
