//! Rules for the same records in several lists: ListIdentifiers and ListRecords with the same arguments.

use super::tokens::next_token;
use crate::exchange::CheckResponse;
use crate::findings::{Findings, Verdict};
use crate::headers::{Header, read_headers};
use crate::rules::Rule;
use std::collections::{BTreeSet, HashMap};

/// Compares a list of headers with a list of records, if both were received to their ends.
///
/// Records of the day of the check are left out: they may have changed between the two lists.
pub(crate) fn judge_lists(headers: &[CheckResponse], records: &[CheckResponse], findings: &mut Findings) {
    let (Some(first), Some(other)) = (headers.first(), records.first()) else { return };
    if !is_whole(headers) || !is_whole(records) {
        return;
    }
    let today = first.root().and_then(|root| root.child_text("responseDate")).unwrap_or_default();
    let today = today.get(..10).unwrap_or_default().to_owned();
    let is_settled = |header: &Header| today.is_empty() || header.datestamp.get(..10) < Some(today.as_str());
    let read = |pages: &[CheckResponse]| -> Vec<Header> {
        pages.iter().flat_map(read_headers).filter(is_settled).collect()
    };
    let (headers, records) = (read(headers), read(records));
    let find = by_identifier(&headers);
    let find_record = by_identifier(&records);
    if let Some(missing) = records.iter().find(|record| !find.contains_key(record.identifier.as_str())) {
        let received = format!("{} is only in ListRecords", missing.identifier);
        return findings.fail(Rule::SameRecords, first, received);
    }
    // A proxy between the check and the source may have quarantined records.
    match headers.iter().find(|header| !find_record.contains_key(header.identifier.as_str())) {
        Some(missing) => {
            let received = format!("{} is only in ListIdentifiers", missing.identifier);
            findings.record(Rule::SameRecords, Verdict::Warning, &other.request, &received);
        }
        None => findings.pass(Rule::SameRecords, first, format!("{} in both lists", headers.len())),
    }
    for record in &records {
        let Some(header) = find.get(record.identifier.as_str()) else { continue };
        if !judge_pair(other, header, record, findings) {
            return;
        }
    }
}

/// Compares the two headers of a record; returns whether they agree.
fn judge_pair(response: &CheckResponse, header: &Header, record: &Header, findings: &mut Findings) -> bool {
    let (one, two) = (&record.datestamp, &header.datestamp);
    let has_same_date = one == two;
    if !has_same_date {
        let received = format!("\"{one}\" of {}, and \"{two}\" in ListIdentifiers", record.identifier);
        findings.fail(Rule::SameDatestamp, response, received);
    }
    let sets = |header: &Header| header.sets.iter().cloned().collect::<BTreeSet<_>>();
    let (one, two) = (sets(record), sets(header));
    let has_same_sets = one == two;
    if !has_same_sets {
        let received = format!("{one:?} of {}, and {two:?} in ListIdentifiers", record.identifier);
        findings.fail(Rule::SameSets, response, received);
    }
    has_same_date && has_same_sets
}

fn by_identifier(headers: &[Header]) -> HashMap<&str, &Header> {
    headers.iter().map(|header| (header.identifier.as_str(), header)).collect()
}

/// Whether the pages are a whole list; an empty list is `noRecordsMatch`.
fn is_whole(pages: &[CheckResponse]) -> bool {
    let is_list = |page: &CheckResponse| page.is_readable() && page.verb_element().is_some();
    let is_empty = pages.len() == 1 && pages.iter().all(|page| page.has_only_error("noRecordsMatch"));
    is_empty || (pages.iter().all(is_list) && pages.last().is_some_and(|last| next_token(last).is_none()))
}
