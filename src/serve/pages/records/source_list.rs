//! The list of the records of a repository that is not mirrored, from the memory of the server.

use super::lists::{html_page, list_notice_page};
use crate::config::Mapping;
use crate::serve::pages::state::GatewayState;
use crate::serve::response::Response;
use crate::serve::served::ServedRepositories;
use crate::serve::source_lists::{ListedRecord, SourceList};
use crate::serve::validators::Validators;
use http::HeaderMap;
use oaimend_html::fingerprint;
use oaimend_oai::datestamp::{Granularity, from_secs};
use oaimend_pages::html::{ListContent, ListNotice, ListPage, ListedFrom, MonthEntry, RecordLink};
use oaimend_pages::list::{LINKS_MAX, ListAddress, ListPart, Month, SequenceRange};

/// The page of a part of the list. No request is sent to the source.
pub(crate) fn source_list(
    served: &ServedRepositories,
    gateway: &GatewayState,
    (mapping, repository_name): (&Mapping, &str),
    address: &ListAddress,
    headers: &HeaderMap,
) -> Response {
    let notice = |notice| list_notice_page(gateway, mapping.id(), repository_name, notice);
    if address.set.is_some() {
        return notice(ListNotice::Unknown);
    }
    let Some(list) = served.source_lists.of(mapping) else { return notice(ListNotice::NotListed) };
    let state = (list.began_secs, list.is_complete, list.records.len());
    let depends_on = format!("{:?}", (&gateway.version, address, repository_name, state));
    let validators =
        Validators { tag: fingerprint([depends_on.as_bytes()]), modified_secs: Some(list.began_secs) };
    if validators.are_known(headers) {
        return html_page(304, &validators, String::new());
    }
    let Some((content, neighbours)) = content(&list.records, address.part) else {
        return notice(ListNotice::Unknown);
    };
    let page = ListPage {
        site: &gateway.site,
        repository_name,
        address,
        set_name: None,
        content,
        neighbours,
        has_sets: false,
        listed_from: listed_from(&list),
    };
    html_page(200, &validators, page.render())
}

fn listed_from(list: &SourceList) -> ListedFrom {
    let read_at = from_secs(list.began_secs, Granularity::Second);
    ListedFrom::Source { read_at, is_complete: list.is_complete }
}

/// The content of a part, and the parts before and after it. The sequence of a record is its place in its month.
fn content(records: &[ListedRecord], part: ListPart) -> Option<(ListContent, [Option<ListPart>; 2])> {
    let months: Vec<&[ListedRecord]> =
        records.chunk_by(|one, other| month_of(one) == month_of(other)).collect();
    let find = |month| {
        let at = months.iter().position(|records| month_of(&records[0]) == month)?;
        let near = |at: Option<usize>| Some(ListPart::Month(month_of(months.get(at?)?.first()?)));
        Some((months[at], [near(at.checked_sub(1)), near(at.checked_add(1))]))
    };
    match part {
        ListPart::Months => {
            let entry = |records: &&[ListedRecord]| MonthEntry {
                month: month_of(&records[0]),
                records: records.len() as u64,
                ranges: Vec::new(),
            };
            let months_max = usize::try_from(LINKS_MAX).unwrap_or(usize::MAX);
            Some((ListContent::Months(months.iter().rev().take(months_max).map(entry).collect()), [None; 2]))
        }
        ListPart::Month(month) => {
            let (records, neighbours) = find(month)?;
            let ranges = ranges(records);
            let content = match &ranges[..] {
                [_] => ListContent::Records(records.iter().map(link_to).collect()),
                _ => ListContent::Ranges(month, ranges),
            };
            Some((content, neighbours))
        }
        ListPart::Range(month, range) => {
            let (records, _) = find(month)?;
            let ranges = ranges(records);
            let at = ranges.iter().position(|(other, _)| *other == range)?;
            let near = |at: Option<usize>| Some(ListPart::Range(month, ranges.get(at?)?.0));
            let links = records.chunks(ranges_width()).nth(at)?.iter().map(link_to).collect();
            Some((ListContent::Records(links), [near(at.checked_sub(1)), near(at.checked_add(1))]))
        }
        ListPart::Unknown => None,
    }
}

fn ranges_width() -> usize {
    usize::try_from(LINKS_MAX).unwrap_or(usize::MAX)
}

/// The ranges of the records of a month, and the numbers of their records.
fn ranges(records: &[ListedRecord]) -> Vec<(SequenceRange, u64)> {
    let [.., width] = SequenceRange::widths();
    let range = |(number, records): (u64, &[ListedRecord])| {
        (SequenceRange::around(number * width.get(), width), records.len() as u64)
    };
    (0..).zip(records.chunks(ranges_width())).map(range).collect()
}

fn month_of(record: &ListedRecord) -> Month {
    Month::of_secs(record.datestamp_secs)
}

fn link_to(record: &ListedRecord) -> RecordLink {
    RecordLink {
        identifier: record.identifier.clone(),
        title: None,
        creators: Vec::new(),
        more_creators: 0,
        year: None,
        changed: from_secs(record.datestamp_secs, Granularity::Day),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oaimend_oai::UnixSecs;
    use std::collections::BTreeSet;

    #[test]
    fn every_record_is_on_one_page_of_the_list() {
        let day = |number: i64| ListedRecord {
            datestamp_secs: UnixSecs(number / 2_500 * 40 * 86_400),
            identifier: number.to_string(),
        };
        let records: Vec<ListedRecord> = (0..6_000).map(day).collect();
        let (mut found, mut parts) = (BTreeSet::new(), vec![ListPart::Months]);
        while let Some(part) = parts.pop() {
            match content(&records, part).expect("a linked part").0 {
                ListContent::Months(months) => {
                    assert_eq!(months.iter().map(|entry| entry.records).sum::<u64>(), 6_000);
                    parts.extend(months.iter().map(|entry| ListPart::Month(entry.month)));
                }
                ListContent::Ranges(month, ranges) => {
                    parts.extend(ranges.iter().map(|(range, _)| ListPart::Range(month, *range)));
                }
                ListContent::Records(links) => {
                    assert!(!links.is_empty() && links.len() as u64 <= LINKS_MAX);
                    assert!(links.into_iter().all(|link| found.insert(link.identifier)));
                }
            }
        }
        assert_eq!(found.len(), 6_000);
        let range = SequenceRange::read("1000-1999").expect("a fixed range");
        let january = Month::of_secs(UnixSecs(0));
        let near = content(&records, ListPart::Range(january, range)).expect("it exists").1;
        assert!(near.iter().all(Option::is_some), "{near:?}");
        let none = SequenceRange::read("3000-3999").expect("a fixed range");
        assert_eq!(content(&records, ListPart::Range(january, none)), None);
    }
}
