//! Lists of a static repository behind the proxy, read as harvesters read them.
#![allow(dead_code, reason = "each test binary uses its part")]

use super::proxy::Proxy;
use super::support::envelope::Strictness;
use super::support::judge::judge;

/// The page, which is valid.
#[track_caller]
pub(crate) fn page(proxy: &Proxy, query: &str) -> String {
    let got = proxy.get(&format!("/x?{query}"));
    assert_eq!(got.status, 200, "{query}: {}", got.text());
    judge(&got.body, Strictness::Schema).unwrap_or_else(|wrong| panic!("{query}: {wrong}\n{}", got.text()));
    got.text()
}

pub(crate) fn between<'t>(text: &'t str, start: &str, end: &str) -> Vec<&'t str> {
    text.split(start).skip(1).filter_map(|part| Some(part.split_once(end)?.0)).collect()
}

pub(crate) fn identifiers(page: &str) -> Vec<usize> {
    let found = between(page, "<identifier>oai:letters.example:", "</identifier>");
    found.into_iter().map(|number| number.parse().expect("a number")).collect()
}

/// The code of the error that a page is.
#[track_caller]
pub(crate) fn error(proxy: &Proxy, query: &str) -> String {
    let page = page(proxy, query);
    between(&page, "<error code=\"", "\"").first().map_or(page.clone(), |code| (*code).to_owned())
}

pub(crate) fn token(page: &str) -> Option<String> {
    let element = *between(page, "<resumptionToken", "</resumptionToken>").first()?;
    Some(element.split_once('>')?.1.to_owned())
}

/// All pages of a list.
#[track_caller]
pub(crate) fn pages(proxy: &Proxy, verb: &str, arguments: &str) -> Vec<String> {
    from_on(proxy, verb, page(proxy, &format!("verb={verb}&{arguments}")))
}

/// A page of a list and all behind it.
#[track_caller]
pub(crate) fn from_on(proxy: &Proxy, verb: &str, first: String) -> Vec<String> {
    let mut pages = vec![first];
    while let Some(token) = token(&pages[pages.len() - 1]) {
        assert!(pages.len() < 50, "the list has no end");
        pages.push(page(proxy, &format!("verb={verb}&resumptionToken={token}")));
    }
    pages
}

/// The records of a list behind a page of it.
pub(crate) fn rest(proxy: &Proxy, page: &str) -> Vec<usize> {
    identifiers(&from_on(proxy, "ListRecords", page.to_owned())[1..].concat())
}

/// The records of the list in oai_dc.
#[track_caller]
pub(crate) fn harvested(proxy: &Proxy) -> Vec<usize> {
    identifiers(&pages(proxy, "ListRecords", "metadataPrefix=oai_dc").concat())
}
