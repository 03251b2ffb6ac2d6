//! The report as JUnit XML, for CI systems: one test case for each rule.

use super::Report;
use crate::findings::{Finding, Verdict};
use quick_xml::escape::escape;

/// The report as JUnit XML. Only rules that fail are failures; rules that are not judged are skipped.
pub fn to_junit(report: &Report) -> String {
    let name = match report.profile {
        Some(profile) => format!("oaimend check {} with the profile {}", report.base_url, profile.name()),
        None => format!("oaimend check {}", report.base_url),
    };
    let counts = format!(
        "name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        escape(name.as_str()),
        report.findings.len(),
        report.count(Verdict::Fails),
        report.count(Verdict::Unjudged)
    );
    let cases: String = report.findings.iter().map(to_case).collect();
    let stopped = report
        .stopped
        .map_or_else(String::new, |stopped| format!("    <system-out>{}</system-out>\n", escape(stopped)));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite {counts}>\n{cases}{stopped}  \
         </testsuite>\n</testsuites>\n"
    )
}

fn to_case(finding: &Finding) -> String {
    let entry = finding.rule.entry();
    let start = format!(
        "    <testcase classname=\"oai-pmh.{}\" name=\"{}\"",
        escape(entry.section.replace(['.', ' '], "-").as_str()),
        escape(entry.name)
    );
    let (received, expected) = (escape(finding.received.as_str()), escape(entry.expected));
    let details = format!(
        "{}\nrequest: {}\nreceived: {}\nresponses: {}\nremedy: {}",
        finding.verdict.name(),
        finding.request,
        finding.received,
        finding.responses,
        entry.remedy
    );
    let details = escape(details.as_str());
    match finding.verdict {
        Verdict::Holds => format!("{start}/>\n"),
        Verdict::Unjudged => format!("{start}>\n      <skipped message=\"{received}\"/>\n    </testcase>\n"),
        Verdict::Fails => format!(
            "{start}>\n      <failure type=\"fails\" message=\"{expected}\">{details}</failure>\n    </testcase>\n"
        ),
        Verdict::Warning | Verdict::Advice => {
            format!("{start}>\n      <system-out>{details}</system-out>\n    </testcase>\n")
        }
    }
}
