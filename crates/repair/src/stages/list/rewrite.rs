//! The last changes to a valid item: the proxy's own values and the declarations that a mapping asks for.
//!
//! [`emit`](super::emit::emit) makes them. The base URL in Identify and the provenance of records are a
//! rewrite and not a repair.

use crate::catalog::RepairId;
use crate::config::ProvenanceScope;
use crate::lex::names::name_span;
use crate::lex::outline::{Child, outline};
use crate::passes::schema_instance::declare_schema_instance;
use crate::repair_item::RepairedItem;
use crate::stages::list::state::List;
use crate::stages::response::Response;
use crate::text::edits::Edits;
use crate::text::escape::escape;
use crate::validate::schema::item_of;
use oaimend_oai::Verb;

/// Returns the edits that write the proxy's own values, and the declarations that a mapping asks for.
pub(crate) fn rewrite_item(response: &mut Response, list: &List, item: &RepairedItem) -> Edits {
    let mut edits = match list.verb() {
        Verb::Identify => rewrite_base_url(response, &item.bytes),
        Verb::ListRecords | Verb::GetRecord => response.add_provenance(item, list.written_context()),
        _ => Edits::default(),
    };
    if declares_payload_xsi(response) {
        let (tags, limits) = response.tags_and_limits();
        let (outer, element) = (list.written_context(), item_of(list.verb()));
        edits.append(declare_schema_instance(&item.bytes, element, outer, tags, limits));
        edits.sort();
    }
    edits
}

/// Returns whether payloads get the declaration of the XML Schema instance namespace.
#[inline]
fn declares_payload_xsi(response: &Response) -> bool {
    response.config().enabled.contains(RepairId::PayloadXsi) && !response.is_off(RepairId::PayloadXsi)
}

/// Returns whether a clean record may need such an edit.
#[inline]
pub(crate) fn may_rewrite_clean(response: &Response) -> bool {
    let scope = response.config().provenance.as_ref().map(|origin| origin.scope);
    scope.is_some_and(|scope| {
        scope == ProvenanceScope::All || !response.root.corrected_namespaces().is_empty()
    })
}

/// Replaces the source's base URL by the proxy's, in any form of the baseURL tags.
fn rewrite_base_url(response: &Response, identify: &[u8]) -> Edits {
    let mut edits = Edits::default();
    if response.is_off(RepairId::RewriteBaseUrl) {
        return edits;
    }
    let Some(request) = response.config().request.as_ref() else { return edits };
    let base_url = escape(request.base_url.as_bytes());
    let root = outline(identify, 0, identify.len()).and_then(|root| root.children.first().copied());
    let inner = root.and_then(|root| outline(identify, root.content.0, root.content.1));
    let fields = inner.map(|inner| inner.children).unwrap_or_default();
    for Child { start, content, end, .. } in fields.into_iter().filter(|child| child.local == b"baseURL") {
        let tag = identify.get(start..content.0).unwrap_or_default();
        if content.0 == end && tag.ends_with(b"/>") {
            let name = tag.get(1..1 + name_span(tag.get(1..).unwrap_or_default())).unwrap_or_default();
            let element = [b">", base_url.as_slice(), b"</", name, b">"].concat();
            edits.push(RepairId::RewriteBaseUrl, end - 2, end, &element);
        } else if identify.get(content.0..content.1) != Some(base_url.as_slice()) {
            edits.push(RepairId::RewriteBaseUrl, content.0, content.1, &base_url);
        }
    }
    edits
}
