//! The findings of a check: the worst verdict for each rule.

use super::exchange::{CheckRequest, CheckResponse};
use super::rules::{RULES, Rule};
use oaimend_oai::named_enum;

named_enum! {
    /// Whether a rule holds, by the word in the table and in the JSON document; ordered from best to worst, unjudged first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Verdict {
        /// No response shows whether it holds.
        Unjudged = "not judged",
        /// It holds in all responses.
        Holds = "holds",
        /// It holds as far as the specification demands, but another way is better for harvesters and users.
        Advice = "advice",
        /// The specification allows it, but harvesters have trouble with it.
        Warning = "warning",
        /// It fails in a response.
        Fails = "fails",
    }
}

/// The finding for one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The worst verdict.
    pub verdict: Verdict,
    /// The first request with this verdict, without line breaks and control characters.
    pub request: String,
    /// The relevant part of its response, also without them.
    pub received: String,
    /// The number of responses with this verdict.
    pub responses: usize,
}

/// Collects findings during the check.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    /// The rule holds in this response.
    pub(crate) fn pass(&mut self, rule: Rule, response: &CheckResponse, received: impl AsRef<str>) {
        self.record(rule, Verdict::Holds, &response.request, received.as_ref());
    }

    /// The rule fails in this response.
    pub(crate) fn fail(&mut self, rule: Rule, response: &CheckResponse, received: impl AsRef<str>) {
        self.record(rule, Verdict::Fails, &response.request, received.as_ref());
    }

    /// The rule holds in this response, but deserves a warning.
    pub(crate) fn warn(&mut self, rule: Rule, response: &CheckResponse, received: impl AsRef<str>) {
        self.record(rule, Verdict::Warning, &response.request, received.as_ref());
    }

    /// The rule is advice, and this response does not follow it, or it does.
    pub(crate) fn advise(
        &mut self,
        rule: Rule,
        follows: bool,
        response: &CheckResponse,
        received: impl AsRef<str>,
    ) {
        let verdict = if follows { Verdict::Holds } else { Verdict::Advice };
        self.record(rule, verdict, &response.request, received.as_ref());
    }

    /// The rule cannot be judged by this response.
    pub(crate) fn mark_unjudged(&mut self, rule: Rule, response: &CheckResponse, received: impl AsRef<str>) {
        self.record(rule, Verdict::Unjudged, &response.request, received.as_ref());
    }

    /// Whether a rule can be judged by this response. A failed or unreadable response breaks rules
    /// of its own.
    pub(crate) fn is_judgeable(&mut self, rule: Rule, response: &CheckResponse) -> bool {
        if response.is_readable() {
            return true;
        }
        self.mark_unjudged(rule, response, response.summarize());
        false
    }

    /// The rule holds or fails in this response.
    pub(crate) fn judge(
        &mut self,
        rule: Rule,
        holds: bool,
        response: &CheckResponse,
        received: impl AsRef<str>,
    ) {
        let verdict = if holds { Verdict::Holds } else { Verdict::Fails };
        self.record(rule, verdict, &response.request, received.as_ref());
    }

    /// The rule has this verdict for the response to a request.
    pub(crate) fn record(&mut self, rule: Rule, verdict: Verdict, request: &CheckRequest, received: &str) {
        let (request, received) = (escape_text(&request.to_string()), escape_text(received));
        let finding = Finding { rule, verdict, request, received, responses: 1 };
        match self.0.iter_mut().find(|known| known.rule == rule) {
            Some(known) if known.verdict == verdict => known.responses += 1,
            Some(known) if known.verdict < verdict => *known = finding,
            Some(_) => {}
            None => self.0.push(finding),
        }
    }

    /// Returns one finding for each rule, in the order of the table; `why` gives the text for rules
    /// without one.
    pub(crate) fn into_findings(mut self, why: impl Fn(Rule) -> &'static str) -> Vec<Finding> {
        let finding_of = |entry: &super::rules::RuleEntry| {
            let found = self.0.iter().position(|finding| finding.rule == entry.rule);
            found.map(|found| self.0.swap_remove(found)).unwrap_or_else(|| Finding {
                rule: entry.rule,
                verdict: Verdict::Unjudged,
                request: String::new(),
                received: why(entry.rule).to_owned(),
                responses: 0,
            })
        };
        RULES.iter().map(finding_of).collect()
    }
}

/// Makes a text of a source safe for a terminal: one line, without control characters, shortened.
fn escape_text(text: &str) -> String {
    let mut shown = String::new();
    for character in text.trim().chars().take(SHOWN_CHARS_MAX) {
        match character {
            '\n' | '\r' | '\t' => shown.push(' '),
            // Format characters can also reverse the direction of a line.
            _ if character.is_control() || is_format(character) => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    if text.trim().chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

fn is_format(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The longest text of a source in a finding, in characters.
const SHOWN_CHARS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{CheckRequest, CheckResponse, Received};

    #[test]
    fn the_worst_verdict_is_kept_and_counted() {
        let response = |verb: &str| {
            CheckResponse::new(CheckRequest::get(&[("verb", verb)]), Received::Failed("gone".into()), vec![])
        };
        let mut findings = Findings::default();
        findings.mark_unjudged(Rule::Post, &response("A"), "nothing");
        findings.pass(Rule::Post, &response("B"), "well");
        findings.fail(Rule::Post, &response("C"), "an\n\u{1b}[31mend\u{202e}");
        findings.pass(Rule::Post, &response("D"), "well");
        findings.fail(Rule::Post, &response("E"), "x".repeat(300));
        let all = findings.into_findings(|_| "why");
        assert_eq!(all.len(), RULES.len());
        let post = all.iter().find(|finding| finding.rule == Rule::Post).expect("it is in the table");
        assert_eq!((post.verdict, post.responses, post.request.as_str()), (Verdict::Fails, 2, "verb=C"));
        assert_eq!(post.received, "an \\u{1b}[31mend\\u{202e}");
        let other = all.iter().find(|finding| finding.rule == Rule::Sets).expect("it is in the table");
        assert_eq!((other.verdict, other.received.as_str()), (Verdict::Unjudged, "why"));
    }
}
