//! What holds of lists that go on.

use super::answer::Answer;
use super::findings::Findings;
use super::lists::headers;
use super::rules::Rule;
use super::tree::Element;
use crate::oai::datestamp;
use chrono::{DateTime, TimeDelta};

/// The token that leads on from a page, if there is one.
pub(super) fn next(answer: &Answer) -> Option<&str> {
    token(answer).map(|token| token.text.as_str()).filter(|text| !text.trim().is_empty())
}

/// The identifiers of a page, in their order.
pub(super) fn identifiers(answer: &Answer) -> Vec<String> {
    headers(answer).into_iter().map(|header| header.identifier).collect()
}

fn token(answer: &Answer) -> Option<&Element> {
    answer.verb_element()?.all("resumptionToken").last()
}

/// Judges the first page of a list.
pub(super) fn judge_first(answer: &Answer, findings: &mut Findings) {
    let Some(verb) = answer.verb_element() else { return };
    judge_number(answer, verb, findings);
    let Some(token) = token(answer) else {
        findings.holds(Rule::EmptyToken, answer, "no resumptionToken");
        return;
    };
    let text = token.text.trim();
    findings.judge(Rule::EmptyToken, !text.is_empty(), answer, format!("\"{text}\""));
    if let Some(cursor) = token.attribute("cursor") {
        findings.judge(Rule::FirstCursor, cursor == "0", answer, format!("cursor {cursor}"));
    }
    judge_attributes(answer, token, 0, findings);
}

/// Judges a page that a token led to; `before` is all that came before it in the list.
pub(super) fn judge_next(answer: &Answer, before: &[String], findings: &mut Findings) {
    if !findings.can_judge(Rule::TokenWorks, answer) {
        return;
    }
    let items = identifiers(answer);
    let Some(verb) = answer.verb_element().filter(|_| !items.is_empty()) else {
        return findings.fails(Rule::TokenWorks, answer, answer.gist());
    };
    judge_number(answer, verb, findings);
    let is_new = items.iter().any(|item| !before.contains(item));
    let came = if is_new { format!("{} items", items.len()) } else { "items that came before".to_owned() };
    findings.judge(Rule::TokenWorks, is_new, answer, came);
    let Some(token) = token(answer) else {
        return findings.fails(Rule::LastToken, answer, "no resumptionToken");
    };
    if token.text.trim().is_empty() {
        findings.holds(Rule::LastToken, answer, "an empty resumptionToken");
    }
    if let Some(cursor) = token.attribute("cursor") {
        let count = before.len();
        let came = format!("cursor {cursor} behind {count} items");
        match cursor.parse::<usize>() {
            // Whoever stands in front of a source may have put records aside.
            Ok(number) if number > count => findings.warns(Rule::NextCursor, answer, came),
            number => findings.judge(Rule::NextCursor, number == Ok(count), answer, came),
        }
    }
    judge_attributes(answer, token, before.len(), findings);
}

/// Judges the same page, asked for a second time.
pub(super) fn judge_again(again: &Answer, first_time: &Answer, findings: &mut Findings) {
    let has_items = !identifiers(first_time).is_empty();
    if findings.can_judge(Rule::TokenAgain, again) && has_items {
        let is_same = identifiers(again) == identifiers(first_time);
        let came = if is_same { "the same items".to_owned() } else { again.gist() };
        findings.judge(Rule::TokenAgain, is_same, again, came);
    }
}

fn judge_number(answer: &Answer, verb: &Element, findings: &mut Findings) {
    let count = verb.all("resumptionToken").count();
    let is_last = verb.children.last().is_some_and(|last| last.name == "resumptionToken");
    if count > 0 {
        let came = format!("{count}{}", if is_last { ", at the end" } else { ", not at the end" });
        findings.judge(Rule::OneToken, count == 1 && is_last, answer, came);
    }
}

/// What a token says beside itself; `before` items have come on earlier pages.
fn judge_attributes(answer: &Answer, token: &Element, before: usize, findings: &mut Findings) {
    let on_page = headers(answer).len();
    if let Some(size) = token.attribute("completeListSize") {
        let came = format!("completeListSize {size}, and {} have come", before + on_page);
        let holds = size.parse::<usize>().is_ok_and(|size| size > 0 && size >= before + on_page);
        findings.judge(Rule::CompleteListSize, holds, answer, came);
    }
    if let Some(expires) = token.attribute("expirationDate") {
        judge_expiry(answer, expires, findings);
    }
    if !token.text.trim().is_empty() && on_page > 0 {
        let came = format!("{on_page} items");
        match on_page {
            100..=500 => findings.holds(Rule::PageSize, answer, came),
            _ => findings.warns(Rule::PageSize, answer, came),
        }
    }
}

/// Held against the answer's own date, so that no clock but the source's matters.
fn judge_expiry(answer: &Answer, expires: &str, findings: &mut Findings) {
    let date = answer.root().and_then(|root| root.value("responseDate")).unwrap_or_default();
    let came = format!("expirationDate {expires} on {date}");
    let is_legal = expires.len() == 20 && datestamp::is_legal(expires.as_bytes());
    let left = DateTime::parse_from_rfc3339(expires).ok().zip(DateTime::parse_from_rfc3339(date).ok());
    match left.map(|(expires, date)| expires - date) {
        Some(left) if is_legal && left > TimeDelta::zero() && left < TimeDelta::hours(HOURS_MIN) => {
            findings.warns(Rule::ExpirationDate, answer, came);
        }
        Some(left) => {
            findings.judge(Rule::ExpirationDate, is_legal && left > TimeDelta::zero(), answer, came);
        }
        None => findings.judge(Rule::ExpirationDate, is_legal, answer, came),
    }
}

/// Shortest time a token should live, in hours; OVAL's bound.
const HOURS_MIN: i64 = 23;
