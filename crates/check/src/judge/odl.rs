//! The extensions of ODL-Search (Suleman and Fox, "Beyond Harvesting").

use crate::exchange::{CheckRequest, CheckResponse};
use crate::findings::Findings;
use crate::headers::read_headers;
use crate::rules::Rule;
use crate::tree::Element;

/// The responses to searches for one word, and to `ListSets`.
pub(crate) struct SearchResponses {
    /// The first two records.
    pub(crate) both: CheckResponse,
    /// The first record.
    pub(crate) first: CheckResponse,
    /// The second record.
    pub(crate) second: CheckResponse,
    /// The record of rank 0, which does not exist.
    pub(crate) zeroth: CheckResponse,
    /// The first two records, requested without a format.
    pub(crate) without_format: CheckResponse,
    pub(crate) sets: CheckResponse,
}

/// The requests of [`SearchResponses`], in its order.
pub(crate) fn search_requests(word: &str) -> [CheckRequest; 6] {
    let search = |start: u8, stop: u8| format!("odlsearch1/{word}/{start}/{stop}");
    let list = |set: &str| {
        CheckRequest::get(&[("verb", "ListIdentifiers"), ("metadataPrefix", "oai_dc"), ("set", set)])
    };
    [
        list(&search(1, 2)),
        list(&search(1, 1)),
        list(&search(2, 2)),
        list(&search(0, 0)),
        CheckRequest::get(&[("verb", "ListIdentifiers"), ("set", &search(1, 2))]),
        CheckRequest::get(&[("verb", "ListSets")]),
    ]
}

/// A word of a title in oai_dc that a search can find: the longest one of letters.
pub(crate) fn word_to_search(records: &CheckResponse) -> Option<String> {
    let titles = records.verb_element().into_iter().flat_map(|verb| descendants(verb, "title"));
    let words = titles.flat_map(|title| title.text.split(|character: char| !character.is_alphanumeric()));
    let words = words.filter(|word| word.chars().all(char::is_alphabetic));
    words.max_by_key(|word| word.chars().count()).filter(|word| !word.is_empty()).map(str::to_owned)
}

/// Judges the description of the component.
pub(crate) fn judge_description(identify: &CheckResponse, findings: &mut Findings) {
    let found = identify.verb_element().into_iter().flat_map(|verb| descendants(verb, "odl-description"));
    let text = |element: &Element, name: &str| {
        let child = element.children.iter().find(|child| child.name == name);
        child.map(|child| child.text.trim().to_owned()).unwrap_or_default()
    };
    let described: Vec<String> =
        found.map(|element| format!("{} {}", text(element, "protocol"), text(element, "version"))).collect();
    let holds = described.iter().any(|described| {
        described.split_once(' ').is_some_and(|(name, version)| name == "ODL-Search" && !version.is_empty())
    });
    let received = if described.is_empty() { "no odl-description".to_owned() } else { described.join(", ") };
    findings.judge(Rule::OdlDescription, holds, identify, received);
}

/// Judges the searches.
pub(crate) fn judge_searches(responses: &SearchResponses, findings: &mut Findings) {
    let SearchResponses { both, first, second, zeroth, without_format, sets } = responses;
    let found = identifiers(both);
    if findings.is_judgeable(Rule::OdlSearch, both) {
        findings.judge(Rule::OdlSearch, !found.is_empty(), both, both.summarize());
    }
    if findings.is_judgeable(Rule::OdlSets, sets) {
        let is_empty = sets.has_only_error("noSetHierarchy")
            || sets.verb_element().is_some_and(|verb| verb.children_named("set").next().is_none());
        findings.judge(Rule::OdlSets, is_empty, sets, sets.summarize());
    }
    if found.is_empty() {
        return;
    }
    let hits = both.root().and_then(hits_of);
    let count = hits.as_deref().and_then(|hits| hits.parse::<u64>().ok());
    let holds = count.is_some_and(|count| count >= found.len() as u64);
    let received = hits.map_or_else(|| "no hits".to_owned(), |hits| format!("{hits} hits"));
    findings.judge(Rule::OdlHits, holds, both, format!("{received}, {} records", found.len()));
    let parts = [identifiers(first), identifiers(second)].concat();
    let received = format!("{} and {}", found.join(" "), parts.join(" "));
    findings.judge(Rule::OdlRanges, parts == found, first, received);
    let below = identifiers(zeroth);
    findings.judge(Rule::OdlRanges, below.is_empty(), zeroth, zeroth.summarize());
    let unnamed = identifiers(without_format);
    findings.judge(Rule::OdlFormat, unnamed == found, without_format, without_format.summarize());
}

fn identifiers(response: &CheckResponse) -> Vec<String> {
    read_headers(response).into_iter().map(|header| header.identifier).collect()
}

/// The text of `hits` in a `responseContainer`, which old servers write in no namespace.
fn hits_of(root: &Element) -> Option<String> {
    let container = root.children.iter().rfind(|child| child.name == "responseContainer")?;
    descendants(container, "hits").into_iter().next().map(|hits| hits.text.trim().to_owned())
}

/// All elements of this name below an element, in any namespace.
fn descendants<'e>(element: &'e Element, name: &str) -> Vec<&'e Element> {
    let mut found = Vec::new();
    let mut open: Vec<&Element> = element.children.iter().rev().collect();
    while let Some(next) = open.pop() {
        if next.name == name {
            found.push(next);
        }
        open.extend(next.children.iter().rev());
    }
    found
}
