//! Rules for resumptionTokens and the pages that they request.

use crate::exchange::CheckResponse;
use crate::findings::{Findings, Verdict};
use crate::headers::read_headers;
use crate::rules::Rule;
use crate::tree::Element;
use chrono::{DateTime, TimeDelta};
use oaimend_oai::datestamp;

/// The token for the next page, if there is one.
pub(crate) fn next_token(response: &CheckResponse) -> Option<&str> {
    find_token(response).map(|token| token.text.as_str()).filter(|text| !text.trim().is_empty())
}

/// The identifiers of a page, in order.
pub(crate) fn identifiers(response: &CheckResponse) -> Vec<String> {
    read_headers(response).into_iter().map(|header| header.identifier).collect()
}

fn find_token(response: &CheckResponse) -> Option<&Element> {
    response.verb_element()?.children_named("resumptionToken").last()
}

/// Judges the first page of a list.
pub(crate) fn judge_first(response: &CheckResponse, findings: &mut Findings) {
    let Some(verb) = response.verb_element() else { return };
    judge_number(response, verb, findings);
    let Some(token) = find_token(response) else {
        findings.pass(Rule::EmptyToken, response, "no resumptionToken");
        return;
    };
    let text = token.text.trim();
    findings.judge(Rule::EmptyToken, !text.is_empty(), response, format!("\"{text}\""));
    if let Some(cursor) = token.attribute("cursor") {
        findings.judge(Rule::FirstCursor, cursor == "0", response, format!("cursor {cursor}"));
    }
    if !text.is_empty() {
        let size = token.attribute("completeListSize");
        findings.advise(Rule::ListSize, size.is_some(), response, size.unwrap_or("no completeListSize"));
    }
    judge_attributes(response, token, 0, findings);
}

/// Judges a later page of a list; `before` are the identifiers of all earlier pages.
pub(crate) fn judge_next(response: &CheckResponse, before: &[String], findings: &mut Findings) {
    if !findings.is_judgeable(Rule::TokenWorks, response) {
        return;
    }
    let items = identifiers(response);
    let (Some(verb), false) = (response.verb_element(), items.is_empty()) else {
        return findings.fail(Rule::TokenWorks, response, response.summarize());
    };
    judge_number(response, verb, findings);
    let is_new = items.iter().any(|item| !before.contains(item));
    // An item that changed during the list may occur again.
    if is_new && let Some(item) = items.iter().find(|item| before.contains(item)) {
        let received = format!("{item} on an earlier page, too");
        findings.record(Rule::UniqueItems, Verdict::Warning, &response.request, &received);
    }
    let received =
        if is_new { format!("{} items", items.len()) } else { "items of earlier pages".to_owned() };
    findings.judge(Rule::TokenWorks, is_new, response, received);
    let Some(token) = find_token(response) else {
        return findings.fail(Rule::LastToken, response, "no resumptionToken");
    };
    if token.text.trim().is_empty() {
        findings.pass(Rule::LastToken, response, "an empty resumptionToken");
    }
    if let Some(cursor) = token.attribute("cursor") {
        let count = before.len();
        let received = format!("cursor {cursor} after {count} items");
        match cursor.parse::<usize>() {
            // A proxy between check and source may have quarantined records.
            Ok(number) if number > count => findings.warn(Rule::NextCursor, response, received),
            number => findings.judge(Rule::NextCursor, number == Ok(count), response, received),
        }
    }
    judge_attributes(response, token, before.len(), findings);
}

/// Judges the response to a repeated request for a page.
pub(crate) fn judge_again(again: &CheckResponse, first_time: &CheckResponse, findings: &mut Findings) {
    let has_items = !identifiers(first_time).is_empty();
    if findings.is_judgeable(Rule::TokenAgain, again) && has_items {
        let is_same = identifiers(again) == identifiers(first_time);
        let received = if is_same { "the same items".to_owned() } else { again.summarize() };
        findings.judge(Rule::TokenAgain, is_same, again, received);
    }
}

fn judge_number(response: &CheckResponse, verb: &Element, findings: &mut Findings) {
    let count = verb.children_named("resumptionToken").count();
    let is_last = verb.children.last().is_some_and(|last| last.name == "resumptionToken");
    if count > 0 {
        let received = format!("{count}{}", if is_last { ", at the end" } else { ", not at the end" });
        findings.judge(Rule::OneToken, count == 1 && is_last, response, received);
    }
}

/// Judges the attributes of a token; earlier pages had `before` items.
fn judge_attributes(response: &CheckResponse, token: &Element, before: usize, findings: &mut Findings) {
    let on_page = read_headers(response).len();
    if let Some(size) = token.attribute("completeListSize") {
        let received = format!("completeListSize {size} after {} items", before + on_page);
        let holds = size.parse::<usize>().is_ok_and(|size| size > 0 && size >= before + on_page);
        findings.judge(Rule::CompleteListSize, holds, response, received);
    }
    if let Some(expires) = token.attribute("expirationDate") {
        judge_expiry(response, expires, findings);
    }
    if !token.text.trim().is_empty() && on_page > 0 {
        let received = format!("{on_page} items");
        match on_page {
            100..=500 => findings.pass(Rule::PageSize, response, received),
            _ => findings.warn(Rule::PageSize, response, received),
        }
    }
}

/// Compares with the responseDate, so that only the source's clock matters.
fn judge_expiry(response: &CheckResponse, expires: &str, findings: &mut Findings) {
    let date = response.root().and_then(|root| root.child_text("responseDate")).unwrap_or_default();
    let received = format!("expirationDate {expires} on {date}");
    let is_legal = expires.len() == 20 && datestamp::is_legal(expires.as_bytes());
    let left = DateTime::parse_from_rfc3339(expires).ok().zip(DateTime::parse_from_rfc3339(date).ok());
    match left.map(|(expires, date)| expires - date) {
        Some(left) if is_legal && left > TimeDelta::zero() && left < TimeDelta::hours(HOURS_MIN) => {
            findings.warn(Rule::ExpirationDate, response, received);
        }
        Some(left) => {
            findings.judge(Rule::ExpirationDate, is_legal && left > TimeDelta::zero(), response, received);
        }
        None => findings.judge(Rule::ExpirationDate, is_legal, response, received),
    }
}

/// The shortest lifetime of a token, in hours; the limit of OVAL.
const HOURS_MIN: i64 = 23;
