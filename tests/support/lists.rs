//! Lists as a harvester reads them, page by page.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeMap;

use super::proxy::{LIST, Proxy};
use super::source::{Got, page_of, record};

/// A page of a list: its records, and where the list goes on.
pub(crate) fn page(numbers: std::ops::Range<usize>, token: &str) -> String {
    let whole = page_of(0);
    let (head, tail) = whole.split_once("</ListRecords>").expect("it is there");
    let records: String = numbers.map(|number| record(number).replace("Title", "T\u{ef}tle")).collect();
    let token = if token.is_empty() {
        String::new()
    } else {
        format!("<resumptionToken>{token}</resumptionToken>\n")
    };
    format!("{head}{records}{token}</ListRecords>{tail}")
}

/// How often each record stands in an answer.
pub(crate) fn records_in(text: &str) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::new();
    for piece in text.split("<identifier>oai:x:").skip(1) {
        let digits: String = piece.chars().take_while(char::is_ascii_digit).collect();
        *found.entry(digits.parse().expect("a number")).or_insert(0) += 1;
    }
    found
}

pub(crate) fn token_in(text: &str) -> Option<String> {
    let (_, behind) = text.split_once("<resumptionToken>")?;
    let (token, _) = behind.split_once("</resumptionToken>")?;
    (!token.is_empty()).then(|| token.replace("&amp;", "&"))
}

pub(crate) fn resume(proxy: &Proxy, token: &str) -> Got {
    let token: String = token.bytes().map(|byte| format!("%{byte:02X}")).collect();
    proxy.get(&format!("/x?verb=ListRecords&resumptionToken={token}"))
}

/// How often each record came, when a list is read to its end by one who retries nothing;
/// and the answers.
pub(crate) fn read_to_the_end(proxy: &Proxy) -> (BTreeMap<usize, usize>, Vec<Got>) {
    let (mut found, mut answers) = (BTreeMap::new(), Vec::new());
    let mut got = proxy.get(LIST);
    loop {
        assert_eq!((got.status, got.whole), (200, true), "answer {}: {}", answers.len(), got.text());
        for (number, count) in records_in(&got.text()) {
            *found.entry(number).or_insert(0) += count;
        }
        let token = token_in(&got.text());
        answers.push(got);
        assert!(answers.len() < 1_000, "the list never ends");
        let Some(token) = token else { return (found, answers) };
        got = resume(proxy, &token);
    }
}
