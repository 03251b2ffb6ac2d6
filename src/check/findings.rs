//! What was found: of each rule the worst that was seen.

use super::answer::Answer;
use super::rules::{RULES, Rule};

/// Whether a rule holds. The later, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing came that it could be judged by.
    Unjudged,
    /// It holds wherever it could be seen.
    Holds,
    /// Nothing forbids it, and harvesters suffer from it.
    Warning,
    /// It does not hold.
    Fails,
}

impl Verdict {
    /// The word for it, as in the table and in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unjudged => "not judged",
            Self::Holds => "holds",
            Self::Warning => "warning",
            Self::Fails => "fails",
        }
    }
}

/// What was found of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The worst that was seen.
    pub verdict: Verdict,
    /// The first request that showed it, without line breaks and control characters.
    pub asked: String,
    /// What came, the same.
    pub came: String,
    /// How many answers showed it.
    pub answers: usize,
}

/// Findings as they are made.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    /// The rule holds in this answer.
    pub(super) fn holds(&mut self, rule: Rule, answer: &Answer, came: impl AsRef<str>) {
        self.note(rule, Verdict::Holds, answer, came.as_ref());
    }

    /// The rule does not hold in this answer.
    pub(super) fn fails(&mut self, rule: Rule, answer: &Answer, came: impl AsRef<str>) {
        self.note(rule, Verdict::Fails, answer, came.as_ref());
    }

    /// The rule holds in this answer, and something is to be said all the same.
    pub(super) fn warns(&mut self, rule: Rule, answer: &Answer, came: impl AsRef<str>) {
        self.note(rule, Verdict::Warning, answer, came.as_ref());
    }

    /// The rule cannot be judged by this answer.
    pub(super) fn unjudged(&mut self, rule: Rule, answer: &Answer, came: impl AsRef<str>) {
        self.note(rule, Verdict::Unjudged, answer, came.as_ref());
    }

    /// Whether a rule can be judged by an answer at all. One that did not come,
    /// or cannot be read, breaks rules of its own.
    pub(super) fn can_judge(&mut self, rule: Rule, answer: &Answer) -> bool {
        if answer.is_readable() {
            return true;
        }
        self.unjudged(rule, answer, answer.gist());
        false
    }

    /// Holds or fails.
    pub(super) fn judge(&mut self, rule: Rule, holds: bool, answer: &Answer, came: impl AsRef<str>) {
        let verdict = if holds { Verdict::Holds } else { Verdict::Fails };
        self.note(rule, verdict, answer, came.as_ref());
    }

    fn note(&mut self, rule: Rule, verdict: Verdict, answer: &Answer, came: &str) {
        let (asked, came) = (shown(&answer.asked.to_string()), shown(came));
        let finding = Finding { rule, verdict, asked, came, answers: 1 };
        match self.0.iter_mut().find(|known| known.rule == rule) {
            Some(known) if known.verdict == verdict => known.answers += 1,
            Some(known) if known.verdict < verdict => *known = finding,
            Some(_) => {}
            None => self.0.push(finding),
        }
    }

    /// One finding for each rule, in the order of the table; `why` is asked of
    /// those that nothing was seen of.
    pub(super) fn of_each_rule(mut self, why: impl Fn(Rule) -> &'static str) -> Vec<Finding> {
        let of = |entry: &super::rules::Entry| {
            let found = self.0.iter().position(|finding| finding.rule == entry.rule);
            found.map(|found| self.0.swap_remove(found)).unwrap_or_else(|| Finding {
                rule: entry.rule,
                verdict: Verdict::Unjudged,
                asked: String::new(),
                came: why(entry.rule).to_owned(),
                answers: 0,
            })
        };
        RULES.iter().map(of).collect()
    }
}

/// A text of a source as a terminal may show it: on one line, without control characters, cut.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for character in text.trim().chars().take(SHOWN_CHARS_MAX) {
        match character {
            '\n' | '\r' | '\t' => shown.push(' '),
            // Also what turns the direction of a line around.
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

/// Longest text of a source in a finding, in characters.
const SHOWN_CHARS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::answer::{Answer, Asked, Came};

    #[test]
    fn of_a_rule_the_worst_is_told_and_how_often() {
        let answer =
            |verb: &str| Answer::new(Asked::get(&[("verb", verb)]), Came::Missing("gone".into()), vec![]);
        let mut findings = Findings::default();
        findings.unjudged(Rule::Post, &answer("A"), "nothing");
        findings.holds(Rule::Post, &answer("B"), "well");
        findings.fails(Rule::Post, &answer("C"), "an\n\u{1b}[31mend\u{202e}");
        findings.holds(Rule::Post, &answer("D"), "well");
        findings.fails(Rule::Post, &answer("E"), "x".repeat(300));
        let all = findings.of_each_rule(|_| "why");
        assert_eq!(all.len(), RULES.len());
        let post = all.iter().find(|finding| finding.rule == Rule::Post).expect("it is in the table");
        assert_eq!((post.verdict, post.answers, post.asked.as_str()), (Verdict::Fails, 2, "verb=C"));
        assert_eq!(post.came, "an \\u{1b}[31mend\\u{202e}");
        let other = all.iter().find(|finding| finding.rule == Rule::Sets).expect("it is in the table");
        assert_eq!((other.verdict, other.came.as_str()), (Verdict::Unjudged, "why"));
    }
}
