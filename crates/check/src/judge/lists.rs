//! Rules for formats, sets, headers and records.

use super::dublin_core;
use super::identify::Identity;
use super::tokens::next_token;
use crate::exchange::CheckResponse;
use crate::findings::Findings;
use crate::headers::{Header, read_header, read_headers};
use crate::rules::Rule;
use crate::tree::Element;
use oaimend_oai::datestamp;
use std::collections::{BTreeSet, HashSet};

/// Judges the headers and records of a response.
pub(crate) fn judge(response: &CheckResponse, identity: &Identity, findings: &mut Findings) {
    let headers = read_headers(response);
    let mut seen = HashSet::new();
    for header in &headers {
        judge_header(response, header, identity, findings);
        if seen.insert(header.identifier.as_str()) {
            findings.pass(Rule::UniqueItems, response, &header.identifier);
        } else {
            let received = format!("{} more than once on a page", header.identifier);
            findings.fail(Rule::UniqueItems, response, received);
        }
    }
    for record in response.verb_element().into_iter().flat_map(|verb| verb.children_named("record")) {
        judge_record(response, record, findings);
    }
}

fn judge_header(response: &CheckResponse, header: &Header, identity: &Identity, findings: &mut Findings) {
    let Header { identifier, datestamp, is_deleted, .. } = header;
    findings.judge(Rule::IdentifierUri, is_uri(identifier), response, format!("\"{identifier}\""));
    let is_legal = datestamp::is_legal(datestamp.as_bytes());
    let fits = is_legal && identity.datestamp_chars.is_none_or(|chars| chars == datestamp.len());
    findings.judge(Rule::DatestampForm, fits, response, format!("\"{datestamp}\" of {identifier}"));
    if is_legal && let Some(earliest) = &identity.earliest {
        // Datestamps of different granularity are compared as days.
        let chars = if earliest.len() == datestamp.len() { datestamp.len() } else { 10 };
        if datestamp.get(..chars) < earliest.get(..chars) {
            let received = format!("earliestDatestamp {earliest}, and {identifier} has {datestamp}");
            findings.fail(Rule::EarliestDatestamp, response, received);
        }
    }
    if *is_deleted && !identity.deleted_record.is_empty() {
        let received = format!("{identifier} is deleted, deletedRecord is {}", identity.deleted_record);
        findings.judge(Rule::DeletedStatus, identity.deleted_record != "no", response, received);
    }
}

fn judge_record(response: &CheckResponse, record: &Element, findings: &mut Findings) {
    let header = record.child("header").map(read_header).unwrap_or_default();
    let metadata = record.child("metadata");
    let identifier = &header.identifier;
    if header.is_deleted {
        if metadata.is_some() {
            findings.fail(Rule::DeletedStatus, response, format!("{identifier} is deleted and has metadata"));
        }
        return;
    }
    let payload = metadata.and_then(|metadata| metadata.children.first());
    let is_dc = payload.is_some_and(|payload| payload.name == "dc" && payload.namespace == OAI_DC);
    let what = payload.map_or_else(
        || "no metadata".to_owned(),
        |payload| format!("{} in \"{}\"", payload.name, payload.namespace),
    );
    findings.judge(Rule::DcPayload, is_dc, response, format!("{what} of {identifier}"));
    if let Some(payload) = payload {
        if is_dc {
            dublin_core::judge(response, &header, payload, findings);
        }
        match find_double_encoding(payload) {
            Some(text) => {
                findings.warn(Rule::DoubleEncoding, response, format!("\"{text}\" in {identifier}"))
            }
            None => findings.pass(Rule::DoubleEncoding, response, "no text looks encoded twice"),
        }
    }
}

/// Whether this is a URI: a scheme, a colon, and characters that RFC 3986 allows.
fn is_uri(identifier: &str) -> bool {
    let Some((scheme, rest)) = identifier.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_escape = |after: &str| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    is_scheme && !rest.is_empty() && rest.bytes().all(legal) && rest.split('%').skip(1).all(is_escape)
}

/// Returns the first text that was encoded or escaped twice.
fn find_double_encoding(element: &Element) -> Option<&str> {
    let text = element.text.trim();
    let mut characters = text.chars().zip(text.chars().skip(1));
    let is_mojibake = characters
        .any(|(one, other)| matches!(one, '\u{c2}' | '\u{c3}') && ('\u{80}'..='\u{bf}').contains(&other));
    let is_escaped = ["&amp;", "&lt;", "&gt;", "&quot;", "&#"].iter().any(|escape| text.contains(escape));
    if is_mojibake || is_escaped {
        return Some(text);
    }
    element.children.iter().find_map(find_double_encoding)
}

/// Judges whether oai_dc is among the formats.
pub(crate) fn judge_formats(response: &CheckResponse, rule: Rule, findings: &mut Findings) {
    if !findings.is_judgeable(rule, response) {
        return;
    }
    match read_formats(response).into_iter().find(|format| format.prefix == "oai_dc") {
        Some(Format { namespace, .. }) => {
            findings.judge(rule, namespace == OAI_DC, response, format!("oai_dc in \"{namespace}\""));
        }
        None => findings.fail(rule, response, describe_missing(response, "oai_dc")),
    }
}

/// A metadata format.
pub(crate) struct Format {
    pub(crate) prefix: String,
    pub(crate) namespace: String,
}

/// The formats in a response to ListMetadataFormats.
pub(crate) fn read_formats(response: &CheckResponse) -> Vec<Format> {
    let formats = response.verb_element().into_iter().flat_map(|verb| verb.children_named("metadataFormat"));
    let text = |format: &Element, name| format.child_text(name).unwrap_or_default().to_owned();
    let read = |format| Format {
        prefix: text(format, "metadataPrefix"),
        namespace: text(format, "metadataNamespace"),
    };
    formats.map(read).collect()
}

/// Describes a response that lacks `expected`.
fn describe_missing(response: &CheckResponse, expected: &str) -> String {
    match response.verb_element() {
        Some(_) => format!("no {expected}"),
        None => response.summarize(),
    }
}

/// Judges ListSets against the headers of the lists; returns the first set.
pub(crate) fn judge_sets(
    response: &CheckResponse,
    seen: &[Header],
    findings: &mut Findings,
) -> Option<String> {
    if !findings.is_judgeable(Rule::Sets, response) {
        return None;
    }
    let sets: Vec<&Element> =
        response.verb_element().into_iter().flat_map(|verb| verb.children_named("set")).collect();
    if sets.is_empty() {
        findings.fail(Rule::OpenaireSet, response, response.summarize());
        let is_flat = response.has_only_error("noSetHierarchy");
        match seen.iter().find(|header| !header.sets.is_empty()) {
            Some(header) if is_flat => {
                let received =
                    format!("noSetHierarchy, and {} is in {}", header.identifier, header.sets.join(", "));
                findings.fail(Rule::Sets, response, received);
            }
            _ => findings.judge(Rule::Sets, is_flat, response, response.summarize()),
        }
        return None;
    }
    let is_openaire = sets.iter().any(|set| set.child_text("setSpec") == Some("openaire"));
    let is_whole = next_token(response).is_none();
    if is_openaire || is_whole {
        let received =
            format!("{} sets, openaire is {}", sets.len(), if is_openaire { "one" } else { "none" });
        findings.judge(Rule::OpenaireSet, is_openaire, response, received);
    }
    let has = |set: &Element, name: &str| set.child_text(name).is_some_and(|value| !value.is_empty());
    let incomplete = sets.iter().find(|set| !has(set, "setSpec") || !has(set, "setName"));
    match incomplete.map(|set| set.child_text("setSpec").unwrap_or_default()) {
        Some(spec) => {
            findings.fail(Rule::Sets, response, format!("the set \"{spec}\" lacks setSpec or setName"))
        }
        None => findings.pass(Rule::Sets, response, format!("{} listed", sets.len())),
    }
    sets.iter().find_map(|set| set.child_text("setSpec")).filter(|spec| !spec.is_empty()).map(str::to_owned)
}

/// Judges a list of one set.
pub(crate) fn judge_set(response: &CheckResponse, set: &str, has_records: bool, findings: &mut Findings) {
    if !findings.is_judgeable(Rule::SetOfRecords, response) {
        return;
    }
    let below = format!("{set}:");
    let is_in = |header: &Header| header.sets.iter().any(|other| other == set || other.starts_with(&below));
    let listed = read_headers(response);
    match listed.iter().find(|header| !is_in(header)) {
        Some(header) => {
            let sets = header.sets.join(", ");
            findings.fail(Rule::SetOfRecords, response, format!("{} is in \"{sets}\"", header.identifier));
        }
        None if listed.is_empty() => {
            let holds = !has_records && response.has_only_error("noRecordsMatch");
            findings.judge(Rule::SetOfRecords, holds, response, response.summarize());
        }
        None => findings.pass(Rule::SetOfRecords, response, format!("{} listed of {set}", listed.len())),
    }
}

/// Judges whether GetRecord returned the listed record.
pub(crate) fn judge_get_record(response: &CheckResponse, expected: &Header, findings: &mut Findings) {
    if !findings.is_judgeable(Rule::GetRecord, response) {
        return;
    }
    match read_headers(response).as_slice() {
        [header] if header.identifier == expected.identifier => {
            findings.pass(Rule::GetRecord, response, &header.identifier);
            let (datestamp, listed) = (&header.datestamp, &expected.datestamp);
            let received = format!("\"{datestamp}\", and \"{listed}\" in lists");
            findings.judge(Rule::SameDatestamp, datestamp == listed, response, received);
            let sorted = |header: &Header| header.sets.iter().cloned().collect::<BTreeSet<_>>();
            let (named, listed) = (sorted(header), sorted(expected));
            let received = format!("{named:?}, and {listed:?} in lists");
            findings.judge(Rule::SameSets, named == listed, response, received);
        }
        [header] => findings.fail(Rule::GetRecord, response, format!("the record {}", header.identifier)),
        _ => findings.fail(Rule::GetRecord, response, response.summarize()),
    }
}

/// Judges whether a list from and until `date` contains the record, and no records of other dates.
pub(crate) fn judge_window(
    pages: &[CheckResponse],
    date: &str,
    expected: &Header,
    rule: Rule,
    findings: &mut Findings,
) {
    let Some(first) = pages.first().filter(|first| findings.is_judgeable(rule, first)) else { return };
    let cut = |header: &Header| header.datestamp.get(..date.len()).unwrap_or(&header.datestamp).to_owned();
    for page in pages {
        for header in read_headers(page) {
            let received = format!("{} has the datestamp {}", header.identifier, header.datestamp);
            findings.judge(Rule::WithinWindow, cut(&header) == date, page, received);
        }
    }
    let is_there = pages.iter().flat_map(read_headers).any(|header| header.identifier == expected.identifier);
    let is_open = pages.last().is_some_and(|page| next_token(page).is_some());
    if is_open && !is_there {
        findings.mark_unjudged(rule, first, format!("not in the first {} pages", pages.len()));
    } else {
        let received = if is_there {
            expected.identifier.clone()
        } else {
            describe_missing(first, &expected.identifier)
        };
        findings.judge(rule, is_there, first, received);
    }
}

/// The namespace of oai_dc.
const OAI_DC: &str = "http://www.openarchives.org/OAI/2.0/oai_dc/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_uris() {
        for valid in
            ["oai:x.example:1", "urn:nbn:de:1", "https://x.example/1?a=b#c", "hdl:1%20a", "info:a/(b)"]
        {
            assert!(is_uri(valid), "{valid}");
        }
        for invalid in ["", "1234", "oai:", ":x", "1a:x", "oai:x y", "oai:ü", "oai:x%2", "oai:<x>", "a b:c"]
        {
            assert!(!is_uri(invalid), "{invalid}");
        }
    }

    #[test]
    fn double_encoding_is_found_and_other_text_is_not() {
        let text = |text: &str| Element { text: text.to_owned(), ..Element::default() };
        for damaged in ["Ã¼ber", "nÂ°1", "a &amp; b", "x &#8211; y"] {
            let parent = Element { children: vec![text("well"), text(damaged)], ..Element::default() };
            assert_eq!(find_double_encoding(&parent), Some(damaged));
        }
        for intact in ["über", "São Paulo", "CHÂTEAU", "AT&T; <b>", "?a=1&b=2"] {
            assert_eq!(find_double_encoding(&text(intact)), None, "{intact}");
        }
    }
}
