//! The text of a report. Pure.
//!
//! Texts of sources are shortened, and have no control characters and no line breaks.

use oaimend_pages::repository::CheckResult;
use oaimend_repair::RepairId;
use oaimend_store::{DayCounts, FrequentRepair, QuarantineEntry, SourceFailure};
use std::fmt::Write as _;
use url::Url;

/// Maximum number of repairs in a report.
pub(super) const REPAIRS_MAX: usize = 30;
/// Maximum number of quarantined records in a report.
const QUARANTINED_MAX: usize = 20;
/// Maximum number of failed requests in a report.
const FAILURES_MAX: usize = 10;
/// Maximum number of rules in a report.
const RULES_MAX: usize = 30;
/// Longest text of a source in a report, in characters.
const QUOTED_CHARS_MAX: usize = 160;
/// Fewer failed requests in a week are no outage.
const OUTAGE_FAILURES_MIN: u64 = 5;

/// What was found about a source in seven days.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WeekFindings {
    /// The base URL of the source, without secrets.
    pub(super) base_url: String,
    /// The first and the last day, `YYYY-MM-DD`.
    pub(super) days: [String; 2],
    /// The counts of all seven days.
    pub(super) counts: DayCounts,
    /// The repairs, the most frequent first.
    pub(super) repairs: Vec<FrequentRepair>,
    /// The quarantined records that were seen in these days, the latest first.
    pub(super) quarantined: Vec<QuarantineEntry>,
    /// The failed requests that are known, the latest first.
    pub(super) failures: Vec<SourceFailure>,
    /// The result of `oaimend check`, if it was run in these days.
    pub(super) check: Option<CheckResult>,
}

/// A report, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderReport {
    /// The subject: one line of printable ASCII.
    pub subject: String,
    /// The text.
    pub text: String,
}

impl WeekFindings {
    /// Whether there is nothing to report.
    fn is_empty(&self) -> bool {
        let fails = self.check.as_ref().is_some_and(|check| check.findings.iter().any(|rule| rule.fails));
        self.repairs.is_empty() && self.quarantined.is_empty() && !self.had_outage() && !fails
    }

    fn had_outage(&self) -> bool {
        self.counts.failures >= OUTAGE_FAILURES_MIN
    }
}

/// The report; `None` if there is nothing to report. `public_url` is that of oaimend, `docs_url` the address of
/// `docs/reference/`.
pub(super) fn render(
    findings: &WeekFindings,
    public_url: &str,
    docs_url: Option<&Url>,
) -> Option<ProviderReport> {
    if findings.is_empty() {
        return None;
    }
    let [first, last] = &findings.days;
    let host = Url::parse(&findings.base_url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let subject =
        format!("OAI-PMH responses of {}: defects from {first} to {last}", host.unwrap_or_default());
    let mut text = format!(
        "Dear administrator of the repository\n{}\n\n\
         oaimend at {public_url}\n\
         reads your repository by OAI-PMH and repairs its responses for harvesters.\n\
         This report lists the defects of your responses from {first} to {last}\n\
         (UTC). It is sent at most once a week. If you do not want it, please reply\n\
         to this mail.\n\n",
        quoted(&findings.base_url)
    );
    write_counts(&mut text, findings);
    write_repairs(&mut text, &findings.repairs, docs_url);
    write_quarantined(&mut text, &findings.quarantined, docs_url);
    write_failures(&mut text, findings, docs_url);
    write_check(&mut text, findings.check.as_ref(), docs_url);
    Some(ProviderReport { subject, text })
}

// Writing to a string does not fail, here and below.

fn write_counts(text: &mut String, findings: &WeekFindings) {
    let DayCounts { requests, passed, repaired, quarantined, failures } = findings.counts;
    let _ = write!(
        text,
        "Summary\n-------\n\
         Requests                               {requests}\n\
         Requests without a usable response     {failures}\n\
         Records without a defect               {passed}\n\
         Records that were repaired             {repaired}\n\
         Records that could not be repaired     {quarantined}\n\n"
    );
}

fn write_repairs(text: &mut String, repairs: &[FrequentRepair], docs_url: Option<&Url>) {
    if repairs.is_empty() {
        return;
    }
    text.push_str("Repaired defects\n----------------\n");
    for repair in repairs.iter().take(REPAIRS_MAX) {
        let times = if repair.count == 1 { "time" } else { "times" };
        let _ = writeln!(text, "{}: {} {times}", repair.name, repair.count);
        if let Some(id) = RepairId::from_name(&repair.name) {
            let _ = writeln!(text, "  Repair:   {}", id.entry().what);
        }
        if let Some(example) = &repair.example {
            if let Some(record) = &example.record {
                let _ = writeln!(text, "  Record:   {}", quoted(record));
            }
            let _ = writeln!(text, "  Sent:     {}", quoted(&example.original));
            let _ = writeln!(text, "  Repaired: {}", quoted(&example.replacement));
        }
        let _ = writeln!(text, "  Details:  {}\n", link(docs_url, "repairs.md", &repair.name));
    }
    write_rest(text, repairs.len(), REPAIRS_MAX);
}

fn write_quarantined(text: &mut String, records: &[QuarantineEntry], docs_url: Option<&Url>) {
    if records.is_empty() {
        return;
    }
    text.push_str("Records that harvesters do not receive\n--------------------------------------\n");
    text.push_str("Their defects have no safe repair.\n");
    for record in records.iter().take(QUARANTINED_MAX) {
        let identifier =
            record.plain_identifier().as_deref().map_or("without a readable identifier".to_owned(), quoted);
        let _ = writeln!(text, "{identifier}: {}, last seen {}", quoted(&record.why), record.last_seen);
        let _ = writeln!(text, "  Request:  {}", quoted(&record.request));
    }
    write_rest(text, records.len(), QUARANTINED_MAX);
    let _ = writeln!(text, "Details:    {}\n", link(docs_url, "unrepairable.md", ""));
}

fn write_failures(text: &mut String, findings: &WeekFindings, docs_url: Option<&Url>) {
    if !findings.had_outage() {
        return;
    }
    text.push_str("Requests without a usable response\n----------------------------------\n");
    for failure in findings.failures.iter().take(FAILURES_MAX) {
        let _ = writeln!(text, "{}: {}", failure.at, quoted(&failure.reason));
        let _ = writeln!(text, "  Request:  {}", quoted(&failure.request));
    }
    let count = usize::try_from(findings.counts.failures).unwrap_or(usize::MAX);
    write_rest(text, count, findings.failures.len().min(FAILURES_MAX));
    let _ = writeln!(text, "Details:    {}\n", link(docs_url, "errors.md", "reasons"));
}

fn write_check(text: &mut String, check: Option<&CheckResult>, docs_url: Option<&Url>) {
    let Some(check) = check.filter(|check| !check.findings.is_empty()) else { return };
    let _ = writeln!(
        text,
        "Rules of OAI-PMH, checked {}\n-----------------------------------------------",
        check.checked_at
    );
    for rule in check.findings.iter().take(RULES_MAX) {
        let verdict = if rule.fails { "does not hold" } else { "deserves a change" };
        let _ = writeln!(text, "{} {verdict}", quoted(&rule.rule));
        for (label, value) in
            [("Expected:", &rule.expected), ("Received:", &rule.received), ("Remedy:  ", &rule.remedy)]
        {
            if !value.is_empty() {
                let _ = writeln!(text, "  {label} {}", quoted(value));
            }
        }
    }
    write_rest(text, check.findings.len(), RULES_MAX);
    let _ = writeln!(text, "Details:    {}\n", link(docs_url, "conformance.md", ""));
}

/// Says how many entries of a list are left out.
fn write_rest(text: &mut String, count: usize, shown: usize) {
    if count > shown {
        let _ = writeln!(text, "... and {} more", count - shown);
    }
}

/// The address of a heading of the documentation.
fn link(docs_url: Option<&Url>, page: &str, heading: &str) -> String {
    let heading = if heading.is_empty() { String::new() } else { format!("#{heading}") };
    match docs_url {
        Some(url) => format!("{url}{page}{heading}"),
        None => format!("docs/reference/{page}{heading} of oaimend"),
    }
}

/// A text of a source in one short line. Characters that are not visible, or that change the direction of the text, are
/// escaped.
fn quoted(text: &str) -> String {
    let mut line = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == QUOTED_CHARS_MAX {
            line.push_str("...");
            break;
        }
        match c {
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => {
                line.extend(c.escape_unicode());
            }
            c if c.is_control() => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    if line.is_empty() { "(nothing)".to_owned() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_pages::repository::FailedRule;
    use oaimend_store::RepairExample;

    fn findings() -> WeekFindings {
        let days = ["2026-02-23", "2026-03-01"].map(str::to_owned);
        WeekFindings { base_url: "https://source.example/oai".to_owned(), days, ..WeekFindings::default() }
    }

    fn text(findings: &WeekFindings) -> String {
        render(findings, "https://oai.example.org", None).expect("something to report").text
    }

    #[test]
    fn nothing_to_report_is_no_report() {
        let mut week = findings();
        week.counts = DayCounts { requests: 9, passed: 8, failures: 4, ..DayCounts::default() };
        week.failures = vec![SourceFailure::default(); 4];
        let warning = FailedRule { fails: false, ..FailedRule::default() };
        week.check = Some(CheckResult { findings: vec![warning], ..CheckResult::default() });
        assert_eq!(render(&week, "", None), None);
        week.counts.failures = 5;
        assert!(text(&week).contains("Requests without a usable response\n---"));
        week.counts.failures = 0;
        week.check.iter_mut().flat_map(|check| &mut check.findings).for_each(|rule| rule.fails = true);
        assert!(text(&week).contains("Rules of OAI-PMH"));
    }

    #[test]
    fn repairs_have_a_count_an_example_and_a_link() {
        let mut week = findings();
        let example = RepairExample {
            record: Some("oai:x:1".to_owned()),
            original: "AT&T".to_owned(),
            replacement: "AT&amp;T".to_owned(),
        };
        let name = "bare-ampersand".to_owned();
        week.repairs = vec![FrequentRepair { name, count: 1_234, example: Some(example) }];
        let docs_url = Url::parse("https://docs.example/reference/").expect("a literal URL");
        let report = render(&week, "https://oai.example.org", Some(&docs_url)).expect("something to report");
        for line in [
            "bare-ampersand: 1234 times\n",
            "  Record:   oai:x:1\n  Sent:     AT&T\n  Repaired: AT&amp;T\n",
            "  Details:  https://docs.example/reference/repairs.md#bare-ampersand\n",
            "https://source.example/oai\n",
        ] {
            assert!(report.text.contains(line), "{line}: {}", report.text);
        }
        assert_eq!(
            report.subject,
            "OAI-PMH responses of source.example: defects from 2026-02-23 to 2026-03-01"
        );
    }

    #[test]
    fn lists_and_texts_of_sources_are_bounded() {
        let mut week = findings();
        let entry = |number: usize| QuarantineEntry {
            identifier: Some(format!("oai:x:{number}\r\nBcc: a@b.example\u{202e}{}", "y".repeat(9_999))),
            why: "mismatched-tags".to_owned(),
            offset: 0,
            request: "verb=ListRecords".to_owned(),
            first_seen: String::new(),
            last_seen: "2026-03-01T00:00:00Z".to_owned(),
            seen: 1,
            bytes: 1,
            metadata_prefix: None,
            resolved_at: None,
        };
        week.quarantined = (0..1_000).map(entry).collect();
        week.counts.failures = 70;
        week.failures = vec![SourceFailure { request: "r".repeat(9_999), ..SourceFailure::default() }; 50];
        let name = "n".repeat(9_999);
        let example = RepairExample { original: "\u{7}".repeat(9_999), ..RepairExample::default() };
        week.repairs =
            vec![FrequentRepair { name: "bare-ampersand".to_owned(), count: 1, example: Some(example) }; 99];
        let rule = FailedRule { rule: name.clone(), fails: true, received: name, ..FailedRule::default() };
        week.check = Some(CheckResult { findings: vec![rule; 99], ..CheckResult::default() });
        let text = text(&week);
        assert!(text.contains("... and 980 more\n") && text.contains("... and 60 more\n"), "{text}");
        assert!(text.contains("oai:x:0\\u{d}\\nBcc: a@b.example\\u{202e}yyy"), "{text}");
        assert!(!text.contains(['\r', '\u{7}', '\u{202e}']) && !text.contains("\nBcc"));
        assert!(text.len() < 100_000, "{}", text.len());
    }
}
