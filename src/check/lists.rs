//! What holds of formats, sets, headers and records.

use super::answer::Answer;
use super::findings::Findings;
use super::identify::Identity;
use super::rules::Rule;
use super::tree::Element;
use crate::oai::datestamp;

/// A header, as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) identifier: String,
    pub(super) datestamp: String,
    pub(super) sets: Vec<String>,
    pub(super) is_deleted: bool,
}

/// The headers of an answer, in their order.
pub(super) fn headers(answer: &Answer) -> Vec<Header> {
    let Some(verb) = answer.verb_element() else { return Vec::new() };
    let within = verb.all("record").flat_map(|record| record.all("header"));
    verb.all("header").chain(within).map(header).collect()
}

fn header(element: &Element) -> Header {
    Header {
        identifier: element.value("identifier").unwrap_or_default().to_owned(),
        datestamp: element.value("datestamp").unwrap_or_default().to_owned(),
        sets: element.all("setSpec").map(|set| set.text.trim().to_owned()).collect(),
        is_deleted: element.attribute("status") == Some("deleted"),
    }
}

/// Judges the headers and records of an answer, if it has any.
pub(super) fn judge(answer: &Answer, identity: &Identity, findings: &mut Findings) {
    for header in headers(answer) {
        judge_header(answer, &header, identity, findings);
    }
    for record in answer.verb_element().into_iter().flat_map(|verb| verb.all("record")) {
        judge_record(answer, record, findings);
    }
}

fn judge_header(answer: &Answer, header: &Header, identity: &Identity, findings: &mut Findings) {
    let Header { identifier, datestamp, is_deleted, .. } = header;
    let is_legal = datestamp::is_legal(datestamp.as_bytes());
    let fits = is_legal && identity.datestamp_chars.is_none_or(|chars| chars == datestamp.len());
    findings.judge(Rule::DatestampForm, fits, answer, format!("\"{datestamp}\" of {identifier}"));
    if let Some(earliest) = identity.earliest.as_ref().filter(|_| is_legal) {
        // Of different granularity, they are compared as days.
        let chars = if earliest.len() == datestamp.len() { datestamp.len() } else { 10 };
        if datestamp.get(..chars) < earliest.get(..chars) {
            let came = format!("{earliest}, and {identifier} is of {datestamp}");
            findings.fails(Rule::EarliestDatestamp, answer, came);
        }
    }
    if *is_deleted && !identity.deleted_record.is_empty() {
        let came = format!("{identifier} is deleted, deletedRecord is {}", identity.deleted_record);
        findings.judge(Rule::DeletedStatus, identity.deleted_record != "no", answer, came);
    }
}

fn judge_record(answer: &Answer, record: &Element, findings: &mut Findings) {
    let header = record.first("header").map(header).unwrap_or_default();
    let metadata = record.first("metadata");
    let identifier = &header.identifier;
    if header.is_deleted {
        if metadata.is_some() {
            findings.fails(Rule::DeletedStatus, answer, format!("{identifier} is deleted and has metadata"));
        }
        return;
    }
    let payload = metadata.and_then(|metadata| metadata.children.first());
    let is_dc = payload.is_some_and(|payload| payload.name == "dc" && payload.namespace == OAI_DC);
    let what = payload.map_or_else(
        || "no metadata".to_owned(),
        |payload| format!("{} in \"{}\"", payload.name, payload.namespace),
    );
    findings.judge(Rule::DcPayload, is_dc, answer, format!("{what} of {identifier}"));
    if let Some(payload) = payload {
        match twice_encoded(payload) {
            Some(text) => findings.warns(Rule::DoubleEncoding, answer, format!("\"{text}\" in {identifier}")),
            None => findings.holds(Rule::DoubleEncoding, answer, "nothing looks encoded twice"),
        }
    }
}

/// The first text that was encoded or escaped twice.
fn twice_encoded(element: &Element) -> Option<&str> {
    let text = element.text.trim();
    let mut characters = text.chars().zip(text.chars().skip(1));
    let is_mojibake = characters
        .any(|(one, other)| matches!(one, '\u{c2}' | '\u{c3}') && ('\u{80}'..='\u{bf}').contains(&other));
    let is_escaped = ["&amp;", "&lt;", "&gt;", "&quot;", "&#"].iter().any(|escape| text.contains(escape));
    if is_mojibake || is_escaped {
        return Some(text);
    }
    element.children.iter().find_map(twice_encoded)
}

/// Whether oai_dc is among the formats.
pub(super) fn judge_formats(answer: &Answer, rule: Rule, findings: &mut Findings) {
    if !findings.can_judge(rule, answer) {
        return;
    }
    let formats = answer.verb_element().into_iter().flat_map(|verb| verb.all("metadataFormat"));
    let mut formats = formats.map(|format| {
        (
            format.value("metadataPrefix").unwrap_or_default(),
            format.value("metadataNamespace").unwrap_or_default(),
        )
    });
    match formats.find(|(prefix, _)| *prefix == "oai_dc") {
        Some((_, namespace)) => {
            findings.judge(rule, namespace == OAI_DC, answer, format!("oai_dc in \"{namespace}\""));
        }
        None => findings.fails(rule, answer, answer_without(answer, "oai_dc")),
    }
}

/// What came instead of something that was wanted.
fn answer_without(answer: &Answer, wanted: &str) -> String {
    match answer.verb_element() {
        Some(_) => format!("no {wanted}"),
        None => answer.gist(),
    }
}

/// Judges ListSets against the headers that were seen; gives the first set.
pub(super) fn judge_sets(answer: &Answer, seen: &[Header], findings: &mut Findings) -> Option<String> {
    if !findings.can_judge(Rule::Sets, answer) {
        return None;
    }
    let sets: Vec<&Element> = answer.verb_element().into_iter().flat_map(|verb| verb.all("set")).collect();
    if sets.is_empty() {
        let is_flat = answer.is_error("noSetHierarchy");
        match seen.iter().find(|header| !header.sets.is_empty()) {
            Some(header) if is_flat => {
                let came =
                    format!("noSetHierarchy, and {} is in {}", header.identifier, header.sets.join(", "));
                findings.fails(Rule::Sets, answer, came);
            }
            _ => findings.judge(Rule::Sets, is_flat, answer, answer.gist()),
        }
        return None;
    }
    let has = |set: &Element, name: &str| set.value(name).is_some_and(|value| !value.is_empty());
    let odd = sets.iter().find(|set| !has(set, "setSpec") || !has(set, "setName"));
    match odd.map(|set| set.value("setSpec").unwrap_or_default()) {
        Some(spec) => {
            findings.fails(Rule::Sets, answer, format!("the set \"{spec}\" lacks setSpec or setName"))
        }
        None => findings.holds(Rule::Sets, answer, format!("{} listed", sets.len())),
    }
    sets.iter().find_map(|set| set.value("setSpec")).filter(|spec| !spec.is_empty()).map(str::to_owned)
}

/// Whether a list of a set is one.
pub(super) fn judge_set(answer: &Answer, set: &str, is_known_full: bool, findings: &mut Findings) {
    if !findings.can_judge(Rule::SetOfRecords, answer) {
        return;
    }
    let below = format!("{set}:");
    let is_in = |header: &Header| header.sets.iter().any(|other| other == set || other.starts_with(&below));
    let listed = headers(answer);
    match listed.iter().find(|header| !is_in(header)) {
        Some(header) => {
            let sets = header.sets.join(", ");
            findings.fails(Rule::SetOfRecords, answer, format!("{} is in \"{sets}\"", header.identifier));
        }
        None if listed.is_empty() => {
            let holds = !is_known_full && answer.is_error("noRecordsMatch");
            findings.judge(Rule::SetOfRecords, holds, answer, answer.gist());
        }
        None => findings.holds(Rule::SetOfRecords, answer, format!("{} listed of {set}", listed.len())),
    }
}

/// Whether GetRecord gave the record that lists name.
pub(super) fn judge_get_record(answer: &Answer, wanted: &Header, findings: &mut Findings) {
    if !findings.can_judge(Rule::GetRecord, answer) {
        return;
    }
    match headers(answer).as_slice() {
        [header] if header.identifier == wanted.identifier => {
            findings.holds(Rule::GetRecord, answer, &header.identifier);
            let (said, listed) = (&header.datestamp, &wanted.datestamp);
            let came = format!("\"{said}\", and \"{listed}\" in lists");
            findings.judge(Rule::SameDatestamp, said == listed, answer, came);
        }
        [header] => findings.fails(Rule::GetRecord, answer, format!("the record {}", header.identifier)),
        _ => findings.fails(Rule::GetRecord, answer, answer.gist()),
    }
}

/// Whether the pages of a list from and until `date` hold the record, and none of other dates.
pub(super) fn judge_window(
    pages: &[Answer],
    date: &str,
    wanted: &Header,
    rule: Rule,
    findings: &mut Findings,
) {
    let Some(first) = pages.first().filter(|first| findings.can_judge(rule, first)) else { return };
    let cut = |header: &Header| header.datestamp.get(..date.len()).unwrap_or(&header.datestamp).to_owned();
    for page in pages {
        for header in headers(page) {
            let came = format!("{} is of {}", header.identifier, header.datestamp);
            findings.judge(Rule::WithinWindow, cut(&header) == date, page, came);
        }
    }
    let is_there = pages.iter().flat_map(headers).any(|header| header.identifier == wanted.identifier);
    let is_open = pages.last().is_some_and(|page| super::tokens::next(page).is_some());
    if is_open && !is_there {
        findings.unjudged(rule, first, format!("not on the first {} pages", pages.len()));
    } else {
        let came =
            if is_there { wanted.identifier.clone() } else { answer_without(first, &wanted.identifier) };
        findings.judge(rule, is_there, first, came);
    }
}

const OAI_DC: &str = "http://www.openarchives.org/OAI/2.0/oai_dc/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_was_encoded_or_escaped_twice_is_found_and_other_text_is_not() {
        let text = |text: &str| Element { text: text.to_owned(), ..Element::default() };
        for odd in ["Ã¼ber", "nÂ°1", "a &amp; b", "x &#8211; y"] {
            let parent = Element { children: vec![text("well"), text(odd)], ..Element::default() };
            assert_eq!(twice_encoded(&parent), Some(odd));
        }
        for well in ["über", "São Paulo", "CHÂTEAU", "AT&T; <b>", "?a=1&b=2"] {
            assert_eq!(twice_encoded(&text(well)), None, "{well}");
        }
    }
}
