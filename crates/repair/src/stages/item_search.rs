//! Recognition of items: the kind of items in a list, and whether a text contains any.
//!
//! All stages use it. A text with an item is never removed as noise.

use crate::catalog::{RepairId, RepairSet};
use crate::lex::names::{bytes_equal, is_blank, name_span, split_name};
use crate::passes::rules::OuterContexts;
use crate::stages::head::foreign::find_root;
use crate::stages::list::rewrite::may_rewrite_clean;
use crate::stages::list::state::List;
use crate::stages::response::Response;
use crate::validate::envelope_names::{EnvelopeNames, TagMatch, is_token_name};
use crate::validate::schema::{item_of, v1_item_of};
use oaimend_oai::Verb;

/// The verbs whose items differ in name.
pub(crate) const LISTS: [Verb; 4] =
    [Verb::ListRecords, Verb::ListIdentifiers, Verb::ListSets, Verb::ListMetadataFormats];

/// Returns whether an item of some list begins at this start tag. The prefix is that of the envelope or
/// none.
pub(crate) fn begins_item(response: &Response, text: &[u8]) -> TagMatch {
    let name = text.get(1..).unwrap_or_default();
    let name = name.get(..name_span(name)).unwrap_or_default();
    let local = name.strip_prefix(response.root.prefix()).unwrap_or(name);
    let Some(verb) = LISTS.into_iter().find(|&verb| item_of(verb).name == local) else {
        return TagMatch::No;
    };
    let prefix = name.get(..name.len() - local.len()).unwrap_or_default();
    EnvelopeNames { prefix: prefix.to_vec(), ..new_list(response, verb).names }.starts_item(text)
}

/// Returns whether the text contains an item of some list. The prefix is that of the envelope or none.
pub(crate) fn contains_any_item(response: &Response, text: &[u8]) -> bool {
    LISTS.into_iter().any(|verb| {
        let list = new_list(response, verb).names;
        list.contains_item(text) || EnvelopeNames { prefix: Vec::new(), ..list }.contains_item(text)
    })
}

/// Returns the state of a list at its verb element.
pub(crate) fn new_list(response: &Response, verb: Verb) -> List {
    let name = if verb == Verb::Identify { b"OAI-PMH" } else { verb.as_bytes() };
    let is_v1 = response.root.is_v1();
    let element = if is_v1 {
        v1_item_of(verb)
    } else if response.verb_element.headers_only() {
        item_of(Verb::ListRecords)
    } else {
        item_of(verb)
    };
    let names = EnvelopeNames {
        element,
        v2_element: is_v1.then(|| item_of(verb)),
        verb: response.verb_element.name().unwrap_or(name).to_vec(),
        prefix: response.root.prefix().to_vec(),
        other_prefix: None,
        prefixes: response.prefixes(),
        headers_only: response.verb_element.headers_only(),
        repairs_torn_sections: response.config().enabled.contains(RepairId::TornSection)
            && !response.is_off(RepairId::TornSection),
    };
    let guesses = response.config().enabled != RepairSet::EMPTY;
    let is_slow = verb == Verb::Identify || names.is_rewritten() || guesses || may_rewrite_clean(response);
    let root = &response.root;
    let contexts = OuterContexts { read: root.context(), written: root.written_context() };
    let mut list = List::new(verb, names, contexts);
    if is_slow {
        list.set_slow();
    }
    list
}

#[inline]
pub(crate) fn is_item(response: &Response, list: &List, rest: &[u8]) -> bool {
    let (prefix, name) = (response.root.prefix().len(), list.names.element.name);
    let Some((b'<', rest)) = rest.split_first() else { return false };
    let Some((tag, after)) = rest.split_at_checked(prefix + name.len()) else { return false };
    let (found, local) = tag.split_at(prefix);
    bytes_equal(found, response.root.prefix())
        && bytes_equal(local, name)
        && after.first().is_some_and(|&byte| byte == b'>' || is_blank(byte))
}

/// Returns whether removed text contains items of the list, outside a further document.
pub(crate) fn contains_list_item(response: &Response, junk: &[u8]) -> bool {
    let Some(verb) = response.end.list_verb() else { return false };
    let before_root = junk.get(..find_root(junk).unwrap_or(junk.len())).unwrap_or_default();
    new_list(response, verb).names.contains_item(before_root)
}

/// Returns whether `name` is `resumptionToken` or a misspelling of it.
pub(crate) fn is_token(response: &Response, name: &[u8]) -> bool {
    name.strip_prefix(response.root.prefix()) == Some(b"resumptionToken")
        || !response.is_off(RepairId::MisspeltToken) && is_token_name(split_name(name).1)
}
